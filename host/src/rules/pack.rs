//! From a core module to a component: what `preflight pack` does.

use super::load::{Shape, shape};
use wit_component::ComponentEncoder;

/// Why a file cannot be packed.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// A component already.
    #[error("it is a component already: nothing to pack")]
    Component,
    /// Not WebAssembly at all.
    #[error("it is not a WebAssembly module (it does not start with the wasm magic number)")]
    NotWasm,
    /// A module that does not validate, or is cut off.
    #[error("it is not a valid WebAssembly module: {0}")]
    Invalid(String),
    /// A module that is not a rule: no contract inside, or imports the contract does not know.
    #[error("it cannot become a component: {0}")]
    NotARule(String),
}

/// Encodes a core module, built for `wasm32-unknown-unknown` with the rule contract in it, as a component.
pub fn pack(module: &[u8]) -> Result<Vec<u8>, PackError> {
    match shape(module) {
        Shape::Module => {}
        Shape::Component => return Err(PackError::Component),
        Shape::Other => return Err(PackError::NotWasm),
    }
    // The encoder panics on a truncated module, so it is validated first.
    wasmparser::validate(module).map_err(|error| PackError::Invalid(error.to_string()))?;
    // A module without the contract becomes a component too, one that exports nothing.
    if !has_contract(module) {
        return Err(PackError::NotARule("it has no rule contract in it: was it built with preflight_sdk?".to_owned()));
    }
    ComponentEncoder::default()
        .validate(true)
        .module(module)
        .and_then(|mut encoder| encoder.encode())
        .map_err(|error| PackError::NotARule(format!("{error:#}")))
}

/// Whether a valid module has the section in which `wit-bindgen` leaves the contract.
fn has_contract(module: &[u8]) -> bool {
    wasmparser::Parser::new(0).parse_all(module).filter_map(Result::ok).any(|payload| {
        matches!(payload, wasmparser::Payload::CustomSection(section) if section.name().starts_with("component-type"))
    })
}

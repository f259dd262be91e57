//! From a file to a rule that can judge: every check that can be made before the first event.

use super::bindings::{ValidatorPre, exports::preflight::rules::validation};
use super::cache::{CodeCache, Source};
use super::engine::Sandbox;
use super::fault;
use super::limits::Limits;
use super::manifest::{Manifest, ManifestError};
use super::store::{self, Guest};
use crate::digest::Digest;
use crate::verdict::{Fault, FaultCode};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use wasmtime::component::Component;
use wasmtime::component::types::ComponentItem;

/// A component that passed every check, ready to be instantiated.
pub struct Rule {
    /// sha256 of the component file.
    pub digest: Digest,
    /// The digest as rows show it.
    pub digest_text: String,
    /// Size of the component file, bytes.
    pub size: u64,
    /// What it says of itself.
    pub manifest: Manifest,
    /// `name@version`.
    pub label: String,
    /// Imported functions, `interface#function`.
    pub imports: Vec<String>,
    /// Whether its machine code was cached or compiled now.
    pub code: Source,
    pub(super) pre: ValidatorPre<Guest>,
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.label, self.digest)
    }
}

/// Why a component is refused.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Missing or unreadable.
    #[error("cannot read it: {0}")]
    Read(#[from] io::Error),
    /// Above `limits.component`.
    #[error("it has {size} bytes, above `limits.component` ({limit} bytes)")]
    TooLarge {
        /// Its size.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// A core module.
    #[error("it is a core module, not a component: run `preflight pack` on it")]
    CoreModule,
    /// Some other file.
    #[error("it is not WebAssembly (it does not start with the wasm magic number)")]
    NotWasm,
    /// Cut off, or uses a proposal that is switched off.
    #[error("it does not compile: {0}")]
    Compile(String),
    /// Imports a function that no rule may import.
    #[error(
        "it imports {}: a rule may import only preflight:rules/lookup and preflight:rules/log (no WASI, clock, random, files or network)",
        .0.join(", ")
    )]
    Imports(Vec<String>),
    /// An enricher, where a validator is wanted.
    #[error("it is an enricher; a validator is wanted here (it exports preflight:rules/enrichment, not validation)")]
    Enricher,
    /// Does not export what a validator exports.
    #[error("it is not a validator: {0}")]
    NotAValidator(String),
    /// Misbehaved while it was instantiated or described itself.
    #[error("it failed the trial instantiation: {} ({})", .0.detail, .0.code)]
    Trial(Fault),
    /// Its manifest is not usable.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The host could not try it.
    #[error(transparent)]
    Sandbox(#[from] fault::SandboxError),
}

/// What a file holds, told from its first eight bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A core module.
    Module,
    /// A component.
    Component,
    /// Anything else.
    Other,
}

/// The shape of a file: the wasm magic number, then a version whose second half is the layer.
pub fn shape(bytes: &[u8]) -> Shape {
    match bytes {
        [0, b'a', b's', b'm', _, _, 0, 0, ..] => Shape::Module,
        [0, b'a', b's', b'm', _, _, 1, 0, ..] => Shape::Component,
        _ => Shape::Other,
    }
}

/// Reads, checks, compiles and tries a component file.
pub fn file(sandbox: &Sandbox, limits: &Limits, cache: &CodeCache, path: &Path) -> Result<Rule, LoadError> {
    bytes(sandbox, limits, cache, &read_bounded(path, limits.component)?)
}

/// The same for a component in memory.
pub fn bytes(sandbox: &Sandbox, limits: &Limits, cache: &CodeCache, wasm: &[u8]) -> Result<Rule, LoadError> {
    let size = wasm.len() as u64;
    if size > limits.component {
        return Err(LoadError::TooLarge { size, limit: limits.component });
    }
    match shape(wasm) {
        Shape::Component => {}
        Shape::Module => return Err(LoadError::CoreModule),
        Shape::Other => return Err(LoadError::NotWasm),
    }
    let digest = Digest::of(wasm);
    let (component, code) =
        cache.component(sandbox, &digest, wasm).map_err(|error| LoadError::Compile(format!("{error:#}")))?;
    let imports = imported_functions(sandbox, &component);
    let foreign: Vec<String> = imports.iter().filter(|name| !is_allowed(name)).cloned().collect();
    if !foreign.is_empty() {
        return Err(LoadError::Imports(foreign));
    }
    let pre = prepare(sandbox, &component)?;
    let manifest = Manifest::check(describe(sandbox, limits, &pre)?)?;
    component.initialize_copy_on_write_image().map_err(|error| LoadError::Compile(format!("{error:#}")))?;
    let label = manifest.label();
    Ok(Rule { digest, digest_text: digest.to_string(), size, manifest, label, imports, code, pre })
}

/// A file's bytes, unless it has more than `limit`.
pub fn read_bounded(path: &Path, limit: u64) -> Result<Vec<u8>, LoadError> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory).into());
    }
    if metadata.len() > limit {
        return Err(LoadError::TooLarge { size: metadata.len(), limit });
    }
    let mut bytes = Vec::new();
    // The length was a hint: a pipe has none, and a file may grow meanwhile.
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(LoadError::TooLarge { size: bytes.len() as u64, limit });
    }
    Ok(bytes)
}

/// Every function a component imports, `interface#function`. An interface of types only is not an import.
fn imported_functions(sandbox: &Sandbox, component: &Component) -> Vec<String> {
    let engine = sandbox.engine();
    let mut names = Vec::new();
    for (name, item) in component.component_type().imports(engine) {
        match item.ty {
            ComponentItem::ComponentInstance(instance) => {
                for (function, item) in instance.exports(engine) {
                    if !matches!(item.ty, ComponentItem::Type(_)) {
                        names.push(format!("{name}#{function}"));
                    }
                }
            }
            ComponentItem::Type(_) => {}
            _ => names.push(name.to_owned()),
        }
    }
    names
}

/// The functions the host offers, by interface of the 0.1 track of the contract.
fn is_allowed(import: &str) -> bool {
    let Some((interface, function)) = import.split_once('#') else { return false };
    let Some((name, version)) = interface.split_once('@') else { return false };
    version.starts_with("0.1.")
        && matches!((name, function), ("preflight:rules/lookup", "get") | ("preflight:rules/log", "emit" | "panicked"))
}

/// Links it, and looks whether it exports what a validator exports.
fn prepare(sandbox: &Sandbox, component: &Component) -> Result<ValidatorPre<Guest>, LoadError> {
    let engine = sandbox.engine();
    let exports = |interface: &str| {
        component.component_type().exports(engine).any(|(name, _)| name.split('@').next() == Some(interface))
    };
    if exports("preflight:rules/enrichment") && !exports("preflight:rules/validation") {
        return Err(LoadError::Enricher);
    }
    sandbox
        .linker()
        .instantiate_pre(component)
        .and_then(ValidatorPre::new)
        .map_err(|error| LoadError::NotAValidator(format!("{error:#}")))
}

/// Instantiates it once, which also type-checks its functions, and asks for its manifest.
fn describe(
    sandbox: &Sandbox,
    limits: &Limits,
    pre: &ValidatorPre<Guest>,
) -> Result<super::bindings::preflight::rules::types::Manifest, LoadError> {
    let mut store = store::new(sandbox.engine(), sandbox.metering(), limits, "a new rule", false)
        .map_err(fault::SandboxError::from)?;
    let failed = |error: wasmtime::Error, guest: &mut Guest| match fault::classify(&error, guest) {
        Ok(fault) => LoadError::Trial(starting(fault)),
        Err(error) => LoadError::Sandbox(error),
    };
    let validator = match pre.instantiate(&mut store) {
        Ok(validator) => validator,
        // Without a trap, instantiation fails only on a function of the wrong type.
        Err(error) if !error.is::<wasmtime::Trap>() && store.data().limiter.denied.is_none() => {
            return Err(LoadError::NotAValidator(format!("{error:#}")));
        }
        Err(error) => return Err(failed(error, store.data_mut())),
    };
    let guest: &validation::Guest = validator.preflight_rules_validation();
    guest.call_describe(&mut store).map_err(|error| failed(error, store.data_mut()))
}

/// A fault in words that fit a start: there is no event yet, and the limits are others.
fn starting(fault: Fault) -> Fault {
    match fault.code {
        FaultCode::Fuel => {
            let detail = format!("starting and `describe` took more than {} units of fuel", Limits::START_FUEL);
            Fault::new(FaultCode::Fuel, detail)
        }
        FaultCode::WallClock => {
            let seconds = Limits::START_WALL_CLOCK.as_secs();
            Fault::new(FaultCode::WallClock, format!("starting and `describe` took longer than {seconds} s"))
        }
        _ => fault,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_functions_of_the_contract_are_allowed() {
        assert!(is_allowed("preflight:rules/log@0.1.0#panicked"));
        assert!(is_allowed("preflight:rules/lookup@0.1.3#get"));
        for foreign in [
            "wasi:clocks/wall-clock@0.2.0#now",
            "preflight:rules/log@0.2.0#emit",
            "preflight:rules/log@0.1.0#flush",
            "preflight:rules/log",
            "run",
        ] {
            assert!(!is_allowed(foreign), "{foreign}");
        }
    }

    #[test]
    fn the_first_bytes_tell_the_shape() {
        assert_eq!(shape(b"\0asm\x01\0\0\0"), Shape::Module);
        assert_eq!(shape(b"\0asm\x0d\0\x01\0..."), Shape::Component);
        assert_eq!(shape(b"\0asm"), Shape::Other);
        assert_eq!(shape(b"hello, world"), Shape::Other);
    }
}

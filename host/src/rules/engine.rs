//! The one `Engine` everything runs on, and the linker with all a rule may import.

use super::bindings::preflight::rules::{log, lookup};
use super::metering::{Metering, Ticker};
use super::store::{Guest, HasGuest};
use wasmtime::component::Linker;
use wasmtime::{Config, Engine, OptLevel};

/// Engine, linker and ticker. Made once per process; everything served shares it.
pub struct Sandbox {
    engine: Engine,
    linker: Linker<Guest>,
    metering: Metering,
    _ticker: Ticker,
}

impl Sandbox {
    /// The sandbox that serves.
    pub fn new() -> wasmtime::Result<Self> {
        Self::with_metering(Metering::On)
    }

    /// A sandbox with or without metering.
    pub fn with_metering(metering: Metering) -> wasmtime::Result<Self> {
        let engine = Engine::new(&config(metering))?;
        let mut linker = Linker::new(&engine);
        lookup::add_to_linker::<Guest, HasGuest>(&mut linker, |guest| guest)?;
        log::add_to_linker::<Guest, HasGuest>(&mut linker, |guest| guest)?;
        let ticker = Ticker::start(&engine)?;
        Ok(Self { engine, linker, metering, _ticker: ticker })
    }

    /// The serving engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What a rule may import.
    pub(super) fn linker(&self) -> &Linker<Guest> {
        &self.linker
    }

    /// Whether fuel is counted.
    pub fn metering(&self) -> Metering {
        self.metering
    }

    /// Machine code for a component, from an engine that is thrown away: wasmtime 48 keeps compile contexts for
    /// the life of an engine, so compiling on the serving one would grow with every reload.
    pub(super) fn compile(&self, wasm: &[u8]) -> wasmtime::Result<Vec<u8>> {
        Engine::new(&config(self.metering))?.precompile_component(wasm)
    }
}

/// Deterministic, synchronous, without the proposals that rules have no use for. The cargo features `gc` and
/// `threads` stay on (builds without them have known aborts); the proposals are switched off here.
fn config(metering: Metering) -> Config {
    let metered = metering == Metering::On;
    let mut config = Config::new();
    config
        .wasm_component_model(true)
        .concurrency_support(false)
        .wasm_gc(false)
        .wasm_function_references(false)
        .wasm_exceptions(false)
        .gc_support(false)
        .wasm_threads(false)
        .wasm_memory64(false)
        .wasm_multi_memory(false)
        .wasm_relaxed_simd(false)
        .cranelift_nan_canonicalization(true)
        .cranelift_opt_level(OptLevel::Speed)
        .consume_fuel(metered)
        .epoch_interruption(metered)
        .max_wasm_stack(super::Limits::STACK);
    config
}

//! The one function that makes stores, and what the host keeps beside a guest.

use super::bindings::preflight::rules::types::{Row as GuestRow, Value as GuestValue};
use super::bindings::preflight::rules::{log, lookup, types};
use super::limits::{Limiter, Limits};
use super::metering::{Metering, ticks};
use crate::verdict::clip;
use std::time::Duration;
use wasmtime::component::HasData;
use wasmtime::{Engine, Store};

/// Last words longer than this are clipped, bytes.
const LAST_WORDS: usize = 1_000;

/// The host's data of one store.
pub struct Guest {
    pub(super) limiter: Limiter,
    /// The text of `log.panicked` in this call.
    pub(super) last_words: Option<String>,
    log_left: usize,
    log_budget: usize,
    log_dropped: u64,
    rule: String,
}

impl Drop for Guest {
    fn drop(&mut self) {
        if self.log_dropped > 0 {
            let (rule, lines) = (self.rule.as_str(), self.log_dropped);
            tracing::warn!(rule, lines, "the rule logged more than `limits.log` allows; that many lines were dropped");
        }
    }
}

/// Tells the generated code how to reach the host's data.
pub struct HasGuest;

impl HasData for HasGuest {
    type Data<'a> = &'a mut Guest;
}

/// A look-up that the host refuses to answer. It ends the call.
#[derive(Debug, thiserror::Error)]
#[error("the rule looked up table `{table}`, which its manifest does not declare")]
pub struct UndeclaredTable {
    table: String,
}

/// A store with every limit set and fuel and deadline for starting the guest. Nothing else makes stores.
pub(super) fn new(
    engine: &Engine,
    metering: Metering,
    limits: &Limits,
    rule: &str,
    alone: bool,
) -> wasmtime::Result<Store<Guest>> {
    let guest = Guest {
        limiter: Limiter::new(limits, alone),
        last_words: None,
        log_left: limits.log,
        log_budget: limits.log,
        log_dropped: 0,
        rule: rule.to_owned(),
    };
    let mut store = Store::new(engine, guest);
    store.limiter(|guest| &mut guest.limiter);
    store.set_hostcall_fuel(limits.result);
    // The contract has no resources: a guest that makes handles gets nowhere.
    store.set_max_component_handles(0);
    arm(&mut store, metering, Limits::START_FUEL, Limits::START_WALL_CLOCK)?;
    Ok(store)
}

/// Fuel, deadline and per-call state for the next call.
pub(super) fn arm(
    store: &mut Store<Guest>,
    metering: Metering,
    fuel: u64,
    wall_clock: Duration,
) -> wasmtime::Result<()> {
    if metering == Metering::On {
        store.set_fuel(fuel)?;
        store.set_epoch_deadline(ticks(wall_clock));
    }
    let guest = store.data_mut();
    guest.limiter.denied = None;
    guest.last_words = None;
    guest.log_left = guest.log_budget;
    Ok(())
}

impl types::Host for &mut Guest {}

impl lookup::Host for &mut Guest {
    fn get(&mut self, table: String, _key: GuestValue) -> wasmtime::Result<Option<GuestRow>> {
        // A rule that declares tables is refused at load, so any look-up is an undeclared one.
        Err(UndeclaredTable { table: clip(&table, 100).into_owned() }.into())
    }
}

impl log::Host for &mut Guest {
    fn emit(&mut self, level: log::Level, text: String) -> wasmtime::Result<()> {
        // A line costs at least its bookkeeping, so that empty lines for ever are bounded too.
        let cost = text.len() + 16;
        if cost > self.log_left {
            self.log_dropped += 1;
            return Ok(());
        }
        self.log_left -= cost;
        let rule = self.rule.as_str();
        match level {
            log::Level::Debug => tracing::debug!(target: "rule", rule, "{text}"),
            log::Level::Info => tracing::info!(target: "rule", rule, "{text}"),
            log::Level::Warn => tracing::warn!(target: "rule", rule, "{text}"),
            log::Level::Error => tracing::error!(target: "rule", rule, "{text}"),
        }
        Ok(())
    }

    fn panicked(&mut self, text: String) -> wasmtime::Result<()> {
        self.last_words = Some(clip(&text, LAST_WORDS).into_owned());
        Ok(())
    }
}

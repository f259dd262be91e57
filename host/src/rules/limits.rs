//! What a guest may use, and the limiter that holds it to that.

use serde::Serialize;
use std::time::Duration;
use wasmtime::ResourceLimiter;

/// The limits of one rule's store. Sizes are bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Fuel of every event, about one unit per wasm instruction.
    pub fuel_base: u64,
    /// Further fuel per byte of payload.
    pub fuel_per_byte: u64,
    /// Linear memory, summed over all memories of the store.
    pub memory: usize,
    /// Table elements, summed over all tables of the store.
    pub table_elements: usize,
    /// Wall clock of one call: a backstop, since fuel decides.
    pub wall_clock: Duration,
    /// What the host allocates for one call's result and imports.
    pub result: usize,
    /// Log text kept per call; the rest is dropped and counted.
    pub log: usize,
    /// Events judged in one instance before it is replaced.
    pub events_per_instance: u32,
    /// Size of a component file.
    pub component: u64,
}

impl Limits {
    /// Call stack of a guest. The threads that run guests have more (see `rules::pool`).
    pub const STACK: usize = 512 * 1024;
    /// Fuel for instantiating a component and asking it for its manifest.
    pub const START_FUEL: u64 = 200_000_000;
    /// Wall clock for the same.
    pub const START_WALL_CLOCK: Duration = Duration::from_secs(10);

    /// An event that is judged alone, in a fresh store, gets an eighth more fuel and memory: as much as a fresh instance
    /// may need beyond one that has judged before. Without it an event close to a limit would be accepted after others
    /// and refused as the first.
    pub const SLACK: usize = 8;

    /// Fuel for an event with this payload.
    pub fn fuel_for(&self, payload: usize) -> u64 {
        self.fuel_base.saturating_add(self.fuel_per_byte.saturating_mul(payload as u64))
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            fuel_base: 2_000_000,
            fuel_per_byte: 400,
            memory: 64 << 20,
            table_elements: 100_000,
            wall_clock: Duration::from_secs(1),
            result: 32 << 20,
            log: 64 << 10,
            events_per_instance: 500,
            component: 64 << 20,
        }
    }
}

/// What a guest asked for and did not get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied {
    /// `memory` or `table elements`.
    pub what: &'static str,
    /// What the store would then hold.
    pub requested: usize,
    /// What it may hold.
    pub limit: usize,
}

/// Sums memories and tables of one store. wasmtime asks it before anything grows.
#[derive(Debug)]
pub struct Limiter {
    memory: usize,
    memory_limit: usize,
    elements: usize,
    elements_limit: usize,
    slack: usize,
    /// The first refusal since it was last cleared: it tells an allocation failure from a panic.
    pub denied: Option<Denied>,
}

impl Limiter {
    /// A limiter for a new store, with [`Limits::SLACK`] if an event is judged alone in it.
    pub fn new(limits: &Limits, alone: bool) -> Self {
        Self {
            memory: 0,
            memory_limit: limits.memory,
            elements: 0,
            elements_limit: limits.table_elements,
            slack: if alone { limits.memory / Limits::SLACK } else { 0 },
            denied: None,
        }
    }

    fn deny(&mut self, what: &'static str, requested: usize, limit: usize) -> bool {
        self.denied.get_or_insert(Denied { what, requested, limit });
        false
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        // Above the module's own maximum the growth fails anyway: that is the guest's limit, not ours.
        if maximum.is_some_and(|max| desired > max) {
            return Ok(false);
        }
        let total = self.memory.saturating_add(desired.saturating_sub(current));
        if total > self.memory_limit.saturating_add(self.slack) {
            return Ok(self.deny("memory", total, self.memory_limit));
        }
        self.memory = total;
        Ok(true)
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|max| desired > max) {
            return Ok(false);
        }
        let total = self.elements.saturating_add(desired.saturating_sub(current));
        if total > self.elements_limit {
            return Ok(self.deny("table elements", total, self.elements_limit));
        }
        self.elements = total;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limiter(memory: usize, table_elements: usize) -> Limiter {
        Limiter::new(&Limits { memory, table_elements, ..Limits::default() }, false)
    }

    #[test]
    fn an_event_alone_has_some_slack_and_is_told_the_limit() {
        let mut limiter = Limiter::new(&Limits { memory: 80, ..Limits::default() }, true);
        assert!(limiter.memory_growing(0, 90, None).unwrap());
        assert!(!limiter.memory_growing(90, 91, None).unwrap());
        assert_eq!(limiter.denied, Some(Denied { what: "memory", requested: 91, limit: 80 }));
    }

    #[test]
    fn memory_is_summed_over_all_memories() {
        let mut limiter = limiter(100, 0);
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        assert!(!limiter.memory_growing(0, 41, None).unwrap());
        assert_eq!(limiter.denied, Some(Denied { what: "memory", requested: 101, limit: 100 }));
        assert!(limiter.memory_growing(0, 40, None).unwrap());
    }

    #[test]
    fn a_modules_own_maximum_is_not_our_denial() {
        let mut limiter = limiter(100, 0);
        assert!(!limiter.memory_growing(0, 60, Some(50)).unwrap());
        assert_eq!(limiter.denied, None);
    }

    #[test]
    fn table_elements_are_summed_over_all_tables() {
        let mut limiter = limiter(0, 10);
        assert!(limiter.table_growing(0, 10, None).unwrap());
        assert!(!limiter.table_growing(0, 1, None).unwrap());
        assert_eq!(limiter.denied, Some(Denied { what: "table elements", requested: 11, limit: 10 }));
    }

    #[test]
    fn the_budget_grows_with_the_payload_and_never_wraps() {
        let limits = Limits { fuel_base: 10, fuel_per_byte: 3, ..Limits::default() };
        assert_eq!(limits.fuel_for(4), 22);
        assert_eq!(Limits { fuel_per_byte: u64::MAX, ..limits }.fuel_for(2), u64::MAX);
    }
}

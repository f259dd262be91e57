//! Guards that have tripped: rolled back in the store, or, where that cannot be written, for this worker alone.

use super::saved::Saved;
use crate::releases::worker::Pin;
use crate::releases::{Change, ChangeError, Releases, RuleStore};
use crate::time::Micros;

/// How long a trip that could not be written rests before it is tried again.
const REST: Micros = 5_000_000;

/// Trips that the store does not know of yet.
#[derive(Debug)]
pub(super) struct Trips {
    by: String,
    waiting: Vec<Trip>,
}

#[derive(Debug)]
struct Trip {
    change: Change,
    why: String,
    again: Micros,
}

impl Trips {
    /// Those of an earlier run that could not be written. The history of the store names the pipeline.
    pub(super) fn new(pipeline: &str, pins: &[Pin]) -> Self {
        let mut trips = Self { by: format!("worker {pipeline}"), waiting: Vec::new() };
        for Pin { events, held, since, why } in pins {
            let change = Change::Trip { digest: *held, events: events.clone(), since: since.clone() };
            trips.add(change, why.clone());
        }
        trips
    }

    /// Adds one.
    pub(super) fn add(&mut self, change: Change, why: String) {
        self.waiting.push(Trip { change, why, again: Micros::MIN });
    }

    /// Writes to the store what is due. What cannot be written is pinned meanwhile, and written later; what no longer
    /// applies to the releases that were found is over. True if a pin was added.
    pub(super) fn write(
        &mut self,
        store: &RuleStore,
        found: Option<&Releases>,
        saved: &mut Saved,
        now: Micros,
    ) -> bool {
        let pins = saved.pins.len();
        for mut trip in std::mem::take(&mut self.waiting) {
            if found.is_some_and(|found| found.pinned(&trip.change, "").is_none()) {
                continue;
            }
            if now < trip.again {
                self.waiting.push(trip);
                continue;
            }
            match store.change(&trip.change, None, &self.by, &trip.why, now) {
                Ok(releases) => {
                    tracing::warn!(revision = releases.revision, "rolled back in the rule store: {}", trip.why);
                }
                // Another worker's guard, or a person, was faster.
                Err(ChangeError::Refused(refusal)) => tracing::info!("nothing to roll back: {refusal}"),
                Err(error) => {
                    pin(saved, &trip, &error);
                    trip.again = now.saturating_add(REST);
                    self.waiting.push(trip);
                }
            }
        }
        saved.pins.len() > pins
    }
}

fn pin(saved: &mut Saved, trip: &Trip, error: &ChangeError) {
    let Change::Trip { digest: held, events, since } = trip.change.clone() else { return };
    if saved.pins.iter().any(|pin| pin.held == held && pin.events == events && pin.since == since) {
        return;
    }
    tracing::error!(
        event_version = events,
        digest = %held,
        "the rule store cannot be written, so this worker alone takes the component out of service: {error}"
    );
    saved.pins.push(Pin { events, held, since, why: trip.why.clone() });
}

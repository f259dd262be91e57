//! What a replay came to.

use crate::telemetry::tally::{Stages, Tally};
use crate::warehouse::events::Lack;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Counts of a replay. Every selected row is in exactly one of accepted, ignored, duplicates, rejected and not replayable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayReport {
    /// Whether it only shows what would become of the rows.
    pub dry_run: bool,
    /// Rows that fit the filter.
    pub selected: u64,
    /// Events that are in silver now.
    pub accepted: u64,
    /// Events that their rule ignores now.
    pub ignored: u64,
    /// Events whose key an event in silver has: they are resolved without a row. A dry run does not look for them.
    #[serde(default)]
    pub duplicates: u64,
    /// Events that are rejected again, by stage and code: their rows are as they were.
    pub rejected: Stages,
    /// Rows that do not hold the whole event, by what they lack.
    pub not_replayable: BTreeMap<String, u64>,
    /// Accepted events that were late for closed windows, by aggregate: they are in silver, and not in the aggregate.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub late: BTreeMap<String, u64>,
}

impl ReplayReport {
    /// Events that are rejected again.
    pub fn still_rejected(&self) -> u64 {
        self.rejected.events()
    }

    pub(super) fn lacks(&mut self, lack: Lack) {
        *self.not_replayable.entry(lack.as_str().to_owned()).or_default() += 1;
    }

    pub(super) fn judged(&mut self, tally: &Tally) {
        self.accepted += tally.accepted();
        self.ignored += tally.ignored();
        self.duplicates += tally.duplicates();
        self.rejected.add(&tally.rejected());
        for (aggregate, late) in &tally.windows.late {
            *self.late.entry(aggregate.to_string()).or_default() += late;
        }
    }
}

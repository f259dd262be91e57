//! What a replay came to.

use crate::pipeline::Tally;
use crate::pipeline::report::Rejected;
use crate::warehouse::events::Lack;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Counts of a replay. Every selected row is in exactly one of accepted, ignored, rejected and not replayable.
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
    /// Events that are rejected again, by stage and code: their rows are as they were.
    pub rejected: Vec<Rejected>,
    /// Rows that do not hold the whole event, by what they lack.
    pub not_replayable: BTreeMap<String, u64>,
}

impl ReplayReport {
    /// Events that are rejected again.
    pub fn still_rejected(&self) -> u64 {
        self.rejected.iter().map(|rejected| rejected.events).sum()
    }

    pub(super) fn lacks(&mut self, lack: Lack) {
        *self.not_replayable.entry(lack.as_str().to_owned()).or_default() += 1;
    }

    pub(super) fn judged(&mut self, tally: &Tally) {
        self.accepted += tally.accepted;
        self.ignored += tally.ignored;
        for rejected in Rejected::of(tally) {
            self.reject(rejected);
        }
    }

    fn reject(&mut self, rejected: Rejected) {
        let same = |known: &&mut Rejected| known.stage == rejected.stage && known.code == rejected.code;
        match self.rejected.iter_mut().find(same) {
            Some(known) => known.events += rejected.events,
            None => self.rejected.push(rejected),
        }
    }
}

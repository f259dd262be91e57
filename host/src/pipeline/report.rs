//! What became of the events: counted once, shown at the end.

use crate::verdict::Rejection;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Stages that are counted one by one; further ones are counted together.
const STAGES: usize = 200;
const OTHER_STAGES: &str = "(other stages)";

/// Outcomes of a number of events. Every event is in exactly one of accepted, ignored, rejected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Events read.
    pub read: u64,
    /// Rows for silver.
    pub accepted: u64,
    /// Ignored by their rule.
    pub ignored: u64,
    /// Events for quarantine by stage and code.
    pub rejected: BTreeMap<(String, Option<String>), u64>,
    /// Events whose first fault did not stand: judged again alone, they had none.
    pub recovered: u64,
    /// Rows for bronze.
    pub bronze: u64,
}

impl Tally {
    /// Counts a rejection.
    pub fn reject(&mut self, rejection: &Rejection) {
        self.count((rejection.stage.to_string(), rejection.code.as_ref().map(ToString::to_string)), 1);
    }

    /// Adds the counts of a later part.
    pub fn add(&mut self, later: &Self) {
        self.read += later.read;
        self.accepted += later.accepted;
        self.ignored += later.ignored;
        self.recovered += later.recovered;
        self.bronze += later.bronze;
        for (key, count) in &later.rejected {
            self.count(key.clone(), *count);
        }
    }

    /// Stages are a rule's own words: one that puts an id into them would otherwise grow the tally with the input.
    fn count(&mut self, key: (String, Option<String>), events: u64) {
        let room = self.rejected.len() < STAGES || self.rejected.contains_key(&key);
        let key = if room { key } else { (OTHER_STAGES.to_owned(), None) };
        *self.rejected.entry(key).or_default() += events;
    }

    /// All rejections.
    pub fn quarantined(&self) -> u64 {
        self.rejected.values().sum()
    }
}

/// Counts that others may watch while a pipeline runs. They count events whose rows are durable.
#[derive(Debug, Default)]
pub struct Counts {
    /// Events.
    pub events: AtomicU64,
    /// Accepted.
    pub accepted: AtomicU64,
    /// Rejected.
    pub rejected: AtomicU64,
}

impl Counts {
    /// Adds a commit that is done.
    pub fn add(&self, tally: &Tally) {
        self.events.fetch_add(tally.read, Ordering::Relaxed);
        self.accepted.fetch_add(tally.accepted, Ordering::Relaxed);
        self.rejected.fetch_add(tally.quarantined(), Ordering::Relaxed);
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The pipeline's name.
    pub pipeline: String,
    /// Events read in this run.
    pub events: u64,
    /// Rows written to bronze; none if the pipeline has no bronze.
    pub bronze: Option<u64>,
    /// Rows written to silver.
    pub silver: u64,
    /// Rows written to quarantine.
    pub quarantine: u64,
    /// Events ignored by their rule.
    pub ignored: u64,
    /// Quarantine by stage and code.
    pub rejected: Vec<Rejected>,
    /// Events whose first fault did not stand.
    pub recovered_faults: u64,
    /// Commits of an earlier run that this one sent first.
    pub resumed_commits: u64,
    /// Whether the source was read to its end; false when the run was stopped.
    pub complete: bool,
    /// Wall clock of the run.
    pub seconds: f64,
}

/// A line of the report's quarantine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejected {
    /// The stage.
    pub stage: String,
    /// The code, for the host's stages.
    pub code: Option<String>,
    /// Events.
    pub events: u64,
}

impl Rejected {
    /// The rejections of a tally, a line each.
    pub fn of(tally: &Tally) -> impl Iterator<Item = Self> {
        let line = |((stage, code), events): (&(String, Option<String>), &u64)| Self {
            stage: stage.clone(),
            code: code.clone(),
            events: *events,
        };
        tally.rejected.iter().map(line)
    }
}

impl Report {
    /// A report of what was counted.
    pub fn new(pipeline: &str, tally: &Tally, has_bronze: bool, resumed: u64, complete: bool, took: Duration) -> Self {
        Self {
            pipeline: pipeline.to_owned(),
            events: tally.read,
            bronze: has_bronze.then_some(tally.bronze),
            silver: tally.accepted,
            quarantine: tally.quarantined(),
            ignored: tally.ignored,
            rejected: Rejected::of(tally).collect(),
            recovered_faults: tally.recovered,
            resumed_commits: resumed,
            complete,
            seconds: took.as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    #[test]
    fn a_rule_that_puts_ids_into_stages_does_not_grow_the_tally() {
        let mut tally = Tally::default();
        for number in 0..STAGES + 50 {
            let stage = Cow::Owned(format!("ORDER_{number:04}"));
            tally.reject(&Rejection { stage, code: None, reason: String::new() });
        }
        assert_eq!(tally.rejected.len(), STAGES + 1);
        assert_eq!(tally.rejected[&(OTHER_STAGES.to_owned(), None)], 50);
        let mut all = tally.clone();
        all.add(&tally);
        assert_eq!((all.quarantined(), all.rejected.len()), (2 * (STAGES as u64 + 50), STAGES + 1));
    }
}

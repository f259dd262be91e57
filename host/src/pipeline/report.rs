//! What became of the events, shown at the end.

use crate::config::Config;
use crate::ledger::Run;
use crate::telemetry::tally::{Stages, Tally};
use crate::telemetry::value_counts::ValueCounts;
use crate::telemetry::window_counts::AggregateCounts;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

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
    /// The same by the value of a column; none of a pipeline that counts by none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silver_by: Option<SilverBy>,
    /// Rows written to quarantine.
    pub quarantine: u64,
    /// Events ignored by their rule.
    pub ignored: u64,
    /// Events that their producer sent twice: of such an event only the first counts.
    pub duplicates: u64,
    /// Events whose message was delivered before and committed: they are written nowhere.
    pub redelivered: u64,
    /// Quarantine by stage and code.
    pub rejected: Stages,
    /// Events whose first fault did not stand.
    pub recovered_faults: u64,
    /// Panes and late events by aggregate; none of a pipeline that measures nothing over windows.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub aggregates: BTreeMap<String, AggregateCounts>,
    /// Commits of an earlier run that this one sent first.
    pub resumed_commits: u64,
    /// Whether the source was read to its end; false when the run was stopped.
    pub complete: bool,
    /// Bytes of the source that were read, those passed over because an earlier run had them included; none if nothing was.
    pub bytes: Option<u64>,
    /// The run that replaces tables, if it is one: then all counts are those of the whole run, over all its starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<ReplacingRun>,
    /// Wall clock of the run.
    pub seconds: f64,
    /// Events read in a second of it. Where a run was gone on with, `events` are more than were read in this time.
    pub events_per_second: f64,
}

/// Rows of silver by the value of a column.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SilverBy {
    /// The column.
    pub column: String,
    /// Rows by value, the first hundred values.
    pub values: BTreeMap<String, u64>,
    /// Rows of all other values.
    pub others: u64,
}

impl SilverBy {
    fn new(column: &str, counts: &ValueCounts) -> Self {
        let values = counts.iter().map(|(value, rows)| (value.to_owned(), rows)).collect();
        Self { column: column.to_owned(), values, others: counts.others() }
    }

    /// The values, the most frequent first.
    pub fn by_frequency(&self) -> Vec<(&str, u64)> {
        let mut values: Vec<(&str, u64)> = self.values.iter().map(|(value, rows)| (value.as_str(), *rows)).collect();
        values.sort_by_key(|(_, rows)| std::cmp::Reverse(*rows));
        values
    }
}

/// How a run ended, and how much it read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Course {
    /// Events that this process has read.
    pub read: u64,
    /// Commits of an earlier run that it sent first.
    pub resumed: u64,
    /// Whether the source was read to its end.
    pub complete: bool,
    /// Bytes of the source that were read, if any was.
    pub bytes: Option<u64>,
    /// Wall clock.
    pub took: Duration,
}

/// A run that replaces tables.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplacingRun {
    /// Its id.
    pub id: String,
    /// Whether the tables have its rows by now.
    pub published: bool,
    /// Where the rejected records are, if they go to a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejects: Option<PathBuf>,
}

impl Report {
    /// A report of what was counted.
    pub fn new(config: &Config, tally: &Tally, course: Course) -> Self {
        let Course { read, resumed, complete, bytes, took } = course;
        let seconds = took.as_secs_f64();
        Self {
            pipeline: config.name.clone(),
            events: tally.read,
            bronze: config.bronze.as_ref().map(|_| tally.bronze),
            silver: tally.accepted(),
            silver_by: config.silver.count_by.as_ref().map(|column| SilverBy::new(column, &tally.silver_by)),
            quarantine: tally.quarantined(),
            ignored: tally.ignored(),
            duplicates: tally.duplicates(),
            redelivered: tally.redelivered,
            rejected: tally.rejected(),
            recovered_faults: tally.recovered,
            aggregates: tally.windows.by_aggregate(),
            resumed_commits: resumed,
            complete,
            bytes,
            run: None,
            seconds,
            // A run of no time at all has no rate that JSON could write.
            events_per_second: read as f64 / seconds.max(0.001),
        }
    }

    /// The report of a run that replaces tables.
    #[must_use]
    pub fn of_run(self, run: &Run, published: bool) -> Self {
        let rejects =
            run.staged.files.as_ref().map(|files| if published { files.published() } else { files.staged(&run.id) });
        Self { run: Some(ReplacingRun { id: run.id.clone(), published, rejects }), ..self }
    }
}

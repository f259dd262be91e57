//! What became of the events, shown at the end.

use crate::ledger::Run;
use crate::telemetry::tally::{Stages, Tally};
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
    /// The run that replaces tables, if it is one: then all counts are those of the whole run, over all its starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<ReplacingRun>,
    /// Wall clock of the run.
    pub seconds: f64,
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
    pub fn new(pipeline: &str, tally: &Tally, has_bronze: bool, resumed: u64, complete: bool, took: Duration) -> Self {
        Self {
            pipeline: pipeline.to_owned(),
            events: tally.read,
            bronze: has_bronze.then_some(tally.bronze),
            silver: tally.accepted(),
            quarantine: tally.quarantined(),
            ignored: tally.ignored(),
            duplicates: tally.duplicates(),
            redelivered: tally.redelivered,
            rejected: tally.rejected(),
            recovered_faults: tally.recovered,
            aggregates: tally.windows.by_aggregate(),
            resumed_commits: resumed,
            complete,
            run: None,
            seconds: took.as_secs_f64(),
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

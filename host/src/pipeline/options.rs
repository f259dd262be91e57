//! How a run differs from the pipeline file.

use crate::config::MaxRejects;
use crate::stop::Stop;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::status::Status;
use crate::time::Clock;
use std::sync::Arc;

/// How a run differs from the pipeline file.
#[derive(Clone)]
pub struct Options {
    /// Take a new ledger although the tables have rows.
    pub new_ledger: bool,
    /// Leave open windows that the ledger holds, whatever they hold.
    pub forget_windows: bool,
    /// Drop a run that replaces tables and is not over, and begin anew.
    pub restart: bool,
    /// How many events may be rejected; none leaves that to the pipeline file.
    pub max_rejects: Option<MaxRejects>,
    /// Processing time.
    pub clock: Arc<dyn Clock>,
    /// Asked to stop.
    pub stop: Stop,
    /// What is counted and measured while it runs: of this run alone.
    pub metrics: Metrics,
    /// What it says of itself while it runs.
    pub status: Status,
}

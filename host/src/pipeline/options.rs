//! How a run differs from the pipeline file, and how it is asked to stop.

use crate::telemetry::metrics::Metrics;
use crate::telemetry::status::Status;
use crate::time::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

/// How a run differs from the pipeline file.
#[derive(Clone)]
pub struct Options {
    /// Take a new ledger although the tables have rows.
    pub new_ledger: bool,
    /// Processing time.
    pub clock: Arc<dyn Clock>,
    /// Asked to stop.
    pub stop: Stop,
    /// What is counted and measured while it runs: of this run alone.
    pub metrics: Metrics,
    /// What it says of itself while it runs.
    pub status: Status,
}

/// A request to stop: the source ends, what was read is finished.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<(AtomicBool, Notify)>);

impl Stop {
    /// Asks to stop.
    pub fn request(&self) {
        self.0.0.store(true, Ordering::SeqCst);
        self.0.1.notify_waiters();
    }

    /// Whether it was asked.
    pub fn requested(&self) -> bool {
        self.0.0.load(Ordering::SeqCst)
    }

    /// Returns once it is asked.
    pub async fn wait(&self) {
        loop {
            let asked = self.0.1.notified();
            if self.requested() {
                return;
            }
            asked.await;
        }
    }
}

//! Waiting between tries: exponential, with jitter, and giving up in the end.

use crate::ledger::LedgerError;
use crate::pace::Pace;
use crate::running_time::{Halt, RunningTime};
use crate::source::{OpenError, SourceError};
use crate::telemetry::metrics::{Metrics, Retry};
use crate::telemetry::status::{Status, Trouble};
use crate::warehouse::WarehouseError;
use std::fmt::Display;
use std::time::{Duration, Instant};

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(10);

/// A failure that may be worth another try.
pub trait MayPass: Display {
    /// What failed.
    fn what(&self) -> Retry;

    /// Whether it may pass by itself.
    fn may_pass(&self) -> bool;
}

impl MayPass for WarehouseError {
    fn what(&self) -> Retry {
        Retry::Warehouse
    }

    fn may_pass(&self) -> bool {
        self.retryable
    }
}

impl MayPass for LedgerError {
    fn what(&self) -> Retry {
        Retry::Ledger
    }

    fn may_pass(&self) -> bool {
        matches!(self, Self::Retryable { .. })
    }
}

impl MayPass for OpenError {
    fn what(&self) -> Retry {
        match self {
            Self::Source(_) => Retry::Source,
            Self::Ledger(error) => error.what(),
        }
    }

    fn may_pass(&self) -> bool {
        match self {
            Self::Source(error) => matches!(error, SourceError::Pubsub { retryable: true, .. }),
            Self::Ledger(error) => error.may_pass(),
        }
    }
}

/// How long it is tried, and where that is counted and told.
#[derive(Debug, Clone)]
pub struct Patience {
    give_up_after: Duration,
    metrics: Metrics,
    status: Status,
    running_time: Option<RunningTime>,
}

impl Patience {
    /// Patience of a pipeline.
    pub fn new(give_up_after: Duration, metrics: &Metrics, status: &Status) -> Self {
        Self { give_up_after, metrics: metrics.clone(), status: status.clone(), running_time: None }
    }

    /// The same; while something fails and is waited for, this stands still.
    #[must_use]
    pub fn halting(self, running_time: &RunningTime) -> Self {
        Self { running_time: Some(running_time.clone()), ..self }
    }
}

/// Repeats a call while what fails may pass: another program holds the database, its disk is full, Pub/Sub is not reached.
pub async fn retrying<T, E: MayPass, F: Future<Output = Result<T, E>>>(
    patience: &Patience,
    call: impl Fn() -> F,
) -> Result<T, E> {
    let mut backoff = Backoff::new(patience);
    loop {
        match call().await {
            Err(error) if error.may_pass() => {
                tracing::warn!("{error}; trying again");
                if !backoff.wait(error.what(), error.to_string()).await {
                    return Err(error);
                }
            }
            other => return other,
        }
    }
}

/// Paces the tries of one operation. While it has failed and not worked yet, the pipeline's status says so, and running time
/// stands still.
#[derive(Debug)]
pub struct Backoff<'a> {
    patience: &'a Patience,
    since: Instant,
    pace: Pace,
    trouble: Option<Trouble>,
    halt: Option<Halt>,
}

impl<'a> Backoff<'a> {
    /// Starts counting now.
    pub fn new(patience: &'a Patience) -> Self {
        Self { patience, since: Instant::now(), pace: Pace::new(FIRST, LONGEST), trouble: None, halt: None }
    }

    /// Waits before another try of what failed, and why. False when it is time to give up.
    pub async fn wait(&mut self, what: Retry, why: String) -> bool {
        let Patience { give_up_after, metrics, status, running_time } = self.patience;
        if self.since.elapsed() >= *give_up_after {
            return false;
        }
        metrics.retried(what);
        let trouble = || if what == Retry::Source { status.no_events() } else { status.trouble() };
        self.trouble.get_or_insert_with(trouble).is(why);
        self.halt = self.halt.take().or_else(|| running_time.as_ref().map(RunningTime::halt));
        tokio::time::sleep(self.pace.wait()).await;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::status::Board;
    use crate::time::{Clock, FixedClock};
    use std::sync::Arc;

    #[tokio::test]
    async fn it_gives_up_when_the_time_has_passed_and_until_then_it_is_in_trouble_and_time_stands_still() {
        let clock: Arc<dyn Clock> = Arc::new(FixedClock(0));
        let board = Board::new(["p"], &clock);
        let (metrics, status) = &board.pipelines()[0];
        let patience = |give_up_after| Patience::new(give_up_after, metrics, status);
        assert!(!Backoff::new(&patience(Duration::ZERO)).wait(Retry::Append, "full".into()).await);
        assert_eq!(status.now().trouble(), None);
        let running_time = RunningTime::start();
        let patience = patience(Duration::from_mins(1)).halting(&running_time);
        let mut backoff = Backoff::new(&patience);
        assert!(backoff.wait(Retry::Append, "full".into()).await);
        assert_eq!(status.now().trouble().map(|failing| failing.why.as_str()), Some("full"));
        assert!(running_time.stands_still());
        drop(backoff);
        assert_eq!(status.now().trouble(), None);
        assert!(!running_time.stands_still());
    }
}

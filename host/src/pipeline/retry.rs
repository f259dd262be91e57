//! Waiting between tries: exponential, with jitter, and giving up in the end.

use crate::ledger::LedgerError;
use crate::source::OpenError;
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
    const WHAT: Retry;

    /// Whether it may pass by itself.
    fn may_pass(&self) -> bool;
}

impl MayPass for WarehouseError {
    const WHAT: Retry = Retry::Warehouse;

    fn may_pass(&self) -> bool {
        self.retryable
    }
}

impl MayPass for LedgerError {
    const WHAT: Retry = Retry::Ledger;

    fn may_pass(&self) -> bool {
        matches!(self, Self::Retryable { .. })
    }
}

impl MayPass for OpenError {
    const WHAT: Retry = Retry::Ledger;

    fn may_pass(&self) -> bool {
        matches!(self, Self::Ledger(error) if error.may_pass())
    }
}

/// How long it is tried, and where that is counted and told.
#[derive(Debug, Clone)]
pub struct Patience {
    give_up_after: Duration,
    metrics: Metrics,
    status: Status,
}

impl Patience {
    /// Patience of a pipeline.
    pub fn new(give_up_after: Duration, metrics: &Metrics, status: &Status) -> Self {
        Self { give_up_after, metrics: metrics.clone(), status: status.clone() }
    }
}

/// Repeats a call while another program holds the database or its disk is full.
pub async fn retrying<T, E: MayPass, F: Future<Output = Result<T, E>>>(
    patience: &Patience,
    call: impl Fn() -> F,
) -> Result<T, E> {
    let mut backoff = Backoff::new(patience);
    loop {
        match call().await {
            Err(error) if error.may_pass() => {
                tracing::warn!("{error}; trying again");
                if !backoff.wait(E::WHAT, error.to_string()).await {
                    return Err(error);
                }
            }
            other => return other,
        }
    }
}

/// Paces the tries of one operation. While it has failed and not worked yet, the pipeline's status says so.
#[derive(Debug)]
pub struct Backoff<'a> {
    patience: &'a Patience,
    since: Instant,
    next: Duration,
    trouble: Option<Trouble>,
}

impl<'a> Backoff<'a> {
    /// Starts counting now.
    pub fn new(patience: &'a Patience) -> Self {
        Self { patience, since: Instant::now(), next: FIRST, trouble: None }
    }

    /// Waits before another try of what failed, and why. False when it is time to give up.
    pub async fn wait(&mut self, what: Retry, why: String) -> bool {
        let Patience { give_up_after, metrics, status } = self.patience;
        if self.since.elapsed() >= *give_up_after {
            return false;
        }
        metrics.retried(what);
        self.trouble.get_or_insert_with(|| status.trouble()).is(why);
        tokio::time::sleep(jitter(self.next, fastrand::f64())).await;
        self.next = (self.next * 2).min(LONGEST);
        true
    }
}

/// Between half of `wait` and all of it; `random` is in 0..1.
fn jitter(wait: Duration, random: f64) -> Duration {
    wait.mul_f64(f64::midpoint(1.0, random))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::status::Board;
    use crate::time::{Clock, FixedClock};
    use std::sync::Arc;

    #[test]
    fn jitter_keeps_between_half_and_whole() {
        let second = Duration::from_secs(1);
        assert_eq!(jitter(second, 0.0), second / 2);
        assert!(jitter(second, 0.999) <= second);
    }

    #[tokio::test]
    async fn it_gives_up_when_the_time_has_passed_and_is_in_trouble_until_then() {
        let clock: Arc<dyn Clock> = Arc::new(FixedClock(0));
        let board = Board::new(["p"], &clock);
        let (metrics, status) = &board.pipelines()[0];
        let patience = |give_up_after| Patience::new(give_up_after, metrics, status);
        assert!(!Backoff::new(&patience(Duration::ZERO)).wait(Retry::Append, "full".into()).await);
        assert_eq!(status.now().trouble(), None);
        let patience = patience(Duration::from_mins(1));
        let mut backoff = Backoff::new(&patience);
        assert!(backoff.wait(Retry::Append, "full".into()).await);
        assert_eq!(status.now().trouble().map(|failing| failing.why.as_str()), Some("full"));
        drop(backoff);
        assert_eq!(status.now().trouble(), None);
    }
}

//! Waiting between tries: exponential, with jitter, and giving up in the end.

use crate::ledger::LedgerError;
use crate::source::OpenError;
use crate::warehouse::WarehouseError;
use std::fmt::Display;
use std::time::{Duration, Instant};

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(10);

/// A failure that may be worth another try.
pub trait MayPass: Display {
    /// Whether it may pass by itself.
    fn may_pass(&self) -> bool;
}

impl MayPass for WarehouseError {
    fn may_pass(&self) -> bool {
        self.retryable
    }
}

impl MayPass for LedgerError {
    fn may_pass(&self) -> bool {
        matches!(self, Self::Retryable { .. })
    }
}

impl MayPass for OpenError {
    fn may_pass(&self) -> bool {
        matches!(self, Self::Ledger(error) if error.may_pass())
    }
}

/// Repeats a call while another program holds the database or its disk is full.
pub async fn retrying<T, E: MayPass, F: Future<Output = Result<T, E>>>(
    give_up_after: Duration,
    call: impl Fn() -> F,
) -> Result<T, E> {
    let mut backoff = Backoff::new(give_up_after);
    loop {
        match call().await {
            Err(error) if error.may_pass() => {
                tracing::warn!("{error}; trying again");
                if !backoff.wait().await {
                    return Err(error);
                }
            }
            other => return other,
        }
    }
}

/// Paces the tries of one operation.
#[derive(Debug)]
pub struct Backoff {
    since: Instant,
    give_up_after: Duration,
    next: Duration,
}

impl Backoff {
    /// Starts counting now.
    pub fn new(give_up_after: Duration) -> Self {
        Self { since: Instant::now(), give_up_after, next: FIRST }
    }

    /// Waits before another try. False when it is time to give up.
    pub async fn wait(&mut self) -> bool {
        if self.since.elapsed() >= self.give_up_after {
            return false;
        }
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

    #[test]
    fn jitter_keeps_between_half_and_whole() {
        let second = Duration::from_secs(1);
        assert_eq!(jitter(second, 0.0), second / 2);
        assert!(jitter(second, 0.999) <= second);
    }

    #[tokio::test]
    async fn it_gives_up_when_the_time_has_passed() {
        assert!(!Backoff::new(Duration::ZERO).wait().await);
        assert!(Backoff::new(Duration::from_mins(1)).wait().await);
    }
}

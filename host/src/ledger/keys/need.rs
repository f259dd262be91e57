//! What keys take: figures of this store, for whoever sizes a worker.

use super::index;
use super::log::{FULL, SLICES};
use super::{CLAIM, ID};
use std::time::Duration;

/// What a number of keys takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyNeed {
    /// The most keys there are at a time.
    pub keys: u64,
    /// Bytes of the ledger's database.
    pub disk: u64,
    /// Bytes of memory.
    pub memory: u64,
}

impl KeyNeed {
    /// Of message ids that come at this rate, a second, and are kept for `horizon` after their ack.
    pub fn of_ids(rate: f64, horizon: Duration) -> Self {
        Self::of(rate, horizon, ID)
    }

    /// Of dedup keys that come at this rate, a second.
    pub fn of_claims(rate: f64, horizon: Duration) -> Self {
        Self::of(rate, horizon, CLAIM)
    }

    /// Bytes that one dedup key takes on disk, and in memory once its bucket is full.
    pub const fn of_a_claim() -> (usize, usize) {
        (CLAIM, index::SEALED_BYTES)
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is above zero, and cut at the most there can be"
    )]
    fn of(rate: f64, horizon: Duration, width: usize) -> Self {
        // A bucket is kept as long as its last key.
        let longest = horizon.as_secs_f64() * (1.0 + 1.0 / f64::from(SLICES));
        let keys = (rate * longest).ceil().min(u64::MAX as f64) as u64;
        let filling = keys.min(FULL.into());
        // Pages are full but for the last few bytes.
        let disk = keys.saturating_mul(width as u64 + 1);
        let sealed = (keys - filling).saturating_mul(index::SEALED_BYTES as u64);
        Self { keys, disk, memory: sealed.saturating_add(filling * index::FILLING_BYTES as u64) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_need_grows_with_rate_and_horizon() {
        let hour = KeyNeed::of_claims(1_000.0, Duration::from_hours(1));
        assert_eq!(hour.keys, 4_050_000);
        assert_eq!(hour.disk, 4_050_000 * 37);
        assert_eq!(hour.memory, (4_050_000 - (1 << 20)) * 9 + (1 << 20) * 48);
        let many = KeyNeed::of_claims(20e6 / 4_050.0, Duration::from_hours(1));
        assert!(many.keys >= 20_000_000 && many.memory < 512 << 20, "{many:?}");
        assert_eq!(KeyNeed::of_ids(2.0, Duration::from_secs(8)), KeyNeed { keys: 18, disk: 18 * 17, memory: 18 * 48 });
        assert_eq!(KeyNeed::of_claims(f64::MAX, Duration::MAX).keys, u64::MAX, "not wrapped around");
    }
}

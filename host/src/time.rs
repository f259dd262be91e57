//! Time as the host handles it: microseconds since 1970-01-01T00:00:00Z, UTC, and a clock that is passed in.
//!
//! Event time (when it happened) and processing time (when we handle it) are both `Micros`, told apart by the
//! name of the variable or column that holds them. The text form has one grammar, shared with the rules:
//! [`preflight_sdk::time`].

pub use preflight_sdk::time::{MAX_MICROS, MIN_MICROS, format_date, format_micros, parse_rfc3339};
use std::time::{SystemTime, UNIX_EPOCH};

/// Microseconds since 1970-01-01T00:00:00Z.
pub type Micros = i64;

/// One day of 86,400 seconds.
pub const DAY: Micros = 86_400_000_000;

/// Where processing time comes from, so that a test can hold it still.
pub trait Clock: Send + Sync {
    /// The present processing time.
    fn now(&self) -> Micros;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Micros {
        from_system(SystemTime::now())
    }
}

/// A clock that stands still.
#[derive(Debug, Clone, Copy)]
pub struct FixedClock(pub Micros);

impl Clock for FixedClock {
    fn now(&self) -> Micros {
        self.0
    }
}

/// A system time in microseconds, clamped to what a TIMESTAMP column can hold.
pub fn from_system(time: SystemTime) -> Micros {
    let micros = match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_micros()).unwrap_or(MAX_MICROS),
        Err(before) => i64::try_from(before.duration().as_micros()).map_or(MIN_MICROS, |m| -m),
    };
    micros.clamp(MIN_MICROS, MAX_MICROS)
}

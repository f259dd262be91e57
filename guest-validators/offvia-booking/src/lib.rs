//! Offvia's booking events, version 1.
//!
//! Stages, wording and accepted spellings are those of the Python `DoFn` in Offvia's streaming pipeline; README.md lists where this rule
//! differs on purpose.

mod booking;

pub use booking::{Booking, validate};

preflight_sdk::validator!(validate, event_versions: ["1"]);

#[cfg(test)]
mod tests;

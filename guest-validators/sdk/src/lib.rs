//! What a Preflight rule is written with.
//!
//! A rule is a function from an event to a verdict: a row, a rejection, or "not for us". This crate gives it strict JSON ([`json`]), exact
//! decimals ([`decimal`]) and times ([`time`]), rows that declare their own columns ([`row!`]), required fields bound by name
//! ([`require!`]), and the export that makes the crate a component ([`validator!`], [`enricher!`]).
//!
//! ```
//! use preflight_sdk::prelude::*;
//!
//! row!(
//!     pub struct Reading {
//!         pub sensor: Text,
//!         pub celsius: Numeric,
//!         pub note: Option<Text>,
//!         pub taken_at: EventTime,
//!     }
//! );
//!
//! validator!(validate, event_versions: ["1"]);
//!
//! /// A sensor measures what is physically possible.
//! pub fn validate(event: &Event) -> Verdict<Reading> {
//!     let reading = event.json()?;
//!     require!(reading => sensor, celsius, taken_at);
//!
//!     let celsius = celsius.numeric()?;
//!     if celsius < Numeric::new(-27_315, 2) {
//!         return reject(stage::BUSINESS_RULE_VALIDATION, "Invalid celsius: celsius must not be below absolute zero");
//!     }
//!     Ok(Reading {
//!         sensor: sensor.text()?,
//!         celsius,
//!         note: reading.opt_text("note")?,
//!         taken_at: taken_at.timestamp().or_reject(stage::EVENT_TIME_VALIDATION, "Invalid taken_at")?.into(),
//!     })
//! }
//!
//! # fn main() {
//! let event = Event::new(r#"{"sensor": 7, "celsius": "21.50", "taken_at": "2026-10-07T16:10:00+02:00"}"#);
//! assert_eq!(validate(&event).unwrap().sensor, "7");
//! # }
//! ```
//!
//! The logic is plain Rust and is tested natively. The host depends on this crate too, for the grammars: what a rule takes for a time or
//! for a canonical decimal is what the host takes for one.

#[cfg(any(target_arch = "wasm32", test))]
mod allocator;
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
#[expect(clippy::same_length_and_capacity, reason = "generated: what the host hands over has no room to spare")]
pub mod bindings;
pub mod decimal;
pub mod error;
pub mod event;
pub mod export;
pub mod json;
pub mod log;
pub mod lookup;
pub mod manifest;
pub mod panic;
pub mod prelude;
pub mod require;
pub mod row;
pub mod time;
pub mod value;
pub mod verdict;

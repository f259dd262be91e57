//! Event time: windows, triggers and panes, as in Apache Beam. Pure: no clock, no input or output; what time it is and how far the
//! watermark is are arguments.
//!
//! [`spec`] says what an aggregate is, [`span`] which windows an event time is in, [`key`] what a window is of. An
//! [`aggregator`] has the [`open`] windows of an aggregate ([`state`], [`accumulator`], [`exact`]) and says what fires; [`windows`]
//! has those of a pipeline, and what of them a ledger keeps (`log`). [`pane`] is what comes out. [`watermark`] estimates how far event
//! time is.

pub mod accumulator;
pub mod aggregator;
pub mod exact;
pub mod key;
mod log;
pub mod open;
pub mod pane;
pub mod span;
pub mod spec;
pub mod state;
pub mod watermark;
pub mod windows;

pub use aggregator::{Aggregator, Element, Now};
pub use pane::{Pane, Timing};
pub use span::Span;
pub use spec::{Accumulation, Function, LateTrigger, Measure, Spec, Trigger, Windowing};
pub use windows::{Record, Windows};

#[cfg(test)]
mod tests;

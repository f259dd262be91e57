//! Event time: windows, triggers and panes, as in Apache Beam. Pure: no clock, no input or output; what time it is and how far the
//! watermark is are arguments.
//!
//! [`spec`] says what an aggregate is; [`span`] which windows an event time is in; [`pane`] what comes out.

pub mod pane;
pub mod span;
pub mod spec;

pub use pane::{Pane, Timing};
pub use span::Span;
pub use spec::{Accumulation, Function, LateTrigger, Measure, Spec, Trigger, Windowing};

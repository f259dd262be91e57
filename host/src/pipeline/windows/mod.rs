//! Event time in a run: accepted events go into windows, panes and late events come out as rows.
//!
//! [`aggregate`] says what is measured of the rows of a rule, `restore` brings back what a ledger holds, `rows` makes rows.
//! [`EventTime`] has the open windows of a run: they change only while a commit is made, and what changed is in that commit.

pub mod aggregate;
mod restore;
pub mod rows;

pub use aggregate::{Aggregate, Contribution};
pub use restore::RestoreError;
pub(in crate::pipeline) use restore::damaged;

use super::plan::WindowsPlan;
use crate::event::Event;
use crate::ledger::Part;
use crate::ledger::look::closed;
use crate::telemetry::window_counts::WindowCounts;
use crate::time::{Clock, Micros};
use crate::window::{Element, Record, Spec, Windows};
use rows::Stamp;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Panes of one commit. Where more are due, another commit follows.
pub(in crate::pipeline) const PANES: usize = 10_000;

/// The open windows of a run. Clones are the same.
#[derive(Debug, Clone)]
pub struct EventTime(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    windows: Mutex<State>,
    epoch: i64,
    pipeline: String,
    /// With so many windows open no more events are taken.
    limit: u64,
}

#[derive(Debug)]
struct State {
    windows: Windows,
    /// Whether something is in the windows that is in no ledger: a commit is being made, or has failed.
    ahead: bool,
}

/// A commit before this one failed for good: windows are ahead of the ledger, and nothing may be committed any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a commit before this one failed: the next run goes on with what the ledger has")]
pub struct Ahead;

/// What a commit adds for event time.
#[derive(Debug)]
pub struct Step {
    /// Rows of panes and of late events.
    pub parts: Vec<Part>,
    /// What changed of windows.
    pub record: Record,
    /// Whether more is due, for another commit.
    pub more: bool,
    /// Panes and late events.
    pub counts: WindowCounts,
}

impl EventTime {
    /// Adds events to the windows they are in; then the watermark moves on, if this is further, then what is due fires. Elements see
    /// the watermark as it was committed before.
    pub fn step(
        &self,
        plan: &WindowsPlan,
        contributions: &[Contribution],
        events: &[Event],
        watermark: Micros,
        clock: &dyn Clock,
    ) -> Result<Step, Ahead> {
        let mut state = self.locked();
        if std::mem::replace(&mut state.ahead, true) {
            return Err(Ahead);
        }
        let windows = &mut state.windows;
        let processing_time = clock.now();
        let mut stamp =
            Stamp { pipeline: &self.0.pipeline, epoch: self.0.epoch, processing_time, watermark: windows.watermark() };
        let (mut counts, mut late) = (WindowCounts::default(), rows::LateRows::new(plan));
        for contribution in contributions {
            let planned = &plan.aggregates[contribution.aggregate];
            let Contribution { event_time, key, inputs, .. } = contribution;
            let element = Element { key, event_time: *event_time, inputs };
            let missed = windows.add(&planned.aggregate.name, element, processing_time);
            if !missed.is_empty() {
                counts.late(&planned.aggregate.name);
                late.add(planned, contribution, &events[contribution.event as usize], &missed, &stamp);
            }
        }
        let to = watermark.max(windows.watermark());
        if to == Micros::MAX {
            windows.keep_from(processing_time);
        }
        let mut panes = Vec::new();
        let more = windows.fire(to, processing_time, PANES, &mut panes);
        stamp.watermark = windows.watermark();
        for (name, pane) in &panes {
            counts.pane(name, pane.timing);
        }
        let mut parts = rows::panes(plan, &panes, &stamp);
        parts.extend(late.part());
        Ok(Step { parts, record: windows.record(), more, counts })
    }

    /// What the last step gave is in the ledger.
    pub fn committed(&self) {
        self.locked().ahead = false;
    }

    /// Whether a commit at this time would fire or drop windows.
    pub fn is_due(&self, watermark: Micros, clock: &dyn Clock) -> bool {
        self.locked().windows.is_due(watermark, clock.now())
    }

    /// How far the watermark is.
    pub fn watermark(&self) -> Micros {
        self.locked().windows.watermark()
    }

    /// Windows of an aggregate that end at this time or before it take nothing any more. None if none is known to be closed.
    pub fn closed(&self, aggregate: &str, spec: &Spec) -> Option<Micros> {
        let windows = &self.locked().windows;
        closed(Some(windows.watermark()), windows.closed(aggregate), spec.allowed_lateness)
    }

    /// How many windows of each aggregate are open.
    pub fn open(&self) -> Vec<(Arc<str>, u64)> {
        self.locked().windows.open_of_each().map(|(name, open)| (Arc::clone(name), open)).collect()
    }

    /// Whether as many windows are open as may be.
    pub fn is_full(&self) -> bool {
        self.locked().windows.open() >= self.0.limit
    }

    /// How many windows may be open.
    pub fn limit(&self) -> u64 {
        self.0.limit
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.0.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

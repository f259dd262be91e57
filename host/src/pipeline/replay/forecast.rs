//! What a replay will find closed: events whose windows take no more. They come to silver and to the late table, and not into
//! the aggregate, until it is rebuilt.

use crate::ledger::look::Seen;
use crate::pipeline::plan::Plan;
use crate::pipeline::windows::{Aggregate, Contribution};
use crate::time::{MIN_MICROS, Micros};
use crate::window::{Span, Windowing};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Counts late events by how far event time is.
#[derive(Debug, Clone)]
pub struct Forecast {
    seen: Seen,
    late: BTreeMap<Arc<str>, Late>,
}

/// Events that will be late for windows of an aggregate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Late {
    /// How many.
    pub events: u64,
    /// A range of event time that has the windows they miss, and can be rebuilt.
    pub range: Span,
}

impl Forecast {
    /// By what a ledger says.
    pub const fn new(seen: Seen) -> Self {
        Self { seen, late: BTreeMap::new() }
    }

    /// Notes what accepted events would add to aggregates.
    pub fn note(&mut self, plan: &Plan, contributions: &[Contribution]) {
        let Some(windows) = &plan.windows else { return };
        for contribution in contributions {
            let aggregate = &windows.aggregates[contribution.aggregate].aggregate;
            let Some(range) = self.missed(aggregate, contribution.event_time) else { continue };
            let late = self.late.entry(Arc::clone(&aggregate.name)).or_insert(Late { events: 0, range });
            late.events += 1;
            late.range = late.range.joined(range);
        }
    }

    /// A range that has the windows which an event misses. Of a session only its own events tell what it will be: this is what the
    /// event by itself would make, with what may touch it.
    fn missed(&self, aggregate: &Aggregate, event_time: Micros) -> Option<Span> {
        let closed = self.seen.closed(&aggregate.name, aggregate.spec.allowed_lateness)?;
        let missed = aggregate.spec.windowing.windows(event_time).filter(|window| window.end <= closed);
        let range = missed.reduce(Span::joined)?;
        Some(match aggregate.spec.windowing {
            Windowing::Session { gap } => {
                let start = range.start.saturating_sub(gap.saturating_mul(2)).max(MIN_MICROS);
                Span { start, end: range.end.saturating_add(gap).min(closed) }
            }
            Windowing::Fixed { .. } | Windowing::Sliding { .. } => range,
        })
    }

    /// What was noted, by aggregate.
    pub fn late(self) -> BTreeMap<Arc<str>, Late> {
        self.late
    }
}

//! What windows said, counted.

use crate::window::Timing;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Panes and late events, by aggregate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WindowCounts {
    /// Panes, by aggregate and timing.
    pub panes: BTreeMap<(Arc<str>, &'static str), u64>,
    /// Events that were too late for a window of an aggregate.
    pub late: BTreeMap<Arc<str>, u64>,
}

impl WindowCounts {
    /// A pane has fired.
    pub fn pane(&mut self, aggregate: &Arc<str>, timing: Timing) {
        *self.panes.entry((Arc::clone(aggregate), timing.as_str())).or_default() += 1;
    }

    /// An event was too late.
    pub fn late(&mut self, aggregate: &Arc<str>) {
        *self.late.entry(Arc::clone(aggregate)).or_default() += 1;
    }

    /// Adds other counts.
    pub fn add(&mut self, others: &Self) {
        for (key, panes) in &others.panes {
            *self.panes.entry(key.clone()).or_default() += panes;
        }
        for (aggregate, late) in &others.late {
            *self.late.entry(Arc::clone(aggregate)).or_default() += late;
        }
    }
}

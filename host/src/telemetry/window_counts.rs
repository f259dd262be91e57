//! What windows said, counted.

use crate::window::Timing;
use serde::Serialize;
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

/// What the windows of one aggregate said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct AggregateCounts {
    /// Panes by timing.
    pub panes: BTreeMap<&'static str, u64>,
    /// Events that were too late for a window.
    pub late: u64,
}

impl WindowCounts {
    /// The counts of an aggregate are shown, also while nothing is counted.
    pub fn begin(&mut self, aggregate: &Arc<str>) {
        self.panes.entry((Arc::clone(aggregate), Timing::OnTime.as_str())).or_default();
        self.late.entry(Arc::clone(aggregate)).or_default();
    }

    /// The counts of each aggregate.
    pub fn by_aggregate(&self) -> BTreeMap<String, AggregateCounts> {
        let mut all: BTreeMap<String, AggregateCounts> = BTreeMap::new();
        for ((aggregate, timing), panes) in &self.panes {
            all.entry(aggregate.to_string()).or_default().panes.insert(timing, *panes);
        }
        for (aggregate, late) in &self.late {
            all.entry(aggregate.to_string()).or_default().late = *late;
        }
        all
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_windows_of_an_aggregate_said_is_told_together() {
        let (minute, hour): (Arc<str>, Arc<str>) = ("minute".into(), "hour".into());
        let mut counts = WindowCounts::default();
        counts.begin(&hour);
        counts.pane(&minute, Timing::OnTime);
        let mut later = WindowCounts::default();
        later.pane(&minute, Timing::OnTime);
        later.pane(&minute, Timing::Late);
        later.late(&minute);
        counts.add(&later);
        let minutes = AggregateCounts { panes: [("LATE", 1), ("ON_TIME", 2)].into(), late: 1 };
        let hours = AggregateCounts { panes: [("ON_TIME", 0)].into(), late: 0 };
        assert_eq!(counts.by_aggregate(), [("hour".to_owned(), hours), ("minute".to_owned(), minutes)].into());
    }
}

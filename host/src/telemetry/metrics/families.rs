//! The families that are counted as things happen, and their buckets.

use super::label::Label;
use super::names::{self, Name};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Metric, Registry};

/// A family whose members have `N` labels, `pipeline` the first.
pub(super) type Counters<const N: usize> = Family<[Label; N], Counter>;
type Gauges = Family<[Label; 1], Gauge>;
type Histograms = Family<[Label; 1], Histogram, fn() -> Histogram>;

#[derive(Debug, Clone)]
pub(super) struct Families {
    pub event_evaluation: Histograms,
    pub batch_evaluation: Histograms,
    pub batch_events: Histograms,
    pub batch_age: Histograms,
    pub batches_in_judging: Gauges,
    pub commits_undelivered: Gauges,
    pub ledger_commit: Histograms,
    pub append: Histograms,
    pub rows: Counters<2>,
    pub retries: Counters<2>,
    pub reloads: Counters<2>,
    pub active_revision: Gauges,
    pub refused_revision: Gauges,
    pub compared_pairs: Counters<2>,
    pub comparisons_skipped: Counters<2>,
    pub differences: Counters<3>,
    pub guard_trips: Counters<1>,
}

impl Families {
    /// All families, each registered under its name.
    pub(super) fn register(registry: &mut Registry) -> Self {
        Self {
            event_evaluation: histograms(registry, names::EVENT_EVALUATION, micros),
            batch_evaluation: histograms(registry, names::BATCH_EVALUATION, millis),
            batch_events: histograms(registry, names::BATCH_EVENTS, counts),
            batch_age: histograms(registry, names::BATCH_AGE, millis),
            batches_in_judging: family(registry, names::BATCHES_IN_JUDGING),
            commits_undelivered: family(registry, names::COMMITS_UNDELIVERED),
            ledger_commit: histograms(registry, names::LEDGER_COMMIT, millis),
            append: histograms(registry, names::APPEND, millis),
            rows: family(registry, names::ROWS),
            retries: family(registry, names::RETRIES),
            reloads: family(registry, names::RELOADS),
            active_revision: family(registry, names::ACTIVE_REVISION),
            refused_revision: family(registry, names::REFUSED_REVISION),
            compared_pairs: family(registry, names::COMPARED_PAIRS),
            comparisons_skipped: family(registry, names::COMPARISONS_SKIPPED),
            differences: family(registry, names::DIFFERENCES),
            guard_trips: family(registry, names::GUARD_TRIPS),
        }
    }
}

fn family<F: Metric + Clone + Default>(registry: &mut Registry, name: Name) -> F {
    let family = F::default();
    registry.register(name.0, name.1, family.clone());
    family
}

fn histograms(registry: &mut Registry, name: Name, buckets: fn() -> Histogram) -> Histograms {
    let family = Histograms::new_with_constructor(buckets);
    registry.register(name.0, name.1, family.clone());
    family
}

/// 1 µs to about 1 s.
fn micros() -> Histogram {
    Histogram::new(exponential_buckets(1e-6, 4.0, 11))
}

/// 0.5 ms to about 16 s.
fn millis() -> Histogram {
    Histogram::new(exponential_buckets(5e-4, 2.0, 16))
}

/// 1 to about a million.
fn counts() -> Histogram {
    Histogram::new(exponential_buckets(1.0, 4.0, 11))
}

//! The metrics of one pipeline: a method for each thing that happens, so that no label is spelled twice.

use super::families::Families;
use super::label::{self, Text};
use crate::event::Event;
use crate::source::Progress;
use crate::telemetry::event_time::EventTime;
use crate::telemetry::tally::Tally;
use crate::time::{Clock, Micros};
use crate::warehouse::{Entry, Tier};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// One event in so many is timed: reading the clock for each would cost what some rules do.
const SAMPLED: usize = 64;

/// Counts and measures one run of a pipeline. Clones are the same metrics.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    pipeline: Text,
    clock: Arc<dyn Clock>,
    tally: Mutex<Tally>,
    progress: OnceLock<Arc<Progress>>,
    event_time: OnceLock<EventTime>,
    families: Families,
    event_evaluation: Histogram,
    batch_evaluation: Histogram,
    batch_events: Histogram,
    batch_age: Histogram,
    batches_in_judging: Gauge,
    commits_undelivered: Gauge,
    ledger_commit: Histogram,
    append: Histogram,
}

/// What is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Sending rows.
    Append,
    /// Another call to the warehouse.
    Warehouse,
    /// A call to the ledger.
    Ledger,
    /// Opening the source.
    Source,
}

impl Retry {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Append => "append",
            Self::Warehouse => "warehouse",
            Self::Ledger => "ledger",
            Self::Source => "source",
        }
    }
}

impl Metrics {
    pub(super) fn new(pipeline: &str, clock: Arc<dyn Clock>, families: &Families) -> Self {
        let pipeline = Text::from(pipeline);
        let own = [(label::PIPELINE, pipeline.clone())];
        // There from the start, so that an alert on them has something to look at.
        for tier in [Tier::Bronze, Tier::Silver, Tier::Quarantine] {
            families.rows.get_or_create(&[own[0].clone(), (label::TIER, tier.as_str().into())]).inc_by(0);
        }
        families.active_revision.get_or_create(&own).set(0);
        families.refused_revision.get_or_create(&own).set(0);
        families.guard_trips.get_or_create(&own).inc_by(0);
        Self(Arc::new(Inner {
            clock,
            tally: Mutex::default(),
            progress: OnceLock::new(),
            event_time: OnceLock::new(),
            event_evaluation: families.event_evaluation.get_or_create_owned(&own),
            batch_evaluation: families.batch_evaluation.get_or_create_owned(&own),
            batch_events: families.batch_events.get_or_create_owned(&own),
            batch_age: families.batch_age.get_or_create_owned(&own),
            batches_in_judging: families.batches_in_judging.get_or_create_owned(&own),
            commits_undelivered: families.commits_undelivered.get_or_create_owned(&own),
            ledger_commit: families.ledger_commit.get_or_create_owned(&own),
            append: families.append.get_or_create_owned(&own),
            families: families.clone(),
            pipeline,
        }))
    }

    pub(super) fn pipeline(&self) -> Text {
        self.0.pipeline.clone()
    }

    fn own(&self) -> super::label::Label {
        (label::PIPELINE, self.pipeline())
    }

    /// The source is read from now on.
    pub fn reading(&self, progress: Arc<Progress>) {
        // A second source of the same run would be a mistake that changes nothing but these figures.
        self.0.progress.set(progress).ok();
    }

    /// How far the source is, once it is read.
    pub fn progress(&self) -> Option<&Progress> {
        self.0.progress.get().map(AsRef::as_ref)
    }

    /// Event time is shown from now on.
    pub(super) fn shows_event_time(&self, event_time: EventTime) {
        let mut tally = self.0.tally.lock().unwrap_or_else(PoisonError::into_inner);
        event_time.now(self.processing_time()).open.keys().for_each(|aggregate| tally.windows.begin(aggregate));
        // A second time would be a mistake that changes nothing but these figures.
        self.0.event_time.set(event_time).ok();
    }

    /// Event time, if it is shown.
    pub(super) fn event_time(&self) -> Option<&EventTime> {
        self.0.event_time.get()
    }

    pub(super) fn processing_time(&self) -> Micros {
        self.0.clock.now()
    }

    /// A micro-batch goes to the judging threads. It is timed until what is returned is dropped.
    pub fn batch(&self, events: &[Event]) -> BatchTimer {
        self.0.batch_events.observe(events.len() as f64);
        if let Some(oldest) = events.first() {
            self.0.batch_age.observe(seconds(self.0.clock.now().saturating_sub(oldest.received_time)).max(0.0));
        }
        self.0.batches_in_judging.inc();
        BatchTimer { metrics: self.clone(), started: Instant::now() }
    }

    /// Times the event with this index in its micro-batch until what is returned is dropped, if its turn has come.
    pub fn sampled_event(&self, index: usize) -> Option<EventTimer<'_>> {
        index.is_multiple_of(SAMPLED).then(|| EventTimer { metrics: self, started: Instant::now() })
    }

    /// A micro-batch is in the ledger.
    pub fn committed(&self, took: Duration) {
        self.0.ledger_commit.observe(took.as_secs_f64());
        self.0.commits_undelivered.inc();
    }

    /// The rows of a commit were sent.
    pub fn sent(&self, took: Duration) {
        self.0.append.observe(took.as_secs_f64());
    }

    /// The warehouse has the rows of a commit.
    pub fn confirmed(&self, entries: &[Entry]) {
        for entry in entries {
            let labels = [self.own(), (label::TIER, entry.tier.as_str().into())];
            self.0.families.rows.get_or_create(&labels).inc_by(entry.rows.len() as u64);
        }
    }

    /// A commit of this run is delivered: these are its events.
    pub fn durable(&self, tally: &Tally) {
        self.0.commits_undelivered.dec();
        self.0.tally.lock().unwrap_or_else(PoisonError::into_inner).add_batch(tally);
    }

    /// Something failed and is tried again.
    pub fn retried(&self, what: Retry) {
        self.0.families.retries.get_or_create(&[self.own(), (label::OPERATION, what.as_str().into())]).inc();
    }

    /// A revision of the rule store is served from now on.
    pub fn reloaded(&self, revision: u64) {
        self.reloads("loaded");
        self.revision_served(revision);
    }

    /// The revision that a run starts with.
    pub fn revision_served(&self, revision: u64) {
        self.0.families.active_revision.get_or_create(&[self.own()]).set(gauge(revision));
        self.0.families.refused_revision.get_or_create(&[self.own()]).set(0);
    }

    /// A revision of the rule store could not be taken. To be called once for each, however often it is tried.
    pub fn reload_refused(&self, revision: u64) {
        self.reloads("refused");
        self.0.families.refused_revision.get_or_create(&[self.own()]).set(gauge(revision));
    }

    fn reloads(&self, result: &'static str) {
        self.0.families.reloads.get_or_create(&[self.own(), (label::RESULT, result.into())]).inc();
    }

    /// Two components were compared, on so many pairs of verdicts; `skipped` events were not compared. `comparison` is
    /// `shadow`, `canary` or `guard`; `differences` are counts by [`Difference::kind`](crate::rules::compare::Difference::kind).
    pub fn compared(
        &self,
        comparison: &'static str,
        pairs: u64,
        skipped: u64,
        differences: impl IntoIterator<Item = (&'static str, u64)>,
    ) {
        let families = &self.0.families;
        let labels = [self.own(), (label::COMPARISON, comparison.into())];
        families.compared_pairs.get_or_create(&labels).inc_by(pairs);
        families.comparisons_skipped.get_or_create(&labels).inc_by(skipped);
        let [own, comparison] = labels;
        for (kind, count) in differences {
            let kind = (label::KIND, kind.into());
            families.differences.get_or_create(&[own.clone(), comparison.clone(), kind]).inc_by(count);
        }
    }

    /// A guard took a promotion or a canary back.
    pub fn guard_tripped(&self) {
        self.0.families.guard_trips.get_or_create(&[self.own()]).inc();
    }

    /// Events whose rows are durable.
    pub fn tally(&self) -> Tally {
        self.with_tally(Tally::clone)
    }

    /// Looks at the events whose rows are durable. Counting waits meanwhile.
    pub fn with_tally<T>(&self, look: impl FnOnce(&Tally) -> T) -> T {
        look(&self.0.tally.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Time since the newest event whose rows are durable was published; none before the first.
    pub fn publish_lag(&self) -> Option<f64> {
        self.with_tally(|tally| tally.newest).map(|newest| self.seconds_since(newest))
    }

    /// Time since something happened.
    pub(crate) fn seconds_since(&self, time: Micros) -> f64 {
        seconds(self.0.clock.now().saturating_sub(time))
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Metrics").field(&self.0.pipeline).finish_non_exhaustive()
    }
}

fn seconds(micros: Micros) -> f64 {
    micros as f64 / 1e6
}

/// Gauges have signs; no store has that many revisions.
fn gauge(revision: u64) -> i64 {
    i64::try_from(revision).unwrap_or(i64::MAX)
}

/// Times a micro-batch until it is dropped.
#[derive(Debug)]
pub struct BatchTimer {
    metrics: Metrics,
    started: Instant,
}

impl Drop for BatchTimer {
    fn drop(&mut self) {
        self.metrics.0.batch_evaluation.observe(self.started.elapsed().as_secs_f64());
        self.metrics.0.batches_in_judging.dec();
    }
}

/// Times an event until it is dropped.
#[derive(Debug)]
pub struct EventTimer<'a> {
    metrics: &'a Metrics,
    started: Instant,
}

impl Drop for EventTimer<'_> {
    fn drop(&mut self) {
        self.metrics.0.event_evaluation.observe(self.started.elapsed().as_secs_f64());
    }
}

//! What a pipeline says of itself while it runs, for whoever asks.

use super::metrics::{Exposition, Metrics};
use crate::releases::worker::{Serving, Worker};
use crate::time::{Clock, Micros, format_micros};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// Where a run stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Checking, loading rules, sending what an earlier run had left.
    #[default]
    Starting,
    /// Reading events.
    Running,
    /// Finishing what was read, since it was asked to stop.
    Stopping,
    /// Over.
    Ended,
}

/// What does not go on while something fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Rows wait to be written.
    #[default]
    Writing,
    /// No events come.
    Reading,
}

/// Something that fails and is tried again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Failing {
    /// What does not go on.
    pub side: Side,
    /// When it failed first, RFC 3339.
    pub since: String,
    /// Why it failed last.
    pub why: String,
}

/// What one pipeline says of itself. Clones are the same status.
#[derive(Clone)]
pub struct Status(Arc<Inner>);

struct Inner {
    pipeline: String,
    clock: Arc<dyn Clock>,
    now: RwLock<Now>,
}

/// A pipeline as it is now.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Now {
    /// Where the run stands.
    pub state: State,
    /// The rules it serves.
    pub worker: Worker,
    /// What fails and is tried again, in the order it began.
    pub failing: BTreeMap<u64, Failing>,
}

impl Now {
    /// What has been failing for longest.
    pub fn trouble(&self) -> Option<&Failing> {
        self.failing.values().next()
    }
}

impl Status {
    /// A pipeline that has not started.
    pub fn new(pipeline: &str, clock: Arc<dyn Clock>) -> Self {
        let status = Self(Arc::new(Inner { pipeline: pipeline.to_owned(), clock, now: RwLock::default() }));
        status.worker(status.no_rules());
        status
    }

    /// The pipeline's name.
    pub fn pipeline(&self) -> &str {
        &self.0.pipeline
    }

    /// As it is now.
    pub fn now(&self) -> Now {
        self.0.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change(&self, change: impl FnOnce(&mut Now)) {
        change(&mut self.0.now.write().unwrap_or_else(PoisonError::into_inner));
    }

    fn at(&self) -> Micros {
        self.0.clock.now()
    }

    /// The run has come to this.
    pub fn state(&self, state: State) {
        self.change(|now| {
            now.state = state;
            now.worker.running = state != State::Ended;
        });
    }

    /// The rules it serves from now on.
    pub fn worker(&self, worker: Worker) {
        self.change(|now| now.worker = worker);
    }

    /// The rules a run begins with, by event version and role.
    pub fn serves(&self, revision: Option<u64>, event_versions: BTreeMap<String, Serving>) {
        self.worker(Worker { revision, event_versions, ..self.no_rules() });
    }

    fn no_rules(&self) -> Worker {
        Worker {
            pipeline: self.0.pipeline.clone(),
            pid: std::process::id(),
            at: format_micros(self.at()),
            running: true,
            ..Worker::default()
        }
    }

    /// Writing something failed and will be tried again: until what is returned is dropped it fails.
    pub fn trouble(&self) -> Trouble {
        self.fails(Side::Writing)
    }

    /// Getting events failed and will be tried again: until what is returned is dropped it fails.
    pub fn no_events(&self) -> Trouble {
        self.fails(Side::Reading)
    }

    fn fails(&self, side: Side) -> Trouble {
        let since = format_micros(self.at());
        let mut id = 0;
        self.change(|now| {
            id = now.failing.last_key_value().map_or(0, |(last, _)| last + 1);
            now.failing.insert(id, Failing { side, since, why: String::new() });
        });
        Trouble { status: self.clone(), id }
    }
}

/// Something that fails and is tried again. To be dropped when it works, or nobody tries any more.
#[derive(Debug)]
pub struct Trouble {
    status: Status,
    id: u64,
}

impl Trouble {
    /// Why it failed last.
    pub fn is(&mut self, why: String) {
        self.status.change(|now| now.failing.entry(self.id).or_default().why = why);
    }
}

impl Drop for Trouble {
    fn drop(&mut self) {
        self.status.change(|now| drop(now.failing.remove(&self.id)));
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Status").field(&self.0.pipeline).field(&self.now()).finish()
    }
}

/// What a process says of its pipelines.
#[derive(Debug)]
pub struct Board {
    started: Instant,
    exposition: Exposition,
    pipelines: Vec<(Metrics, Status)>,
}

impl Board {
    /// A board of these pipelines; their names are unique.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>, clock: &Arc<dyn Clock>) -> Self {
        let exposition = Exposition::default();
        let one = |name| (exposition.pipeline(name, Arc::clone(clock)), Status::new(name, Arc::clone(clock)));
        let pipelines = names.into_iter().map(one).collect();
        Self { started: Instant::now(), exposition, pipelines }
    }

    /// The pipelines, in the order they were named.
    pub fn pipelines(&self) -> &[(Metrics, Status)] {
        &self.pipelines
    }

    /// All metrics, in the text format of `OpenMetrics`.
    pub fn metrics(&self) -> String {
        self.exposition.text()
    }

    /// How long the process has been running.
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::FixedClock;

    #[test]
    fn what_fails_is_told_until_it_works_and_the_longest_first() {
        let status = Status::new("p", Arc::new(FixedClock(0)));
        let why = || status.now().trouble().map(|failing| failing.why.clone());
        let (mut first, mut second) = (status.trouble(), status.no_events());
        first.is("locked".into());
        second.is("full".into());
        first.is("still locked".into());
        assert_eq!(why().as_deref(), Some("still locked"));
        drop(first);
        assert_eq!(why().as_deref(), Some("full"));
        drop(second);
        assert_eq!(why(), None);
    }

    #[test]
    fn the_worker_runs_until_the_run_has_ended() {
        let status = Status::new("p", Arc::new(FixedClock(0)));
        assert!(status.now().worker.running);
        status.state(State::Ended);
        assert!(!status.now().worker.running);
    }
}

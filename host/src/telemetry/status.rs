//! What a pipeline says of itself while it runs, for whoever asks.

use super::metrics::{Exposition, Metrics};
use crate::releases::worker::{ServedRule, Serving, Worker};
use crate::rules::RuleSet;
use crate::time::{Clock, Micros, format_micros};
use crate::warehouse::Tier;
use serde::Serialize;
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

/// Since when rows cannot be written, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AppendFailing {
    /// The first failure since an append worked, RFC 3339.
    pub since: String,
    /// The tier, and what its table or database said last.
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
    /// Set while appends fail and are retried.
    pub append_failing: Option<AppendFailing>,
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

    /// The rules it serves, when the pipeline file names them: no revision, all of them active.
    pub fn serves(&self, rules: &RuleSet) {
        let one = |(version, rule): (&String, &Arc<crate::rules::Rule>)| {
            let rule = ServedRule { rule: rule.label.clone(), digest: rule.digest };
            (version.clone(), Serving { roles: [("active".to_owned(), rule)].into() })
        };
        self.worker(Worker { event_versions: rules.rules().iter().map(one).collect(), ..self.no_rules() });
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

    /// An append failed and will be tried again.
    pub fn append_fails(&self, tier: Tier, why: &str) {
        let since = format_micros(self.at());
        self.change(|now| {
            let since = now.append_failing.take().map_or(since, |failing| failing.since);
            now.append_failing = Some(AppendFailing { since, why: format!("{tier}: {why}") });
        });
    }

    /// An append worked.
    pub fn append_works(&self) {
        self.change(|now| now.append_failing = None);
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
    fn a_failing_append_keeps_its_first_time_until_one_works() {
        let status = Status::new("p", Arc::new(FixedClock(0)));
        status.append_fails(Tier::Silver, "locked");
        status.change(|now| now.append_failing.as_mut().unwrap().since = "earlier".into());
        status.append_fails(Tier::Bronze, "full");
        let failing = AppendFailing { since: "earlier".into(), why: "bronze: full".into() };
        assert_eq!(status.now().append_failing, Some(failing));
        status.append_works();
        assert_eq!(status.now().append_failing, None);
    }

    #[test]
    fn the_worker_runs_until_the_run_has_ended() {
        let status = Status::new("p", Arc::new(FixedClock(0)));
        assert!(status.now().worker.running);
        status.state(State::Ended);
        assert!(!status.now().worker.running);
    }
}

//! The thread that follows a rule store while a pipeline runs.

use super::super::beside::{Pair, PairKey, Registry};
use super::super::evaluate::Context;
use super::super::plan::Plan;
use super::super::prepare::{inspect, plan_for};
use super::super::threads;
use super::begin::Begun;
use super::build::build;
use super::report;
use super::saved::{Passed, Saved};
use super::state::{State, Step, Use};
use super::trips::Trips;
use crate::config::{Config, ConfigError, Problem};
use crate::releases::{Change, Releases, RuleStore};
use crate::rules::{RuleSet, Sandbox};
use crate::telemetry::metrics::Metrics;
use crate::telemetry::status::Status;
use crate::time::{Clock, Micros};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::sync::watch;

/// How often the store is looked at.
const POLL: Duration = Duration::from_millis(50);
/// How often a worker says that it is there.
const HEARTBEAT: Micros = 1_000_000;
/// How long the end of a run waits for the store.
const LAST_WORDS: Duration = Duration::from_secs(15);
/// What a build's priority is below that of the serving threads (nice): it takes a fourth of a busy core.
const NICE: i32 = 5;

/// What the thread is told.
pub enum Message {
    /// A guard has tripped.
    Tripped(Arc<Pair>, String),
    /// A build has ended.
    Built(Releases, Box<Result<(RuleSet, Plan), ConfigError>>),
    /// The run ends.
    End,
}

/// What the thread needs.
pub struct Settings {
    /// The pipeline.
    pub config: Config,
    /// Where rules are loaded.
    pub sandbox: Arc<Sandbox>,
    /// How the run began.
    pub begun: Begun,
    /// The comparisons of that set.
    pub registry: Registry,
    /// Names the worker in the store: unique to its ledger.
    pub worker_id: String,
    /// Processing time.
    pub clock: Arc<dyn Clock>,
    /// Counts revisions and trips.
    pub metrics: Metrics,
    /// Told what the worker is, whenever it has changed and every second.
    pub status: Status,
}

/// The running thread.
pub struct Follower {
    messages: Sender<Message>,
    thread: Option<JoinHandle<()>>,
}

impl Follower {
    /// Starts it. It puts what serves from the next micro-batch on into `current`.
    pub fn start(
        settings: Settings,
        messages: (Sender<Message>, Receiver<Message>),
        current: watch::Sender<Context>,
    ) -> io::Result<Self> {
        let mut following = Following::new(settings, messages.0.clone(), current);
        let thread = thread::Builder::new().name("reload".into()).spawn(move || following.run(&messages.1))?;
        Ok(Self { messages: messages.0, thread: Some(thread) })
    }

    /// Ends it, after what it was told before. Blocks, but not for ever: a store on a file system that hangs must not
    /// keep the worker from ending.
    pub fn finish(mut self) {
        self.messages.send(Message::End).ok();
        let Some(thread) = self.thread.take() else { return };
        if !threads::ends_within(&thread, LAST_WORDS) {
            tracing::error!("the rule store does not answer: the worker ends without having told it");
        } else if thread.join().is_err() {
            tracing::error!("the thread that follows the rule store panicked; what served went on serving");
        }
    }
}

struct Following {
    config: Arc<Config>,
    sandbox: Arc<Sandbox>,
    store: RuleStore,
    saved: Saved,
    state: State,
    registry: Registry,
    current: watch::Sender<Context>,
    messages: Sender<Message>,
    trips: Trips,
    found: Option<Releases>,
    store_problem: Option<String>,
    worker_id: String,
    clock: Arc<dyn Clock>,
    metrics: Metrics,
    status: Status,
    said: Micros,
}

impl Following {
    fn new(settings: Settings, messages: Sender<Message>, current: watch::Sender<Context>) -> Self {
        let Settings { config, sandbox, begun, registry, worker_id, clock, metrics, status, .. } = settings;
        let mut state = State::new(begun.served);
        metrics.revision_served(state.served.revision);
        if let Some((releases, why)) = begun.refused {
            metrics.reload_refused(releases.revision);
            state.wanted = releases.clone();
            state.failed(releases, why, clock.now());
        }
        Self {
            trips: Trips::new(&config.name, &begun.saved.pins),
            config: Arc::new(config),
            sandbox,
            store: begun.store,
            saved: begun.saved,
            state,
            registry,
            current,
            messages,
            found: begun.found,
            store_problem: None,
            worker_id,
            clock,
            metrics,
            status,
            said: Micros::MIN,
        }
    }

    fn run(&mut self, messages: &Receiver<Message>) {
        self.keep_served();
        self.say(true);
        loop {
            match messages.recv_timeout(POLL) {
                Ok(Message::Tripped(pair, why)) => self.tripped(&pair, why),
                Ok(Message::Built(releases, result)) => self.built(releases, *result),
                Ok(Message::End) | Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = self.clock.now();
            if self.trips.write(&self.store, self.found.as_ref(), &mut self.saved, now) {
                self.keep();
            }
            self.look();
            if self.clock.now() - self.said >= HEARTBEAT {
                self.say(true);
            }
        }
        self.say(false);
    }

    /// Looks at the store and starts a build if it holds something new.
    fn look(&mut self) {
        let found = match self.store.releases() {
            Ok(found) if found.revision == 0 && self.state.served.revision > 0 => {
                return self.problem(Some(format!("{}: releases.toml is gone", self.store.directory().display())));
            }
            Ok(found) => found,
            Err(error) => return self.problem(Some(error.to_string())),
        };
        self.problem(None);
        let pins = self.saved.pins.len();
        let wanted = self.saved.pinned(&found);
        self.found = Some(found);
        if self.saved.pins.len() != pins {
            self.keep();
        }
        if self.state.step(wanted, self.clock.now()) == Step::Build {
            self.build(self.state.wanted.clone());
        }
    }

    fn problem(&mut self, problem: Option<String>) {
        if problem == self.store_problem {
            return;
        }
        if let Some(what) = &problem {
            tracing::error!("the rule store cannot be read, what serves goes on serving: {what}");
        } else {
            tracing::info!("the rule store can be read again");
        }
        self.store_problem = problem;
        self.say(true);
    }

    /// Builds aside: on a thread of its own, which is left alone if something newer overtakes it.
    fn build(&mut self, releases: Releases) {
        let (config, sandbox, store) = (Arc::clone(&self.config), Arc::clone(&self.sandbox), self.store.clone());
        let (messages, wanted) = (self.messages.clone(), releases.clone());
        let (serving, planned) = {
            let current = self.current.borrow();
            (Arc::clone(&current.rules), Arc::clone(&current.plan))
        };
        let build = move || {
            threads::lower(NICE);
            // Without its answer the revision would be neither served nor refused.
            let building = || build(&config, &sandbox, &store, &wanted, (&serving, &planned));
            let result = catch_unwind(AssertUnwindSafe(building))
                .unwrap_or_else(|_| Err(Problem::new("", "building it panicked; the log says where").into()));
            // After the end of the run nobody waits for it.
            messages.send(Message::Built(wanted, Box::new(result))).ok();
        };
        if let Err(error) = thread::Builder::new().name("build".into()).spawn(build) {
            let error = Problem::new("", format!("cannot start a thread: {error}"));
            self.refuse(releases, &error.into());
        }
    }

    fn built(&mut self, releases: Releases, result: Result<(RuleSet, Plan), ConfigError>) {
        let (rules, plan) = match result {
            Ok(built) => built,
            Err(error) => return self.refuse(releases, &error),
        };
        let revision = releases.revision;
        if self.state.built(releases) == Use::Drop {
            return;
        }
        self.publish(rules, plan);
        tracing::info!(revision, "serving a new revision of the rule store");
        self.metrics.reloaded(revision);
        self.keep_served();
        self.say(true);
    }

    /// Every micro-batch that begins from now on has these.
    fn publish(&mut self, rules: RuleSet, plan: Plan) {
        let passed = |key: &PairKey| self.saved.has_passed(key);
        let pairs = self.registry.pairs(&rules, &self.config.rules.guard, passed, self.clock.now());
        self.current.send_replace(Context { rules: Arc::new(rules), plan: Arc::new(plan), pairs });
    }

    fn refuse(&mut self, releases: Releases, error: &ConfigError) {
        let (revision, why) = (releases.revision, error.to_string());
        if self.state.failed(releases, why.clone(), self.clock.now()) {
            self.metrics.reload_refused(revision);
            let served = self.state.served.revision;
            tracing::error!(
                revision,
                served,
                "a new revision of the rule store is refused, what serves goes on: {why}"
            );
        }
        self.say(true);
    }

    /// Remembers what is served, for the next start: as the store has it, pins are kept by themselves.
    fn keep_served(&mut self) {
        if let Some(found) = self.found.as_ref().filter(|_| self.state.served == self.state.wanted) {
            self.saved.releases = Some(found.clone());
        }
        self.keep();
    }

    fn keep(&self) {
        if let Err(error) = self.saved.write(&self.config.ledger) {
            tracing::warn!("cannot note what is served beside the ledger: {error}");
        }
    }

    /// Takes a component out of service at once, whatever else the store holds by now, then in the store.
    fn tripped(&mut self, pair: &Pair, why: String) {
        self.metrics.guard_tripped();
        let key = &pair.key;
        tracing::error!(
            event_version = key.events,
            digest = %key.new,
            "a guard has tripped, the component goes out of service: {why}. Repair what it did with: preflight \
             quarantine replay PIPELINE --digest {}",
            key.new
        );
        let Some(since) = key.kind.since().map(str::to_owned) else { return };
        let trip = Change::Trip { digest: key.new, events: key.events.clone(), since };
        self.take_out(&trip, &why);
        self.trips.add(trip, why);
    }

    fn take_out(&mut self, trip: &Change, why: &str) {
        // Another revision may serve by now, in which it is no longer what was guarded.
        let Some(served) = self.state.served.pinned(trip, why) else { return };
        let Some(rules) = trip.digest().and_then(|held| self.current.borrow().rules.without(trip.events(), &held))
        else {
            return;
        };
        match plan_for(&self.config, &rules, &inspect(&self.config)) {
            Ok((plan, _)) => {
                self.publish(rules, plan);
                // A start that cannot build the newest revision must not serve it again.
                self.saved.releases = Some(served.clone());
                self.state.served = served;
                self.keep();
                self.say(true);
            }
            Err(error) => tracing::error!("the component before it cannot serve in its place: {error}"),
        }
    }

    /// Says what this worker is: to the store, and to whoever asks the process.
    fn say(&mut self, running: bool) {
        let now = self.clock.now();
        self.said = now;
        let metrics = &self.metrics;
        self.registry.tell(|comparison, news| {
            metrics.compared(comparison, news.pairs, news.skipped, news.differences);
        });
        let passed = self.registry.passed(now).filter_map(Passed::of).collect();
        if self.saved.note_passed(passed, &self.state.served) {
            self.keep();
        }
        let said = report::Said {
            pipeline: &self.config.name,
            running,
            rules: &self.current.borrow().rules,
            refused: self.state.refused.as_ref(),
            store_problem: self.store_problem.as_ref(),
            pins: &self.saved.pins,
            comparisons: self.registry.report(now),
        };
        let worker = said.worker(now);
        if let Err(error) = self.store.write_worker(&self.worker_id, &worker) {
            // A store that cannot be written: then it lies beside the ledger, for `rules status --ledger`.
            tracing::debug!("{error}");
            if let Err(error) = worker.write(&self.config.ledger.join("worker.json")) {
                tracing::debug!("{error}");
            }
        }
        self.status.worker(worker);
    }
}

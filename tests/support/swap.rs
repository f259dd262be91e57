//! A worker that follows a rule store, fed through its standard input.

use crate::{Ended, Pipeline, Running, booking, tables};
use preflight::digest::Digest;
use preflight::releases::worker::Worker;
use preflight::releases::{Change, Releases, RuleStore};
use preflight::time::{Clock, SystemClock};
use serde_json::{Map, Value};
use std::io::Write as _;
use std::path::Path;
use std::process::ChildStdin;

/// Two event versions by attribute, a rule store beside the file; for `handmade::Toy`.
const FOLLOWING: &str = r#"
name = "test"
[source.stdin]
format = "envelope"
[rules]
store = "rules"
event_version = { attribute = "event_version", default = "1" }
[warehouse.sqlite]
path = "warehouse.db"
[silver]
table = "silver"
create = "if_needed"
[silver.host_columns]
message_id = "message_id"
event_version = "event_version"
[quarantine]
table = "quarantine"
create = "if_needed"
"#;

/// What every toy holds to.
pub const FIXTURES: &str = r#"{"name": "a is good", "payload": "a", "expect": {"accept": {"n": 1}}}"#;

/// A pipeline with a rule store.
pub struct Following {
    /// The pipeline.
    pub pipeline: Pipeline,
    /// Its store.
    pub store: RuleStore,
}

impl Default for Following {
    fn default() -> Self {
        Self::new("")
    }
}

impl Following {
    /// With more keys at the end of its file.
    pub fn new(more: &str) -> Self {
        let pipeline = Pipeline::with_file(&format!("{FOLLOWING}{more}"), "").warm();
        let store = RuleStore::at(pipeline.directory().join("rules"));
        Self { pipeline, store }
    }

    /// Stages a component with fixtures, unseen: nothing is checked.
    pub fn stage_with(&self, component: &[u8], fixtures: &str) -> Digest {
        let staged = self.store.stage(component, fixtures, "toy@1.0.0", "a test", "", SystemClock.now());
        staged.expect("the store can be written")
    }

    /// Stages a component with the fixtures of all toys.
    pub fn stage(&self, component: &[u8]) -> Digest {
        self.stage_with(component, FIXTURES)
    }

    /// Makes a change.
    #[track_caller]
    pub fn change(&self, change: &Change) -> Releases {
        self.store.change(change, None, "a test", "", SystemClock.now()).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Promotes a component.
    #[track_caller]
    pub fn promote(&self, digest: Digest, events: &str) -> Releases {
        self.change(&promote(digest, events))
    }

    /// Promotes a component as the first of the store's event version, so that a run can start.
    pub fn begin_with(&self, component: &[u8], events: &str) -> Digest {
        let digest = self.stage(component);
        self.promote(digest, events);
        digest
    }

    /// Starts a run.
    pub fn start(&self) -> Fed {
        let (run, stdin) = Running::start(&self.pipeline);
        Fed { run, stdin: Some(stdin) }
    }

    /// What the worker says of itself; none before it has said anything.
    pub fn worker(&self) -> Option<Worker> {
        self.store.workers().ok()?.known.pop().map(|(_, worker)| worker)
    }

    /// Waits until the worker says something.
    #[track_caller]
    pub fn wait(&self, fed: &mut Fed, is_so: impl Fn(&Worker) -> bool) -> Worker {
        fed.run.wait_until(|| self.worker().is_some_and(|worker| worker.running && is_so(&worker)));
        self.worker().expect("it has just been there")
    }

    /// Waits until the worker serves a revision.
    #[track_caller]
    pub fn serves(&self, fed: &mut Fed, revision: u64) -> Worker {
        self.wait(fed, |worker| worker.revision == Some(revision))
    }

    /// Waits until so many rows are in silver and quarantine together.
    #[track_caller]
    pub fn written(&self, fed: &mut Fed, rows: u64) {
        let database = self.pipeline.database();
        let count = |table| tables::newest_rowid(&database, table).unwrap_or(0);
        fed.run.wait_until(|| count("silver") + count("quarantine") >= rows);
    }

    /// The rows of silver.
    pub fn silver(&self) -> Vec<Map<String, Value>> {
        tables::rows(&self.pipeline.database(), "silver")
    }

    /// The rows of quarantine.
    pub fn quarantine(&self) -> Vec<Map<String, Value>> {
        tables::rows(&self.pipeline.database(), "quarantine")
    }

    /// The digests of silver's rows, in order, each once for as long as it goes on.
    pub fn served_by(&self) -> Vec<String> {
        let mut digests = tables::column(&self.pipeline.database(), "silver", "rule_digest");
        digests.dedup();
        digests
    }
}

/// A promotion without more ado.
pub fn promote(digest: Digest, events: &str) -> Change {
    Change::Promote { digest, events: events.into(), expect_rejects: false, force: false }
}

/// A run with its standard input open.
pub struct Fed {
    /// The run.
    pub run: Running,
    stdin: Option<ChildStdin>,
}

impl Fed {
    /// Feeds events of a version.
    pub fn feed<'a>(&mut self, events: &str, payloads: impl IntoIterator<Item = &'a str>) {
        let lines: String =
            payloads.into_iter().map(|payload| booking::envelope(payload, &[("event_version", events)])).collect();
        let stdin = self.stdin.as_mut().expect("it is open until the end");
        stdin.write_all(lines.as_bytes()).and_then(|()| stdin.flush()).expect("the worker reads");
    }

    /// Feeds the lines of a file.
    pub fn pass(&mut self, file: &Path) {
        let lines = std::fs::read(file).expect("it is there");
        let stdin = self.stdin.as_mut().expect("it is open until the end");
        stdin.write_all(&lines).and_then(|()| stdin.flush()).expect("the worker reads");
    }

    /// Ends the input and waits for the end of the run.
    pub fn finish(mut self) -> Ended {
        drop(self.stdin.take());
        self.run.finish()
    }
}

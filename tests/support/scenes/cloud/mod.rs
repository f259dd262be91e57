//! The scenes of `cargo xtask demo cloud`: Offvia's pipeline on the emulators of Pub/Sub and BigQuery, with the commands of
//! its walk-through. The demo plays all of them, and so does a test.
//!
//! A scene fails where what it shows is not right.

mod bookings;
mod publisher;
mod tiers;
mod worker;

use super::operator::Operator;
use crate::{bigquery, pubsub};
use anyhow::{Result, bail, ensure};
use publisher::Publisher;
use serde_json::Value;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};
use worker::Worker;

/// The project of Offvia on emulators, as examples/offvia/emulators.toml has it.
const PROJECT: &str = "offvia-demo";
const PIPELINE: [&str; 3] = ["examples/offvia/pipeline.toml", "--with", "examples/offvia/emulators.toml"];
const TOPIC: &str = "booking-events-topic";

/// Longer than anything takes that is waited for, on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);
/// How often is looked.
const PAUSE: Duration = Duration::from_millis(100);

/// How the scenes are played.
pub struct Settings<'a> {
    /// An empty directory for store, ledger and logs.
    pub directory: PathBuf,
    /// Where BigQuery is.
    pub bigquery: &'a bigquery::Emulator,
    /// Where Pub/Sub is.
    pub pubsub: &'a pubsub::Emulator,
    /// Bookings that are published while the worker is killed.
    pub bookings: usize,
    /// Takes the story, line by line.
    pub tell: fn(&str),
}

/// Offvia on two emulators. Dropping it kills the worker.
pub struct Cloud<'a> {
    settings: Settings<'a>,
    operator: Operator,
    publisher: Publisher,
    worker: Option<Worker>,
    /// The ids of all messages that were published.
    published: Vec<String>,
}

impl<'a> Cloud<'a> {
    /// The first scene: a rule is staged and promoted.
    pub fn begin(settings: Settings<'a>) -> Result<Self> {
        let mut operator = Operator::new(&settings.directory.join("rules"), settings.tell);
        operator.environment = vec![
            ("PUBSUB_EMULATOR_HOST", settings.pubsub.address.clone()),
            ("BIGQUERY_EMULATOR_HOST", settings.bigquery.rest().to_owned()),
            ("BIGQUERY_STORAGE_EMULATOR_HOST", settings.bigquery.storage().to_owned()),
        ];
        operator.tell("Two emulators run on this machine. These variables say where, to every command below:\n");
        for (name, value) in &operator.environment {
            operator.tell(&format!("$ export {name}={value}"));
        }
        operator.tell(&format!("$ export PREFLIGHT_RULE_STORE={}", operator.store.directory().display()));
        operator.tell("\nWhich columns silver has is said by its rules, so a rule comes first.");
        let rule = operator.stage("offvia-booking", "the first rule")?;
        operator.run(&["promote", &rule.short(), "--events", "1", "--why", "go live", "--wait", "0 s"], 0)?;
        let publisher = Publisher::new(&settings.pubsub.address)?;
        Ok(Self { settings, operator, publisher, worker: None, published: Vec::new() })
    }

    /// Datasets, tables, topics and subscriptions are made; a second call changes nothing.
    pub fn provision(&mut self) -> Result<()> {
        self.operator.tell(
            "`preflight provision` makes what the pipeline file wants and is not there. On Google Cloud the same call does \
             the same; `--dry-run` prints it as commands of bq and gcloud, with the roles that everybody needs.",
        );
        let made = self.preflight("provision", &[], 0)?;
        // Three datasets, three tables, two topics, two subscriptions.
        ensure!(made.contains(": 10 made"), "not all was made:\n{made}");
        self.operator.tell("\nThe same call again changes nothing:");
        let kept = self.preflight("provision", &[], 0)?;
        ensure!(kept.contains(": 10 kept"), "something was changed:\n{kept}");
        Ok(())
    }

    /// The end: the worker is asked to stop, and does.
    pub fn end(mut self) -> Result<()> {
        let Some(worker) = self.worker.take() else { bail!("there is no worker") };
        self.operator.tell("\nSIGTERM: the worker finishes what it has taken, gives back the rest, and ends.");
        let report = worker.stop()?;
        self.operator.tell(&format!("Its report: {report}"));
        let rest = self.publisher.waiting()?;
        ensure!(rest == 0, "{rest} messages are still in the subscription");
        self.operator.tell("The subscription holds no message any more: every one was acknowledged.");
        Ok(())
    }

    /// A command on the pipeline, shown as it is typed. What it printed.
    fn preflight(&self, name: &str, more: &[&str], code: i32) -> Result<String> {
        let settings = self.pipeline_settings();
        let settings = settings.iter().flat_map(|setting| ["--set", setting.as_str()]);
        let arguments: Vec<&str> =
            std::iter::once(name).chain(PIPELINE).chain(settings).chain(more.iter().copied()).collect();
        Ok(self.operator.preflight(&arguments, code)?.stdout)
    }

    /// What differs from the pipeline file and its overlay: where this demo keeps its files.
    fn pipeline_settings(&self) -> Vec<String> {
        let directory = self.settings.directory.display();
        vec![format!("rules.store={directory}/rules"), format!("ledger.path={directory}/ledger")]
    }

    /// Asks BigQuery.
    fn query(&self, sql: &str) -> Vec<serde_json::Map<String, Value>> {
        self.settings.bigquery.query(sql)
    }

    /// A number that BigQuery says.
    fn count(&self, sql: &str) -> Result<u64> {
        Ok(self.settings.bigquery.value(sql).parse()?)
    }

    /// Looks again and again until something is so. Fails if the worker ends before that.
    fn wait(&mut self, what: &str, mut is_so: impl FnMut(&Self) -> Result<bool>) -> Result<()> {
        let begun = Instant::now();
        while !is_so(self)? {
            if let Some(worker) = &mut self.worker {
                worker.is_running()?;
            }
            if begun.elapsed() > PATIENCE {
                bail!("{what}: not after {} s", PATIENCE.as_secs());
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }
}

//! What all scenes play on: a store, a worker that follows it, and a feeder.

use super::feeder::Feeder;
use super::operator::Operator;
use super::process::Process;
use super::warehouse::Warehouse;
use anyhow::{Context, Result, bail};
use preflight::digest::Digest;
use preflight::releases::worker::Worker;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

/// Longer than anything takes that is waited for, on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);
/// How often is looked.
const PAUSE: Duration = Duration::from_millis(20);

/// How the scenes are played.
#[derive(Debug, Clone)]
pub struct Settings {
    /// An empty directory for store, database and logs.
    pub directory: PathBuf,
    /// Events a second.
    pub rate: u64,
    /// Events that a shadow sees before it is promoted.
    pub pairs: u64,
    /// How long a guard watches a promotion, as the pipeline file writes it.
    pub guard_time: &'static str,
    /// Takes the story, line by line.
    pub tell: fn(&str),
}

impl Settings {
    pub(super) fn store(&self) -> PathBuf {
        self.directory.join("rules")
    }

    pub(super) fn database(&self) -> PathBuf {
        self.directory.join("warehouse.db")
    }

    /// The pipeline as every command takes it.
    pub(super) fn pipeline(&self) -> Vec<String> {
        let keys = [
            format!("rules.store={}", self.store().display()),
            format!("warehouse.sqlite.path={}", self.database().display()),
            format!("rules.guard.time={}", self.guard_time),
        ];
        let settings = keys.into_iter().flat_map(|key| ["--set".to_owned(), key]);
        ["examples/offvia/swap.toml".to_owned()].into_iter().chain(settings).collect()
    }
}

/// A worker under load. Dropping it kills the worker.
pub struct Stage {
    pub(super) settings: Settings,
    pub(super) operator: Operator,
    pub(super) warehouse: Warehouse,
    // Before the feeder: one that waits for the worker to read ends with it.
    pub(super) process: Process,
    pub(super) feeder: Feeder,
    /// The components that judged an event version, in the order they did.
    pub(super) judged: Vec<(String, Digest)>,
    /// What a replay can bring to silver: how its rows are chosen, and whose they are.
    pub(super) repairs: Vec<Repair>,
    begun: Instant,
}

/// Rows of quarantine that are good.
#[derive(Debug, Clone)]
pub(super) struct Repair {
    /// As `quarantine replay` is told, with other rows that are not good.
    pub(super) chosen: [String; 2],
    /// As the database is asked.
    pub(super) good: String,
}

impl Stage {
    /// The first scene: a rule is promoted, and a worker begins to serve it.
    pub fn begin(settings: Settings) -> Result<Self> {
        let operator = Operator::new(&settings.store(), settings.tell);
        operator.tell(
            "A rule store begins with a component that is staged, with the fixtures that it must hold to, and promoted \
             for an event version.",
        );
        operator.tell(&format!("\n$ export PREFLIGHT_RULE_STORE={}", settings.store().display()));
        let first = operator.stage("offvia-booking", "the first rule")?;
        operator.run(&["promote", &first.short(), "--events", "1", "--why", "go live"], 0)?;
        let warehouse = Warehouse::create(&settings.database())?;
        let (process, stdin) = Process::start(&settings)?;
        let feeder = Feeder::start(stdin, settings.rate).context("cannot start the feeder")?;
        let begun = Instant::now();
        let mut stage =
            Self { settings, operator, warehouse, process, feeder, judged: Vec::new(), repairs: Vec::new(), begun };
        stage.judges("1", first, 0)?;
        stage.operator.tell(&format!(
            "\nA worker follows the store (`preflight run examples/offvia/swap.toml`) and is fed {} events a second; its \
             first row was written after {:.2} s.",
            stage.settings.rate,
            stage.begun.elapsed().as_secs_f64()
        ));
        Ok(stage)
    }

    /// Looks again and again until something is there. Fails if the worker ends before that.
    pub(super) fn wait<T>(&mut self, what: &str, mut look: impl FnMut(&Self) -> Result<Option<T>>) -> Result<T> {
        let begun = Instant::now();
        loop {
            if let Some(found) = look(self)? {
                return Ok(found);
            }
            self.process.is_running()?;
            if begun.elapsed() > PATIENCE {
                bail!("{what}: not after {} s", PATIENCE.as_secs());
            }
            thread::sleep(PAUSE);
        }
    }

    /// Promotes a component and waits for its first row.
    pub(super) fn promote(&mut self, digest: Digest, version: &str, why: &str) -> Result<()> {
        let newest = self.newest_row()?;
        self.operator.run(&["promote", &digest.short(), "--events", version, "--why", why], 0)?;
        self.judges(version, digest, newest)?;
        Ok(())
    }

    /// Waits for the first row of silver behind another one that a component has judged. Its number.
    pub(super) fn judges(&mut self, version: &str, digest: Digest, behind: i64) -> Result<i64> {
        let row = self.wait(&format!("a row of {digest}"), |stage| {
            let sql =
                "SELECT min(rowid) FROM fact_bookings WHERE rowid > ?1 AND event_version = ?2 AND rule_digest = ?3";
            let first = stage.warehouse.first(sql, (behind, version, digest.to_string()), |row| row.get(0))?;
            Ok(first.flatten())
        })?;
        self.judged.push((version.to_owned(), digest));
        Ok(row)
    }

    /// The number of the newest row of silver; 0 if there is none.
    pub(super) fn newest_row(&self) -> Result<i64> {
        let newest = self.warehouse.first("SELECT max(rowid) FROM fact_bookings", [], |row| row.get(0))?;
        Ok(newest.flatten().unwrap_or(0))
    }

    /// Notes rows of quarantine that a replay must bring to silver. How many there are by now.
    pub(super) fn harmed(&mut self, chosen: [String; 2], good: String) -> Result<u64> {
        let rows = self.warehouse.count(&format!("SELECT count(*) FROM poisoned_events WHERE {good}"), [])?;
        self.repairs.push(Repair { chosen, good });
        Ok(rows)
    }

    /// What the store has active for version 1.
    pub(super) fn active(&self) -> Result<Digest> {
        let releases = self.operator.store.releases()?;
        Ok(releases.release.get("1").context("version 1 is served")?.validator.active)
    }

    /// What the worker says of itself; none before it has.
    pub(super) fn worker(&self) -> Result<Option<Worker>> {
        Ok(self.operator.store.workers()?.known.into_iter().map(|(_, worker)| worker).next())
    }
}

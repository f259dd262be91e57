//! What dedup costs the ledger: commits with thousands of new keys, up to 20 M keys within their horizon.

use crate::Effort;
use crate::payloads;
use crate::report::Report;
use crate::timed::timed;
use anyhow::{Context, Result, ensure};
use preflight::ledger::{Additions, Claim, Frames, Horizon, Key, Ledger, Parts, Retention};
use preflight_tests::{Pipeline, tables};
use std::path::Path;
use std::time::{Duration, Instant};

/// New keys of a commit.
const COMMIT: u64 = 4_000;
const HORIZON: Duration = Duration::from_hours(1);

/// Measures and reports.
pub(crate) fn measure(effort: Effort, report: &mut Report) -> Result<()> {
    of_the_ledger(effort, report)?;
    of_a_pipeline(effort, report)
}

/// The whole command with and without.
fn of_a_pipeline(effort: Effort, report: &mut Report) -> Result<()> {
    let input = payloads::lines(effort.events);
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds.min(3) {
        for (dedup, rates) in [(None, &mut without), (Some("dedup.by={ columns = [\"booking_id\"] }"), &mut with)] {
            let pipeline = Pipeline::offvia(&input).warm();
            let pipeline = dedup.into_iter().fold(pipeline, Pipeline::set);
            let (seconds, _) = timed(&pipeline)?;
            let rows = tables::count(&pipeline.database(), "fact_bookings");
            ensure!(rows == effort.events as u64, "{rows} rows of {} events", effort.events);
            rates.push(effort.events as f64 / seconds);
        }
    }
    report.ratio("file -> SQLite with dedup / without", &with, &without, None);
    report.add("  with dedup by a column, all cores", "/s", with, Some(">= 100 k on two cores"));
    Ok(())
}

fn of_the_ledger(effort: Effort, report: &mut Report) -> Result<()> {
    let keys = if effort.events < 1_000_000 { 200_000 } else { 20_000_000 };
    let directory = tempfile::tempdir()?;
    let before = resident()?;
    let mut ledger = open(directory.path())?;
    let mut run = Run { ran: Duration::ZERO, next: 0 };
    let last = keys - keys / 20;
    let (mut plain, mut rates, mut commits) = (Vec::new(), Vec::new(), Vec::new());
    let filling = Instant::now();
    while run.next < keys {
        let took = run.commit(&mut ledger)?;
        commits.push(took.as_secs_f64() * 1e3);
        if run.next > last {
            rates.push(COMMIT as f64 / took.as_secs_f64());
        }
        if run.next.is_multiple_of(50 * COMMIT) {
            let started = Instant::now();
            ledger.commit(&[], &Frames::default(), None, &run.additions())?;
            plain.push(started.elapsed().as_secs_f64() * 1e3);
        }
    }
    let filled = filling.elapsed().as_secs_f64();
    report.add(
        "new keys, looked up twice and durable, from none to 20 M",
        "/s",
        vec![keys as f64 / filled],
        Some(">= 100 k"),
    );
    report.add("  the last million of them", "/s", rates, Some(">= 100 k"));
    report.add("  a commit of 4,000 keys, look-ups included", "ms", commits, None);
    report.add("  a commit without keys", "ms", plain, None);
    report.add("  memory for 20 M keys", "MiB", vec![resident()? - before], Some("< 512"));
    let disk = std::fs::metadata(directory.path().join("ledger.db"))?.len();
    report.add("  disk", "bytes/key", vec![disk as f64 / keys as f64], None);

    for (name, from) in [("  look-ups of new keys", keys), ("  look-ups of keys that are there", 0)] {
        let mut rates = Vec::new();
        for round in 0..effort.rounds.max(3) as u64 {
            // Over all buckets, as duplicates come.
            let wanted: Vec<Key> = (0..COMMIT).map(|n| key(from + (n * (keys / COMMIT) + round) % keys)).collect();
            let started = Instant::now();
            let found = ledger.claims(&wanted, run.ran)?;
            rates.push(COMMIT as f64 / started.elapsed().as_secs_f64());
            ensure!(found.iter().filter(|found| found.is_some()).count() as u64 == if from == 0 { COMMIT } else { 0 });
        }
        report.add(name, "/s", rates, None);
    }

    drop(ledger);
    let started = Instant::now();
    let mut ledger = open(directory.path())?;
    report.add("  start with 20 M keys", "s", vec![started.elapsed().as_secs_f64()], Some("< 5"));

    // All of them have had their time.
    run.ran += HORIZON * 2;
    let mut commits = Vec::new();
    for _ in 0..effort.rounds.max(3) * 20 {
        commits.push(run.commit(&mut ledger)?.as_secs_f64() * 1e3);
    }
    ensure!(ledger.claims(&[key(1)], run.ran)? == [None], "it is forgotten");
    report.add("  a commit of 4,000 keys while old ones are deleted", "ms", commits, None);
    Ok(())
}

struct Run {
    ran: Duration,
    next: u64,
}

impl Run {
    fn additions(&self) -> Additions {
        Additions { ran: self.ran, ..Additions::default() }
    }

    /// Commits new keys as a pipeline does: looked up before the rules and again at the commit.
    fn commit(&mut self, ledger: &mut Ledger) -> Result<Duration> {
        let keys: Vec<Key> = (self.next..self.next + COMMIT).map(key).collect();
        self.next += COMMIT;
        let content = Parts::of("content").fingerprint();
        let claim = Claim { content, row: content };
        let started = Instant::now();
        for _ in 0..2 {
            ensure!(ledger.claims(&keys, self.ran)?.iter().all(Option::is_none), "a new key is known");
        }
        let claims = (0..).zip(&keys).map(|(event, key)| (event, *key, claim)).collect();
        let seq = ledger.commit(&[], &Frames::default(), None, &Additions { claims, ..self.additions() })?;
        ledger.done(seq)?;
        Ok(started.elapsed())
    }
}

fn key(number: u64) -> Key {
    Key::of("bench", &number.to_le_bytes())
}

fn open(directory: &Path) -> Result<Ledger> {
    let mut ledger = Ledger::open(directory, "bench", "none")?;
    ledger.keep_keys(Retention { ids: None, claims: Some(Horizon::For(HORIZON)) })?;
    Ok(ledger)
}

/// Resident memory, MiB.
fn resident() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("the kernel says it")?;
    let kib: f64 = line.split_whitespace().nth(1).context("it has a value")?.parse()?;
    Ok(kib / 1024.0)
}

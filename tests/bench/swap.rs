//! Swapping rules under full load: what it costs the micro-batches, how long it takes, and what it leaves in memory.

use crate::Effort;
use crate::payloads;
use crate::report::Report;
use anyhow::{Context, Result, ensure};
use preflight::digest::Digest;
use preflight::releases::{Change, RuleStore};
use preflight::time::{Clock, SystemClock, parse_rfc3339};
use preflight_tests::{Pipeline, Running, paths, rule_store, tables};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Slices of time without a swap follow slices with eight of them.
const SLICE: Duration = Duration::from_secs(1);
const SWAPS: u32 = 8;

/// Offvia's tables, a rule store beside the file.
const PIPELINE: &str = r#"
name = "bench"
[rules]
store = "rules"
event_version = { attribute = "event_version", default = "1" }
[warehouse.sqlite]
path = "warehouse.db"
[silver]
table = "silver"
create = "if_needed"
[quarantine]
table = "quarantine"
create = "if_needed"
"#;

/// A pipeline with a store that has two builds of Offvia's rule, the first of them active.
struct Swapped {
    pipeline: Pipeline,
    store: RuleStore,
    builds: [Digest; 2],
}

impl Swapped {
    fn new(source: &str) -> Result<Self> {
        let pipeline = Pipeline::with_file(&format!("{PIPELINE}{source}"), "").warm();
        let pipeline = pipeline.env("RUST_LOG", "info,preflight::batch=debug");
        let store = RuleStore::at(pipeline.directory().join("rules"));
        let component = paths::rule("offvia-booking");
        let fixtures = std::fs::read_to_string(paths::root().join("guest-validators/offvia-booking/fixtures.ndjson"))?;
        let stage = |bytes: &[u8]| store.stage(bytes, &fixtures, "offvia-booking", "bench", "", SystemClock.now());
        let builds = [stage(&std::fs::read(&component)?)?, stage(&rule_store::variant(&component, "bench"))?];
        let swapped = Self { pipeline, store, builds };
        swapped.promote(0)?;
        Ok(swapped)
    }

    fn change(&self, change: &Change) -> Result<u64> {
        Ok(self.store.change(change, None, "bench", "", SystemClock.now())?.revision)
    }

    fn promote(&self, build: usize) -> Result<u64> {
        let digest = self.builds[build];
        self.change(&Change::Promote { digest, events: "1".into(), expect_rejects: false, force: false })
    }

    /// To the second build and back.
    fn there_or_back(&self, there: bool) -> Result<u64> {
        if there { self.promote(1) } else { self.change(&Change::Rollback { events: "1".into() }) }
    }

    fn serves(&self) -> Option<u64> {
        self.store.workers().ok()?.known.pop().filter(|(_, worker)| worker.running)?.1.revision
    }

    /// Waits until the worker serves a revision.
    fn wait(&self, revision: u64) -> Result<()> {
        let until = Instant::now() + Duration::from_secs(30);
        while self.serves() != Some(revision) {
            ensure!(Instant::now() < until, "the worker does not come to revision {revision}");
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

/// Measures and reports.
pub(crate) fn measure(effort: Effort, report: &mut Report) -> Result<()> {
    let (mut with, mut without, mut latencies) = (Vec::new(), Vec::new(), Vec::new());
    let mut medians = [Vec::new(), Vec::new()];
    let mut swaps = 0;
    // A smoke run has shorter slices, and is over within seconds.
    let (events, slice) = if effort.rounds < 5 { (effort.events * 30, SLICE / 5) } else { (effort.events * 2, SLICE) };
    for _ in 0..effort.rounds {
        let round = under_load(events, slice)?;
        // A short round on a busy machine may have no micro-batch of one kind.
        medians[0].extend(percentile(&round.with, 50));
        medians[1].extend(percentile(&round.without, 50));
        with.extend(round.with);
        without.extend(round.without);
        latencies.push(round.latency);
        swaps += round.swaps;
    }
    // One in a hundred of a single round is a handful of micro-batches, so all rounds count together here.
    let (with, without) = (percentile(&with, 99)?, percentile(&without, 99)?);
    eprintln!("{swaps} swaps under load; every event has its row, judged by one of the two builds in turn");
    report.add("p99 of a micro-batch, in seconds with swaps", "ms", vec![with], None);
    report.add("  in seconds without", "ms", vec![without], None);
    report.add("  difference", "ms", vec![with - without], Some("<= 5"));
    let [with, without] = medians;
    report.add("  p50 in seconds with swaps", "ms", with, None);
    report.add("  p50 in seconds without", "ms", without, None);
    report.add("  from a change of the store to its being served, median", "ms", latencies, Some("<= 1000"));
    let reloads = if effort.rounds < 5 { 60 } else { 1_000 };
    let (early, late) = memory(reloads)?;
    report.add("resident memory after 50 reloads", "MiB", vec![early], None);
    report.add("  after 1,000 (a smoke run: 60)", "MiB", vec![late], None);
    report.ratio("  ratio", &[late], &[early], Some("<= 1.2"));
    Ok(())
}

/// What one run under load showed, milliseconds.
struct Round {
    with: Vec<f64>,
    without: Vec<f64>,
    latency: f64,
    swaps: usize,
}

fn under_load(events: usize, slice: Duration) -> Result<Round> {
    let swapped = Swapped::new("[source.file]\npath = \"input.ndjson\"\n")?;
    swapped.pipeline.write_input(payloads::lines(events));
    let (mut run, _stdin) = Running::start(&swapped.pipeline);
    swapped.wait(1)?;
    let mut at = Vec::new();
    let mut latencies = Vec::new();
    let (mut there, started) = (true, Instant::now());
    // Until the source has ended: then nobody serves the next revision.
    'run: loop {
        let even = (started.elapsed().as_micros() / slice.as_micros()).is_multiple_of(2);
        // A slice begins and ends with the first build, so that no guard runs in those without swaps.
        if !even && there {
            std::thread::sleep(Duration::from_millis(1));
            if run.has_ended() {
                break;
            }
            continue;
        }
        let changed = Instant::now();
        let revision = swapped.there_or_back(there)?;
        at.push(SystemClock.now());
        while swapped.serves() != Some(revision) {
            if run.has_ended() {
                break 'run;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        latencies.push(changed.elapsed().as_secs_f64() * 1e3);
        there = !there;
        std::thread::sleep((slice / SWAPS).saturating_sub(changed.elapsed()));
    }
    let ended = run.finish();
    ensure!(ended.code == Some(0), "the run failed: {}", ended.stderr);
    check(&swapped, events)?;
    let (with, without) = batches(&ended.stderr, &at, slice)?;
    Ok(Round { with, without, latency: percentile(&latencies, 50)?, swaps: at.len() })
}

/// Every event has its row, and the digests of the rows follow the history.
fn check(swapped: &Swapped, events: usize) -> Result<()> {
    let database = swapped.pipeline.database();
    let rows = tables::count(&database, "silver") + tables::count(&database, "quarantine");
    ensure!(rows == events as u64, "{rows} rows of {events} events");
    let mut digests = tables::column(&database, "silver", "rule_digest");
    digests.dedup();
    let history = swapped.store.history()?;
    let mut active = history.iter().filter_map(|record| Some(record.roles.as_ref()?.active.to_string()));
    // Each run of one digest is one that the history has, in its order; a short reign may have had no rows.
    ensure!(digests.iter().all(|digest| active.any(|other| other == *digest)), "a row's digest was not active then");
    Ok(())
}

/// Milliseconds of the micro-batches, those of slices with a swap first. The first slice of a run warms up.
fn batches(log: &str, swaps: &[i64], slice: Duration) -> Result<(Vec<f64>, Vec<f64>)> {
    let slice = i64::try_from(slice.as_micros())?;
    let number = |micros: i64, from: i64| (micros - from).div_euclid(slice);
    let (mut with, mut without) = (Vec::new(), Vec::new());
    let from = *swaps.first().context("there was no swap")?;
    let slices: BTreeSet<i64> = swaps.iter().map(|at| number(*at, from)).collect();
    for line in log.lines().filter(|line| line.contains("\"preflight::batch\"")) {
        let line: serde_json::Value = serde_json::from_str(line)?;
        let at = line["timestamp"].as_str().and_then(|text| parse_rfc3339(text).ok()).context("a line has a time")?;
        let millis = line["micros"].as_f64().context("a line has its duration")? / 1e3;
        match number(at, from) {
            0 => {}
            now if slices.contains(&now) => with.push(millis),
            _ => without.push(millis),
        }
    }
    Ok((with, without))
}

/// Resident memory, MiB, after the first fifty reloads and after all.
fn memory(reloads: usize) -> Result<(f64, f64)> {
    let swapped = Swapped::new("[source.stdin]\n")?;
    let (run, stdin) = Running::start_for(&swapped.pipeline, Duration::from_mins(10));
    swapped.wait(1)?;
    let mut early = 0.0;
    for reload in 1..=reloads {
        let revision = swapped.there_or_back(reload % 2 == 1)?;
        swapped.wait(revision)?;
        if reload == 50 {
            early = resident(run.id())?;
        }
    }
    let late = resident(run.id())?;
    drop(stdin);
    let ended = run.finish();
    ensure!(ended.code == Some(0), "the run failed: {}", ended.stderr);
    Ok((early, late))
}

fn resident(process: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("it has resident memory")?;
    let kib: f64 = line.split_whitespace().nth(1).context("a number follows")?.parse()?;
    Ok(kib / 1024.0)
}

fn percentile(values: &[f64], percent: usize) -> Result<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let index = (values.len() * percent).div_ceil(100).saturating_sub(1);
    values.get(index).copied().context("no micro-batch fell into that kind of slice: the run was too short")
}

//! The batch system against the shop's own Beam pipeline on the `DirectRunner`: the same files, one after the other.

use crate::Effort;
use crate::report::Report;
use crate::timed::{Took, timed_command};
use anyhow::{Result, ensure};
use preflight_tests::shopflow::{Beam, Shop, beam_venv};
use preflight_tests::tables;
use std::process::Stdio;
use xtask::shopflow::{Request, Shape};

/// Lines of the shop's own file, where the start of Python is half of what Beam takes; and ten times that, where it is not.
const LINES: [u64; 2] = [40_150, 401_500];
/// More lines than anything could hold in memory by mistake without its being seen.
const LARGE: u64 = 8_030_000;

/// Measures and reports.
pub(crate) fn measure(effort: Effort, smoke: bool, report: &mut Report) -> Result<()> {
    for lines in LINES {
        beside_beam(effort, lines, report)?;
        if smoke {
            return Ok(());
        }
    }
    large(report)
}

/// Both pipelines over the same file. Where Beam is not installed, only ours.
fn beside_beam(effort: Effort, lines: u64, report: &mut Report) -> Result<()> {
    let request = Request { seed: 1, shape: Shape::of(lines), files: 1 };
    let (mut ours, mut theirs, mut without_start) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..effort.rounds.min(3) {
        let shop = Shop::new(request);
        ours.push(run(&shop)?);
        if beam_venv().join("installed.txt").exists() {
            let (took, beam) = beam(&shop)?;
            ensure!(beam.silver == request.shape.accepted(), "Beam has {} rows", beam.silver);
            ensure!(beam.rejected == request.shape.rejected, "Beam has rejected {} lines", beam.rejected);
            theirs.push(took);
            without_start.push(beam.seconds);
        }
    }
    let rates =
        |took: &[Took], of: fn(&Took) -> f64| took.iter().map(|took| lines as f64 / of(took)).collect::<Vec<f64>>();
    let by_clock: fn(&Took) -> f64 = |took| took.seconds;
    let by_core: fn(&Took) -> f64 = |took| took.processor;
    report.add(format!("ShopFlow, {lines} lines: preflight run"), "/s", rates(&ours, by_clock), None);
    report.add("  in a second of processor time", "/s", rates(&ours, by_core), None);
    if theirs.is_empty() {
        return Ok(());
    }
    report.add("  the seed's pipeline on Beam's DirectRunner", "/s", rates(&theirs, by_clock), None);
    report.add("  in a second of its processor time", "/s", rates(&theirs, by_core), None);
    report.ratio("  preflight / Beam, by the clock", &rates(&ours, by_clock), &rates(&theirs, by_clock), None);
    let without_start: Vec<f64> = without_start.into_iter().map(|seconds| lines as f64 / seconds).collect();
    report.ratio("  the same without the start of Python", &rates(&ours, by_clock), &without_start, None);
    report.ratio("  preflight / Beam, per core", &rates(&ours, by_core), &rates(&theirs, by_core), Some(">= 25"));
    Ok(())
}

/// One large file: judged on all cores, and no more memory than a small one takes but for the keys.
fn large(report: &mut Report) -> Result<()> {
    let shop = Shop::new(Request { seed: 1, shape: Shape::of(LARGE), files: 1 });
    let took = run(&shop)?;
    report.add("ShopFlow, 8 M lines in one file: preflight run", "/s", vec![LARGE as f64 / took.seconds], None);
    report.add("  cores busy", "", vec![took.processor / took.seconds], None);
    report.add("  peak memory", "MiB", vec![took.peak], Some("< 300"));
    Ok(())
}

/// Ours, checked.
fn run(shop: &Shop) -> Result<Took> {
    let mut command = shop.command();
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let (took, _) = timed_command(command)?;
    let rows = tables::count(&shop.database(), "orders");
    ensure!(rows == shop.request.shape.accepted(), "{rows} rows of silver");
    let rejected = shop.rejected().len() as u64;
    ensure!(rejected == shop.request.shape.rejected, "{rejected} rejected lines");
    Ok(took)
}

fn beam(shop: &Shop) -> Result<(Took, Beam)> {
    let mut command = shop.beam_command();
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let (took, answer) = timed_command(command)?;
    Ok((took, serde_json::from_slice(&answer)?))
}

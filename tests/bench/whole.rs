//! The whole command: file → SQLite, and from start to first verdict with a cold and a warm code cache.

use crate::Effort;
use crate::payloads;
use crate::report::Report;
use anyhow::{Context, Result, ensure};
use preflight_tests::{Pipeline, tables};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Measures and reports.
pub(crate) fn measure(effort: Effort, report: &mut Report) -> Result<()> {
    let input = payloads::lines(effort.events);
    let (mut rates, mut memory) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds.min(3) {
        let pipeline = Pipeline::offvia(&input);
        let (seconds, peak) = timed(&pipeline)?;
        let rows = tables::count(&pipeline.database(), "fact_bookings");
        ensure!(rows == effort.events as u64, "{rows} rows of {} events", effort.events);
        rates.push(effort.events as f64 / seconds);
        memory.push(peak);
    }
    let goal = Some(">= 100 k on two cores");
    report.add("file -> SQLite, bronze and silver, with the ledger, all cores", "/s", rates, goal);
    report.add("  peak memory", "MiB", memory, Some("< 300"));

    let (mut cold, mut warm) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds.max(3) {
        let pipeline = Pipeline::offvia(payloads::lines(1));
        // The pipeline's code cache is its own, and empty.
        cold.push(timed(&pipeline)?.0 * 1e3);
        pipeline.write_input(payloads::lines(2));
        warm.push(timed(&pipeline)?.0 * 1e3);
    }
    report.add("start to first verdict stored, cold: two rules compiled", "ms", cold, None);
    report.add("start to first verdict stored, warm", "ms", warm, Some("< 300"));
    Ok(())
}

/// Runs to the end. Seconds from start to exit, and the peak of resident memory in MiB.
pub(crate) fn timed(pipeline: &Pipeline) -> Result<(f64, f64)> {
    let started = Instant::now();
    let mut command = pipeline.command("run");
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().context("preflight can be started")?;
    let peak = watch(child)?;
    Ok((started.elapsed().as_secs_f64(), peak))
}

/// Waits for the end, reading the kernel's high-water mark of resident memory on the way.
fn watch(mut child: Child) -> Result<f64> {
    let status_file = format!("/proc/{}/status", child.id());
    let mut peak = 0.0_f64;
    loop {
        if let Some(kib) = std::fs::read_to_string(&status_file).ok().as_deref().and_then(high_water) {
            peak = peak.max(kib / 1024.0);
        }
        if let Some(status) = child.try_wait()? {
            ensure!(status.success(), "the run failed: {status}");
            return Ok(peak);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn high_water(status: &str) -> Option<f64> {
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

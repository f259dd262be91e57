//! The whole command: file → SQLite, and from start to first verdict with a cold and a warm code cache.

use crate::Effort;
use crate::payloads;
use crate::report::Report;
use crate::timed::timed;
use anyhow::{Result, ensure};
use preflight_tests::{Pipeline, tables};

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

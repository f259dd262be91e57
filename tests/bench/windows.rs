//! What windows cost: the same orders with and without an aggregate of ten thousand keys.

use crate::Effort;
use crate::report::Report;
use crate::timed::timed;
use anyhow::{Result, ensure};
use preflight_tests::orders::{self, OF_THE_SEED, Orders, PER_MINUTE};
use preflight_tests::tables;

const SECOND: i64 = 1_000_000;

/// Measures and reports: orders as they would come, of a stream of 20,000 a second, in the aggregate of the seed; and those of ten
/// minutes in one with more measures, where a window has ten orders and every tenth row is a pane.
pub(crate) fn measure(effort: Effort, report: &mut Report) -> Result<()> {
    let streamed = i64::try_from(effort.events / 20_000)?.max(1) * SECOND;
    shape(
        effort,
        streamed,
        OF_THE_SEED,
        "orders, 20,000 a second: file -> SQLite, without aggregates",
        Some(">= 75"),
        report,
    )?;
    shape(effort, 600 * SECOND, PER_MINUTE, "orders of ten minutes, four measures: the same", None, report)
}

/// Orders that happened within so long, shuffled within two minutes.
fn shape(
    effort: Effort,
    within: i64,
    aggregate: &str,
    name: &'static str,
    goal: Option<&'static str>,
    report: &mut Report,
) -> Result<()> {
    let orders = Orders { count: effort.events, skus: 10_000, within, shuffled: 120 * SECOND };
    let lines = orders.lines();
    let (mut plain, mut measured, mut ratios, mut memory) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..effort.rounds.min(3) {
        let without = orders::pipeline(&[], &lines);
        let (seconds, _) = timed(&without)?;
        let with = orders::pipeline(&[aggregate], &lines);
        let (longer, peak) = timed(&with)?;
        let rows = tables::count(&with.database(), "orders");
        ensure!(rows == tables::count(&without.database(), "orders"), "both have the same orders");
        let counted = &tables::query(&with.database(), "SELECT SUM(orders) AS n FROM per_minute_latest")[0]["n"];
        ensure!(counted.as_u64() == Some(rows), "{counted} orders were measured of {rows}");
        plain.push(effort.events as f64 / seconds);
        measured.push(effort.events as f64 / longer);
        ratios.push(100.0 * seconds / longer);
        memory.push(peak);
    }
    report.add(name, "/s", plain, None);
    report.add("  with one over minutes, 10,000 keys", "/s", measured, None);
    report.add("  of without", "%", ratios, goal);
    report.add("  peak memory", "MiB", memory, None);
    Ok(())
}

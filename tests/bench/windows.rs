//! What windows cost: the same orders with and without an aggregate of ten thousand keys.

use crate::Effort;
use crate::report::Report;
use crate::whole::timed;
use anyhow::{Result, ensure};
use preflight_tests::orders::{self, Orders, PER_MINUTE};
use preflight_tests::tables;

/// Ten minutes of orders, shuffled within two.
const MINUTE: i64 = 60_000_000;

/// Measures and reports.
pub(crate) fn measure(effort: Effort, report: &mut Report) -> Result<()> {
    let orders = Orders { count: effort.events, skus: 10_000, within: 10 * MINUTE, shuffled: 2 * MINUTE };
    let lines = orders.lines();
    let (mut plain, mut measured, mut ratios, mut memory) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..effort.rounds.min(3) {
        let without = orders::pipeline(&[], &lines);
        let (seconds, _) = timed(&without)?;
        let with = orders::pipeline(&[PER_MINUTE], &lines);
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
    report.add("orders: file -> SQLite, without aggregates", "/s", plain, None);
    report.add("  with one over minutes, 10,000 keys, four measures", "/s", measured, None);
    report.add("  of without", "%", ratios, Some(">= 75"));
    report.add("  peak memory", "MiB", memory, None);
    Ok(())
}

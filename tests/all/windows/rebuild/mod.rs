//! Rebuilding aggregates from silver: what windows lack, or have too much, is as SQL says of silver.

mod killed;
mod refused;
mod running;
mod sessions;
mod silver;

use super::exactly::{PER_MINUTE_BY_SQL, PER_MINUTE_BY_WINDOWS, expect_same};
use preflight::time::format_micros;
use preflight_tests::orders::{self, BEGAN, PER_MINUTE, order};
use preflight_tests::{Pipeline, tables};
use rusqlite::Connection;
use serde_json::Value;

/// From so many minutes behind the first order to so many.
fn minutes(from: i64, to: i64) -> String {
    let at = |minutes: i64| format_micros(BEGAN + minutes * 60_000_000);
    format!("{}..{}", at(from), at(to))
}

/// Orders in time, one that moves the watermark to the 28th minute, and three that are late by then.
fn with_late_orders() -> String {
    let mut lines: String = (0..20)
        .map(|number| order(&format!("E{number}"), if number % 2 == 0 { "A" } else { "B" }, number * 20, 410))
        .collect();
    lines.push_str(&order("F", "A", 1_700, 1_800));
    for (number, (sku, at)) in [("A", 65), ("B", 70), ("C", 200)].into_iter().enumerate() {
        lines.push_str(&order(&format!("L{number}"), sku, at, 1_801));
    }
    lines
}

/// A pipeline that compares each order with the watermark of those before it.
fn one_by_one(aggregates: &[&str], input: &str) -> Pipeline {
    orders::pipeline(aggregates, input).set("batch.max_events=1")
}

/// Rebuilds and returns the report.
#[track_caller]
fn rebuilt(pipeline: &Pipeline, aggregate: &str, range: &str) -> Value {
    pipeline.rebuild(aggregate, range, &["--json"]).expect(0).json()
}

/// How many windows were written, retracted and left alone.
#[track_caller]
fn counts(report: &Value) -> [u64; 3] {
    ["written", "retracted", "left_alone"].map(|name| report[name].as_u64().unwrap())
}

#[track_caller]
fn expect_per_minute(pipeline: &Pipeline) {
    expect_same(pipeline, PER_MINUTE_BY_SQL, PER_MINUTE_BY_WINDOWS);
}

fn execute(pipeline: &Pipeline, sql: &str) {
    Connection::open(pipeline.database()).unwrap().execute_batch(sql).unwrap();
}

fn number(pipeline: &Pipeline, sql: &str) -> i64 {
    tables::query(&pipeline.database(), sql)[0]["n"].as_i64().unwrap()
}

/// A pipeline whose windows of minutes lack three late orders.
fn lacking() -> Pipeline {
    let pipeline = one_by_one(&[PER_MINUTE], &with_late_orders());
    pipeline.run().expect(0);
    assert_eq!(tables::count(&pipeline.database(), "late_orders"), 3);
    assert_eq!(number(&pipeline, "SELECT sum(orders) AS n FROM per_minute_latest"), 21);
    pipeline
}

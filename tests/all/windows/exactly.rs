//! A million orders through workers that are killed: what windows say is what SQL says of silver.

use preflight_tests::orders::{self, Orders, PER_MINUTE, PER_REGION};
use preflight_tests::{Pipeline, Running, tables};
use rustix::process::Signal;

const MINUTE: i64 = 60_000_000;

/// Rows of one query that the other does not have.
fn except(pipeline: &Pipeline, left: &str, right: &str) -> u64 {
    let sql = format!("SELECT count(*) AS n FROM (SELECT * FROM ({left}) EXCEPT SELECT * FROM ({right}))");
    tables::query(&pipeline.database(), &sql)[0]["n"].as_u64().expect("a count")
}

/// Asserts that two queries give the same rows.
#[track_caller]
pub(super) fn expect_same(pipeline: &Pipeline, left: &str, right: &str) {
    assert_eq!((except(pipeline, left, right), except(pipeline, right, left)), (0, 0), "{left}\n{right}");
}

/// What SQL makes of silver. Revenue is in cents, which SQLite sums exactly.
pub(super) const PER_MINUTE_BY_SQL: &str = "
    SELECT sku, strftime('%Y-%m-%dT%H:%M:00.000000Z', occurred_at), COUNT(*), SUM(quantity),
           SUM(CAST(ROUND(CAST(revenue AS REAL) * 100) AS INTEGER)), MAX(event_id)
    FROM orders GROUP BY 1, 2";

pub(super) const PER_MINUTE_BY_WINDOWS: &str = "
    SELECT sku, window_start, orders, pieces, CAST(ROUND(CAST(revenue AS REAL) * 100) AS INTEGER), last
    FROM per_minute_latest";

pub(super) const PER_REGION_BY_SQL: &str = "
    WITH RECURSIVE back(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM back WHERE n < 4)
    SELECT region, strftime('%Y-%m-%dT%H:%M:00.000000Z', occurred_at, '-' || n || ' minutes'), COUNT(*), SUM(quantity)
    FROM orders, back GROUP BY 1, 2";

pub(super) const PER_REGION_BY_WINDOWS: &str = "SELECT region, window_start, orders, pieces FROM per_region_latest";

#[test]
fn a_million_orders_through_workers_that_are_killed_are_measured_exactly() {
    const KILLS: usize = 10;
    let orders = Orders { count: 1_000_000, skus: 10_000, within: 20 * MINUTE, shuffled: 2 * MINUTE };
    let mut random = fastrand::Rng::with_seed(14_05);
    let pipeline = orders::pipeline(&[PER_MINUTE, PER_REGION], orders.lines());
    for kill in 0..KILLS {
        let rows = (kill * orders.count + random.usize(0..orders.count)) / (KILLS + 1);
        let (mut run, _stdin) = Running::start(&pipeline);
        run.wait_until(|| tables::newest_rowid(&pipeline.database(), "orders") >= Some(rows as u64));
        run.signal(Signal::KILL);
        assert!(run.finish().was_killed(), "it was still running at {rows} rows");
    }
    pipeline.run().expect(0);
    let accepted = orders.count as u64 / 100 * 99;
    assert_eq!(tables::count(&pipeline.database(), "orders"), accepted);
    assert_eq!(tables::count(&pipeline.database(), "late_orders"), 0, "two minutes are declared");
    expect_same(&pipeline, PER_MINUTE_BY_SQL, PER_MINUTE_BY_WINDOWS);
    expect_same(&pipeline, PER_REGION_BY_SQL, PER_REGION_BY_WINDOWS);
    // Each pane once.
    let panes = "SELECT window_id, epoch, pane_index FROM per_minute";
    let twice = format!("SELECT count(*) AS n FROM ({panes} GROUP BY 1, 2, 3 HAVING count(*) > 1)");
    assert_eq!(tables::query(&pipeline.database(), &twice)[0]["n"], 0);
}

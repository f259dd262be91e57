//! Sessions have no bounds of their own: what may go on outside of the range is left as it is.

use super::{counts, execute, minutes, one_by_one, order, rebuilt};
use preflight_tests::orders::PER_VISIT;
use preflight_tests::{Pipeline, tables};

const SHOWN: &str = "SELECT sku, substr(window_start, 12, 5) || '-' || substr(window_end, 12, 5) AS window, orders
                     FROM per_visit_latest ORDER BY 1, 2";

/// Sessions that the table shows: article, span, orders.
fn shown(pipeline: &Pipeline) -> Vec<String> {
    let rows = tables::query(&pipeline.database(), SHOWN);
    rows.iter()
        .map(|row| format!("{} {} {}", row["sku"].as_str().unwrap(), row["window"].as_str().unwrap(), row["orders"]))
        .collect()
}

/// Three visits, and an order that comes too late to make the last two one.
fn pipeline() -> Pipeline {
    let at = |minute: i64| order(&format!("E{minute}"), "A", minute * 60, minute * 60);
    let mut lines: String = [0, 2, 20, 29].into_iter().map(at).collect();
    lines.push_str(&order("F", "B", 3_600, 4_200));
    lines.push_str(&order("L", "A", 24 * 60 + 30, 4_200));
    let pipeline = one_by_one(&[PER_VISIT], &lines);
    pipeline.run().expect(0);
    assert_eq!(tables::count(&pipeline.database(), "late_orders"), 1);
    assert_eq!(shown(&pipeline), ["A 14:00-14:07 2", "A 14:20-14:25 1", "A 14:29-14:34 1", "B 15:00-15:05 1"]);
    pipeline
}

#[test]
fn sessions_that_a_late_order_makes_one_are_one() {
    let pipeline = pipeline();
    assert_eq!(counts(&rebuilt(&pipeline, "per_visit", &minutes(10, 40))), [1, 2, 0]);
    let expected = ["A 14:00-14:07 2", "A 14:20-14:34 3", "B 15:00-15:05 1"];
    assert_eq!(shown(&pipeline), expected);
    assert_eq!(counts(&rebuilt(&pipeline, "per_visit", &minutes(10, 40))), [1, 0, 0]);
    assert_eq!(shown(&pipeline), expected);
}

#[test]
fn sessions_that_come_near_the_edges_are_left_as_they_are() {
    let pipeline = pipeline();
    let before = shown(&pipeline);
    // The beginning may be the end of a longer one; the end is behind the range; both; less than a gap behind the beginning.
    for (from, to, left) in [(19, 40, 3), (10, 33, 2), (24, 33, 1), (16, 40, 3)] {
        let report = rebuilt(&pipeline, "per_visit", &minutes(from, to));
        assert_eq!(counts(&report), [0, 0, left], "{from} to {to}: {report}");
        assert_eq!(shown(&pipeline), before);
    }
    assert_eq!(counts(&rebuilt(&pipeline, "per_visit", &minutes(15, 34))), [1, 2, 0], "exactly a gap is enough");
}

#[test]
fn sessions_whose_rows_are_gone_are_taken_back_or_parted() {
    let pipeline = pipeline();
    rebuilt(&pipeline, "per_visit", &minutes(10, 40));
    execute(&pipeline, "DELETE FROM orders WHERE event_id IN ('L', 'E0', 'E2')");
    assert_eq!(counts(&rebuilt(&pipeline, "per_visit", &minutes(-5, 40))), [2, 2, 0]);
    assert_eq!(shown(&pipeline), ["A 14:20-14:25 1", "A 14:29-14:34 1", "B 15:00-15:05 1"]);
}

#[test]
fn a_session_in_the_table_that_reaches_into_the_range_keeps_what_it_overlaps() {
    let pipeline = pipeline();
    rebuilt(&pipeline, "per_visit", &minutes(10, 40));
    execute(&pipeline, "DELETE FROM orders WHERE event_id IN ('L', 'E20')");
    // The session of the table began before the range: it cannot be judged from here.
    let report = rebuilt(&pipeline, "per_visit", &minutes(22, 60));
    assert_eq!(counts(&report), [0, 0, 1], "{report}");
    assert_eq!(counts(&rebuilt(&pipeline, "per_visit", &minutes(10, 60))), [1, 1, 0]);
    assert_eq!(shown(&pipeline), ["A 14:00-14:07 2", "A 14:29-14:34 1", "B 15:00-15:05 1"]);
}

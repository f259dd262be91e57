//! What the aggregate has after a rebuild is what silver has.

use super::super::exactly::{PER_REGION_BY_SQL, PER_REGION_BY_WINDOWS, expect_same};
use super::{
    counts, execute, expect_per_minute, lacking, minutes, number, one_by_one, order, rebuilt, with_late_orders,
};
use preflight_tests::orders::{self, Orders, PER_MINUTE, PER_REGION};
use preflight_tests::tables;

#[test]
fn late_orders_are_in_the_aggregate_once_it_is_rebuilt() {
    let pipeline = lacking();
    let report = rebuilt(&pipeline, "per_minute", &minutes(0, 10));
    assert_eq!(report["rows"], 23, "the one of the 28th minute is not in the range");
    // Seven minutes of two articles, less the last of one, and one of a third.
    assert_eq!(counts(&report), [14 + 1, 0, 0], "{report}");
    expect_per_minute(&pipeline);
    let epoch = report["epoch"].as_i64().unwrap();
    assert_eq!(number(&pipeline, "SELECT max(epoch) AS n FROM per_minute"), epoch);
    let rebuilt = tables::query(&pipeline.database(), &format!("SELECT * FROM per_minute WHERE epoch = {epoch}"));
    assert_eq!(rebuilt.len(), 15);
    for row in rebuilt {
        assert_eq!((&row["timing"], &row["pane_index"], &row["watermark"]), (&"ON_TIME".into(), &0.into(), &().into()));
    }
    let text = pipeline.rebuild("per_minute", &minutes(0, 10), &[]).expect(0).stdout;
    for part in ["per_minute", "silver rows", "23", "written", "retracted", "left alone", "epoch"] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
    expect_per_minute(&pipeline);
}

#[test]
fn of_an_upserted_aggregate_the_rows_are_replaced_and_deleted() {
    let pipeline = one_by_one(&[PER_MINUTE], &with_late_orders()).set("aggregates.per_minute.write=upsert");
    pipeline.run().expect(0);
    execute(&pipeline, "DELETE FROM orders WHERE sku = 'B' AND occurred_at < '2024-05-01T14:01'");
    let report = rebuilt(&pipeline, "per_minute", &minutes(0, 40));
    assert_eq!(counts(&report), [14 + 1, 1, 0], "{report}");
    let (by_sql, by_windows) = (super::PER_MINUTE_BY_SQL, super::PER_MINUTE_BY_WINDOWS.replace("_latest", ""));
    expect_same(&pipeline, by_sql, &by_windows);
}

#[test]
fn a_window_whose_silver_rows_are_gone_disappears_and_is_taken_back_once() {
    let pipeline = lacking();
    execute(&pipeline, "DELETE FROM orders WHERE sku = 'B' AND occurred_at < '2024-05-01T14:01'");
    let windows = number(&pipeline, "SELECT count(*) AS n FROM per_minute_latest");
    assert_eq!(counts(&rebuilt(&pipeline, "per_minute", &minutes(0, 10))), [14, 1, 0]);
    expect_per_minute(&pipeline);
    assert_eq!(number(&pipeline, "SELECT count(*) AS n FROM per_minute_latest"), windows, "one less, and one of C");
    assert_eq!(counts(&rebuilt(&pipeline, "per_minute", &minutes(0, 10))), [14, 0, 0]);
    execute(&pipeline, "DELETE FROM orders");
    assert_eq!(counts(&rebuilt(&pipeline, "per_minute", &minutes(0, 60))), [0, 15, 0]);
    assert_eq!(number(&pipeline, "SELECT count(*) AS n FROM per_minute_latest"), 0);
    let report = rebuilt(&pipeline, "per_minute", &minutes(0, 60));
    assert_eq!((counts(&report), report["epoch"].is_null()), ([0, 0, 0], true), "there is nothing to write");
}

#[test]
fn only_windows_of_the_range_are_written() {
    let pipeline = lacking();
    let before = tables::count(&pipeline.database(), "per_minute");
    assert_eq!(counts(&rebuilt(&pipeline, "per_minute", &minutes(1, 2))), [2, 0, 0]);
    assert_eq!(tables::count(&pipeline.database(), "per_minute"), before + 2);
    assert_eq!(number(&pipeline, "SELECT sum(orders) AS n FROM per_minute_latest"), 23, "C's comes later");
}

#[test]
fn sliding_windows_that_stick_out_of_the_range_are_left_alone() {
    let orders = Orders { count: 3_000, skus: 10, within: 30 * 60_000_000, shuffled: 60_000_000 };
    let pipeline = orders::pipeline(&[PER_REGION], orders.lines());
    pipeline.run().expect(0);
    execute(&pipeline, "DELETE FROM orders WHERE rowid % 7 = 0");
    let report = rebuilt(&pipeline, "per_region", &minutes(10, 20));
    // Five regions, null among them: six windows lie in the range, four reach in at each side.
    assert_eq!(counts(&report), [30, 0, 40], "{report}");
    assert_eq!(counts(&rebuilt(&pipeline, "per_region", &minutes(-60, 60)))[1..], [0, 0]);
    expect_same(&pipeline, PER_REGION_BY_SQL, PER_REGION_BY_WINDOWS);
}

/// The sum of panes is what the view shows.
#[test]
fn of_discarding_panes_the_rebuilt_one_is_the_whole() {
    let per_minute = PER_MINUTE
        .replace("allowed_lateness = \"4 m\"", "allowed_lateness = \"15 m\"\naccumulation = \"discarding\"")
        .replace("revenue = { sum = \"revenue\" }, ", "");
    let late = order("L3", "A", 800, 1_801) + &order("L4", "A", 801, 1_801);
    let pipeline = one_by_one(&[&per_minute], &(with_late_orders() + &late));
    pipeline.run().expect(0);
    assert!(number(&pipeline, "SELECT count(*) AS n FROM per_minute WHERE timing = 'LATE'") > 0);
    rebuilt(&pipeline, "per_minute", &minutes(0, 60));
    let by_sql =
        "SELECT sku, strftime('%Y-%m-%dT%H:%M:00.000000Z', occurred_at), count(*), sum(quantity), max(event_id)
                  FROM orders GROUP BY 1, 2";
    expect_same(&pipeline, by_sql, "SELECT sku, window_start, orders, pieces, last FROM per_minute_latest");
}

#[test]
fn an_aggregate_that_is_new_in_the_pipeline_file_is_measured_of_all_there_is() {
    let pipeline = lacking();
    let mut file = std::fs::read_to_string(pipeline.file()).unwrap();
    file.push_str(&PER_REGION.replace("per_region", "by_region"));
    std::fs::write(pipeline.file(), file).unwrap();
    let report = rebuilt(&pipeline, "by_region", &minutes(-60, 60));
    assert_eq!((&report["rows"], counts(&report)[1..] == [0, 0]), (&24.into(), true), "{report}");
    expect_same(&pipeline, PER_REGION_BY_SQL, &PER_REGION_BY_WINDOWS.replace("per_region", "by_region"));
}

#[test]
fn a_dry_run_counts_and_writes_nothing() {
    let pipeline = lacking();
    let before = tables::rows(&pipeline.database(), "per_minute");
    let dry = pipeline.rebuild("per_minute", &minutes(0, 10), &["--dry-run", "--json"]).expect(0).json();
    assert_eq!((counts(&dry), &dry["dry_run"], &dry["epoch"]), ([15, 0, 0], &true.into(), &().into()));
    let text = pipeline.rebuild("per_minute", &minutes(0, 10), &["--dry-run"]).expect(0).stdout;
    assert!(text.contains("nothing was written"), "{text}");
    assert_eq!(tables::rows(&pipeline.database(), "per_minute"), before);
    assert_eq!(counts(&rebuilt(&pipeline, "per_minute", &minutes(0, 10))), counts(&dry));
}

#[test]
fn a_run_over_more_of_the_file_goes_on_behind_what_was_rebuilt() {
    let pipeline = lacking();
    rebuilt(&pipeline, "per_minute", &minutes(0, 40));
    let more = order("M0", "A", 2_400, 2_400) + &order("M1", "B", 2_460, 2_460) + &order("M2", "B", 90, 2_461);
    pipeline.write_input(with_late_orders() + &more);
    assert_eq!(pipeline.run().expect(0).json()["events"], 3);
    assert_eq!(tables::count(&pipeline.database(), "late_orders"), 4, "the last is late again");
    assert_eq!(number(&pipeline, "SELECT sum(orders) AS n FROM per_minute_latest"), 26);
    rebuilt(&pipeline, "per_minute", &minutes(0, 60));
    expect_per_minute(&pipeline);
}

/// Else a later run would count what comes for them alone, and that would be all there is.
#[test]
fn windows_that_no_run_has_closed_are_closed_by_being_rebuilt() {
    let pipeline = lacking();
    let mut file = std::fs::read_to_string(pipeline.file()).unwrap();
    file.push_str(&PER_MINUTE.replace("per_minute", "by_minute").replace("4 m", "2 h"));
    std::fs::write(pipeline.file(), file).unwrap();
    rebuilt(&pipeline, "by_minute", &minutes(0, 100_000));
    let more = order("M0", "A", 1_710, 1_811) + &order("M1", "B", 2_460, 2_461);
    pipeline.write_input(with_late_orders() + &more);
    pipeline.run().expect(0);
    let late = "SELECT count(*) AS n FROM late_orders WHERE aggregate = 'by_minute' AND message_id = 'M0'";
    assert_eq!(number(&pipeline, late), 1);
    assert_eq!(number(&pipeline, "SELECT sum(orders) AS n FROM by_minute_latest"), 24 + 1, "what is not over goes on");
    rebuilt(&pipeline, "by_minute", &minutes(0, 60));
    let (by_sql, by_windows) =
        (super::PER_MINUTE_BY_SQL, super::PER_MINUTE_BY_WINDOWS.replace("per_minute", "by_minute"));
    expect_same(&pipeline, by_sql, &by_windows);
}

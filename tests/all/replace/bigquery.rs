//! The same with BigQuery as the warehouse.

use super::{crash_at, rejected, run_with};
use preflight::failpoint;
use preflight_tests::bigquery::fake::{Call, Ending, Fault, Refusal};
use preflight_tests::bigquery::offvia::{QUARANTINE, SILVER};
use preflight_tests::bigquery::{Emulator, Fake};
use preflight_tests::{Pipeline, bookings};
use serde_json::json;
use tonic::Code;

const OLD: usize = 110;
const NEW: usize = 600;

fn pipeline(dataset: &str) -> Pipeline {
    let pipeline = Pipeline::offvia(bookings::lines(OLD)).warm().set("batch.max_events=50");
    let pipeline = ["bronze", "silver", "quarantine"]
        .into_iter()
        .fold(pipeline, |pipeline, tier| pipeline.set(format!("{tier}.write=replace")));
    Emulator::shared().warehouse_of(pipeline, dataset).set("quarantine.files.path=rejected/bookings")
}

/// Rows by table, and how many of them are one and the same.
#[track_caller]
fn expect(dataset: &str, events: usize, when: &str) {
    let bad = rejected(&bookings::lines(events)).lines().count();
    for (table, id, rows) in [
        ("raw_bookings", "message_id", events),
        ("fact_bookings", "source_message_id", events - bad),
        ("poisoned_events", "source_message_id", bad),
    ] {
        let sql = format!("SELECT COUNT(*) AS n, COUNT(DISTINCT {id}) AS ids FROM `{dataset}.{table}`");
        let found = Emulator::shared().query(&sql);
        let expected = (&json!(rows.to_string()), &json!(rows.to_string()));
        assert_eq!((&found[0]["n"], &found[0]["ids"]), expected, "{when}: {table}");
    }
}

fn staged(dataset: &str) -> usize {
    let sql =
        format!("SELECT table_name FROM `{dataset}.INFORMATION_SCHEMA.TABLES` WHERE STRPOS(table_name, '__run_') > 0");
    Emulator::shared().query(&sql).len()
}

#[test]
fn killed_at_points_of_a_run_the_old_rows_are_whole_and_the_next_run_ends_right() {
    let emulator = Emulator::shared();
    for point in [failpoint::ROWS_APPENDED].into_iter().chain(failpoint::REPLACE) {
        let dataset = emulator.dataset("replace");
        let mut pipeline = pipeline(&dataset);
        pipeline.run().expect(0);
        expect(&dataset, OLD, "first");
        pipeline.write_input(bookings::lines(NEW));
        crash_at(&mut pipeline, point, if point == failpoint::ROWS_APPENDED { 3 } else { 1 });
        let is_new =
            [failpoint::TABLES_PUBLISHED, failpoint::FILES_PUBLISHED, failpoint::RUN_PUBLISHED].contains(&point);
        expect(&dataset, if is_new { NEW } else { OLD }, point);
        let report = pipeline.run().expect(0).json();
        assert_eq!((&report["events"], &report["run"]["published"]), (&json!(NEW), &json!(true)), "{point}");
        expect(&dataset, NEW, point);
        assert_eq!(staged(&dataset), 0, "{point}");
        let text = std::fs::read_to_string(super::rejects(&pipeline)).unwrap();
        assert_eq!(text, rejected(&bookings::lines(NEW)), "{point}");
    }
}

#[test]
fn with_too_many_rejects_nothing_is_replaced_and_leftovers_are_named() {
    let dataset = Emulator::shared().dataset("replace");
    let pipeline = pipeline(&dataset);
    pipeline.run().expect(0);
    pipeline.write_input(bookings::lines(NEW));
    let ended = run_with(&pipeline, &["--max-rejects", "5%"]).expect(1);
    assert!(ended.stderr.contains(&format!("{dataset}.poisoned_events__run_")), "{}", ended.stderr);
    expect(&dataset, OLD, "too many");
    assert_eq!(staged(&dataset), 3);
    std::fs::remove_dir_all(pipeline.directory().join("ledger")).unwrap();
    let ended = pipeline.run().expect(0);
    assert!(
        ended.stderr.contains("left by runs") && ended.stderr.contains("poisoned_events__run_"),
        "{}",
        ended.stderr
    );
    expect(&dataset, NEW, "with a new ledger");
    assert_eq!(staged(&dataset), 3);
}

/// Offvia's pipeline into the fake, which replaces silver.
fn strict(fake: &Fake, input: &str) -> Pipeline {
    fake.offvia(input).set("silver.write=replace").set("quarantine.write=replace")
}

/// Each good booking of `bookings::lines` once, and each bad one.
#[track_caller]
fn expect_in(fake: &Fake, events: usize) {
    let bad = rejected(&bookings::lines(events)).lines().count();
    for (table, rows) in [(SILVER, events - bad), (QUARANTINE, bad)] {
        fake.content(|content| {
            let places = content.places(table, "source_message_id");
            assert_eq!((places.len(), content.count(table)), (rows, rows), "{table}");
        });
    }
}

#[test]
fn after_a_lost_answer_the_job_is_found_and_not_run_again() {
    for fault in [Fault::After(Ending::Hang), Fault::After(Ending::Error(Refusal::new(Code::Unavailable, "lost")))] {
        let fake = Fake::start();
        let pipeline = strict(&fake, &bookings::lines(110)).set("warehouse.bigquery.request_timeout=1 s");
        pipeline.run().expect(0);
        pipeline.write_input(bookings::lines(300));
        let lost = fake.when(Call::Begin).once(fault);
        let ended = pipeline.run().expect(0);
        assert!(ended.stderr.contains("trying again"), "{}", ended.stderr);
        assert_eq!(fake.content(|content| content.hits(lost)), 1);
        expect_in(&fake, 300);
    }
}

#[test]
fn a_transaction_that_meets_rows_of_a_replay_waits_for_them_to_be_older() {
    let fake = Fake::start();
    let pipeline = fake.offvia(bookings::lines(110));
    pipeline.run().expect(0);
    // Rows that were streamed, as a replay or a pipeline that appends leaves them.
    std::fs::remove_dir_all(pipeline.directory().join("ledger")).unwrap();
    let pipeline = pipeline.set("silver.write=replace").set("quarantine.write=replace").set("bronze.write=replace");
    pipeline.write_input(bookings::lines(200));
    let impatient = ["--set", "warehouse.bigquery.give_up_after=1 s"];
    let ended = run_with(&pipeline, &impatient).expect(1);
    assert!(
        ended.stderr.contains("cannot be published") && ended.stderr.contains("streaming buffer"),
        "{}",
        ended.stderr
    );
    expect_in(&fake, 110);
    fake.half_an_hour_passes();
    pipeline.run().expect(0);
    expect_in(&fake, 200);
}

#[test]
fn a_table_that_wants_its_partitions_named_is_replaced() {
    let fake = Fake::start();
    let pipeline = strict(&fake, &bookings::lines(110)).set("silver.partition_by=event_timestamp");
    pipeline.run().expect(0);
    fake.require_partition_filter(SILVER);
    pipeline.write_input(bookings::lines(200));
    pipeline.run().expect(0);
    expect_in(&fake, 200);
}

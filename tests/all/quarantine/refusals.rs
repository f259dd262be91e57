//! What cannot be replayed, and what is said of it.

use super::{names, of_version_2, replay, routable, silver, unresolved, with_version_2, without_version_2};
use preflight_tests::booking::envelope;
use preflight_tests::{Booking, Pipeline, bookings, tables};
use rusqlite::Connection;
use serde_json::json;
use std::fs;

fn sql(pipeline: &Pipeline, sql: &str) {
    Connection::open(pipeline.database()).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn a_replay_says_which_rows_it_wants() {
    let pipeline = routable(1);
    let ended = pipeline.quarantine("replay", &[]).expect(2);
    assert!(ended.stderr.contains("--stage") && ended.stderr.contains("or --all"), "{}", ended.stderr);
    pipeline.quarantine("replay", &["--all", "--id", "1"]).expect(2);
    pipeline.quarantine("replay", &["--id", "first"]).expect(2);
    pipeline.quarantine("replay", &["--to", "2026-13-01T00:00:00Z"]).expect(2);
    assert_eq!(unresolved(&pipeline), 1);
}

#[test]
fn a_table_without_what_a_replay_needs_is_told_by_check_and_refused() {
    let pipeline = Pipeline::offvia(bookings::lines(20)).warm();
    sql(
        &pipeline,
        "CREATE TABLE poisoned_events (raw_payload TEXT NOT NULL, error_reason TEXT NOT NULL, error_stage TEXT NOT NULL,
         received_timestamp TEXT, source_message_id TEXT, attributes TEXT, raw_size TEXT, resolved_at TEXT NOT NULL DEFAULT '')",
    );
    let ended = pipeline.check();
    assert!(ended.stderr.contains("raw_size"), "what the host writes must fit: {}", ended.stderr);
    sql(&pipeline, "ALTER TABLE poisoned_events DROP COLUMN raw_size");
    let checked = pipeline.check().expect(0).stdout;
    let refused = pipeline.quarantine("replay", &["--all"]).expect(2).stderr;
    let add = |column: &str| format!("ALTER TABLE \"poisoned_events\" ADD COLUMN {column};");
    let statements = [
        add("\"raw_bytes\" BLOB"),
        add("\"raw_size\" INTEGER"),
        add("\"publish_timestamp\" TIMESTAMP_TEXT"),
        add("\"ordering_key\" TEXT"),
        add("\"pipeline\" TEXT"),
        add("\"resolved_by\" TEXT"),
    ];
    for text in [&checked, &refused] {
        assert!(text.contains("`resolved_at` is NOT NULL"), "{text}");
        assert!(statements.iter().all(|statement| text.contains(statement)), "{text}");
        assert_eq!(text.matches("ALTER TABLE").count(), statements.len(), "{text}");
    }
    let json = pipeline.command("check").arg("--json").output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["not_replayable"]["statements"].as_array().unwrap().len(), statements.len());

    // It runs all the same; with the columns added its new events can be replayed.
    sql(&pipeline, "ALTER TABLE poisoned_events DROP COLUMN resolved_at");
    pipeline.run().expect(0);
    sql(&pipeline, &statements.concat());
    sql(&pipeline, &add("\"resolved_at\" TIMESTAMP_TEXT"));
    assert!(!pipeline.check().expect(0).stdout.contains("cannot be replayed"));
    let before = tables::count(&pipeline.database(), "poisoned_events");
    pipeline.write_input(bookings::lines(20) + "no json\n");
    pipeline.run().expect(0);
    let report = replay(&pipeline, &["--all"]);
    assert_eq!(report["not_replayable"], json!({ "the original bytes are not there": before }));
    assert_eq!(report["rejected"][0]["events"], 1, "the new row was judged again: {report}");
}

#[test]
fn a_filter_by_a_column_that_is_not_there_is_refused() {
    let pipeline = Pipeline::offvia("").warm();
    sql(&pipeline, "CREATE TABLE poisoned_events (raw_payload TEXT, error_reason TEXT, error_stage TEXT)");
    let ended = pipeline.quarantine("list", &["--digest", "sha256:0"]).expect(2);
    assert!(ended.stderr.contains("no column `rule_digest`"), "{}", ended.stderr);
    assert_eq!(pipeline.quarantine("list", &["--stage", "X", "--resolved"]).expect(0).stdout, "no rows\n");
}

#[test]
fn a_table_whose_rows_have_no_numbers_is_refused() {
    let pipeline = Pipeline::offvia("").warm();
    sql(
        &pipeline,
        "CREATE TABLE poisoned_events (source_message_id TEXT NOT NULL PRIMARY KEY, raw_payload TEXT, error_reason TEXT,
         error_stage TEXT) WITHOUT ROWID",
    );
    let ended = pipeline.quarantine("list", &[]).expect(2);
    assert!(ended.stderr.contains("WITHOUT ROWID"), "{}", ended.stderr);
    assert!(pipeline.check().expect(0).stdout.contains("cannot be replayed"));
}

/// A table of your own may call a column `rowid`.
#[test]
fn a_column_that_is_called_rowid_does_not_number_the_rows() {
    let pipeline = routable(2);
    sql(
        &pipeline,
        "CREATE TABLE mine AS SELECT *, 'mine' AS rowid FROM poisoned_events; DROP TABLE poisoned_events;
         ALTER TABLE mine RENAME TO poisoned_events",
    );
    assert_eq!(replay(&pipeline, &["--id", "2"])["accepted"], 1);
    assert_eq!(silver(&pipeline), ["BK-1"]);
}

#[test]
fn rows_that_do_not_hold_the_whole_event_are_counted_and_left() {
    let long = "x".repeat(200_000);
    let large = Booking::v1("BK-large").with("note", &format!("{:?}", "y".repeat(300_000))).json();
    let attributes = [("event_version", "2"), ("long", long.as_str())];
    let input = [
        "no envelope\n".to_owned(),
        envelope(&large, &[]),
        envelope(Booking::v2("BK-cut").with("note", &format!("{long:?}")).json(), &[("event_version", "2")]),
        // The payload is whole, but without its attributes the event is another one.
        envelope(Booking::v2("BK-bare").json(), &attributes),
        of_version_2("BK", 6),
    ];
    let pipeline = without_version_2(&input.concat()).set("limits.payload=250 KiB").set("limits.row=130 KiB");
    pipeline.run().expect(0);
    sql(
        &pipeline,
        "UPDATE poisoned_events SET raw_bytes = NULL WHERE rowid = 5;
         UPDATE poisoned_events SET attributes = '[1]' WHERE rowid = 6;
         UPDATE poisoned_events SET publish_timestamp = 'once' WHERE rowid = 7;
         UPDATE poisoned_events SET source_message_id = NULL WHERE rowid = 8;
         UPDATE poisoned_events SET raw_size = NULL WHERE rowid = 9;",
    );
    let pipeline = with_version_2(pipeline);
    let report = replay(&pipeline, &["--all"]);
    let expected = json!({
        "the source kept no whole payload": 2,
        "the payload was cut": 1,
        "nothing says that the event is whole: raw_size is null": 2,
        "the original bytes are not there": 1,
        "its attributes cannot be read": 1,
        "its publish time cannot be read": 1,
        "it has no message id": 1,
    });
    assert_eq!(report["not_replayable"], expected);
    assert_eq!((&report["selected"], &report["accepted"]), (&10.into(), &1.into()));
    assert_eq!(silver(&pipeline), ["BK-5"]);
    assert_eq!(unresolved(&pipeline), 9);
    let text = pipeline.quarantine("replay", &["--all"]).expect(0).stdout;
    assert!(text.contains("the payload was cut"), "{text}");
    assert!(pipeline.quarantine("show", &["3"]).expect(0).stdout.contains("not replayable"), "show says it too");
}

/// With a new ledger nobody knows what was promised already; the next run would take it for an old one.
#[test]
fn without_its_ledger_nothing_is_replayed() {
    let pipeline = routable(2);
    fs::remove_dir_all(pipeline.ledger()).unwrap();
    let ended = pipeline.quarantine("replay", &["--all"]).expect(2);
    assert!(ended.stderr.contains("is new: run the pipeline first"), "{}", ended.stderr);
    let ended = pipeline.run().expect(2);
    assert!(ended.stderr.contains("--new-ledger"), "it is as new as before: {}", ended.stderr);
    assert_eq!(unresolved(&pipeline), 2);
}

/// The number of a row is another's after a VACUUM: not that one is marked.
#[test]
fn rows_that_were_numbered_anew_before_they_were_marked_are_found() {
    let mut pipeline = without_version_2(&(envelope("no json", &[]) + &of_version_2("BK", 3)));
    pipeline.run().expect(0);
    pipeline = with_version_2(pipeline).env("PREFLIGHT_FAILPOINT", "rows-appended");
    assert!(pipeline.quarantine("replay", &["--code", "no_rule"]).was_killed());
    pipeline.environment.clear();
    sql(&pipeline, "DELETE FROM poisoned_events WHERE rowid = 1; VACUUM");
    let numbers = tables::column(&pipeline.database(), "poisoned_events", "rowid");
    assert_eq!(numbers, ["1", "2", "3"], "this SQLite numbers them anew");
    assert_eq!(replay(&pipeline, &["--all"])["selected"], 0);
    assert_eq!(silver(&pipeline), names("BK", 3));
    assert_eq!(unresolved(&pipeline), 0);
}

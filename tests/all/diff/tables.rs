//! Events of a quarantine or bronze table.

use super::*;
use preflight_tests::{Pipeline, bookings};
use rusqlite::Connection;
use serde_json::json;

/// A finished run of Offvia's pipeline over 110 events: 80 accepted, 30 rejected; and one that was not judged.
fn finished() -> Pipeline {
    let lines = format!("{}{}\n", bookings::lines(110), "x".repeat(2_000));
    let pipeline = Pipeline::offvia(lines).warm().set("limits.payload=1 kB");
    pipeline.run().expect(0);
    pipeline
}

#[test]
fn a_bronze_table_gives_its_events() {
    let pipeline = finished();
    let database = pipeline.database();
    let report = diff(&v1(), &v2(), &database, &["--json", "--table", "offvia_bronze.raw_bookings"]).expect(3).json();
    assert_eq!(kinds(&report), [("accept→reject BUSINESS_RULE_VALIDATION", 80)]);
    assert_eq!((&report["judged"], &report["same"]), (&json!(111), &json!(31)));
    let samples = &report["differences"][0]["samples"];
    assert_eq!(samples[2]["message_id"], "input.ndjson:3", "{samples}");
}

#[test]
fn a_quarantine_table_gives_its_events_but_not_what_was_cut() {
    let pipeline = finished();
    let database = pipeline.database();
    let lenient = rebuilt(pipeline.directory(), "BUSINESS_RULE_VALIDATION", "BUSINESS_RULE_VIOLATIONS");
    let before = std::fs::read(&database).unwrap();
    let ended = diff(&v1(), &lenient, &database, &["--table", "poisoned_events", "--samples", "1"]).expect(3);
    for text in [
        "30 events judged by both: 10 the same, 20 different",
        "1 events skipped: not whole, the source kept no whole payload",
        "       20  reject BUSINESS_RULE_VALIDATION→reject BUSINESS_RULE_VIOLATIONS\n           input.ndjson:5\n",
    ] {
        assert!(ended.stdout.contains(text), "{text:?} is not in:\n{}", ended.stdout);
    }
    assert_eq!(std::fs::read(&database).unwrap(), before, "the database is only read");
}

#[test]
fn a_table_is_routed_by_its_attributes() {
    let pipeline = Pipeline::offvia(versions()).warm().set("source.file.format=envelope");
    pipeline.run().expect(0);
    let by = ["--json", "--table", "raw_bookings", "--event-version-attribute", "event_version"];
    assert_eq!(skipped(&diff(&v1(), &v1(), &pipeline.database(), &by).expect(0).json()), (2, 2, 1));
}

#[test]
fn a_table_that_holds_no_events_is_refused() {
    let pipeline = finished();
    let database = pipeline.database();
    let of = |path: &Path, table: &str| diff(&v1(), &v2(), path, &["--table", table]);
    refused(of(&database, "nowhere"), &["there is no table nowhere in", "warehouse.db"]);
    refused(of(&database, "fact_bookings"), &["table fact_bookings holds no events", "`raw_payload`", "`data`"]);
    refused(of(Path::new("gone.db"), "raw_bookings"), &["there is no table raw_bookings in gone.db"]);
    assert!(!Path::new("gone.db").exists(), "a database that is not there is not made");
    refused(of(&pipeline.input(), "raw_bookings"), &["input.ndjson", "not a database"]);
    refused(of(Path::new("-"), "raw_bookings"), &["--table is read from a SQLite database"]);
    refused(diff(&v1(), &v2(), &database, &[]), &["is a SQLite database: say which table to read with --table"]);
    let format = ["--table", "raw_bookings", "--format", "lines"];
    refused(diff(&v1(), &v2(), &database, &format), &["cannot be used with"]);
}

/// It may be free again a moment later, so a gate may try again: no wrong usage.
#[test]
fn a_database_that_another_program_holds_is_a_failure_at_run_time() {
    let pipeline = finished();
    let holder = Connection::open(pipeline.database()).unwrap();
    holder.execute_batch("PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE").unwrap();
    broken(diff(&v1(), &v2(), &pipeline.database(), &["--table", "raw_bookings"]), &["database is locked"]);
}

//! Replays by the command itself: what passes reaches silver once, what does not stays as it is.

use super::{names, of_version_2, replay, routable, silver, unresolved, with_version_2, without_version_2};
use preflight::time::parse_rfc3339;
use preflight_tests::booking::envelope;
use preflight_tests::{Booking, Pipeline, bookings, paths, tables};
use rusqlite::Connection;
use serde_json::json;

#[test]
fn a_version_that_nobody_served_reaches_silver_once_a_rule_serves_it() {
    let pipeline = routable(250).set("batch.max_events=100");
    let report = replay(&pipeline, &["--stage", "ROUTING"]);
    let expected = json!({ "dry_run": false, "selected": 250, "accepted": 250, "ignored": 0, "duplicates": 0, "rejected": [], "not_replayable": {} });
    assert_eq!(report, expected);
    assert_eq!(silver(&pipeline), names("BK", 250));
    assert_eq!(unresolved(&pipeline), 0);
    assert_eq!(tables::count(&pipeline.database(), "raw_bookings"), 250, "bronze has them since they were received");
    // Twice changes nothing, and neither does a run.
    assert_eq!(replay(&pipeline, &["--all"])["selected"], 0);
    assert_eq!(pipeline.run().expect(0).json()["events"], 0);
    assert_eq!(silver(&pipeline), names("BK", 250));
}

#[test]
fn a_replayed_row_says_who_judged_it_and_when() {
    let pipeline = routable(1);
    let before = tables::rows(&pipeline.database(), "poisoned_events").remove(0);
    replay(&pipeline, &["--all"]);
    let after = tables::rows(&pipeline.database(), "poisoned_events").remove(0);
    let row = tables::rows(&pipeline.database(), "fact_bookings").remove(0);
    assert_eq!(row["source_message_id"], "input.ndjson:1", "the event keeps its name");
    let digest = row["rule_digest"].as_str().unwrap();
    let by = after["resolved_by"].as_str().unwrap();
    assert!(by.starts_with("replay ") && by.contains('@') && by.ends_with(&format!("({digest})")), "{by}");
    let time = |text: &serde_json::Value| parse_rfc3339(text.as_str().unwrap()).unwrap();
    assert_eq!(time(&row["ingestion_timestamp"]), time(&after["resolved_at"]), "it is processed when it is replayed");
    assert!(time(&after["resolved_at"]) > time(&before["received_timestamp"]));
    for (column, value) in before.iter().filter(|(column, _)| !column.starts_with("resolved_")) {
        assert_eq!(&after[column], value, "{column}");
    }
}

#[test]
fn only_what_the_filter_means_is_replayed() {
    let pipeline = routable(6);
    assert_eq!(replay(&pipeline, &["--id", "2", "4"])["accepted"], 2);
    assert_eq!(silver(&pipeline), ["BK-1", "BK-3"]);
    assert_eq!(replay(&pipeline, &["--stage", "PARSE_JSON"])["selected"], 0);
    assert_eq!(replay(&pipeline, &["--code", "no_rule"])["accepted"], 4);
}

#[test]
fn what_is_rejected_again_stays_as_it_is() {
    let bad = Booking::v2("BK-bad").with("fare", r#"{"amount":"-1.00","currency":"USD"}"#).json();
    let input =
        envelope(bad, &[("event_version", "2")]) + &envelope("x", &[("event_version", "3")]) + &of_version_2("BK", 1);
    let pipeline = without_version_2(&input);
    pipeline.run().expect(0);
    let pipeline = with_version_2(pipeline);
    let before = tables::rows(&pipeline.database(), "poisoned_events");
    for selected in [3, 2] {
        let report = replay(&pipeline, &["--all"]);
        assert_eq!((&report["selected"], &report["accepted"]), (&selected.into(), &(selected - 2).into()));
        let rejected = json!([
            { "stage": "BUSINESS_RULE_VALIDATION", "code": null, "events": 1 },
            { "stage": "ROUTING", "code": "no_rule", "events": 1 },
        ]);
        assert_eq!(report["rejected"], rejected);
        let after = tables::rows(&pipeline.database(), "poisoned_events");
        assert_eq!(after[..2], before[..2], "neither marked nor written again");
        assert_eq!(after.len(), 3);
    }
    assert_eq!(tables::count(&pipeline.database(), "raw_bookings"), 3);
    let text = pipeline.quarantine("replay", &["--all"]).expect(0).stdout;
    for word in ["2 rows selected", "still rejected", "ROUTING (no_rule)"] {
        assert!(text.contains(word), "{word} is not in:\n{text}");
    }
}

#[test]
fn a_dry_run_changes_nothing() {
    let pipeline = routable(3);
    let before = tables::tiers(&pipeline.database());
    let report = replay(&pipeline, &["--all", "--dry-run"]);
    assert_eq!((&report["dry_run"], &report["selected"], &report["accepted"]), (&true.into(), &3.into(), &3.into()));
    tables::tiers(&pipeline.database()).expect(&before, "after a dry run");
    assert_eq!(replay(&pipeline, &["--all"])["accepted"], 3);
}

#[test]
fn events_that_are_ignored_by_now_are_resolved_without_a_row() {
    let pipeline = Pipeline::offvia("ignore:3\nignore:4\n").warm();
    pipeline.run().expect(0);
    let pipeline = pipeline.set(format!("rules.components.\"1\"={}", paths::rule("hostile-rule").display()));
    // The table is made for the other rule's columns.
    Connection::open(pipeline.database())
        .unwrap()
        .execute_batch(
            "DROP TABLE fact_bookings; CREATE TABLE fact_bookings (n INTEGER, t TEXT, amount TEXT, at TEXT, f REAL, d TEXT, b, j TEXT,
             ingestion_timestamp TEXT, source_message_id TEXT, booking_id TEXT, passenger_id TEXT, flight_number TEXT,
             origin_airport TEXT, destination_airport TEXT, fare_amount TEXT, currency TEXT, booking_status TEXT,
             event_timestamp TEXT, loyalty_tier TEXT)",
        )
        .unwrap();
    let report = replay(&pipeline, &["--all"]);
    assert_eq!((&report["selected"], &report["ignored"], &report["accepted"]), (&2.into(), &2.into(), &0.into()));
    assert_eq!(unresolved(&pipeline), 0);
    assert_eq!(tables::count(&pipeline.database(), "fact_bookings"), 0);
    assert_eq!(replay(&pipeline, &["--all"])["selected"], 0);
}

#[test]
fn an_event_whose_rule_had_a_fault_is_replayed() {
    let pipeline = Pipeline::offvia(bookings::good(2)).warm();
    let starved = pipeline.set("limits.fuel_base=1").set("limits.fuel_per_byte=0");
    let report = starved.run().expect(0).json();
    assert_eq!(report["rejected"][0]["stage"], "RULE_FAULT", "{report}");
    let mut pipeline = starved;
    pipeline.settings.retain(|setting| !setting.starts_with("limits."));
    assert_eq!(replay(&pipeline, &["--stage", "RULE_FAULT"])["accepted"], 2);
    assert_eq!(silver(&pipeline), names("BK", 2));
}

/// The source need not be there any more.
#[test]
fn a_replay_needs_no_source() {
    let pipeline = routable(2);
    std::fs::remove_file(pipeline.input()).unwrap();
    assert_eq!(replay(&pipeline, &["--all"])["accepted"], 2);
}

/// The event has its row in quarantine already: a second one would be replayed beside it.
#[test]
fn a_row_that_silver_refuses_stays_in_quarantine_once() {
    let pipeline = routable(4);
    let database = Connection::open(pipeline.database()).unwrap();
    database
        .execute_batch(
            "CREATE TRIGGER no BEFORE INSERT ON fact_bookings WHEN new.booking_id IN ('BK-1', 'BK-2')
             BEGIN SELECT RAISE(ABORT, 'not now'); END",
        )
        .unwrap();
    let report = replay(&pipeline, &["--all"]);
    assert_eq!(report["accepted"], 2);
    assert_eq!(report["rejected"], json!([{ "stage": "SINK_REJECTED", "code": "refused_by_table", "events": 2 }]));
    assert_eq!(silver(&pipeline), ["BK-0", "BK-3"]);
    assert_eq!(unresolved(&pipeline), 2);
    assert_eq!(tables::count(&pipeline.database(), "poisoned_events"), 4);
    // All of them refused: a commit without rows and without marks.
    assert_eq!(replay(&pipeline, &["--all"])["accepted"], 0);
    database.execute_batch("DROP TRIGGER no").unwrap();
    assert_eq!(replay(&pipeline, &["--all"])["accepted"], 2);
    assert_eq!(silver(&pipeline), names("BK", 4));
    assert_eq!(unresolved(&pipeline), 0);
}

#[test]
fn a_ledger_of_a_former_format_is_upgraded_in_place() {
    let runs = ["replacing"];
    let windows = [&["window_records", "aggregates"][..], &runs].concat();
    let keys = [&["key_buckets", "key_pages"][..], &windows].concat();
    let all = [&["resolutions"][..], &keys].concat();
    for (former, lacks) in [("1", all), ("2", keys.clone()), ("3", windows), ("4", runs.to_vec())] {
        let pipeline = routable(2);
        let ledger = Connection::open(pipeline.ledger().join("ledger.db")).unwrap();
        ledger.execute("UPDATE meta SET value = ?1 WHERE key = 'format'", [former]).unwrap();
        for table in &lacks {
            ledger.execute_batch(&format!("DROP TABLE {table}")).unwrap();
        }
        assert_eq!(replay(&pipeline, &["--all"])["accepted"], 2);
        let format = "SELECT value FROM meta WHERE key = 'format'";
        assert_eq!(ledger.query_row(format, [], |row| row.get::<_, String>(0)).unwrap(), "5");
    }
}

//! Quarantine in BigQuery: looked into and replayed as that in SQLite is.

use preflight_tests::bigquery::Emulator;
use preflight_tests::bigquery::emulator::PROJECT;
use preflight_tests::booking::envelope;
use preflight_tests::{Booking, Pipeline, paths};
use serde_json::json;

/// A pipeline over envelopes that serves event version 1 only and writes to a dataset of the emulator.
fn pipeline(dataset: &str, input: &str) -> Pipeline {
    at(dataset, Pipeline::with_rule(&paths::rule("offvia-booking"), input))
}

fn at(dataset: &str, pipeline: Pipeline) -> Pipeline {
    let emulator = Emulator::shared();
    let pipeline = pipeline
        .warm()
        .set("source.file.format=envelope")
        .set(format!("warehouse.bigquery.project={PROJECT}"))
        .set(format!("warehouse.bigquery.endpoint={}", emulator.rest()))
        .set(format!("warehouse.bigquery.storage_endpoint={}", emulator.storage()));
    let tables = [("bronze", "raw_bookings"), ("silver", "fact_bookings"), ("quarantine", "poisoned_events")];
    tables.into_iter().fold(pipeline, |pipeline, (tier, table)| pipeline.set(format!("{tier}.table={dataset}.{table}")))
}

fn of_version_2(count: usize) -> String {
    let booking = |number| envelope(Booking::v2(&format!("BK-{number}")).json(), &[("event_version", "2")]);
    (0..count).map(booking).collect()
}

#[test]
fn what_no_rule_served_reaches_silver_once_a_rule_serves_it() {
    let emulator = Emulator::shared();
    let dataset = emulator.dataset("quarantine");
    // Makes the tables, with the columns of both rules.
    at(&dataset, Pipeline::offvia("")).run().expect(0);
    let input = of_version_2(25) + &envelope("no json", &[("event_version", "1"), ("source", "web")]);
    let pipeline = pipeline(&dataset, &input);
    let report = pipeline.run().expect(0).json();
    assert_eq!((&report["silver"], &report["quarantine"], &report["bronze"]), (&0.into(), &26.into(), &26.into()));

    let listed = pipeline.quarantine("list", &["--json"]).expect(0).json();
    let groups = listed["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2, "{listed}");
    assert_eq!((&groups[0]["stage"], &groups[0]["rows"]), (&"ROUTING".into(), &25.into()));
    assert_eq!((&groups[1]["stage"], &groups[1]["rows"]), (&"PARSE_JSON".into(), &1.into()));

    let bad = pipeline.quarantine("list", &["--json", "--stage", "PARSE_JSON"]).expect(0).json();
    let id = bad["newest"][0]["id"].as_i64().unwrap_or_else(|| panic!("{bad}")).to_string();
    let shown = pipeline.quarantine("show", &["--json", &id]).expect(0).json();
    assert_eq!((&shown["payload"], &shown["attributes"]["source"]), (&"no json".into(), &"web".into()), "{shown}");

    // Ids are fingerprints here, and may be negative.
    let none = pipeline.quarantine("show", &["-17"]).expect(2);
    assert!(none.stderr.contains("-17") && !none.stderr.contains("unexpected argument"), "{}", none.stderr);
    let replay = ["--dry-run", "--json", "--id", "-17", &id];
    assert_eq!(pipeline.quarantine("replay", &replay).expect(0).json()["selected"], 1);

    let rule = paths::rule("offvia-booking-v2");
    let pipeline = pipeline.set(format!("rules.components.\"2\"={}", rule.display())).set("batch.max_events=10");
    let rehearsed = pipeline.quarantine("replay", &["--all", "--dry-run", "--json"]).expect(0).json();
    assert_eq!((&rehearsed["selected"], &rehearsed["accepted"]), (&26.into(), &25.into()), "{rehearsed}");
    assert_eq!(emulator.value(&format!("SELECT COUNT(*) FROM `{dataset}.fact_bookings`")), "0");
    let replayed = pipeline.quarantine("replay", &["--stage", "ROUTING", "--json"]).expect(0).json();
    assert_eq!((&replayed["selected"], &replayed["accepted"]), (&25.into(), &25.into()), "{replayed}");
    let count = |what: &str, of: &str| emulator.value(&format!("SELECT COUNT({what}) FROM `{dataset}.{of}`"));
    assert_eq!(count("DISTINCT booking_id", "fact_bookings"), "25");
    assert_eq!(count("*", "fact_bookings"), "25");
    assert_eq!(count("resolved_at", "poisoned_events"), "25");

    // Twice changes nothing, and neither does a run.
    let again = pipeline.quarantine("replay", &["--all", "--json"]).expect(0).json();
    assert_eq!((&again["selected"], &again["accepted"]), (&1.into(), &0.into()), "{again}");
    assert_eq!(pipeline.run().expect(0).json()["events"], 0);
    assert_eq!((count("*", "fact_bookings"), count("resolved_at", "poisoned_events")), ("25".into(), "25".into()));
}

#[test]
fn a_table_that_is_not_there_or_cannot_be_replayed_is_told() {
    let emulator = Emulator::shared();
    let dataset = emulator.dataset("quarantine");
    let pipeline = pipeline(&dataset, "");
    let ended = pipeline.quarantine("list", &[]).expect(2);
    assert!(ended.stderr.contains("there is no table") && ended.stderr.contains("poisoned_events"), "{}", ended.stderr);
    // The seed's five columns.
    emulator.query(&format!(
        "CREATE TABLE `{dataset}.poisoned_events` (raw_payload STRING NOT NULL, error_reason STRING NOT NULL, \
         error_stage STRING NOT NULL, received_timestamp TIMESTAMP NOT NULL, source_message_id STRING)"
    ));
    pipeline.write_input(envelope("no json", &[]));
    pipeline.run().expect(0);
    assert_eq!(pipeline.quarantine("list", &["--json"]).expect(0).json()["groups"][0]["rows"], json!(1));
    let ended = pipeline.quarantine("replay", &["--all"]).expect(2);
    assert!(ended.stderr.contains("ALTER TABLE") && ended.stderr.contains("`raw_bytes` BYTES"), "{}", ended.stderr);
}

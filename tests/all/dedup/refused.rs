//! Rows that a table refuses after all: their events are in quarantine, and others may have their keys.

use super::swap::BY_ATTRIBUTE;
use super::{Line, pipeline, silver, stages, text};
use preflight::failpoint;
use preflight_tests::{Booking, Pipeline, Running, tables};
use rusqlite::Connection;
use serde_json::json;
use std::io::Write as _;

const SILVER: &str = "CREATE TABLE fact_bookings (booking_id TEXT NOT NULL CHECK (booking_id NOT LIKE 'refused%'),
    passenger_id TEXT, flight_number TEXT, origin_airport TEXT, destination_airport TEXT, fare_amount TEXT,
    currency TEXT, booking_status TEXT, event_timestamp TEXT, loyalty_tier TEXT, ingestion_timestamp TEXT,
    source_message_id TEXT)";

/// A pipeline whose silver table refuses bookings that are called `refused…`.
fn refusing(lines: &[Line]) -> Pipeline {
    let pipeline = pipeline("{ attribute = \"event_id\" }", lines);
    Connection::open(pipeline.database()).unwrap().execute_batch(SILVER).unwrap();
    pipeline
}

/// The same, fed through standard input.
fn fed() -> Pipeline {
    let file = refusing(&[]);
    let toml = std::fs::read_to_string(file.file()).unwrap();
    let toml = toml.replace("[source.file]\npath = \"input.ndjson\"", "[source.stdin]\nformat = \"envelope\"");
    let mut pipeline = Pipeline::with_file(&format!("{toml}{BY_ATTRIBUTE}"), "").warm();
    pipeline.settings.push("batch.max_age=10 ms".into());
    Connection::open(pipeline.database()).unwrap().execute_batch(SILVER).unwrap();
    pipeline
}

fn booking(id: &str, key: &str) -> Line {
    Line::booking(id).attribute("event_id", key)
}

fn poisoned(pipeline: &Pipeline) -> Option<u64> {
    tables::newest_rowid(&pipeline.database(), "poisoned_events")
}

#[test]
fn the_key_of_a_refused_event_is_free_for_another() {
    let pipeline = fed();
    let (mut run, mut stdin) = Running::start(&pipeline);
    let mut feed = |lines: &[Line]| stdin.write_all(text(lines).as_bytes()).unwrap();
    feed(&[booking("refused-1", "e"), booking("BK-2", "f")]);
    run.wait_until(|| poisoned(&pipeline) == Some(1));
    feed(&[booking("BK-1", "e"), booking("BK-3", "f")]);
    run.wait_until(|| poisoned(&pipeline) == Some(2));
    drop(stdin);
    let report = run.finish().expect(0).json();
    assert_eq!(super::counts(&report), [2, 2, 0]);
    assert_eq!(silver(&pipeline, "booking_id"), ["BK-2", "BK-1"]);
    assert_eq!(stages(&pipeline), ["SINK_REJECTED", "DUPLICATE_CONFLICT"]);
}

#[test]
fn the_key_of_a_replayed_event_that_is_refused_is_free_again() {
    let pipeline = fed();
    let (mut run, mut stdin) = Running::start(&pipeline);
    stdin.write_all(booking("refused-1", "e").text().as_bytes()).unwrap();
    run.wait_until(|| poisoned(&pipeline) == Some(1));
    let report = pipeline.quarantine("replay", &["--all", "--json"]).expect(0).json();
    let refused = json!([{ "stage": "SINK_REJECTED", "code": "refused_by_table", "events": 1 }]);
    assert_eq!((&report["accepted"], &report["rejected"]), (&json!(0), &refused));
    stdin.write_all(booking("BK-1", "e").text().as_bytes()).unwrap();
    drop(stdin);
    run.finish().expect(0);
    assert_eq!(silver(&pipeline, "booking_id"), ["BK-1"]);
}

#[test]
fn killed_while_keys_are_released_a_worker_ends_exact() {
    let kinds = ["BK", "refused", "BK", "refused", "BK", "bad"];
    let lines: Vec<Line> = (0..30)
        .map(|number| match kinds[number % kinds.len()] {
            "bad" => Line::of(format!("no json {number}")).attribute("event_id", &format!("e{number}")),
            kind => {
                Line::of(Booking::v1(&format!("{kind}-{number}")).json()).attribute("event_id", &format!("e{number}"))
            }
        })
        .collect();
    // Each good one twice, the second later and in another micro-batch.
    let good = lines.iter().filter(|line| line.payload.contains("BK-")).cloned();
    let all: Vec<Line> = lines.iter().cloned().chain(good.collect::<Vec<_>>()).collect();
    for (point, passes) in [(failpoint::ENTRY_REPLACED, 3), (failpoint::ROWS_APPENDED, 3), (failpoint::ENTRY_DONE, 3)] {
        for pass in 1..=passes {
            let mut pipeline = refusing(&all).set("batch.max_events=4");
            pipeline.environment = vec![(failpoint::VARIABLE.into(), format!("{point}={pass}"))];
            assert!(pipeline.run().was_killed(), "{point}={pass} was not passed");
            pipeline.environment.clear();
            pipeline.run().expect(0);
            let expected: Vec<String> =
                (0..30).filter(|number| number % 2 == 0).map(|number| format!("BK-{number}")).collect();
            assert_eq!(silver(&pipeline, "booking_id"), expected, "{point}={pass}");
            let mut ids = tables::column(&pipeline.database(), "poisoned_events", "source_message_id");
            ids.sort();
            ids.dedup();
            assert_eq!((ids.len(), stages(&pipeline).len()), (15, 15), "{point}={pass}");
        }
    }
}

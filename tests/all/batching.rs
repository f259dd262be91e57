//! How events are batched, and on how many threads they are judged, changes no row.

use preflight_tests::booking::envelope;
use preflight_tests::{Booking, Pipeline, tables};
use std::fmt::Write as _;

/// Events of every kind, the same each time: good and bad ones of both versions, hostile ones, and some that are none.
fn events(count: usize) -> String {
    let mut input = String::new();
    for number in 0..count {
        let version = if number % 3 == 0 { "2" } else { "1" };
        let booking = Booking::of_version(version, &format!("BK-{number}"));
        let json = booking.json();
        let payload: Vec<u8> = match number % 17 {
            3 => booking.with("fare", "\"-1\"").json().into(),
            5 => json[..json.len() / 2].into(),
            7 => booking.and("fare", "1").json().into(),
            8 => booking.without("origin").json().into(),
            9 => booking.with("event_time", "\"yesterday\"").json().into(),
            10 => "[".repeat(number).into(),
            11 => vec![0xff; number % 29],
            12 => booking.with("unknown", &format!("\"{}\"", "x".repeat(number * 20))).json().into(),
            13 => booking.with("passenger_id", "\"\\ud83d\"").json().into(),
            _ => json.into(),
        };
        match number % 31 {
            6 => input.push_str("{\"data\": \"cut o\n"),
            16 => input += &envelope(payload, &[("event_version", "9")]),
            26 => input += &envelope(payload, &[]),
            _ => {
                let note = number.to_string();
                write!(input, "{}", envelope(payload, &[("event_version", version), ("note", &note)])).unwrap();
            }
        }
    }
    input
}

fn pipeline(input: &str) -> Pipeline {
    Pipeline::offvia(input).warm().set("source.file.format=envelope")
}

/// Runs the events with some settings and holds the rows against those of a run with other ones.
fn same(count: usize, settings: &[&[&str]]) {
    let input = events(count);
    let reference = pipeline(&input).set("run.threads=1");
    let report = reference.run().expect(0).json();
    assert_eq!(report["events"], count);
    assert!(report["silver"].as_u64().unwrap() > count as u64 / 3, "{report}");
    assert!(report["rejected"].as_array().unwrap().len() >= 6, "{report}");
    let expected = tables::tiers(&reference.database());
    for settings in settings {
        let varied = settings.iter().fold(pipeline(&input), |pipeline, setting| pipeline.set(*setting));
        let mut counts = varied.run().expect(0).json();
        for of_time in ["seconds", "events_per_second"] {
            counts[of_time] = report[of_time].clone();
        }
        assert_eq!(counts, report, "{settings:?}");
        tables::tiers(&varied.database()).expect(&expected, &format!("{settings:?}"));
    }
}

#[test]
fn threads_and_batches_change_no_row() {
    same(
        3_000,
        &[
            &["run.threads=4"],
            &["batch.max_events=7", "run.threads=1"],
            &["batch.max_events=7", "run.threads=4"],
            &["batch.max_events=333", "run.threads=3"],
            &["batch.max_bytes=100 kB", "run.threads=2"],
            &["limits.events_per_instance=5", "run.threads=2"],
        ],
    );
}

#[test]
fn a_batch_for_each_event_changes_no_row() {
    same(3_000, &[&["batch.max_events=1"]]);
}

#[test]
fn an_instance_for_each_event_changes_no_row() {
    same(3_000, &[&["rules.isolation=event"], &["rules.isolation=event", "batch.max_events=100", "run.threads=4"]]);
}

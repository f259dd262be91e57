//! A comparison in which no event was judged says nothing of the rules, so it is no success.

use super::*;
use preflight_tests::{Pipeline, bookings};
use serde_json::json;

#[test]
fn an_empty_input_shows_nothing() {
    let ended = on("", &v1(), &v1(), &[]).expect(1);
    assert!(ended.stdout.contains("0 events judged by both"), "{}", ended.stdout);
    assert!(ended.stderr.contains("error: no event was judged: the input holds none"), "{}", ended.stderr);
    let ended = on("", &v1(), &v2(), &["--json"]).expect(1);
    assert_eq!(ended.json()["judged"], 0);
    assert!(ended.stderr.contains("no event was judged"), "{}", ended.stderr);
}

#[test]
fn a_version_of_which_there_is_no_event_is_said_with_counts() {
    let lines = "{\"schema\": 1}\n{\"schema\": 1}\n{}\n";
    let ended = on(lines, &v1(), &v1(), &["--event-version-field", "/schema", "--events", "7"]).expect(1);
    let why = "no event was judged: 2 of another event version; 1 of an event version that cannot be told\n";
    assert!(ended.stderr.ends_with(why), "{}", ended.stderr);
    let ended = on("x\n", &v1(), &v1(), &["--format", "envelope"]).expect(1);
    assert!(ended.stderr.ends_with("no event was judged: 1 not whole, PARSE_ENVELOPE\n"), "{}", ended.stderr);
}

#[test]
fn an_empty_table_shows_nothing() {
    let pipeline = Pipeline::offvia(bookings::good(3)).warm();
    pipeline.run().expect(0);
    let of = |table: &str, code| diff(&v1(), &v1(), &pipeline.database(), &["--json", "--table", table]).expect(code);
    let skipped = json!({ "not_whole": {}, "other_version": 0, "no_version": 0 });
    assert_eq!(of("poisoned_events", 1).json()["skipped"], skipped);
    of("raw_bookings", 0);
}

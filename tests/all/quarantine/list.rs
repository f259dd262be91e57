//! `preflight quarantine list` and `show`.

use super::{replay, routable, without_version_2};
use preflight_tests::booking::envelope;
use preflight_tests::{Booking, Pipeline, bookings, tables};
use serde_json::json;

/// Two rows of each of three kinds, in turns.
fn mixed() -> Pipeline {
    let bad = Booking::v1("BK-1").with("fare", "\"-1.00\"").json();
    let kinds =
        [envelope("no json", &[]), envelope(bad, &[]), envelope(Booking::v2("BK-2").json(), &[("event_version", "2")])];
    let pipeline = without_version_2(&kinds.concat().repeat(2));
    pipeline.run().expect(0);
    pipeline
}

fn ids(pipeline: &Pipeline, filter: &[&str]) -> Vec<i64> {
    let arguments: Vec<&str> = filter.iter().chain(&["--json"]).copied().collect();
    let listed = pipeline.quarantine("list", &arguments).expect(0).json();
    let mut ids: Vec<i64> =
        listed["newest"].as_array().unwrap().iter().map(|row| row["id"].as_i64().unwrap()).collect();
    assert_eq!(listed["rows"], ids.len(), "{filter:?}");
    ids.sort_unstable();
    ids
}

#[test]
fn rows_are_grouped_and_the_newest_are_shown() {
    let pipeline = mixed();
    let text = pipeline.quarantine("list", &["--limit", "2"]).expect(0).stdout;
    for word in ["PARSE_JSON", "BUSINESS_RULE_VALIDATION", "ROUTING", "no_rule", "offvia-booking@", "input.ndjson:6"] {
        assert!(text.contains(word), "{word} is not in:\n{text}");
    }
    assert!(!text.contains("input.ndjson:4"), "only the newest two:\n{text}");
    let listed = pipeline.quarantine("list", &["--limit", "1", "--json"]).expect(0).json();
    assert_eq!(listed["rows"], 6);
    let groups = listed["groups"].as_array().unwrap();
    assert!(groups.iter().all(|group| group["rows"] == 2), "{groups:?}");
    assert_eq!(groups.len(), 3);
    let newest = &listed["newest"][0];
    assert_eq!((&newest["id"], &newest["code"]), (&6.into(), &"no_rule".into()));
    assert_eq!((&newest["message_id"], &newest["replayable"]), (&"input.ndjson:6".into(), &true.into()));
}

#[test]
fn every_filter_chooses_its_rows() {
    let pipeline = mixed();
    let rows = tables::rows(&pipeline.database(), "poisoned_events");
    let text = |row: usize, column: &str| rows[row][column].as_str().unwrap().to_owned();
    assert_eq!(ids(&pipeline, &["--stage", "PARSE_JSON"]), [1, 4]);
    assert_eq!(ids(&pipeline, &["--code", "no_rule"]), [3, 6]);
    assert_eq!(ids(&pipeline, &["--rule", &text(0, "rule")]), [1, 2, 4, 5]);
    assert_eq!(ids(&pipeline, &["--digest", &text(0, "rule_digest")]), [1, 2, 4, 5]);
    assert_eq!(ids(&pipeline, &["--id", "2", "5"]), [2, 5]);
    assert_eq!(ids(&pipeline, &["--id", "2,5", "--stage", "PARSE_JSON"]), [0_i64; 0], "all that is given must fit");
    let received = text(0, "received_timestamp");
    assert_eq!(ids(&pipeline, &["--from", &received]).len(), 6, "the first moment belongs to it");
    let last = text(5, "received_timestamp");
    assert!(!ids(&pipeline, &["--to", &last]).contains(&6), "the last does not");
    assert_eq!(ids(&pipeline, &["--from", "2999-01-01T00:00:00Z"]), [0_i64; 0]);
    assert_eq!(pipeline.quarantine("list", &["--stage", "NONE"]).expect(0).stdout, "no rows\n");
}

#[test]
fn resolved_rows_are_shown_only_when_asked_for() {
    let pipeline = routable(2);
    replay(&pipeline, &["--id", "1"]);
    assert_eq!(ids(&pipeline, &[]), [2]);
    assert_eq!(ids(&pipeline, &["--resolved"]), [1, 2]);
    let shown = pipeline.quarantine("show", &["1"]).expect(0).stdout;
    assert!(shown.contains("resolved by") && shown.contains("replay "), "{shown}");
}

#[test]
fn a_row_is_shown_whole() {
    let payload = b"\xff\0 \x1b[2Jnot\njson";
    let pipeline = without_version_2(&envelope(payload, &[("source", "web")]));
    pipeline.run().expect(0);
    let text = pipeline.quarantine("show", &["1"]).expect(0).stdout;
    for word in ["PARSE_JSON", "offvia-booking@", "{\"source\":\"web\"}", "15 bytes", "sha256:", "not\njson"] {
        assert!(text.contains(word), "{word} is not in:\n{text}");
    }
    assert!(!text.contains('\x1b'), "it would steer the terminal: {text:?}");
    let shown = pipeline.quarantine("show", &["1", "--json"]).expect(0).json();
    assert_eq!(shown["attributes"], json!({ "source": "web" }));
    assert_eq!(shown["payload_base64"], "/wAgG1sySm5vdApqc29u");
    let raw = pipeline.command("quarantine show").args(["1", "--raw"]).output().unwrap();
    assert_eq!(raw.stdout, payload);
}

#[test]
fn what_is_not_there_is_said() {
    let pipeline = Pipeline::offvia(bookings::good(1)).warm();
    let ended = pipeline.quarantine("list", &[]).expect(2);
    assert!(ended.stderr.contains("there is no table poisoned_events"), "{}", ended.stderr);
    pipeline.run().expect(0);
    let ended = pipeline.quarantine("show", &["7"]).expect(2);
    assert!(ended.stderr.contains("there is no row 7"), "{}", ended.stderr);
    let ended = pipeline.quarantine("list", &["--from", "yesterday"]).expect(2);
    assert!(ended.stderr.contains("2026-01-31T12:00:00Z"), "{}", ended.stderr);
}

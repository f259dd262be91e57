//! What counts as a difference, and how it is shown.

use super::*;
use preflight_tests::bookings;
use serde_json::json;

#[test]
fn the_same_rule_differs_nowhere() {
    let ended = on(bookings::lines(500), &v1(), &v1(), &[]).expect(0);
    assert!(ended.stdout.contains("500 events judged by both: 500 the same, 0 different"), "{}", ended.stdout);
    assert!(ended.stdout.contains("old and new are the same component"), "{}", ended.stdout);
    assert!(!ended.stdout.contains("warning"), "{}", ended.stdout);
}

/// Of 110 events ten are no JSON and twenty have a bad fare: of the others version 2 wants another fare.
#[test]
fn a_rule_for_another_version_rejects_what_was_accepted() {
    let ended = on(bookings::lines(110), &v1(), &v2(), &["--json"]).expect(3);
    let report = ended.json();
    assert_eq!(kinds(&report), [("accept→reject BUSINESS_RULE_VALIDATION", 80)]);
    assert_eq!([&report["judged"], &report["same"], &report["different"]], [110, 30, 80]);
    assert_eq!(report["skipped"], json!({ "not_whole": {}, "other_version": 0, "no_version": 0 }));
    assert_eq!(report["further"], 0);
    let tier = json!({ "name": "loyalty_tier", "type": "text", "nullable": true });
    assert_eq!(report["columns"], json!([{ "change": "added", "new": tier }]));
    let old = &report["old"];
    assert_eq!((&old["rule"], &old["event_versions"]), (&json!("offvia-booking@0.1.0"), &json!(["1"])));
    assert!(old["digest"].as_str().unwrap().starts_with("sha256:"), "{old}");
    assert_eq!(report["new"]["rule"], "offvia-booking-v2@0.1.0");
    let samples = report["differences"][0]["samples"].as_array().unwrap();
    let ids: Vec<&Value> = samples.iter().map(|sample| &sample["message_id"]).collect();
    assert_eq!(ids, ["input.ndjson:1", "input.ndjson:2", "input.ndjson:3"]);
    assert!(samples[0]["old"].as_str().unwrap().starts_with("accept {\"booking_id\":\"BK-0\""), "{}", samples[0]);
    let new = "reject BUSINESS_RULE_VALIDATION: Invalid fare: fare must be an object, found a string";
    assert_eq!(samples[0]["new"], new);
}

#[test]
fn the_other_way_round_rejected_events_are_accepted() {
    let ended = on(bookings::lines(110), &v2(), &v1(), &[]).expect(3);
    for text in [
        "       80  reject BUSINESS_RULE_VALIDATION→accept",
        "warning: the columns differ: removed loyalty_tier STRING",
        "           input.ndjson:1\n             old  reject BUSINESS_RULE_VALIDATION: Invalid fare",
        "             new  accept {\"booking_id\":\"BK-0\"",
    ] {
        assert!(ended.stdout.contains(text), "{text:?} is not in:\n{}", ended.stdout);
    }
}

#[test]
fn a_column_that_differs_shows_both_values() {
    let (directory, path) = input(bookings::lines(22));
    let rebuilt = rebuilt(directory.path(), "CONFIRMED", "UNCERTAIN");
    let report = diff(&v1(), &rebuilt, &path, &["--json", "--samples", "1"]).expect(3).json();
    assert_eq!(kinds(&report), [("column booking_status", 16)]);
    let sample = json!({ "message_id": "input.ndjson:1", "old": "CONFIRMED", "new": "UNCERTAIN" });
    assert_eq!(report["differences"][0]["samples"], json!([sample]));
    assert_eq!(report["columns"], json!([]));
    let ended = diff(&v1(), &rebuilt, &path, &["--samples", "1"]).expect(3);
    assert!(ended.stdout.contains("old  \"CONFIRMED\"\n             new  \"UNCERTAIN\"\n"), "{}", ended.stdout);
}

#[test]
fn a_rejection_at_another_stage_is_a_difference_and_another_reason_is_none() {
    let (directory, path) = input(bookings::lines(22));
    let stage = rebuilt(directory.path(), "BUSINESS_RULE_VALIDATION", "BUSINESS_RULE_VIOLATIONS");
    let report = diff(&v1(), &stage, &path, &["--json"]).expect(3).json();
    assert_eq!(kinds(&report), [("reject BUSINESS_RULE_VALIDATION→reject BUSINESS_RULE_VIOLATIONS", 4)]);
    let reason = rebuilt(directory.path(), "must be greater than zero", "must be bigger than zeros");
    diff(&v1(), &reason, &path, &[]).expect(0);
}

#[test]
fn the_most_frequent_kind_comes_first_and_samples_are_capped() {
    let lines = ["ok", "spin", "panic:boom", "stage:STRANGE", "ignore:3", "panic:bang"].join("\n");
    let report = on(&lines, &v1(), &hostile(), &["--json", "--samples", "1"]).expect(3).json();
    assert_eq!(
        kinds(&report),
        [
            ("new fault panic", 2),
            ("reject PARSE_JSON→accept", 1),
            ("reject PARSE_JSON→reject STRANGE", 1),
            ("reject→ignore", 1),
            ("new fault fuel", 1),
        ]
    );
    let samples = report["differences"][0]["samples"].as_array().unwrap();
    assert_eq!((samples.len(), &samples[0]["new"]), (1, &json!("fault panic: boom")));
    let none = on(&lines, &v1(), &hostile(), &["--json", "--samples", "0"]).expect(3).json();
    assert_eq!(kinds(&none), kinds(&report));
    assert_eq!(none["differences"][0]["samples"], json!([]));
    let gone = on(&lines, &hostile(), &v1(), &["--json"]).expect(3).json();
    assert_eq!(kinds(&gone)[0], ("fault panic gone", 2));
}

#[test]
fn a_long_verdict_is_clipped_in_samples() {
    let of = |further: &[&str]| on("reason:3000\n", &hostile(), &v1(), further).expect(3).stdout;
    let text = of(&[]);
    let line = text.lines().find(|line| line.contains("old  reject HOSTILE: ")).unwrap();
    assert!(line.len() < 500 && line.ends_with('…'), "{line}");
    let json: Value = serde_json::from_str(&of(&["--json"])).unwrap();
    let whole = json["differences"][0]["samples"][0]["old"].as_str().unwrap();
    assert!((900..=1_000).contains(&whole.len()) && whole.ends_with('…'), "{whole}");
}

#[test]
fn what_a_rule_says_cannot_act_upon_a_terminal() {
    let ended = on("panic:\u{1b}[2J\n", &v1(), &hostile(), &[]).expect(3);
    assert!(!ended.stdout.contains('\u{1b}'), "{:?}", ended.stdout);
    assert!(ended.stdout.contains("new  fault panic: \u{fffd}[2J"), "{}", ended.stdout);
}

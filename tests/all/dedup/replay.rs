//! Replays of quarantine keep to the keys of what is in silver.

use super::swap::{BY_ATTRIBUTE, event, feed, silver, stages};
use preflight_tests::handmade::Toy;
use preflight_tests::swap::{Fed, Following};
use rustix::process::Signal;
use serde_json::{Value, json};

/// A worker with an event in quarantine whose key an accepted event has, and a rule by now that accepts both.
fn quarantined(more: &str, n: i64) -> (Following, Fed) {
    let following = Following::new(&format!("{BY_ATTRIBUTE}{more}"));
    following.begin_with(&Toy::default().component(), "1");
    let mut fed = following.start();
    following.serves(&mut fed, 1);
    feed(&following, &mut fed, &[event("r", "e"), event("a", "e")], 2);
    let lenient = following.stage(&Toy { version: "1.0.1", rejects: "", n, ..Toy::default() }.component());
    following.promote(lenient, "1");
    following.serves(&mut fed, 2);
    assert_eq!((silver(&following), stages(&following)), (vec![1], vec![json!("TOY")]));
    (following, fed)
}

fn replay(following: &Following) -> Value {
    following.pipeline.quarantine("replay", &["--all", "--json"]).expect(0).json()
}

/// What is said of the quarantine rows: who resolved them, null of those that are not.
fn resolved(following: &Following) -> Vec<Value> {
    following.quarantine().iter().map(|row| row["resolved_by"].clone()).collect()
}

#[test]
fn an_event_that_is_in_silver_already_is_resolved_as_a_duplicate() {
    let (following, fed) = quarantined("", 1);
    let dry = following.pipeline.quarantine("replay", &["--all", "--json", "--dry-run"]).expect(0).json();
    assert_eq!((&dry["accepted"], &dry["duplicates"]), (&json!(1), &json!(0)), "a dry run looks for no keys");
    let report = replay(&following);
    assert_eq!((&report["accepted"], &report["duplicates"], &report["rejected"]), (&json!(0), &json!(1), &json!([])));
    assert_eq!(silver(&following), [1]);
    let by = resolved(&following);
    assert!(by[0].as_str().unwrap().contains("(duplicate, sha256:"), "{by:?}");
    assert_eq!(replay(&following)["selected"], 0);
    fed.finish().expect(0);
}

#[test]
fn a_conflict_stays_in_quarantine() {
    let (following, fed) = quarantined("", 2);
    let report = replay(&following);
    let conflict = json!([{ "stage": "DUPLICATE_CONFLICT", "code": "different_row", "events": 1 }]);
    assert_eq!((&report["accepted"], &report["duplicates"], &report["rejected"]), (&json!(0), &json!(0), &conflict));
    assert_eq!((silver(&following), resolved(&following)), (vec![1], vec![Value::Null]));
    fed.finish().expect(0);
}

#[test]
fn a_conflict_that_is_to_be_dropped_is_resolved() {
    let (following, fed) = quarantined("on_conflict = \"drop\"\n", 2);
    assert_eq!(replay(&following)["duplicates"], 1);
    assert_eq!(silver(&following), [1]);
    fed.finish().expect(0);
}

#[test]
fn a_command_without_a_worker_keeps_to_the_keys_too() {
    let (following, fed) = quarantined("", 1);
    fed.run.signal(Signal::KILL);
    assert!(fed.finish().was_killed());
    let report = replay(&following);
    assert_eq!((&report["accepted"], &report["duplicates"]), (&json!(0), &json!(1)));
    assert_eq!(silver(&following), [1]);
}

#[test]
fn of_several_rows_of_one_key_the_first_is_accepted_and_claims_it() {
    let following = Following::new(BY_ATTRIBUTE);
    following.begin_with(&Toy::default().component(), "1");
    let mut fed = following.start();
    following.serves(&mut fed, 1);
    feed(&following, &mut fed, &[event("r1", "e"), event("r2", "e"), event("r1", "e"), event("r3", "f")], 3);
    let lenient = following.stage(&Toy { version: "1.0.1", rejects: "", ..Toy::default() }.component());
    following.promote(lenient, "1");
    following.serves(&mut fed, 2);
    let report = replay(&following);
    assert_eq!((&report["selected"], &report["accepted"], &report["duplicates"]), (&json!(3), &json!(2), &json!(1)));
    // The producer sends them once more.
    feed(&following, &mut fed, &[event("r1", "e"), event("r2", "e"), event("a", "g")], 6);
    assert_eq!(super::counts(&fed.finish().expect(0).json()), [1, 3, 3]);
    assert_eq!(silver(&following), [1, 1, 1]);
    assert!(resolved(&following).iter().all(Value::is_string));
}

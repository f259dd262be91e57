//! Duplicates while the rules change.

use super::Line;
use preflight_tests::handmade::Toy;
use preflight_tests::swap::{Fed, Following};
use serde_json::Value;

pub(super) const BY_ATTRIBUTE: &str = "[dedup]\nby = { attribute = \"event_id\" }\n";

/// An event for a toy: its payload and its key.
pub(super) fn event(payload: &str, key: &str) -> Line {
    Line::of(payload).attribute("event_id", key).attribute("event_version", "1")
}

/// Feeds events and waits until so many rows are in silver and quarantine.
#[track_caller]
pub(super) fn feed(following: &Following, fed: &mut Fed, lines: &[Line], rows: u64) {
    fed.write(&super::text(lines));
    following.written(fed, rows);
}

/// `n` of each silver row.
pub(super) fn silver(following: &Following) -> Vec<i64> {
    following.silver().iter().map(|row| row["n"].as_i64().unwrap()).collect()
}

/// The stages of quarantine.
pub(super) fn stages(following: &Following) -> Vec<Value> {
    following.quarantine().iter().map(|row| row["error_stage"].clone()).collect()
}

#[test]
fn what_was_rejected_is_judged_again_by_another_rule() {
    let following = Following::new(BY_ATTRIBUTE);
    following.begin_with(&Toy::default().component(), "1");
    let mut fed = following.start();
    following.serves(&mut fed, 1);
    let event_e = event("r", "e");
    feed(&following, &mut fed, &[event_e.clone(), event_e.clone(), event("a", "other")], 2);
    // Another build that rejects it as well: it is another word on it.
    let strict = following.stage(&Toy { version: "1.0.1", ..Toy::default() }.component());
    following.promote(strict, "1");
    following.serves(&mut fed, 2);
    feed(&following, &mut fed, &[event_e.clone(), event_e.clone(), event("b", "another")], 4);
    let lenient = following.stage(&Toy { version: "1.0.2", rejects: "", n: 2, ..Toy::default() }.component());
    following.promote(lenient, "1");
    following.serves(&mut fed, 3);
    feed(&following, &mut fed, &[event_e.clone(), event_e], 5);
    let report = fed.finish().expect(0).json();
    assert_eq!(super::counts(&report), [3, 2, 3]);
    assert_eq!(silver(&following), [1, 1, 2]);
    assert_eq!(stages(&following), ["TOY", "TOY"]);
}

#[test]
fn what_was_accepted_stays_whatever_another_rule_would_make_of_it() {
    let following = Following::new(BY_ATTRIBUTE);
    following.begin_with(&Toy::default().component(), "1");
    let mut fed = following.start();
    following.serves(&mut fed, 1);
    feed(&following, &mut fed, &[event("a", "e")], 1);
    let other = following.stage(&Toy { version: "1.0.1", n: 2, rejects: "rx", ..Toy::default() }.component());
    following.promote(other, "1");
    following.serves(&mut fed, 2);
    let again = [event("a", "e"), event("b", "e"), event("x", "e"), event("c", "f")];
    feed(&following, &mut fed, &again, 4);
    let report = fed.finish().expect(0).json();
    // The same payload is a duplicate; another one is judged: its row differs, or it is rejected.
    assert_eq!(super::counts(&report), [2, 2, 1]);
    assert_eq!(silver(&following), [1, 2]);
    assert_eq!(stages(&following), ["DUPLICATE_CONFLICT", "TOY"]);
}

#[test]
fn what_no_rule_serves_is_written_once_and_judged_once_there_is_one() {
    let following = Following::new(BY_ATTRIBUTE);
    following.begin_with(&Toy::default().component(), "1");
    let mut fed = following.start();
    following.serves(&mut fed, 1);
    let of_version_2 = Line::of("a").attribute("event_id", "e").attribute("event_version", "2");
    let twice = [of_version_2.clone(), of_version_2];
    feed(&following, &mut fed, &[twice.as_slice(), &[event("a", "other")]].concat(), 2);
    let digest = following.stage(&Toy { version: "1.0.1", ..Toy::default() }.component());
    following.promote(digest, "2");
    following.serves(&mut fed, 2);
    feed(&following, &mut fed, &twice, 3);
    let report = fed.finish().expect(0).json();
    assert_eq!(super::counts(&report), [2, 1, 2]);
    assert_eq!(stages(&following), ["ROUTING"]);
}

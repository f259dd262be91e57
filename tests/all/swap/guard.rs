//! A promoted rule that turns out bad goes back by itself, and stays out.

use preflight::digest::Digest;
use preflight::releases::{Change, ChangeError};
use preflight::time::{Clock, SystemClock};
use preflight_tests::swap::{Fed, promote};
use preflight_tests::{Following, Toy};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

fn good() -> Vec<u8> {
    Toy::default().component()
}

/// Rejects what the good one accepts, in the half of the events of these tests.
fn strict() -> Vec<u8> {
    Toy { rejects: "rb", ..Toy::default() }.component()
}

/// Holds to its fixtures and traps later.
fn trapping() -> Vec<u8> {
    Toy { traps: "b", ..Toy::default() }.component()
}

/// A pipeline with the good rule active, and another one staged.
fn following(more: &str, other: &[u8]) -> (Following, Digest, Digest) {
    let following = Following::new(more);
    let active = following.begin_with(&good(), "1");
    let other = following.stage(other);
    (following, active, other)
}

fn feed(fed: &mut Fed, events: usize) {
    fed.feed("1", (0..events).map(|n| if n % 2 == 0 { "a" } else { "b" }));
}

/// Feeds until the guard of a promotion at revision 2 has rolled it back.
#[track_caller]
fn rolled_back(following: &Following, fed: &mut Fed, bad: Digest) {
    following.serves(fed, 2);
    while following.store.releases().unwrap().revision == 2 {
        feed(fed, 50);
    }
    following.serves(fed, 3);
    let releases = following.store.releases().unwrap();
    let change = releases.change.clone().unwrap();
    assert_eq!(
        (change.action.as_str(), change.by.as_str(), change.digest),
        ("guard-rollback", "worker test", Some(bad))
    );
    assert_eq!(releases.held[&bad].why, change.why);
}

#[test]
fn a_rule_that_rejects_too_much_is_rolled_back_and_held() {
    let (following, active, bad) = following("", &strict());
    let mut fed = following.start();
    following.serves(&mut fed, 1);
    following.promote(bad, "1");
    rolled_back(&following, &mut fed, bad);
    let why = following.store.releases().unwrap().held[&bad].why.clone();
    assert!(why.contains("are no longer accepted") && why.contains("more than 1 % lost"), "{why}");
    feed(&mut fed, 2);
    let ended = fed.finish().expect(0);
    assert!(ended.stderr.contains("preflight quarantine replay PIPELINE --digest"), "{}", ended.stderr);
    assert_eq!(following.served_by(), [bad, active].map(|digest| digest.to_string()));
    let again = following.store.change(&promote(bad, "1"), None, "a test", "", SystemClock.now());
    assert!(matches!(&again, Err(ChangeError::Refused(refusal)) if refusal.0.contains("is held since")), "{again:?}");
    let force = Change::Promote { digest: bad, events: "1".into(), expect_rejects: true, force: true };
    assert!(following.change(&force).held.is_empty());
}

#[test]
fn a_rule_that_holds_to_its_fixtures_and_then_traps_is_rolled_back() {
    let (following, _, bad) = following("", &trapping());
    let mut fed = following.start();
    following.serves(&mut fed, 1);
    following.promote(bad, "1");
    rolled_back(&following, &mut fed, bad);
    let why = following.store.releases().unwrap().held[&bad].why.clone();
    assert!(why.starts_with("3 of ") && why.contains("events fault that did not before"), "{why}");
    fed.finish().expect(0);
    // Every event has its row, whoever judged it.
    let faults = following.quarantine();
    assert!(faults.iter().all(|row| row["error_code"] == "panic" && row["rule_digest"] == bad.to_string()));
    assert!(faults.len() >= 3);
}

/// What is ignored is not even in quarantine, so nothing could bring it back.
#[test]
fn a_rule_that_ignores_too_much_is_rolled_back() {
    let (following, _, bad) = following("", &Toy { ignores: "b", ..Toy::default() }.component());
    let mut fed = following.start();
    following.serves(&mut fed, 1);
    following.promote(bad, "1");
    rolled_back(&following, &mut fed, bad);
    fed.finish().expect(0);
}

/// The newest revision cannot be built, for another event version's sake; the rule that traps must go all the same.
#[test]
fn a_trip_takes_effect_although_the_newest_revision_is_refused() {
    let (following, active, bad) = following("", &trapping());
    let mut fed = following.start();
    following.serves(&mut fed, 1);
    following.promote(bad, "1");
    following.serves(&mut fed, 2);
    following.promote(following.stage(b"not wasm"), "2");
    following.wait(&mut fed, |worker| worker.refused.is_some());
    while following.store.releases().unwrap().revision == 3 {
        feed(&mut fed, 50);
    }
    let worker = following.wait(&mut fed, |worker| worker.event_versions["1"].roles["active"].digest == active);
    assert!(worker.refused.is_some_and(|refused| refused.revision >= 3), "the rest of it is still bad");
    assert!(!worker.event_versions["1"].roles.contains_key("previous"));
    let before = following.silver().len();
    fed.feed("1", ["b"; 10]);
    fed.finish().expect(0);
    let silver = following.silver();
    assert!(silver.len() >= before + 10);
    assert_eq!(silver.last().unwrap()["rule_digest"], active.to_string());
    // Nor does the next start serve it, although it cannot build the newest revision either.
    let mut fed = following.start();
    let worker = following.wait(&mut fed, |worker| worker.refused.is_some());
    assert_eq!(worker.event_versions["1"].roles["active"].digest, active);
    fed.finish().expect(0);
}

/// Weeks later another mix of events would roll a good rule back to one that nobody remembers.
#[test]
fn a_guard_that_has_passed_does_not_begin_anew_with_the_next_start() {
    let (following, _, other) = following("[rules.guard]\ntime = \"1 ms\"\n", &strict());
    let mut fed = following.start();
    following.serves(&mut fed, 1);
    following.promote(other, "1");
    following.serves(&mut fed, 2);
    following.wait(&mut fed, |worker| worker.comparisons[0].guard.as_deref() == Some("passed"));
    fed.finish().expect(0);
    let mut again = following;
    again.pipeline.settings.push("rules.guard.time=10 m".into());
    let mut fed = again.start();
    again.serves(&mut fed, 2);
    feed(&mut fed, 400);
    fed.finish().expect(0);
    let worker = again.worker().unwrap();
    assert_eq!((worker.comparisons[0].guard.as_deref(), worker.comparisons[0].pairs), (Some("passed"), 0));
    assert_eq!(again.store.releases().unwrap().revision, 2);
}

#[test]
fn expected_rejections_are_no_reason() {
    let (following, _, strict) = following("", &strict());
    let mut fed = following.start();
    following.serves(&mut fed, 1);
    following.change(&Change::Promote { digest: strict, events: "1".into(), expect_rejects: true, force: false });
    following.serves(&mut fed, 2);
    feed(&mut fed, 400);
    let worker = following.wait(&mut fed, |worker| worker.comparisons[0].pairs == 400);
    assert_eq!(worker.comparisons[0].guard.as_deref(), Some("watching"));
    assert_eq!(worker.comparisons[0].differences["accept→reject TOY"], 200);
    fed.finish().expect(0);
    assert_eq!(following.store.releases().unwrap().revision, 2);
}

#[test]
fn a_bad_hour_of_the_producer_is_no_reason() {
    let (following, _, other) = following("", &Toy { version: "1.0.1", ..Toy::default() }.component());
    let mut fed = following.start();
    following.serves(&mut fed, 1);
    fed.feed("1", ["a"; 200]);
    following.written(&mut fed, 200);
    following.promote(other, "1");
    following.serves(&mut fed, 2);
    // From no rejections at all to nothing else, and both rules agree on it.
    fed.feed("1", ["r"; 400]);
    let worker = following.wait(&mut fed, |worker| worker.comparisons[0].pairs == 400);
    assert_eq!(worker.comparisons[0].guard.as_deref(), Some("watching"));
    assert!(worker.comparisons[0].differences.is_empty());
    fed.finish().expect(0);
}

#[test]
fn few_events_are_no_reason() {
    let (following, _, bad) = following("", &strict());
    let mut fed = following.start();
    following.serves(&mut fed, 1);
    following.promote(bad, "1");
    following.serves(&mut fed, 2);
    feed(&mut fed, 99);
    following.wait(&mut fed, |worker| worker.comparisons[0].pairs == 99);
    fed.finish().expect(0);
    assert_eq!(following.store.releases().unwrap().revision, 2, "99 pairs are below the minimum");
}

#[test]
fn a_guard_passes_when_its_time_is_over() {
    let (following, _, other) =
        following("[rules.guard]\ntime = \"1 ms\"\n", &Toy { version: "1.0.1", ..Toy::default() }.component());
    let mut fed = following.start();
    following.serves(&mut fed, 1);
    following.promote(other, "1");
    following.serves(&mut fed, 2);
    let worker = following.wait(&mut fed, |worker| worker.comparisons[0].guard.as_deref() == Some("passed"));
    assert_eq!(worker.comparisons[0].kind, "guard");
    // Nothing is compared any more.
    feed(&mut fed, 100);
    following.written(&mut fed, 100);
    fed.finish().expect(0);
    assert_eq!(following.worker().unwrap().comparisons[0].pairs, 0);
}

#[test]
fn a_rollback_is_not_guarded() {
    let (following, _, strict) = following("", &strict());
    following.change(&Change::Promote { digest: strict, events: "1".into(), expect_rejects: true, force: false });
    let mut fed = following.start();
    following.serves(&mut fed, 2);
    following.change(&Change::Rollback { events: "1".into() });
    let worker = following.serves(&mut fed, 3);
    assert!(!worker.event_versions["1"].roles.contains_key("previous"));
    fed.finish().expect(0);
}

#[test]
fn a_canary_that_is_bad_is_taken_out_and_held() {
    let (following, active, bad) = following("", &trapping());
    let mut fed = following.start();
    following.serves(&mut fed, 1);
    let canary = Change::Canary { digest: bad, events: "1".into(), percent: 50.0, expect_rejects: false, force: false };
    following.change(&canary);
    rolled_back(&following, &mut fed, bad);
    fed.finish().expect(0);
    let releases = following.store.releases().unwrap();
    let roles = &releases.release["1"].validator;
    assert_eq!((roles.active, &roles.canary), (active, &None));
}

/// Without the right to write the store a worker protects itself, says so, and remembers it.
#[test]
fn a_worker_that_cannot_write_the_store_holds_the_rule_for_itself() {
    let (following, active, bad) = following("", &trapping());
    let directory = following.store.directory().to_owned();
    // As another user would see it; root may write everywhere, so there is none who may write here.
    let lock = directory.join("lock");
    fs::remove_file(&lock).unwrap();
    fs::create_dir(&lock).unwrap();
    fs::set_permissions(&directory, Permissions::from_mode(0o555)).unwrap();
    let mut fed = following.start();
    following.serves(&mut fed, 1);
    fs::remove_dir(&lock).unwrap();
    following.promote(bad, "1");
    following.serves(&mut fed, 2);
    fs::remove_file(&lock).unwrap();
    fs::create_dir(&lock).unwrap();
    while following.worker().unwrap().pins.is_empty() {
        feed(&mut fed, 50);
    }
    let worker = following.wait(&mut fed, |worker| worker.event_versions["1"].roles["active"].digest == active);
    assert_eq!((worker.revision, worker.pins[0].held), (Some(2), bad));
    let ended = fed.finish().expect(0);
    assert!(ended.stderr.contains("so this worker alone takes the component out of service"), "{}", ended.stderr);
    // It is still so after a restart, and over once the store has it.
    let mut fed = following.start();
    let worker = following.serves(&mut fed, 2);
    assert_eq!(worker.event_versions["1"].roles["active"].digest, active);
    fs::remove_dir(&lock).unwrap();
    fs::set_permissions(&directory, Permissions::from_mode(0o755)).unwrap();
    following.change(&Change::Rollback { events: "1".into() });
    let worker = following.serves(&mut fed, 3);
    assert!(worker.pins.is_empty());
    // What was seen of the first promotion says nothing of another.
    following.change(&Change::Promote { digest: bad, events: "1".into(), expect_rejects: false, force: true });
    let worker = following.serves(&mut fed, 4);
    assert_eq!((worker.event_versions["1"].roles["active"].digest, worker.pins.len()), (bad, 0));
    fed.finish().expect(0);
    assert_eq!(following.store.releases().unwrap().revision, 4);
}

//! Killed at any point of a change, a store opens, and the same again ends well.

use preflight::digest::Digest;
use preflight::failpoint;
use preflight::releases::{Change, RuleStore};
use preflight_tests::rule_store::{FIXTURES, hostile};
use preflight_tests::{Ended, Store};
use std::process::Command;

/// The variables by which a guard in a process of its own knows what to do.
const STORE: &str = "PREFLIGHT_TEST_TRIP_STORE";
const DIGEST: &str = "PREFLIGHT_TEST_TRIP_DIGEST";

/// Points that staging passes; a change passes the others.
const STAGE: [&str; 3] = [failpoint::FIXTURES_STAGED, failpoint::COMPONENT_STAGED, failpoint::STAGE_RECORDED];

fn points_of_a_change() -> impl Iterator<Item = &'static str> {
    failpoint::STORE.into_iter().filter(|point| !STAGE.contains(point))
}

/// Asserts that the store opens after a kill, and that its history has nothing but whole lines.
#[track_caller]
fn opens(store: &Store, point: &str) {
    let status = store.run("status --json").expect(0).json();
    assert_eq!(status["problems"], serde_json::json!([]), "{point}");
    store.run("history").expect(0);
    let history = std::fs::read(store.path().join("history.ndjson")).unwrap_or_default();
    assert!(history.is_empty() || history.ends_with(b"\n"), "{point}");
}

/// Asserts that the history has every revision once.
#[track_caller]
fn complete(store: &Store, point: &str) {
    let history = store.open().history().unwrap().into_iter().filter(|record| record.action != "stage");
    let revisions: Vec<u64> = history.map(|record| record.revision).collect();
    assert_eq!(revisions, (1..=store.releases().revision).collect::<Vec<_>>(), "{point}");
    store.run("gc --delete").expect(0);
    let left = std::fs::read_dir(store.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().starts_with(".new-")), "{point}");
}

/// Runs a command that is killed at a point, then again.
#[track_caller]
fn killed_and_again(store: &mut Store, point: &str, words: &str, already: &str) {
    store.environment = vec![(failpoint::VARIABLE.into(), point.into())];
    let ended = store.run(words);
    assert!(ended.was_killed(), "{point}: {ended:?}");
    store.environment.clear();
    opens(store, point);
    again(&store.run(words), point, already);
}

/// Before the commit point the change is made now; after it there is nothing left to do.
#[track_caller]
fn again(ended: &Ended, point: &str, already: &str) {
    let made = point == failpoint::RELEASES_REPLACED || point == failpoint::CHANGE_RECORDED;
    assert_eq!(made, ended.stderr.contains(already) || ended.stdout.contains(already), "{point}: {ended:?}");
    assert_eq!(!made, ended.code == Some(0), "{point}: {ended:?}");
}

#[test]
fn a_killed_stage_leaves_no_component_without_fixtures() {
    for point in STAGE {
        let mut store = Store::new();
        let component = store.file("rule.wasm", hostile("a"));
        let fixtures = store.file("fixtures.ndjson", FIXTURES);
        let words = format!("stage {} --fixtures {}", component.display(), fixtures.display());
        store.environment = vec![(failpoint::VARIABLE.into(), point.into())];
        assert!(store.run(&words).was_killed(), "{point}");
        store.environment.clear();
        opens(&store, point);
        for digest in store.open().staged().unwrap() {
            store.open().fixtures(&digest).unwrap();
        }
        store.run(&words).expect(0);
        let digest = Digest::of(&hostile("a"));
        assert_eq!(store.open().staged().unwrap(), [digest], "{point}");
        store.run(&format!("promote {digest} --events 1")).expect(0);
        complete(&store, point);
    }
}

#[test]
fn a_killed_promotion_is_made_or_not() {
    for point in points_of_a_change() {
        let (mut store, [a, b]) = Store::with(["a", "b"]);
        store.promote(a);
        killed_and_again(
            &mut store,
            point,
            &format!("promote {b} --events 1"),
            "is active for event version 1 already",
        );
        assert_eq!(store.releases().release["1"].validator.active, b, "{point}");
        complete(&store, point);
    }
}

#[test]
fn a_killed_rollback_is_made_or_not() {
    for point in points_of_a_change() {
        let (mut store, [a, b]) = Store::with(["a", "b"]);
        store.promote(a);
        store.promote(b);
        killed_and_again(&mut store, point, "rollback --events 1", "no previous component");
        assert_eq!(store.releases().release["1"].validator.active, a, "{point}");
        complete(&store, point);
    }
}

#[test]
fn a_killed_guard_has_tripped_or_not() {
    for point in points_of_a_change() {
        let (store, [a, b]) = Store::with(["a", "b"]);
        store.promote(a);
        store.promote(b);
        assert!(guard(&store, b, Some(point)).was_killed(), "{point}");
        opens(&store, point);
        let ended = guard(&store, b, None);
        again(&ended, point, "is no longer in service");
        assert_eq!(store.releases().release["1"].validator.active, a, "{point}");
        assert!(store.releases().held.contains_key(&b), "{point}");
        complete(&store, point);
    }
}

/// Runs [`a_guard_in_a_process_of_its_own`] in one.
fn guard(store: &Store, digest: Digest, point: Option<&str>) -> Ended {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "releases::crash::a_guard_in_a_process_of_its_own"]);
    command.env(STORE, store.path()).env(DIGEST, digest.to_string());
    if let Some(point) = point {
        command.env(failpoint::VARIABLE, point);
    }
    Ended::from_output(command.output().unwrap())
}

/// What [`guard`] runs: a worker's guard, which has no command.
#[test]
fn a_guard_in_a_process_of_its_own() {
    let (Ok(store), Ok(digest)) = (std::env::var(STORE), std::env::var(DIGEST)) else { return };
    let store = RuleStore::at(store);
    let releases = store.releases().unwrap();
    // Killed before, and done already: then it is refused, as another worker's would be.
    let active = &releases.release["1"].validator;
    let since = active.guard.as_ref().map_or_else(String::new, |guard| guard.promoted_at.clone());
    let trip = Change::Trip { digest: digest.parse().unwrap(), events: "1".into(), since };
    store.change(&trip, None, "worker test", "figures", 0).unwrap_or_else(|error| panic!("{error}"));
}

//! The commands that say what serves which event version.

use preflight::digest::Digest;
use preflight::releases::ChangeError;
use preflight_tests::rule_store::trip;
use preflight_tests::{Ended, Store, paths};
use serde_json::{Value, json};

/// The roles of event version 1 in `rules status --json`.
fn roles(store: &Store) -> Value {
    store.run("status --json").expect(0).json()["event_versions"]["1"].take()
}

#[track_caller]
fn refused(ended: Ended, words: &str) {
    let ended = ended.expect(2);
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
}

#[test]
fn a_component_is_promoted_and_rolled_back() {
    let (store, [a, b]) = Store::with(["a", "b"]);
    let ended = store.run(&format!("promote {a} --events 1")).expect(0);
    assert!(ended.stdout.contains(&format!("revision 1\nevent version 1: {a} is active\n")), "{}", ended.stdout);
    let answer = store.run(&format!("promote {b} --events 1 --expect-rejects --why stricter --json")).expect(0).json();
    assert_eq!((&answer["revision"], &answer["workers"]), (&json!(2), &json!([])));
    let change = &answer["change"];
    assert_eq!((&change["by"], &change["why"], &change["digest"]), (&json!("ana@here"), &json!("stricter"), &json!(b)));
    assert_eq!((&answer["roles"]["active"], &answer["roles"]["previous"]), (&json!(b), &json!(a)));
    let guard = &roles(&store)["guard"];
    assert_eq!((&guard["expect_rejects"], &guard["promoted_at"]), (&json!(true), &change["at"]));

    let ended = store.run("rollback --events 1").expect(0);
    assert!(ended.stdout.contains(&format!("event version 1: {a} is active\n")), "{}", ended.stdout);
    refused(store.run("rollback --events 1"), "event version 1 has no previous component to go back to");
    refused(store.run("rollback --events 7"), "event version 7 has no release");
    refused(store.run(&format!("promote {a} --events 1")), "is active for event version 1 already");
    assert_eq!(store.releases().revision, 3);
}

#[test]
fn a_component_goes_only_where_its_manifest_says() {
    let store = Store::new();
    let fixtures = paths::root().join("guest-validators/offvia-booking/fixtures.ndjson");
    let rule = paths::rule("offvia-booking");
    let staged = store.run(&format!("stage {} --fixtures {} --json", rule.display(), fixtures.display())).expect(0);
    let digest: Digest = staged.json()["digest"].as_str().unwrap().parse().unwrap();
    for command in ["promote", "shadow", "canary --percent 5"] {
        refused(store.run(&format!("{command} {digest} --events 2")), "judges event versions 1, not \"2\"");
    }
    assert_eq!(store.releases().revision, 0);
}

#[test]
fn a_shadow_and_a_canary_come_and_go() {
    let (store, [a, b, c]) = Store::with(["a", "b", "c"]);
    refused(store.run(&format!("shadow {b} --events 1")), "promote a component for it first");
    store.promote(a);
    store.run(&format!("shadow {b} --events 1")).expect(0);
    assert_eq!(roles(&store)["shadow"], json!({ "digest": b, "rule": "hostile-rule@0.1.0", "sample": 100.0 }));
    let ended = store.run(&format!("shadow {b} --events 1 --sample 2.5")).expect(0);
    assert!(ended.stdout.contains(&format!("{b} is the shadow of 2.5 % of the events")), "{}", ended.stdout);
    let ended = store.run(&format!("canary {c} --events 1 --percent 5 --expect-rejects")).expect(0);
    assert!(ended.stdout.contains(&format!("{c} is the canary and judges 5 % of the events")), "{}", ended.stdout);
    let canary = json!({ "digest": c, "rule": "hostile-rule@0.1.0", "percent": 5.0, "expect_rejects": true });
    assert_eq!(roles(&store)["canary"], canary);
    refused(store.run(&format!("canary {c} --events 1 --percent 100")), "--percent must be above 0 and below 100");
    refused(store.run(&format!("shadow {b} --events 1 --sample 0")), "--sample must be above 0 and at most 100");
    refused(store.run(&format!("shadow {a} --events 1")), "is active for event version 1 already");

    let text = store.run("status").expect(0).stdout;
    for words in ["active", "shadow", "sees 2.5 %", "canary", "judges 5 %, more rejections expected", &b.hex()[..12]] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
    store.run("shadow --off --events 1").expect(0);
    store.run("canary --off --events 1").expect(0);
    assert_eq!((&roles(&store)["shadow"], &roles(&store)["canary"]), (&Value::Null, &Value::Null));
    refused(store.run("shadow --off --events 1"), "event version 1 has no shadow");
    refused(store.run("canary --off --events 1"), "event version 1 has no canary");
}

#[test]
fn half_a_command_is_wrong_usage() {
    let store = Store::new();
    for words in [
        "promote --events 1",
        "promote abcd",
        "shadow --events 1",
        "shadow abcd --off --events 1",
        "canary abcd --events 1",
        "canary --events 1",
        "canary --off --events 1 --percent 5",
        "rollback --events 1 --wait 5",
        "gc --keep 0",
        "stage rule.wasm",
    ] {
        store.run(words).expect(2);
    }
}

#[test]
fn a_retired_event_version_is_served_by_nobody() {
    let (store, [a]) = Store::with(["a"]);
    store.promote(a);
    let ended = store.run("retire --events 1").expect(0);
    assert!(ended.stdout.contains("event version 1: nobody serves it"), "{}", ended.stdout);
    refused(store.run("retire --events 1"), "event version 1 has no release");
    let status = store.run("status --json").expect(0).json();
    assert_eq!(status["event_versions"], json!({}));
    assert_eq!(status["staged"], json!([{ "digest": a, "rule": "hostile-rule@0.1.0" }]));
    assert!(store.run("status").expect(0).stdout.contains("no event version is served"));
}

#[test]
fn a_change_meant_for_another_revision_is_not_made() {
    let (store, [a, b]) = Store::with(["a", "b"]);
    store.run(&format!("promote {a} --events 1 --revision 0")).expect(0);
    let ended = store.run(&format!("promote {b} --events 1 --revision 0")).expect(1);
    let words = "the store is at revision 1, not 0 (ana@here did promote for event version 1 at 20";
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
    assert_eq!(store.releases().release["1"].validator.active, a);
    store.run(&format!("promote {b} --events 1 --revision 1")).expect(0);
}

#[test]
fn what_a_guard_took_out_of_service_comes_back_by_force_only() {
    let (store, [a, b]) = Store::with(["a", "b"]);
    store.promote(a);
    let trip = trip(&store.promote(b));
    let releases = store.open().change(&trip, None, "worker test", "7 of 1000 rejected more", 0).unwrap();
    assert_eq!(releases.release["1"].validator.active, a);
    let again = store.open().change(&trip, None, "worker other", "the same", 0).unwrap_err();
    assert!(matches!(again, ChangeError::Refused(_)), "{again:?}");

    let status = store.run("status --json").expect(0).json();
    assert_eq!(status["change"]["action"], "guard-rollback");
    assert_eq!((&status["held"][0]["digest"], &status["held"][0]["events"]), (&json!(b), &json!("1")));
    assert_eq!(status["held"][0]["why"], "7 of 1000 rejected more");
    assert!(store.run("status").expect(0).stdout.contains("for event version 1: 7 of 1000 rejected more"));
    refused(store.run(&format!("promote {b} --events 1")), "7 of 1000 rejected more. Stage a repaired build");
    refused(store.run(&format!("canary {b} --events 1 --percent 1")), "is held since");
    store.run(&format!("shadow {b} --events 1")).expect(0);
    store.run(&format!("promote {b} --events 1 --force")).expect(0);
    assert_eq!(store.run("status --json").expect(0).json()["held"], json!([]));
}

#[test]
fn the_store_is_named_by_the_option_the_variable_or_its_usual_place() {
    let (store, [_]) = Store::with(["a"]);
    let beside = |configure: &dyn Fn(&mut std::process::Command)| {
        let mut command = std::process::Command::new(paths::preflight());
        command.args(["rules", "status", "--json"]).current_dir(store.path().parent().unwrap());
        configure(&mut command);
        Ended::from_output(command.output().unwrap())
    };
    beside(&|_| {}).expect(0);
    beside(&|command| {
        command.env("PREFLIGHT_RULE_STORE", store.path()).current_dir("/");
    })
    .expect(0);
    let ended = beside(&|command| {
        command.env("PREFLIGHT_RULE_STORE", store.path()).args(["--store", "elsewhere"]);
    });
    assert!(ended.expect(1).stderr.contains("elsewhere: there is no rule store here"));
}

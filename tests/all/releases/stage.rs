//! `rules stage`, and naming what is staged.

use preflight::digest::Digest;
use preflight_tests::rule_store::{FIXTURES, hostile, variant};
use preflight_tests::{Store, paths};
use serde_json::json;
use std::collections::HashMap;
use std::fs;

#[test]
fn a_rule_that_holds_to_its_fixtures_is_staged_and_its_digest_printed() {
    let store = Store::new();
    let component = store.file("rule.wasm", hostile("a"));
    let fixtures = store.file("fixtures.ndjson", FIXTURES);
    let digest = Digest::of(&hostile("a"));
    let words = format!("stage {} --fixtures {} --why new", component.display(), fixtures.display());
    let ended = store.run(&words).expect(0);
    assert_eq!(ended.stdout.lines().next(), Some(digest.to_string().as_str()));
    assert_eq!(fs::read(store.component(&digest)).unwrap(), hostile("a"));
    assert_eq!(store.open().fixtures(&digest).unwrap().len(), 1);
    assert_eq!(store.releases().revision, 0, "staging is no change of the releases");

    let answer = store.run(&(words + " --json")).expect(0).json();
    assert_eq!((&answer["staged"], &answer["digest"]), (&json!(true), &json!(digest)));
    assert_eq!((&answer["rule"], &answer["event_versions"]), (&json!("hostile-rule@0.1.0"), &json!(["1", "2"])));
    let history = store.open().history().unwrap();
    let record = &history[0];
    assert_eq!((record.action.as_str(), record.by.as_str(), record.why.as_str()), ("stage", "ana@here", "new"));
    assert_eq!((record.digest, record.rule.as_deref()), (Some(digest), Some("hostile-rule@0.1.0")));
}

#[test]
fn the_rules_of_the_project_hold_to_their_fixtures() {
    let store = Store::new();
    for rule in ["offvia-booking", "offvia-booking-v2", "lumen-loom-orders", "shopflow-orders"] {
        let fixtures = paths::root().join("guest-validators").join(rule).join("fixtures.ndjson");
        let words = format!("stage {} --fixtures {}", paths::rule(rule).display(), fixtures.display());
        store.run(&words).expect(0);
    }
    assert_eq!(store.open().staged().unwrap().len(), 4);
}

#[test]
fn a_rule_that_does_not_hold_to_its_fixtures_is_not_staged() {
    let store = Store::new();
    let component = store.file("rule.wasm", hostile("a"));
    let wrong = store.file("wrong.ndjson", FIXTURES.replace("\"n\":1", "\"n\":2"));
    let words = format!("stage {} --fixtures {}", component.display(), wrong.display());
    let ended = store.run(&words).expect(1);
    assert!(ended.stdout.contains("FAIL ok\n       n: expected 2, got 1"), "{}", ended.stdout);
    assert!(ended.stdout.contains("nothing is staged"), "{}", ended.stdout);
    let answer = store.run(&(words + " --json")).expect(1).json();
    assert_eq!((&answer["staged"], &answer["judged"]["failed"]), (&json!(false), &json!(1)));
    assert!(!store.path().exists());
}

#[test]
fn what_is_no_rule_is_not_staged() {
    let store = Store::new();
    let fixtures = store.file("fixtures.ndjson", FIXTURES).display().to_string();
    let refused = |component: &str, fixtures: &str, words: &str| {
        let ended = store.run(&format!("stage {component} --fixtures {fixtures}")).expect(2);
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    };
    let text = store.file("text.wasm", "hello").display().to_string();
    let wasi = r#"(component (import "wasi:clocks/wall-clock@0.2.0" (instance (export "now" (func (result u64))))))"#;
    let wasi = store.file("wasi.wasm", wat::parse_str(wasi).unwrap()).display().to_string();
    let rule = store.file("rule.wasm", hostile("a")).display().to_string();
    refused(&text, &fixtures, "text.wasm: it is not WebAssembly");
    refused(&wasi, &fixtures, "it imports wasi:clocks/wall-clock@0.2.0#now");
    refused("nowhere.wasm", &fixtures, "nowhere.wasm: cannot read it");
    refused(&rule, "nowhere.ndjson", "cannot read nowhere.ndjson");
    refused(&rule, &text, "text.wasm: line 1: not a fixture");
    assert!(!store.path().exists());
}

#[test]
fn several_files_of_fixtures_become_one_set_and_other_fixtures_take_its_place() {
    let store = Store::new();
    let component = store.file("rule.wasm", hostile("a")).display().to_string();
    let digest = Digest::of(&hostile("a"));
    fs::create_dir(store.path().with_file_name("more")).unwrap();
    // The last line of the first file has no line end.
    let one = store.file("one.ndjson", FIXTURES.trim_end()).display().to_string();
    store.file("more/two.ndjson", FIXTURES.replace("\"name\":\"ok\"", "\"name\":\"two\""));
    let names =
        || -> Vec<String> { store.open().fixtures(&digest).unwrap().into_iter().map(|fixture| fixture.name).collect() };
    store.run(&format!("stage {component} --fixtures {one} more")).expect(0);
    assert_eq!(names(), ["ok", "two"]);
    store.run(&format!("stage {component} --fixtures more")).expect(0);
    assert_eq!(names(), ["two"]);
    store.run(&format!("stage {component} --fixtures more")).expect(0);
    assert_eq!(names(), ["two"], "staging twice is staging once");
}

#[test]
fn a_component_is_named_by_the_beginning_of_its_digest() {
    let (store, [digest]) = Store::with(["a"]);
    for name in [&digest.hex()[..4], &digest.hex(), &digest.to_string(), &digest.to_string()[..20]] {
        store.run(&format!("promote {name} --events 1")).expect(0);
        store.run("retire --events 1").expect(0);
    }
    let refused = |name: &str, words: &str| {
        let ended = store.run(&format!("promote {name} --events 1")).expect(2);
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    };
    for name in ["abc", "sha256:", "ABCDEF", "nothex", &(digest.hex() + "0")] {
        refused(name, &format!("{name:?} is not a digest: write at least 4"));
    }
    let other = if digest.hex().starts_with("0000") { "1111" } else { "0000" };
    refused(other, &format!("no staged component has a digest that begins with {other}:\n  {digest}\n"));
}

#[test]
fn a_beginning_of_several_digests_names_none_and_lists_them() {
    // Two variants whose digests begin alike: one in 65,536 pairs.
    let tags = pair();
    let store = Store::new();
    let [one, two] = tags.map(|tag| store.stage(&tag));
    let ended = store.run(&format!("shadow {} --events 1", &one.hex()[..4])).expect(2);
    let (first, second) = (one.min(two), one.max(two));
    let words = format!("is the beginning of several digests:\n  {first}\n  {second}\n");
    assert!(ended.stderr.contains(&words), "{}", ended.stderr);
}

fn pair() -> [String; 2] {
    let mut seen = HashMap::new();
    for number in 0.. {
        let tag = format!("pair {number}");
        let start = Digest::of(&variant(&paths::rule("hostile-rule"), &tag)).hex()[..4].to_owned();
        if let Some(other) = seen.insert(start, tag.clone()) {
            return [other, tag];
        }
    }
    unreachable!("there are more variants than beginnings")
}

#[test]
fn an_empty_store_has_nothing_to_name() {
    let store = Store::new();
    fs::create_dir(store.path()).unwrap();
    let ended = store.run("promote abcd --events 1").expect(2);
    assert!(ended.stderr.contains("begins with abcd: nothing is staged here"), "{}", ended.stderr);
}

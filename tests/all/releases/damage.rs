//! Stores that are damaged, or not there.

use preflight::releases::worker::Worker;
use preflight::releases::{Change, ChangeError, StoreError};
use preflight_tests::rule_store::FIXTURES;
use preflight_tests::{Store, rule_store::hostile};
use std::fs;

#[test]
fn a_store_that_is_not_there_is_named_and_not_made() {
    let store = Store::new();
    for words in ["status", "history", "gc", "gc --delete", "promote abcd --events 1", "rollback --events 1"] {
        let ended = store.run(words).expect(1);
        assert!(ended.stderr.contains("/rules: there is no rule store here"), "{words}: {}", ended.stderr);
    }
    assert!(!store.path().exists());
}

#[test]
fn a_store_that_vanishes_is_not_written_back() {
    let (store, [a]) = Store::with(["a"]);
    store.promote(a);
    fs::remove_dir_all(store.path()).unwrap();
    assert!(matches!(store.open().releases(), Err(StoreError::Missing { .. })));
    let change = Change::Rollback { events: "1".into() };
    let error = store.open().change(&change, None, "", "", 0).unwrap_err();
    assert!(matches!(error, ChangeError::Store(StoreError::Missing { .. })), "{error:?}");
    store.open().write_worker("w", &Worker::default()).unwrap_err();
    assert!(!store.path().exists());
}

#[test]
fn half_written_releases_are_refused_and_left_as_they_are() {
    let (store, [a, b]) = Store::with(["a", "b"]);
    store.promote(a);
    let file = store.path().join("releases.toml");
    let whole = fs::read(&file).unwrap();
    let wrong = [b"revision = \"many\"" as &[u8], b"revision = 1\nunknown = 1\n# end: revision = 1\n", b"\xff"];
    // Wherever it is cut off: at the end of a table it is TOML still, with fewer event versions.
    let halves = (0..whole.len() - 1).step_by(7).chain([whole.len() - 2]).map(|length| &whole[..length]);
    for content in halves.chain(wrong) {
        fs::write(&file, content).unwrap();
        let error = store.open().releases().unwrap_err().to_string();
        assert!(error.contains("/releases.toml: "), "{error}");
        let error = store.open().change(&Change::Rollback { events: "1".into() }, None, "", "", 0).unwrap_err();
        assert!(matches!(error, ChangeError::Store(StoreError::Damaged { .. })), "{error:?}");
        assert_eq!(fs::read(&file).unwrap(), content);
    }
    let end = whole.windows(5).position(|window| window == b"# end").unwrap();
    fs::write(&file, &whole[..end]).unwrap();
    for words in ["status", "gc", "rollback --events 1", &format!("promote {b} --events 1")] {
        let ended = store.run(words).expect(1);
        assert!(ended.stderr.contains("/releases.toml: it is half written"), "{words}: {}", ended.stderr);
    }
    fs::write(&file, &whole).unwrap();
    store.run(&format!("promote {b} --events 1")).expect(0);
}

#[test]
fn a_component_with_another_content_is_not_promoted_and_staging_it_again_repairs_it() {
    let (store, [a, b]) = Store::with(["a", "b"]);
    store.promote(a);
    for content in [b"" as &[u8], b"x", &hostile("c")] {
        fs::write(store.component(&b), content).unwrap();
        let ended = store.run(&format!("promote {b} --events 1")).expect(2);
        assert!(ended.stderr.contains("its content has another digest"), "{}", ended.stderr);
        let change = Change::Promote { digest: b, events: "1".into(), expect_rejects: false, force: false };
        let error = store.open().change(&change, None, "", "", 0).unwrap_err();
        assert!(matches!(error, ChangeError::NotStaged { .. }), "{error:?}");
        assert!(!error.is_read_only());
    }
    assert_eq!(store.releases().revision, 1);
    store.stage("b");
    store.run(&format!("promote {b} --events 1")).expect(0);
}

#[test]
fn a_component_that_is_gone_is_shown_and_not_promoted() {
    let (store, [a, b]) = Store::with(["a", "b"]);
    store.promote(a);
    for digest in [a, b] {
        fs::remove_file(store.component(&digest)).unwrap();
    }
    let status = store.run("status --json").expect(0).json();
    let problem = status["problems"][0].as_str().unwrap();
    assert_eq!(problem, format!("{a} is in the releases and not in the store: stage it again"));
    assert!(store.run("status").expect(0).stdout.contains(problem));
    store.run(&format!("promote {b} --events 1")).expect(2);
}

#[test]
fn fixtures_that_are_gone_or_damaged_are_named() {
    let (store, [a]) = Store::with(["a"]);
    let directory = store.path().join("fixtures").join(a.hex());
    let refused = |words: &str| {
        let error = store.open().fixtures(&a).unwrap_err().to_string();
        assert!(error.contains(&a.hex()) && error.contains(words), "{error}");
    };
    fs::write(directory.join("fixtures.ndjson"), "{").unwrap();
    refused("fixtures.ndjson: line 1: not a fixture");
    fs::remove_file(directory.join("fixtures.ndjson")).unwrap();
    refused("it holds no fixtures (*.ndjson): stage the component again");
    fs::remove_dir(&directory).unwrap();
    refused("No such file");
    // Files that were put there by hand count too, in order of name.
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("b.ndjson"), FIXTURES).unwrap();
    fs::write(directory.join("a.ndjson"), FIXTURES.replace("\"ok\",\"payload\"", "\"first\",\"payload\"")).unwrap();
    let names: Vec<String> = store.open().fixtures(&a).unwrap().into_iter().map(|fixture| fixture.name).collect();
    assert_eq!(names, ["first", "ok"]);
}

/// A store whose releases were gone began anew at revision 0, without what was held.
#[test]
fn a_store_whose_releases_are_gone_does_not_begin_anew() {
    let (store, [a]) = Store::with(["a"]);
    store.promote(a);
    std::fs::remove_file(store.path().join("releases.toml")).unwrap();
    for command in ["status", "rollback --events 1"] {
        let refused = store.run(command).expect(1).stderr;
        assert!(refused.contains("it is gone, and the history has revision 1"), "{refused}");
    }
}

//! `rules gc`: nothing in use goes, and nothing else stays.

use preflight::digest::Digest;
use preflight::releases::worker::{ServedRule, Serving, Worker};
use preflight::time::{Clock, SystemClock, format_micros};
use preflight_tests::Store;
use preflight_tests::rule_store::{promote, stage};
use serde_json::json;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

#[test]
fn what_nobody_needs_is_listed_and_deleted_only_when_asked() {
    let (store, [a, b, c, d]) = Store::with(["a", "b", "c", "d"]);
    for digest in [a, b, c] {
        store.promote(digest);
    }
    assert!(store.run("gc --delete").expect(0).stdout.contains("nothing that nobody needs"), "ten revisions are kept");
    let ended = store.run("gc --keep 1").expect(0);
    assert!(ended.stdout.contains("4 that nobody needs"), "{}", ended.stdout);
    let listed = store.run("gc --keep 1 --json").expect(0).json();
    let garbage: Vec<&serde_json::Value> = listed["garbage"].as_array().unwrap().iter().map(|g| &g["digest"]).collect();
    assert!(garbage.contains(&&json!(a)) && garbage.contains(&&json!(d)), "{listed}");
    assert_eq!((listed["deleted"].as_bool(), garbage.len()), (Some(false), 4), "two components with their fixtures");
    assert_eq!(store.open().staged().unwrap().len(), 4);

    let deleted = store.run("gc --keep 1 --delete --json").expect(0).json();
    assert_eq!((&deleted["garbage"], &deleted["deleted"]), (&listed["garbage"], &json!(true)));
    let mut left = [b, c];
    left.sort_unstable();
    assert_eq!(store.open().staged().unwrap(), left);
    assert_eq!(fs::read_dir(store.path().join("fixtures")).unwrap().count(), 2);
    store.run("rollback --events 1").expect(0);
}

#[test]
fn every_role_is_in_use() {
    let (store, [a, b, c, d]) = Store::with(["a", "b", "c", "d"]);
    store.promote(a);
    store.promote(b);
    store.run(&format!("shadow {c} --events 1")).expect(0);
    store.run(&format!("canary {d} --events 1 --percent 1")).expect(0);
    // A later change elsewhere, so that the history of this event version is not within the last revision.
    store.run(&format!("promote {a} --events 2")).expect(0);
    store.run("gc --keep 1 --delete").expect(0);
    assert_eq!(store.open().staged().unwrap().len(), 4);
}

fn worker(digest: Digest) -> Worker {
    let rule = ServedRule { rule: "hostile-rule@0.1.0".into(), digest };
    let serving = Serving { roles: [("active".to_owned(), rule)].into() };
    Worker {
        at: format_micros(SystemClock.now()),
        revision: Some(1),
        event_versions: [("1".to_owned(), serving)].into(),
        ..Worker::default()
    }
}

#[test]
fn what_a_worker_serves_is_in_use_although_the_releases_have_moved_on() {
    let (store, [a, b, c]) = Store::with(["a", "b", "c"]);
    for digest in [a, b, c] {
        store.promote(digest);
    }
    store.open().write_worker("w", &worker(a)).unwrap();
    store.run("gc --keep 1 --delete").expect(0);
    assert_eq!(store.open().staged().unwrap().len(), 3);
    fs::write(store.path().join("workers/other.json"), "of another version").unwrap();
    let ended = store.run("gc --keep 1 --delete").expect(1);
    assert!(ended.stderr.contains("workers/other.json: "), "{}", ended.stderr);
}

#[test]
fn what_killed_processes_left_behind_goes() {
    let (store, [a]) = Store::with(["a"]);
    store.promote(a);
    let fixtures = format!("fixtures/{}", a.hex());
    let left = [".new-1", "components/.new-2", &format!("{fixtures}/.new-3")];
    for name in left {
        fs::write(store.path().join(name), "half").unwrap();
    }
    // Fixtures whose component never came.
    let orphan = store.path().join("fixtures").join(Digest::of(b"never").hex());
    fs::create_dir(&orphan).unwrap();
    store.run("status").expect(0);
    store.run("gc --delete").expect(0);
    assert!(left.iter().all(|name| !store.path().join(name).exists()));
    assert!(!orphan.exists());
    assert_eq!(store.open().fixtures(&a).unwrap().len(), 1);
}

#[test]
fn files_of_workers_stay_for_a_day() {
    let (store, [a]) = Store::with(["a"]);
    store.open().write_worker("new", &worker(a)).unwrap();
    store.open().write_worker("old", &worker(a)).unwrap();
    let path = |name: &str| store.path().join("workers").join(name);
    fs::write(path(".new-1"), "being written").unwrap();
    fs::write(path(".new-2"), "half").unwrap();
    for (name, age) in [("old.json", 25 * 3600), (".new-2", 120)] {
        let written = std::time::SystemTime::now() - std::time::Duration::from_secs(age);
        fs::File::options().write(true).open(path(name)).unwrap().set_modified(written).unwrap();
    }
    store.run("gc --delete").expect(0);
    assert_eq!(
        ["new.json", "old.json", ".new-1", ".new-2"].map(|name| path(name).exists()),
        [true, false, true, false]
    );
}

#[test]
fn what_is_staged_while_garbage_is_collected_can_be_promoted() {
    let (store, [a]) = Store::with(["a"]);
    store.promote(a);
    let store = store.open();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                store.collect(1, SystemClock.now()).unwrap();
            }
        });
        for number in 0..30 {
            let digest = stage(&store, &format!("race {number}"));
            promote(&store, digest);
            store.fixtures(&digest).unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(store.releases().unwrap().revision, 31);
}

/// What had been staged minutes before was deleted, since the lines that say so were gone.
#[test]
fn without_the_history_of_the_last_revisions_nothing_is_deleted() {
    let (store, [a, b, c]) = Store::with(["a", "b", "c"]);
    for digest in [a, b] {
        store.promote(digest);
    }
    let history = store.path().join("history.ndjson");
    let whole = std::fs::read_to_string(&history).unwrap();
    let without_first = whole
        .lines()
        .filter(|line| !line.contains("\"revision\":1"))
        .fold(String::new(), |text, line| text + line + "\n");
    for cut in [Some(without_first), None] {
        match cut {
            Some(text) => std::fs::write(&history, text).unwrap(),
            None => std::fs::remove_file(&history).unwrap(),
        }
        let refused = store.run("gc --delete").expect(1).stderr;
        assert!(refused.contains("it lacks revision") && refused.contains("put it back first"), "{refused}");
    }
    std::fs::write(&history, whole).unwrap();
    store.run("gc --delete").expect(0);
    assert!(store.open().component(&c, u64::MAX).is_ok());
}

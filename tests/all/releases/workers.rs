//! What the workers say, and what a change makes of it.

use preflight::releases::worker::{Comparison, Pin, RefusedRevision, Sample, Worker};
use preflight::time::{Clock, SystemClock, format_micros};
use preflight_tests::{Ended, Store};
use serde_json::json;
use std::thread;

/// A worker that runs and serves a revision.
fn worker(revision: u64) -> Worker {
    Worker {
        pipeline: "bookings".into(),
        pid: 7,
        at: format_micros(SystemClock.now()),
        running: true,
        revision: Some(revision),
        ..Worker::default()
    }
}

fn refusing(revision: u64) -> Worker {
    let refused = RefusedRevision { revision, why: "a column is missing".into(), since: "then".into() };
    Worker { refused: Some(refused), ..worker(0) }
}

#[test]
fn a_change_waits_until_every_worker_serves_it() {
    let (store, [a]) = Store::with(["a"]);
    store.open().write_worker("w", &worker(0)).unwrap();
    let answer = thread::scope(|scope| {
        let command = scope.spawn(|| store.run(&format!("promote {a} --events 1 --wait 1m --json")));
        // The worker takes the revision once it is there.
        while store.releases().revision == 0 {
            thread::yield_now();
        }
        store.open().write_worker("w", &worker(1)).unwrap();
        command.join().unwrap()
    });
    assert_eq!(answer.expect(0).json()["workers"], json!([{ "worker": "w", "serves": 1, "answer": "taken" }]));
}

#[test]
fn a_worker_that_refuses_makes_the_command_fail_and_the_change_stays() {
    let (store, [a, b]) = Store::with(["a", "b"]);
    store.promote(a);
    store.open().write_worker("good", &worker(2)).unwrap();
    store.open().write_worker("bad", &refusing(9)).unwrap();
    let ended = store.run(&format!("promote {b} --events 1")).expect(1);
    for words in ["worker good: serves revision 2", "worker bad: stays with revision 0: a column is missing"] {
        assert!(ended.stdout.contains(words), "{}", ended.stdout);
    }
    let words = "revision 2 is made, but 1 of 2 workers refuse it: `preflight rules rollback --events 1` goes back";
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
    assert_eq!(store.releases().release["1"].validator.active, b);
    let ended = store.run("rollback --events 1 --wait 0s --json").expect(1);
    assert_eq!(
        ended.json()["workers"][0],
        json!({ "worker": "bad", "serves": 0, "answer": "refused", "why": "a column is missing" })
    );
}

/// The store was at revision 9 when the worker took it, and was restored to revision 1.
#[test]
fn a_worker_that_refuses_a_restored_store_has_not_taken_it() {
    let (store, [a, b]) = Store::with(["a", "b"]);
    store.promote(a);
    store.open().write_worker("w", &Worker { revision: Some(9), ..refusing(2) }).unwrap();
    let ended = store.run(&format!("promote {b} --events 1")).expect(1);
    assert!(ended.stdout.contains("worker w: stays with revision 9: a column is missing"), "{}", ended.stdout);
}

#[test]
fn a_worker_that_says_nothing_is_not_waited_for_longer_than_asked() {
    let (store, [a]) = Store::with(["a"]);
    store.open().write_worker("slow", &worker(0)).unwrap();
    let gone = Worker { at: "2026-01-01T00:00:00Z".into(), ..worker(0) };
    store.open().write_worker("gone", &gone).unwrap();
    let ended_itself = Worker { running: false, ..worker(0) };
    store.open().write_worker("ended", &ended_itself).unwrap();
    let no_store = Worker { revision: None, ..worker(0) };
    store.open().write_worker("file", &no_store).unwrap();
    let ended = store.run(&format!("promote {a} --events 1 --wait 0s")).expect(0);
    assert!(ended.stdout.ends_with("active\nworker slow: has not answered yet, it serves revision 0\n"), "{ended:?}");
}

#[test]
fn the_status_shows_all_that_a_worker_says() {
    let (store, [a, b]) = Store::with(["a", "b"]);
    store.promote(a);
    let compared = Comparison {
        events: "1".into(),
        kind: "shadow".into(),
        old: a,
        new: b,
        pairs: 1_000,
        skipped: 3,
        differences: [("accept→reject SCHEMA_VALIDATION".to_owned(), 2)].into(),
        samples: vec![Sample {
            message_id: "m-1".into(),
            kind: "accept→reject SCHEMA_VALIDATION".into(),
            old: "accept {}".into(),
            new: "reject x".into(),
        }],
        guard: Some("watching".into()),
    };
    let full = Worker {
        store_problem: Some("it went away".into()),
        pins: vec![Pin { events: "1".into(), held: b, since: String::new(), why: "12 faults".into() }],
        comparisons: vec![compared],
        ..refusing(2)
    };
    store.open().write_worker("w", &full).unwrap();
    store.open().write_worker("z", &Worker { at: "2026-01-01T00:00:00Z".into(), ..worker(1) }).unwrap();
    let ledger = store.path().with_file_name("ledger");
    std::fs::create_dir(&ledger).unwrap();
    Worker { running: false, ..worker(1) }.write(&ledger.join("worker.json")).unwrap();
    std::fs::write(store.path().join("workers/broken.json"), "{").unwrap();

    let text = store.run("status --ledger ledger").expect(0).stdout;
    for words in [
        "worker w (pipeline bookings, process 7): serves revision 0",
        "refuses revision 2 since then: a column is missing",
        "cannot read the store: it went away",
        "out of service for event version 1: 12 faults",
        "beside",
        "1000 events judged by both, 3 skipped under load; guard: watching",
        "accept→reject SCHEMA_VALIDATION: 2",
        "m-1 (accept→reject SCHEMA_VALIDATION): accept {} | reject x",
        "worker z (pipeline bookings, process 7): silent since 2026-01-01T00:00:00Z",
        "worker ledger (pipeline bookings, process 7): ended at",
        "problem: ",
        "workers/broken.json: ",
    ] {
        assert!(text.contains(words), "{words} is not in:\n{text}");
    }
    let status = store.run("status --ledger ledger --json").expect(0).json();
    let workers = status["workers"].as_array().unwrap().iter();
    let lives: Vec<_> = workers.map(|worker| (worker["id"].as_str(), worker["life"].as_str())).collect();
    assert_eq!(
        lives,
        [("w", "running"), ("z", "silent"), ("ledger", "ended")].map(|(id, life)| (Some(id), Some(life)))
    );
    assert_eq!(status["workers"][0]["comparisons"][0]["pairs"], 1_000);
    store.run("status --ledger nowhere").expect(1);
}

/// Samples quote events, and a worker's file is whatever somebody has put into `workers/`.
#[test]
fn nothing_that_a_worker_or_an_event_says_steers_the_terminal_or_passes_for_a_line() {
    const EVIL: &str = "\u{1b}]0;x\u{7}\u{9b}2J\nworker fine: serves revision 9";
    let (store, [a, b]) = Store::with(["a", "b"]);
    store.promote(a);
    let evil = || EVIL.to_owned();
    let compared = Comparison {
        events: evil(),
        kind: evil(),
        old: a,
        new: b,
        pairs: 1,
        skipped: 0,
        differences: [(evil(), 1)].into(),
        samples: vec![Sample { message_id: evil(), kind: evil(), old: evil(), new: evil() }],
        guard: Some(evil()),
    };
    let refused = RefusedRevision { revision: 2, why: evil(), since: evil() };
    let full = Worker {
        pipeline: evil(),
        refused: Some(refused),
        store_problem: Some(evil()),
        pins: vec![Pin { events: evil(), held: b, since: evil(), why: evil() }],
        comparisons: vec![compared],
        ..worker(0)
    };
    store.open().write_worker("w", &full).unwrap();
    let steers = |text: &str| text.chars().any(|c| c.is_control() && c != '\n');
    let status = store.run("status").expect(0).stdout;
    assert!(!steers(&status) && !status.lines().any(|line| line.starts_with("worker fine")), "{status}");
    let json = store.run("status --json").expect(0).stdout;
    assert!(!steers(&json), "{json}");
    let said: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(said["workers"][0]["comparisons"][0]["samples"][0]["old"], EVIL, "nothing of it is lost");
    let mut command = store.command(&format!("promote {b} --events 1"));
    let ended = Ended::from_output(command.args(["--why", EVIL]).output().unwrap()).expect(1);
    assert!(!steers(&ended.stdout) && !ended.stdout.contains("\nworker fine"), "{ended:?}");
    let history = store.run("history").expect(0).stdout;
    assert!(!steers(&history) && !history.lines().any(|line| line.contains("│ worker fine")), "{history}");
    let status = store.run("status").expect(0).stdout;
    assert!(!steers(&status) && !status.contains("\nworker fine"), "the reason of the change: {status}");
}

//! Replays that a running worker is asked for.

use super::{names, of_version_2, replay, routable, silver, unresolved};
use preflight::failpoint;
use preflight_tests::{Ended, Pipeline, Running, bookings, tables};
use rusqlite::Connection;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};
use std::thread;

/// A pipeline with rows to replay, and a worker on its ledger whose standard input is open.
fn working(rows: usize) -> (Pipeline, Running, ChildStdin) {
    working_with(routable(rows).set("batch.max_events=10"))
}

fn working_with(pipeline: Pipeline) -> (Pipeline, Running, ChildStdin) {
    let pipeline = pipeline.set("source.stdin.format=envelope").set("batch.max_age=10 ms");
    let (mut run, mut stdin) = Running::start(&pipeline);
    // Once it has written something of its own it surely holds the ledger.
    stdin.write_all(of_version_2("LIVE", 1).as_bytes()).unwrap();
    run.wait_until(|| tables::newest_rowid(&pipeline.database(), "fact_bookings") == Some(1));
    (pipeline, run, stdin)
}

/// A replay that was started.
fn started(pipeline: &Pipeline) -> Child {
    let mut command = pipeline.command("quarantine replay");
    command.args(["--all", "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn ended(child: Child) -> Ended {
    Ended::from_output(child.wait_with_output().unwrap())
}

fn inbox(pipeline: &Pipeline) -> PathBuf {
    pipeline.ledger().join("inbox")
}

fn files(pipeline: &Pipeline) -> Vec<String> {
    let entries = fs::read_dir(inbox(pipeline)).map(Iterator::flatten).into_iter().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_running_worker_replays_between_its_micro_batches() {
    let (pipeline, run, mut stdin) = working(35);
    let asked = pipeline.quarantine("replay", &["--all", "--json"]).expect(0);
    assert!(asked.stderr.contains(&format!("waiting for the worker that holds the ledger (process {})", run.id())));
    assert_eq!((&asked.json()["selected"], &asked.json()["accepted"]), (&35.into(), &35.into()));
    assert_eq!(replay(&pipeline, &["--all"])["selected"], 0, "twice changes nothing");
    stdin.write_all(of_version_2("LATER", 3).as_bytes()).unwrap();
    drop(stdin);
    let report = run.finish().expect(0).json();
    assert_eq!((&report["events"], &report["silver"]), (&4.into(), &4.into()), "its report counts its own events");
    let mut expected = [names("BK", 35), names("LATER", 3), names("LIVE", 1)].concat();
    expected.sort();
    assert_eq!(silver(&pipeline), expected);
    assert_eq!(unresolved(&pipeline), 0);
    assert_eq!(files(&pipeline), [""; 0], "nothing is left in the inbox");
}

/// What it promised is in the ledger: the next run sends it.
#[test]
fn a_replay_that_cannot_write_does_not_keep_a_worker_from_stopping() {
    let (pipeline, mut run, _stdin) =
        working_with(routable(3_000).set("batch.max_events=10").set("run.drain_timeout=1 s"));
    let mut asked = started(&pipeline);
    run.wait_until(|| tables::newest_rowid(&pipeline.database(), "fact_bookings") > Some(20));
    let lock = Connection::open(pipeline.database()).unwrap();
    lock.busy_timeout(std::time::Duration::from_mins(1)).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    run.wait_for_log("trying again");
    run.signal(Signal::TERM);
    let stopped = run.finish().expect(1);
    assert!(stopped.stderr.contains("was not finished within 1s"), "{}", stopped.stderr);
    asked.kill().unwrap();
    asked.wait().unwrap();
    drop(lock);
    let there = silver(&pipeline).len();
    assert!(there < 3_001, "it was in the middle of it");
    replay(&pipeline, &["--all"]);
    assert_eq!(silver(&pipeline).len(), 3_001);
    assert_eq!(unresolved(&pipeline), 0);
}

#[test]
fn several_replays_are_carried_out_one_after_another() {
    let (pipeline, _run, _stdin) = working(60);
    let asked: Vec<Child> = (0..4).map(|_| started(&pipeline)).collect();
    let accepted: u64 =
        asked.into_iter().map(|child| ended(child).expect(0).json()["accepted"].as_u64().unwrap()).sum();
    assert_eq!(accepted, 60);
    assert_eq!(silver(&pipeline).len(), 61);
    assert_eq!(unresolved(&pipeline), 0);
}

#[test]
fn events_go_on_while_a_worker_replays() {
    let (pipeline, run, mut stdin) = working(3_000);
    let asked = started(&pipeline);
    let writer = thread::spawn(move || {
        for number in 0..300 {
            stdin.write_all(of_version_2(&format!("LIVE-{number}"), 10).as_bytes()).unwrap();
        }
    });
    assert_eq!(ended(asked).expect(0).json()["accepted"], 3_000);
    writer.join().unwrap();
    assert_eq!(run.finish().expect(0).json()["silver"], 3_001);
    assert_eq!(tables::count(&pipeline.database(), "fact_bookings"), 6_001);
    let twice = "SELECT booking_id FROM fact_bookings GROUP BY booking_id HAVING count(*) > 1";
    assert_eq!(tables::query(&pipeline.database(), twice), []);
}

#[test]
fn a_request_that_cannot_be_read_is_answered_and_holds_up_nobody() {
    let (pipeline, mut run, _stdin) = working(2);
    fs::create_dir_all(inbox(&pipeline).join("0-directory.json")).unwrap();
    let wrong = ["{", "{\"seek\":1}", "{\"replay\":{\"filter\":{\"stages\":\"X\"},\"by\":\"me\"}}", "\u{0}"];
    for (number, text) in wrong.iter().enumerate() {
        fs::write(inbox(&pipeline).join(format!("{number}.json")), text).unwrap();
    }
    let answer = |number: usize| fs::read_to_string(inbox(&pipeline).join(format!("{number}.done.json")));
    run.wait_until(|| (0..wrong.len()).all(|number| answer(number).is_ok()));
    for number in 0..wrong.len() {
        let answer = answer(number).unwrap();
        assert!(answer.contains("no request that this version knows"), "{answer}");
    }
    let answer = fs::read_to_string(inbox(&pipeline).join("0-directory.done.json")).unwrap();
    assert!(answer.contains("the request cannot be read: it is no file"), "{answer}");
    assert_eq!(replay(&pipeline, &["--all"])["accepted"], 2);
}

#[test]
fn a_request_whose_command_was_stopped_is_not_carried_out() {
    let (pipeline, mut run, _stdin) = working(2);
    let request = json!({ "replay": { "filter": {}, "by": "nobody" } }).to_string();
    fs::create_dir_all(inbox(&pipeline)).unwrap();
    fs::write(inbox(&pipeline).join("1.json"), request).unwrap();
    run.wait_for_log("the command that made it has ended");
    assert_eq!((unresolved(&pipeline), files(&pipeline)), (2, vec![]));
}

#[test]
fn an_inbox_that_cannot_be_used_is_told_and_the_worker_goes_on() {
    let (pipeline, mut run, mut stdin) = working(2);
    run.wait_until(|| inbox(&pipeline).exists());
    fs::remove_dir(inbox(&pipeline)).unwrap();
    fs::write(inbox(&pipeline), "in the way").unwrap();
    run.wait_for_log("the inbox of the ledger cannot be read");
    let asked = pipeline.quarantine("replay", &["--all"]).expect(1);
    assert!(asked.stderr.contains("the inbox of the ledger cannot be used"), "{}", asked.stderr);
    stdin.write_all(of_version_2("LIVE", 1).as_bytes()).unwrap();
    run.wait_until(|| tables::newest_rowid(&pipeline.database(), "fact_bookings") == Some(2));
    fs::remove_file(inbox(&pipeline)).unwrap();
    assert_eq!(replay(&pipeline, &["--all"])["accepted"], 2);
}

#[test]
fn a_replay_goes_on_by_itself_when_the_worker_ends() {
    for signal in [Signal::TERM, Signal::KILL] {
        let (pipeline, run, _stdin) = working(5);
        // It neither answers nor lets go of the ledger.
        run.signal(Signal::STOP);
        let asked = started(&pipeline);
        while files(&pipeline).iter().all(|name| name.starts_with('.')) {
            thread::yield_now();
        }
        run.signal(signal);
        run.signal(Signal::CONT);
        let report = ended(asked).expect(0).json();
        assert_eq!(report["accepted"], 5, "{signal:?}");
        run.finish();
        assert_eq!((silver(&pipeline).len(), unresolved(&pipeline)), (6, 0), "{signal:?}");
        assert_eq!(files(&pipeline), [""; 0], "{signal:?}");
    }
}

/// The command looks again only when the next worker holds the ledger: it never sees it free.
#[test]
fn a_replay_is_asked_of_the_next_worker_when_the_first_is_started_anew() {
    for point in [failpoint::REQUEST_TAKEN, failpoint::ROWS_RESOLVED, ""] {
        let mut pipeline = routable(25).set("batch.max_events=10");
        if !point.is_empty() {
            pipeline = pipeline.env(failpoint::VARIABLE, &format!("{point}=1"));
        }
        let (mut pipeline, run, _stdin) = working_with(pipeline);
        pipeline.environment.clear();
        run.signal(Signal::STOP);
        let asked = started(&pipeline);
        while files(&pipeline).iter().all(|name| name.starts_with('.')) {
            thread::yield_now();
        }
        let command = Pid::from_child(&asked);
        kill_process(command, Signal::STOP).unwrap();
        if point.is_empty() {
            // It ends by itself, and leaves the request or what it has begun.
            run.signal(Signal::TERM);
        }
        run.signal(Signal::CONT);
        assert_eq!(run.finish().was_killed(), !point.is_empty(), "{point}");
        let (mut next, mut stdin) = Running::start(&pipeline);
        stdin.write_all(of_version_2("NEXT", 1).as_bytes()).unwrap();
        next.wait_until(|| silver(&pipeline).contains(&"NEXT-0".to_owned()));
        kill_process(command, Signal::CONT).unwrap();
        ended(asked).expect(0);
        assert_eq!((silver(&pipeline).len(), unresolved(&pipeline)), (27, 0), "{point}");
        drop(stdin);
        next.finish().expect(0);
        assert_eq!(files(&pipeline), [""; 0], "{point}");
    }
}

/// Both wait for the same table: once one has given up, the other need not wait as long again.
#[test]
fn a_worker_that_has_given_up_does_not_wait_again_for_a_replay() {
    let (pipeline, run, mut stdin) = working_with(routable(3).set("warehouse.sqlite.give_up_after=1 ms"));
    let mut database = rusqlite::Connection::open(pipeline.database()).unwrap();
    let held = database.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    let asked = started(&pipeline);
    stdin.write_all(of_version_2("LIVE", 1).as_bytes()).unwrap();
    let ended = run.finish().expect(1);
    drop(held);
    assert!(ended.stderr.contains("Nothing is lost"), "{}", ended.stderr);
    assert_eq!(ended.stderr.matches("cannot write, trying again").count(), 1, "{}", ended.stderr);
    self::ended(asked);
}

#[test]
fn a_worker_that_is_killed_while_it_replays_leaves_the_rest_to_the_command() {
    let points = [
        (failpoint::REQUEST_TAKEN, 1),
        (failpoint::ROWS_RESOLVED, 1),
        (failpoint::ROWS_RESOLVED, 2),
        (failpoint::REQUEST_DONE, 1),
    ];
    for (point, pass) in points {
        let pipeline = routable(25).set("batch.max_events=10").env(failpoint::VARIABLE, &format!("{point}={pass}"));
        let (mut pipeline, run, _stdin) = working_with(pipeline);
        pipeline.environment.clear();
        let asked = ended(started(&pipeline)).expect(0);
        assert!(run.finish().was_killed(), "{point}={pass} was not passed");
        assert!(asked.stderr.contains("the worker ended while it replayed"), "{point}={pass}: {}", asked.stderr);
        assert_eq!((silver(&pipeline).len(), unresolved(&pipeline)), (26, 0), "{point}={pass}");
    }
}

#[test]
fn a_worker_that_cannot_write_any_more_says_so_and_ends() {
    let (pipeline, run, _stdin) = working(3);
    let database = rusqlite::Connection::open(pipeline.database()).unwrap();
    database
        .execute_batch("CREATE TRIGGER no BEFORE UPDATE ON poisoned_events BEGIN SELECT RAISE(ABORT, 'not that'); END")
        .unwrap();
    let asked = pipeline.quarantine("replay", &["--all"]).expect(1);
    assert!(asked.stderr.contains("the worker says: cannot mark replayed rows"), "{}", asked.stderr);
    let ended = run.finish().expect(1);
    assert!(ended.stderr.contains("not that"), "{}", ended.stderr);
    database.execute_batch("DROP TRIGGER no").unwrap();
    assert_eq!(replay(&pipeline, &["--all"])["selected"], 0, "what was promised is delivered first");
    assert_eq!((silver(&pipeline).len(), unresolved(&pipeline)), (4, 0));
}

#[test]
fn a_dry_run_does_not_ask_the_worker() {
    let (pipeline, _run, _stdin) = working(2);
    assert_eq!(replay(&pipeline, &["--all", "--dry-run"])["accepted"], 2);
    assert_eq!(unresolved(&pipeline), 2);
}

#[test]
fn a_worker_that_starts_deletes_answers_that_nobody_came_for() {
    let pipeline = routable(1);
    fs::create_dir_all(inbox(&pipeline)).unwrap();
    let (old, new) = (inbox(&pipeline).join("1.done.json"), inbox(&pipeline).join("2.done.json"));
    for answer in [&old, &new] {
        fs::write(answer, "{}").unwrap();
    }
    let days = std::time::Duration::from_hours(48);
    fs::File::open(&old).unwrap().set_modified(std::time::SystemTime::now() - days).unwrap();
    pipeline.write_input(bookings::good(0));
    pipeline.run().expect(0);
    assert!(!old.exists() && new.exists());
}

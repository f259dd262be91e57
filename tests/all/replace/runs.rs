//! When a run is gone on with, and when another begins.

use super::{Expected, crash_at, pipeline, published, rejects, run_with, staged};
use preflight::failpoint;
use preflight_tests::{Pipeline, Running, bookings, paths, tables};
use rustix::process::Signal;
use serde_json::json;
use std::fs;
use std::io::Write as _;

#[test]
fn a_run_reads_everything_and_replaces_all_rows() {
    let pipeline = published(300, &bookings::lines(120));
    let expected = Expected::of(&bookings::lines(120));
    for _ in 0..2 {
        let report = pipeline.run().expect(0).json();
        assert_eq!((&report["events"], &report["complete"]), (&json!(120), &json!(true)));
        assert_eq!(report["run"]["rejects"], json!(rejects(&pipeline)));
        expected.expect(&pipeline, "after a rerun");
    }
    assert_eq!(staged(&pipeline), [] as [&str; 0]);
}

#[test]
fn an_input_without_events_leaves_empty_tables_and_an_empty_file() {
    let pipeline = published(50, "");
    let report = pipeline.run().expect(0).json();
    assert_eq!((&report["events"], &report["run"]["published"]), (&json!(0), &json!(true)));
    for table in ["raw_bookings", "fact_bookings", "poisoned_events"] {
        assert_eq!(tables::count(&pipeline.database(), table), 0);
    }
    assert_eq!(fs::read_to_string(rejects(&pipeline)).unwrap(), "");
}

#[test]
fn duplicates_are_those_of_the_run_and_not_of_the_run_before() {
    let line = bookings::good(1);
    let pipeline = pipeline(&format!("{line}{line}not json\nnot json\n")).set("dedup.by=payload");
    for _ in 0..2 {
        let report = pipeline.run().expect(0).json();
        let counts = ["events", "silver", "quarantine", "duplicates"].map(|count| report[count].as_u64().unwrap());
        assert_eq!(counts, [4, 1, 1, 2]);
        assert_eq!(fs::read_to_string(rejects(&pipeline)).unwrap(), "not json\n");
    }
}

#[test]
fn a_run_that_is_stopped_publishes_nothing_and_is_gone_on_with() {
    let (new, stopped_at) = (bookings::lines(40_000), 2_000);
    let pipeline = published(110, &new);
    let (before, after) = (Expected::of(&bookings::lines(110)), Expected::of(&new));
    let (mut run, _stdin) = Running::start(&pipeline);
    let name = || staged(&pipeline).into_iter().find(|name| name.starts_with("raw_bookings"));
    run.wait_until(|| name().is_some_and(|name| tables::newest_rowid(&pipeline.database(), &name) > Some(stopped_at)));
    run.signal(Signal::TERM);
    let report = run.finish().expect(0).json();
    assert_eq!((&report["complete"], &report["run"]["published"]), (&json!(false), &json!(false)));
    before.expect(&pipeline, "stopped");
    let again = pipeline.run().expect(0).json();
    assert_eq!((&again["events"], &again["run"]["id"]), (&json!(40_000), &report["run"]["id"]));
    after.expect(&pipeline, "gone on with");
}

/// Kills a run in its middle, changes something, and runs again: that is another run, and none is left of the first.
#[track_caller]
fn begins_anew(mut pipeline: Pipeline, change: impl FnOnce(Pipeline) -> Pipeline, input: &str, why: &str) {
    crash_at(&mut pipeline, failpoint::ROWS_APPENDED, 4);
    let first = staged(&pipeline);
    assert_eq!(first.len(), 4, "three tables and a file: {first:?}");
    let pipeline = change(pipeline);
    let ended = pipeline.run().expect(0);
    assert!(ended.stderr.contains("a run is dropped") && ended.stderr.contains(why), "{}", ended.stderr);
    let id = ended.json()["run"]["id"].as_str().unwrap().to_owned();
    assert!(first.iter().all(|name| !name.ends_with(&id)), "{id}: {first:?}");
    Expected::of(input).expect(&pipeline, why);
    assert_eq!(staged(&pipeline), [] as [&str; 0]);
}

#[test]
fn with_another_rule_a_run_begins_anew() {
    let new = bookings::lines(600);
    let rules = |name: &str| format!("rules.components.\"2\"={}", paths::rule(name).display());
    let pipeline = published(110, &new).set(rules("offvia-booking-v2"));
    // Event version 2 is not in the input, but who is to know that.
    let change = |mut pipeline: Pipeline| {
        let copy = pipeline.directory().join("other.wasm");
        let mut component = fs::read(paths::rule("offvia-booking-v2")).unwrap();
        // A custom section: the same rule by another digest.
        component.extend([0, 3, 1, b'x', b'y']);
        fs::write(&copy, component).unwrap();
        pipeline.settings.push(format!("rules.components.\"2\"={}", copy.display()));
        pipeline
    };
    begins_anew(pipeline, change, &new, "the rules");
}

#[test]
fn with_another_limit_or_another_input_a_run_begins_anew() {
    let new = bookings::lines(600);
    begins_anew(published(110, &new), |pipeline| pipeline.set("limits.fuel_base=3_000_000"), &new, "is another now");
    let other = format!("{}{}", bookings::from(1_000, 300), bookings::lines(100));
    let replaced = |pipeline: Pipeline| {
        pipeline.write_input(&other);
        pipeline
    };
    begins_anew(published(110, &new), replaced, &other, "the input");
    let grown = bookings::lines(700);
    let grow = |pipeline: Pipeline| {
        pipeline.write_input(&grown);
        pipeline
    };
    begins_anew(published(110, &new), grow, &grown, "the input");
}

/// Half of one input and half of another would have been published.
#[test]
fn an_input_that_is_replaced_and_looks_the_same_is_refused() {
    let mut pipeline = published(110, &bookings::lines(600));
    let input = pipeline.directory().join("input.ndjson");
    let changed = fs::metadata(&input).unwrap().modified().unwrap();
    crash_at(&mut pipeline, failpoint::ROWS_APPENDED, 4);
    let other = bookings::lines(600).replace("PAX-", "pax-");
    fs::write(&input, &other).unwrap();
    fs::File::options().append(true).open(&input).unwrap().set_modified(changed).unwrap();
    let ended = pipeline.run().expect(1);
    assert!(ended.stderr.contains("was replaced") && ended.stderr.contains("--restart"), "{}", ended.stderr);
    Expected::of(&bookings::lines(110)).expect(&pipeline, "nothing is published");
    run_with(&pipeline, &["--restart"]).expect(0);
    Expected::of(&other).expect(&pipeline, "begun anew");
}

#[test]
fn with_restart_a_run_begins_anew() {
    let new = bookings::lines(600);
    let mut pipeline = published(110, &new);
    crash_at(&mut pipeline, failpoint::ROWS_APPENDED, 4);
    let ended = run_with(&pipeline, &["--restart"]).expect(0);
    assert!(ended.stderr.contains("--restart was said"), "{}", ended.stderr);
    Expected::of(&new).expect(&pipeline, "restarted");
    // Where there is nothing to drop there is nothing to say.
    run_with(&pipeline, &["--restart"]).expect(0);
}

#[test]
fn where_what_was_staged_is_gone_a_run_begins_anew() {
    let new = bookings::lines(600);
    let table = |pipeline: Pipeline| {
        let name = staged(&pipeline).into_iter().find(|name| name.starts_with("fact_bookings")).unwrap();
        let database = rusqlite::Connection::open(pipeline.database()).unwrap();
        database.execute_batch(&format!("DROP TABLE \"{name}\"")).unwrap();
        pipeline
    };
    begins_anew(published(110, &new), table, &new, "is gone");
    let file = |pipeline: Pipeline| {
        let name = staged(&pipeline).into_iter().find(|name| name.starts_with("bookings")).unwrap();
        fs::remove_file(pipeline.directory().join("rejected").join(name)).unwrap();
        pipeline
    };
    begins_anew(published(110, &new), file, &new, "is gone");
}

/// What decides the rows has changed after an earlier run was on its way to be published: that is published, and then what is
/// wanted now.
#[test]
fn a_run_that_was_being_published_is_published_before_another_begins() {
    let new = bookings::lines(300);
    for point in [failpoint::RUN_PUBLISHING, failpoint::TABLES_PUBLISHED, failpoint::FILES_PUBLISHED] {
        let mut pipeline = published(110, &new);
        crash_at(&mut pipeline, point, 1);
        let other = bookings::lines(200);
        pipeline.write_input(&other);
        let ended = pipeline.run().expect(0);
        assert!(ended.stderr.contains("published what an earlier run had staged"), "{}", ended.stderr);
        assert_eq!(ended.json()["events"], 200);
        Expected::of(&other).expect(&pipeline, point);
    }
}

#[test]
fn standard_input_cannot_be_read_on_so_a_run_begins_anew() {
    let base = pipeline("");
    let file = fs::read_to_string(base.file()).unwrap();
    fs::write(base.file(), file.replace("[source.file]\npath = \"input.ndjson\"", "[source.stdin]")).unwrap();
    let feed = |pipeline: &Pipeline, input: &str| {
        let (run, mut stdin) = Running::start(pipeline);
        stdin.write_all(input.as_bytes()).ok();
        drop(stdin);
        run.finish()
    };
    let mut base = base;
    base.environment = vec![(failpoint::VARIABLE.into(), format!("{}=3", failpoint::ROWS_APPENDED))];
    assert!(feed(&base, &bookings::lines(600)).was_killed());
    base.environment.clear();
    let ended = feed(&base, &bookings::good(70)).expect(0);
    assert!(ended.stderr.contains("cannot be read on"), "{}", ended.stderr);
    assert_eq!(tables::count(&base.database(), "fact_bookings"), 70);
    assert_eq!(ended.json()["events"], 70);
}

/// What stands on standard input now was never read by the run that is published first.
#[test]
fn standard_input_is_read_behind_a_run_that_was_being_published() {
    for point in [failpoint::RUN_PUBLISHING, failpoint::TABLES_PUBLISHED] {
        let mut pipeline = pipeline("");
        let file = fs::read_to_string(pipeline.file()).unwrap();
        let stdin = file.replace("[source.file]\npath = \"input.ndjson\"", "[source.stdin]");
        fs::write(pipeline.file(), stdin).unwrap();
        let feed = |pipeline: &Pipeline, input: &str| {
            let (run, mut stdin) = Running::start(pipeline);
            stdin.write_all(input.as_bytes()).ok();
            drop(stdin);
            run.finish()
        };
        pipeline.environment = vec![(failpoint::VARIABLE.into(), format!("{point}=1"))];
        assert!(feed(&pipeline, &bookings::good(60)).was_killed());
        pipeline.environment.clear();
        assert_eq!(feed(&pipeline, &bookings::good(70)).expect(0).json()["events"], 70, "{point}");
        assert_eq!(tables::count(&pipeline.database(), "fact_bookings"), 70, "{point}");
    }
}

#[test]
fn who_appends_behind_a_run_that_failed_is_refused() {
    let mut pipeline = published(50, "no json\n");
    run_with(&pipeline, &["--max-rejects", "0"]).expect(1);
    let one = |setting: &String| setting.replace("write=replace", "write=append");
    pipeline.settings = pipeline.settings.iter().filter(|s| !s.contains("files")).map(one).collect();
    let ended = pipeline.run().expect(2);
    assert!(ended.stderr.contains("has failed") && ended.stderr.contains("--restart"), "{}", ended.stderr);
}

#[test]
fn who_appends_from_now_on_must_let_a_run_end_or_drop_it() {
    let mut pipeline = published(110, &bookings::lines(600));
    crash_at(&mut pipeline, failpoint::ROWS_APPENDED, 3);
    let appends = |pipeline: &mut Pipeline| {
        let one = |setting: &String| setting.replace("write=replace", "write=append");
        pipeline.settings = pipeline.settings.iter().filter(|s| !s.contains("files")).map(one).collect();
    };
    let settings = pipeline.settings.clone();
    appends(&mut pipeline);
    let ended = pipeline.run().expect(2);
    assert!(ended.stderr.contains("is not over") && ended.stderr.contains("--restart"), "{}", ended.stderr);
    pipeline.settings = settings;
    pipeline.run().expect(0);
    let rows = tables::count(&pipeline.database(), "raw_bookings");
    // What replaced is over: from now on what is new is appended.
    appends(&mut pipeline);
    pipeline.write_input(bookings::lines(650));
    pipeline.run().expect(0);
    assert_eq!((rows, tables::count(&pipeline.database(), "raw_bookings")), (600, 650));
    let ended = run_with(&pipeline, &["--restart"]).expect(2);
    assert!(ended.stderr.contains("--restart: silver.write"), "{}", ended.stderr);
}

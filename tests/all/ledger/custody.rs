//! Whose ledger it is, and whether it and the tables are of the same time.

use preflight::ledger::Ledger;
use preflight::warehouse::Tier;
use preflight_tests::{Ended, Pipeline, Running, bookings, tables};
use rusqlite::Connection;
use rustix::process::Signal;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a run says of a ledger and a database that do not belong together.
const DIVERGED: [&str; 2] = ["not of the same time", "restored from a backup"];

fn pipeline(events: usize) -> Pipeline {
    Pipeline::offvia(bookings::lines(events)).warm().set("batch.max_events=50")
}

/// Asserts that a run stops with a code and says all of `words`.
#[track_caller]
fn stops(ended: Ended, code: i32, words: &[&str]) {
    let ended = ended.expect(code);
    for word in words {
        assert!(ended.stderr.contains(word), "{word:?} is not in: {}", ended.stderr);
    }
}

/// Copies a database or a ledger as a backup would.
fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::remove_dir_all(to).ok();
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            // Its inbox holds nothing of what was promised.
            if entry.path().is_file() {
                fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
            }
        }
        return;
    }
    for suffix in ["", "-wal", "-shm"] {
        let with = |path: &Path| PathBuf::from(format!("{}{suffix}", path.display()));
        fs::remove_file(with(to)).ok();
        if with(from).exists() {
            fs::copy(with(from), with(to)).unwrap();
        }
    }
}

/// A named pipe that a run reads from.
fn fifo(pipeline: &Pipeline) -> PathBuf {
    let path = pipeline.directory().join("fifo");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

fn identity(database: &Path) -> String {
    tables::query(database, "SELECT identity FROM preflight_warehouse")[0]["identity"].as_str().unwrap().to_owned()
}

#[test]
fn a_second_worker_is_told_who_holds_the_ledger() {
    let second = pipeline(10);
    let path = fifo(&second);
    let first = Pipeline::offvia("").warm();
    let (file, database) = (path.display(), second.database());
    let first = first
        .set(format!("source.file.path={file}"))
        .set(format!("warehouse.sqlite.path={}", database.display()))
        .set(format!("ledger.path={}", second.ledger().display()));
    let (run, _stdin) = Running::start(&first);
    // It opens its source after its ledger, and this waits for that.
    let writer = OpenOptions::new().write(true).open(&path).unwrap();
    stops(second.run(), 1, &["held by another worker", &format!("(process {})", run.id()), "stop it first"]);
    // A worker that hangs holds it too; one that was killed does not.
    run.signal(Signal::STOP);
    stops(second.run(), 1, &["held by another worker"]);
    run.signal(Signal::KILL);
    assert!(run.finish().was_killed());
    drop(writer);
    second.run().expect(0);
    assert_eq!(tables::count(&database, "raw_bookings"), 10);
}

#[test]
fn a_worker_that_was_replaced_meets_a_finalized_stream() {
    let successor = pipeline(30);
    let path = fifo(&successor);
    let database = successor.database();
    let zombie = Pipeline::offvia("")
        .warm()
        .set(format!("source.file.path={}", path.display()))
        .set("source.file.format=lines")
        .set(format!("warehouse.sqlite.path={}", database.display()));
    let (mut run, _stdin) = Running::start(&zombie);
    let mut writer = OpenOptions::new().write(true).open(&path).unwrap();
    writer.write_all(bookings::lines(20).as_bytes()).unwrap();
    run.wait_until(|| tables::newest_rowid(&database, "raw_bookings") == Some(20));
    run.signal(Signal::STOP);
    // Somebody takes it for dead and starts another with a copy of its ledger: a lock does not travel.
    copy(&successor.ledger(), &successor.directory().join("copied"));
    let successor = successor.set("ledger.path=copied");
    successor.run().expect(0);
    run.signal(Signal::CONT);
    writer.write_all(bookings::from(20, 20).as_bytes()).unwrap();
    drop(writer);
    stops(run.finish(), 1, &["finalized", "another worker has taken over"]);
    assert_eq!(tables::count(&database, "raw_bookings"), 50, "the zombie added nothing");
}

#[test]
fn a_ledger_serves_one_pipeline() {
    let pipeline = pipeline(10);
    pipeline.run().expect(0);
    let ledger = pipeline.ledger();
    let other = pipeline.set("name=other").set(format!("ledger.path={}", ledger.display()));
    stops(other.run(), 1, &["belongs to pipeline", "\"test\"", "\"other\"", "its own [ledger] path"]);
}

#[test]
fn a_ledger_notices_that_its_database_was_deleted() {
    let pipeline = pipeline(10);
    pipeline.run().expect(0);
    fs::remove_file(pipeline.database()).unwrap();
    stops(pipeline.run(), 1, &["belongs to warehouse", "the database was replaced", "delete the ledger too"]);
}

#[test]
fn a_new_ledger_over_rows_is_taken_only_when_asked_for() {
    let pipeline = pipeline(10);
    pipeline.run().expect(0);
    fs::remove_dir_all(pipeline.ledger()).unwrap();
    stops(pipeline.run(), 2, &["is new, but table", "--new-ledger", "set [ledger] path"]);
    assert_eq!(tables::count(&pipeline.database(), "raw_bookings"), 10);
    let output = pipeline.command("run").args(["--json", "--new-ledger"]).output().unwrap();
    Ended::from_output(output).expect(0);
    assert_eq!(tables::count(&pipeline.database(), "raw_bookings"), 20, "on top, as the option says");
}

/// Also where nothing was committed meanwhile.
#[test]
fn a_run_that_began_on_a_new_ledger_needs_to_be_told_only_once() {
    let pipeline = pipeline(10);
    pipeline.run().expect(0);
    fs::remove_dir_all(pipeline.ledger()).unwrap();
    pipeline.write_input("");
    let output = pipeline.command("run").args(["--json", "--new-ledger"]).output().unwrap();
    assert_eq!(Ended::from_output(output).expect(0).json()["events"], 0);
    pipeline.run().expect(0);
}

#[test]
fn a_database_from_a_backup_is_noticed() {
    let pipeline = pipeline(100);
    pipeline.run().expect(0);
    let backup = pipeline.directory().join("backup.db");
    copy(&pipeline.database(), &backup);
    pipeline.write_input(bookings::lines(200));
    pipeline.run().expect(0);
    copy(&backup, &pipeline.database());
    stops(pipeline.run(), 1, &DIVERGED);
    assert_eq!(tables::count(&pipeline.database(), "raw_bookings"), 100);
}

/// A run without new events closed the streams of the run before and forgot how many rows they had: a database from
/// before those rows then passed for whole, and they were never written again.
#[test]
fn a_database_from_a_backup_is_noticed_after_a_run_without_events() {
    let pipeline = pipeline(100);
    pipeline.run().expect(0);
    let backup = pipeline.directory().join("backup.db");
    copy(&pipeline.database(), &backup);
    pipeline.write_input(bookings::lines(200));
    pipeline.run().expect(0);
    pipeline.run().expect(0);
    copy(&backup, &pipeline.database());
    stops(pipeline.run(), 1, &DIVERGED);
}

#[test]
fn a_ledger_from_a_backup_is_noticed() {
    let pipeline = pipeline(100);
    pipeline.run().expect(0);
    let backup = pipeline.directory().join("backup.ledger");
    copy(&pipeline.ledger(), &backup);
    pipeline.write_input(bookings::lines(200));
    pipeline.run().expect(0);
    copy(&backup, &pipeline.ledger());
    stops(pipeline.run(), 1, &DIVERGED);
    assert_eq!(tables::count(&pipeline.database(), "raw_bookings"), 200, "nothing came twice");
}

/// Streams of the later run and of this one had different names, because another micro-batch size made them in another
/// order: the rows of the later run were written again.
#[test]
fn a_ledger_from_a_backup_is_noticed_whatever_its_streams_are_called() {
    let good = bookings::good(1);
    let toml = fs::read_to_string(pipeline(0).file()).unwrap();
    let start = toml.find("[bronze]").unwrap();
    let end = toml.find("[silver]").unwrap();
    let without_bronze = format!("{}{}", &toml[..start], &toml[end..]);
    let pipeline = Pipeline::with_file(&without_bronze, &good).warm();
    pipeline.run().expect(0);
    let backup = pipeline.directory().join("backup.ledger");
    copy(&pipeline.ledger(), &backup);
    pipeline.write_input(format!("{good}not json\n{good}"));
    let in_ones = pipeline.set("batch.max_events=1");
    in_ones.run().expect(0);
    copy(&backup, &in_ones.ledger());
    stops(in_ones.set("batch.max_events=10").run(), 1, &DIVERGED);
}

#[test]
fn a_ledger_from_a_backup_with_undone_commits_does_not_send_them_again() {
    let mut pipeline = pipeline(400);
    pipeline.environment = vec![("PREFLIGHT_FAILPOINT".into(), "ledger-committed=4".into())];
    assert!(pipeline.run().was_killed());
    pipeline.environment.clear();
    let backup = pipeline.directory().join("backup.ledger");
    copy(&pipeline.ledger(), &backup);
    pipeline.run().expect(0);
    copy(&backup, &pipeline.ledger());
    stops(pipeline.run(), 1, &DIVERGED);
    assert_eq!(tables::count(&pipeline.database(), "raw_bookings"), 400);
}

/// A commit that was not sent was sent before anything was compared: as far as it went it was written.
#[test]
fn a_database_from_a_backup_is_noticed_before_undone_commits_are_sent() {
    let mut pipeline = pipeline(100);
    pipeline.run().expect(0);
    let backup = pipeline.directory().join("backup.db");
    copy(&pipeline.database(), &backup);
    pipeline.write_input(bookings::lines(200));
    pipeline.environment = vec![("PREFLIGHT_FAILPOINT".into(), "ledger-committed".into())];
    assert!(pipeline.run().was_killed());
    pipeline.environment.clear();
    copy(&backup, &pipeline.database());
    stops(pipeline.run(), 1, &DIVERGED);
    assert_eq!(tables::count(&pipeline.database(), "raw_bookings"), 100, "nothing was written");
}

/// An open stream that has more rows than were ever bound took later rows for rows that are there already.
#[test]
fn a_stream_with_rows_that_nobody_bound_is_noticed_before_undone_commits_are_sent() {
    let mut pipeline = pipeline(100);
    pipeline.environment = vec![("PREFLIGHT_FAILPOINT".into(), "rows-appended".into())];
    assert!(pipeline.run().was_killed());
    pipeline.environment.clear();
    let count = |table| tables::count(&pipeline.database(), table);
    let before = count("raw_bookings");
    let database = Connection::open(pipeline.database()).unwrap();
    database.execute_batch("UPDATE preflight_streams SET row_count = 1000 WHERE table_name = 'fact_bookings'").unwrap();
    stops(pipeline.run(), 1, &["has 1000 rows, but the ledger counts 0 to", "not of the same time"]);
    assert_eq!(count("raw_bookings"), before, "nothing was written");
}

/// Streams were compared one after the other, each after it had been finalized.
#[test]
fn a_mismatch_of_one_stream_leaves_the_others_open() {
    let pipeline = pipeline(100);
    pipeline.run().expect(0);
    let database = Connection::open(pipeline.database()).unwrap();
    let change = |by: &str| {
        let sql = format!("UPDATE preflight_streams SET row_count = row_count {by} WHERE table_name = 'fact_bookings'");
        database.execute_batch(&sql).unwrap();
    };
    change("- 1");
    stops(pipeline.run(), 1, &["not of the same time"]);
    let open = "SELECT count(*) AS n FROM preflight_streams WHERE NOT finalized";
    assert_eq!(tables::query(&pipeline.database(), open)[0]["n"], 3);
    change("+ 1");
    pipeline.run().expect(0);
}

#[test]
fn a_ledger_that_is_no_database_is_named() {
    let pipeline = pipeline(10);
    pipeline.run().expect(0);
    let file = pipeline.ledger().join("ledger.db");
    fs::write(&file, "garbage ".repeat(10_000)).unwrap();
    stops(pipeline.run(), 1, &["ledger", &pipeline.ledger().display().to_string(), "not a database"]);
    assert_eq!(tables::count(&pipeline.database(), "raw_bookings"), 10);
}

#[test]
fn a_damaged_ledger_stops_the_run() {
    let pipeline = pipeline(1_000);
    pipeline.run().expect(0);
    let file = pipeline.ledger().join("ledger.db");
    let mut bytes = fs::read(&file).unwrap();
    // All but the header page.
    bytes[16_384..].fill(0x5a);
    fs::write(&file, bytes).unwrap();
    stops(pipeline.run(), 1, &["ledger", &pipeline.ledger().display().to_string(), "malformed"]);
}

#[test]
fn an_outbox_that_cannot_be_read_stops_the_run() {
    let mut pipeline = pipeline(100);
    pipeline.environment = vec![("PREFLIGHT_FAILPOINT".into(), "ledger-committed".into())];
    assert!(pipeline.run().was_killed());
    pipeline.environment.clear();
    let ledger = Connection::open(pipeline.ledger().join("ledger.db")).unwrap();
    ledger.execute_batch("UPDATE outbox SET rows = substr(rows, 1, length(rows) - 1)").unwrap();
    stops(pipeline.run(), 1, &["the ledger is damaged", "cut off", "backups of the same time", "--new-ledger"]);
}

#[test]
fn a_ledger_of_a_later_format_is_refused() {
    let pipeline = pipeline(10);
    pipeline.run().expect(0);
    let ledger = Connection::open(pipeline.ledger().join("ledger.db")).unwrap();
    ledger.execute_batch("UPDATE meta SET value = '99' WHERE key = 'format'; DROP TABLE closed_streams").unwrap();
    let advice = ["the version of preflight that made it", "--new-ledger"];
    stops(pipeline.run(), 1, &["has format 99", "this version reads format", advice[0], advice[1]]);
    assert!(!ledger.table_exists(None, "closed_streams").unwrap(), "nothing was added to it");
}

#[test]
fn a_ledger_is_free_again_when_it_is_dropped() {
    let pipeline = pipeline(10);
    pipeline.run().expect(0);
    let identity = identity(&pipeline.database());
    let open = || Ledger::open(&pipeline.ledger(), "test", &identity);
    let held = open().unwrap();
    let refusal = open().err().expect("it is held").to_string();
    assert!(refusal.contains(&format!("(process {})", std::process::id())), "{refusal}");
    drop(held);
    assert!(open().is_ok());
}

/// On a full disk the process number cannot be written, which is only for a message.
#[test]
fn a_ledger_is_taken_although_the_lock_cannot_say_by_whom() {
    let pipeline = pipeline(10);
    fs::create_dir_all(pipeline.ledger()).unwrap();
    std::os::unix::fs::symlink("/dev/full", pipeline.ledger().join("lock")).unwrap();
    pipeline.run().expect(0);
}

/// The name came back although its number had not been taken: the next stream got the same one.
#[test]
fn a_stream_name_is_given_only_when_its_number_is_taken() {
    let directory = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::open(directory.path(), "test", "w").unwrap();
    let database = Connection::open(directory.path().join("ledger.db")).unwrap();
    database
        .execute_batch(
            "CREATE TABLE parent (id INTEGER PRIMARY KEY);
             CREATE TABLE child (id INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED);
             CREATE TRIGGER fail AFTER UPDATE ON counters BEGIN INSERT INTO child VALUES (1); END",
        )
        .unwrap();
    ledger.new_stream_name(Tier::Bronze).unwrap_err();
    database.execute_batch("DROP TRIGGER fail").unwrap();
    assert!(ledger.new_stream_name(Tier::Bronze).unwrap().ends_with("-1"));
    assert!(ledger.new_stream_name(Tier::Bronze).unwrap().ends_with("-2"));
}

//! What a start finds: ledgers and tables of other times, and workers that were taken for dead.

use super::{EVENTS, expect_exact, stops, stream_of};
use preflight_tests::bigquery::Fake;
use preflight_tests::bigquery::fake::{Call, Fault, FinalizeAgain};
use preflight_tests::bigquery::offvia::{BRONZE, QUARANTINE, SILVER};
use preflight_tests::{Pipeline, Running, bookings};
use rustix::process::Signal;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

/// Copies a ledger as a backup would.
fn copy(from: &Path, to: &Path) {
    fs::remove_dir_all(to).ok();
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_file()) {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

fn ledger(pipeline: &Pipeline) -> std::path::PathBuf {
    pipeline.directory().join("ledger")
}

#[test]
fn a_start_finalizes_the_streams_of_the_run_before() {
    for again in [FinalizeAgain::Counts, FinalizeAgain::Refuses, FinalizeAgain::RefusesPlainly] {
        let fake = Fake::start();
        fake.finalize_again(again);
        let pipeline = fake.offvia(bookings::lines(100));
        pipeline.run().expect(0);
        for events in [200, EVENTS] {
            pipeline.write_input(bookings::lines(events));
            pipeline.run().expect(0);
        }
        expect_exact(&fake, EVENTS, "three runs");
        fake.content(|content| {
            for table in [BRONZE, SILVER, QUARANTINE] {
                let finalized: Vec<bool> =
                    content.streams(table).into_iter().map(|(_, _, finalized)| finalized).collect();
                assert_eq!(finalized, [true, true, false], "{table}");
            }
        });
    }
}

/// More rows than this ledger ever bound: it is older than the table, and would write rows again.
#[test]
fn a_stream_with_rows_that_the_ledger_never_bound_stops_the_start() {
    for table in [BRONZE, SILVER, QUARANTINE] {
        let fake = Fake::start();
        let pipeline = fake.offvia(bookings::lines(100));
        pipeline.run().expect(0);
        fake.someone_writes(&stream_of(&fake, table), 1);
        pipeline.write_input(bookings::lines(EVENTS));
        for _ in 0..2 {
            stops(pipeline.run(), 1, &["the ledger counts", "not of the same time"]);
        }
        assert_eq!(fake.count(BRONZE), 100 + usize::from(table == BRONZE), "nothing was written");
    }
}

#[test]
fn a_ledger_from_a_backup_is_refused_while_its_stream_has_rows_that_it_does_not_know() {
    let fake = Fake::start();
    // More than a worker promises before the first of it is confirmed.
    let many = 4 * EVENTS;
    let pipeline = fake.offvia(bookings::lines(many));
    let backup = pipeline.directory().join("backup");
    let rule = fake.when(Call::Append).table(SILVER).from(2).once(Fault::Held);
    let (run, _stdin) = Running::start(&pipeline);
    fake.wait_until("the second append", |content| content.hits(rule) == 1);
    run.signal(Signal::STOP);
    copy(&ledger(&pipeline), &backup);
    run.signal(Signal::CONT);
    fake.lift(rule);
    run.finish().expect(0);
    copy(&backup, &ledger(&pipeline));
    stops(pipeline.run(), 1, &["the ledger counts", "not of the same time"]);
    expect_exact(&fake, many, "nothing was written again");
}

#[test]
fn a_new_ledger_on_tables_with_rows_is_refused() {
    let fake = Fake::start();
    let pipeline = fake.offvia(bookings::lines(100));
    pipeline.run().expect(0);
    fs::remove_dir_all(ledger(&pipeline)).unwrap();
    stops(pipeline.run(), 2, &["--new-ledger", BRONZE]);
    assert_eq!(fake.count(BRONZE), 100);
}

#[test]
fn a_ledger_of_another_warehouse_is_refused() {
    let (fake, other) = (Fake::start(), Fake::start());
    let pipeline = fake.offvia(bookings::lines(100));
    pipeline.run().expect(0);
    let moved = other.offvia(bookings::lines(100)).set(format!("ledger.path={}", ledger(&pipeline).display()));
    stops(moved.run(), 1, &["warehouse"]);
    assert_eq!(other.count(BRONZE), 0);
}

/// A worker that was taken for dead meets a closed door.
#[test]
fn a_worker_that_was_replaced_adds_nothing() {
    let fake = Fake::start();
    let successor = fake.offvia(bookings::lines(40));
    let fifo = successor.directory().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let zombie = fake.offvia("").set(format!("source.file.path={}", fifo.display())).set("source.file.format=lines");
    let (run, _stdin) = Running::start(&zombie);
    let mut writer = OpenOptions::new().write(true).open(&fifo).unwrap();
    writer.write_all(bookings::lines(20).as_bytes()).unwrap();
    fake.wait_until("its rows", |content| {
        content.count(BRONZE) == 20 && content.count(SILVER) + content.count(QUARANTINE) == 20
    });
    run.signal(Signal::STOP);
    // Somebody starts another with a copy of its ledger: a lock does not travel.
    copy(&ledger(&zombie), &ledger(&successor));
    successor.run().expect(0);
    assert_eq!(fake.count(BRONZE), 60);
    run.signal(Signal::CONT);
    writer.write_all(bookings::from(20, 20).as_bytes()).unwrap();
    drop(writer);
    stops(run.finish(), 1, &["finalized or gone", "another worker has taken over"]);
    assert_eq!(fake.count(BRONZE), 60, "the zombie added nothing");
}

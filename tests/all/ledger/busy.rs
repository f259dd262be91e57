//! A database that another program holds for a while, and a warehouse that fails while nothing comes in.

use preflight_tests::{Pipeline, Running, bookings, tables};
use rusqlite::{Connection, TransactionBehavior};
use std::io::Write;
use std::path::PathBuf;

fn pipeline() -> Pipeline {
    Pipeline::offvia(bookings::lines(1_000)).warm().set("batch.max_events=100")
}

/// Holds a database while a run with new events starts, until the run has said that it tries again.
fn held_for_a_while(database: impl Fn(&Pipeline) -> PathBuf) {
    let pipeline = pipeline();
    pipeline.write_input(bookings::lines(500));
    pipeline.run().expect(0);
    pipeline.write_input(bookings::lines(1_000));
    let mut connection = Connection::open(database(&pipeline)).unwrap();
    let held = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    let (mut run, _stdin) = Running::start(&pipeline);
    run.wait_for_log("trying again");
    held.rollback().unwrap();
    run.finish().expect(0);
    assert_eq!(tables::count(&pipeline.database(), "raw_bookings"), 1_000);
}

/// A run whose first new stream met the lock failed at once, since only appends were tried again.
#[test]
fn a_database_that_is_held_for_longer_than_sqlite_waits_is_tried_again() {
    held_for_a_while(Pipeline::database);
}

#[test]
fn a_ledger_that_a_backup_holds_is_tried_again() {
    held_for_a_while(|pipeline| pipeline.ledger().join("ledger.db"));
}

#[test]
fn a_database_that_stays_held_makes_a_run_give_up() {
    let pipeline = pipeline().set("warehouse.sqlite.give_up_after=100 ms");
    pipeline.write_input(bookings::lines(500));
    pipeline.run().expect(0);
    pipeline.write_input(bookings::lines(1_000));
    let mut connection = Connection::open(pipeline.database()).unwrap();
    let held = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    let ended = pipeline.run().expect(1);
    assert!(ended.stderr.contains("database is locked"), "{}", ended.stderr);
    held.rollback().unwrap();
    pipeline.run().expect(0);
    assert_eq!(tables::count(&pipeline.database(), "raw_bookings"), 1_000);
}

/// Delivery had given up, but the run waited for the next event before it looked: with a quiet source, for ever.
#[test]
fn a_run_that_cannot_deliver_ends_although_its_source_is_quiet() {
    let file = std::fs::read_to_string(pipeline().file()).unwrap();
    let from_stdin = file.replace("[source.file]\npath = \"input.ndjson\"", "[source.stdin]\nformat = \"lines\"");
    let pipeline = Pipeline::with_file(&from_stdin, "").warm();
    let (mut run, mut stdin) = Running::start(&pipeline);
    stdin.write_all(bookings::good(1).as_bytes()).unwrap();
    run.wait_until(|| tables::newest_rowid(&pipeline.database(), "fact_bookings") == Some(1));
    let warehouse = Connection::open(pipeline.database()).unwrap();
    warehouse.execute_batch("DROP TABLE fact_bookings").unwrap();
    stdin.write_all(bookings::good(1).as_bytes()).unwrap();
    let ended = run.finish().expect(1);
    assert!(ended.stderr.contains("no such table"), "{}", ended.stderr);
    drop(stdin);
}

/// A database with a rollback journal, as another program makes it, held so that it cannot even be read.
fn held_for_reading(pipeline: &Pipeline) -> Connection {
    let connection = Connection::open(pipeline.database()).unwrap();
    connection.execute_batch("CREATE TABLE other (id INTEGER); BEGIN EXCLUSIVE").unwrap();
    connection
}

/// It was called a mistake in the pipeline file, with exit code 2 and without another try.
#[test]
fn a_database_that_cannot_be_read_at_the_start_is_tried_again() {
    let pipeline = pipeline();
    let held = held_for_reading(&pipeline);
    let (mut run, _stdin) = Running::start(&pipeline);
    run.wait_for_log("trying again");
    held.execute_batch("ROLLBACK").unwrap();
    run.finish().expect(0);
    assert_eq!(tables::count(&pipeline.database(), "raw_bookings"), 1_000);
}

#[test]
fn a_database_that_cannot_be_read_for_long_is_a_failure_at_run_time() {
    let pipeline = pipeline().set("warehouse.sqlite.give_up_after=100 ms");
    let _held = held_for_reading(&pipeline);
    let ended = pipeline.run().expect(1);
    assert!(ended.stderr.contains("database is locked"), "{}", ended.stderr);
}

//! Tables that somebody changes while a worker writes to them.

use super::{EVENTS, expect_exact, stops};
use preflight_tests::bigquery::Fake;
use preflight_tests::bigquery::fake::{Call, Fault};
use preflight_tests::bigquery::offvia::{QUARANTINE, SILVER};
use preflight_tests::{Pipeline, Running, bookings, http};
use std::io::Write as _;
use tonic::Code;

/// The three tables, made by a run over nothing.
fn with_tables() -> Fake {
    let fake = Fake::start();
    fake.offvia("").run().expect(0);
    fake
}

/// Requests that were refused for what is wrong with their schema.
fn refused(fake: &Fake, table: &str) -> usize {
    fake.content(|content| {
        content.appends(table).iter().filter(|append| append.answer == Some(Code::InvalidArgument)).count()
    })
}

/// For minutes after a column was added, the Storage Write interface refuses rows that have it.
#[test]
fn a_column_that_is_not_known_everywhere_yet_is_waited_for() {
    let fake = with_tables();
    fake.drop_column(QUARANTINE, "rule", true);
    fake.add_column(QUARANTINE, "rule STRING", false);
    let pipeline = fake.offvia(bookings::lines(EVENTS));
    let (mut run, _stdin) = Running::start(&pipeline);
    fake.wait_until("four tries", |content| content.appends(QUARANTINE).len() >= 4);
    assert!(!run.has_ended());
    assert_eq!(fake.count(QUARANTINE), 0);
    assert!(refused(&fake, QUARANTINE) >= 4);
    fake.catch_up(QUARANTINE);
    run.finish().expect(0);
    expect_exact(&fake, EVENTS, "late column");
}

#[test]
fn a_column_that_is_dropped_stops_the_reading_until_it_is_back() {
    let fake = with_tables();
    let rule = fake.when(Call::Append).table(SILVER).from(2).once(Fault::Held);
    let pipeline = fake.offvia(bookings::lines(EVENTS));
    let (mut run, _stdin) = Running::start(&pipeline);
    fake.wait_until("the second append", |content| content.hits(rule) == 1);
    fake.drop_column(SILVER, "flight_number", true);
    fake.lift(rule);
    fake.wait_until("four tries", |content| content.appends(SILVER).len() >= 6);
    assert!(!run.has_ended());
    let there = fake.count(SILVER);
    run.wait_for_log("lacks a column that the rows have");
    assert!(fake.count("offvia_bronze.raw_bookings") < EVENTS, "the reading has stopped");
    assert_eq!(fake.count(SILVER), there);
    fake.add_column(SILVER, "flight_number STRING", true);
    run.finish().expect(0);
    expect_exact(&fake, EVENTS, "a column that came back");
}

#[test]
fn a_worker_that_was_stopped_by_a_dropped_column_starts_again_when_it_is_back() {
    let fake = with_tables();
    let pipeline = fake.offvia(bookings::lines(EVENTS));
    let rule = fake.when(Call::Append).table(SILVER).from(2).once(Fault::Held);
    let (run, _stdin) = Running::start(&pipeline);
    fake.wait_until("the second append", |content| content.hits(rule) == 1);
    fake.drop_column(SILVER, "flight_number", true);
    fake.lift(rule);
    fake.wait_until("a refusal", |content| content.appends(SILVER).len() >= 3);
    run.signal(rustix::process::Signal::KILL);
    assert!(run.finish().was_killed());
    stops(pipeline.run(), 2, &["flight_number"]);
    fake.add_column(SILVER, "flight_number STRING", true);
    pipeline.run().expect(0);
    expect_exact(&fake, EVENTS, "a column that came back");
}

/// Events that are fed one by one, all of them bad.
fn fed(fake: &Fake) -> Pipeline {
    let pipeline = Pipeline::offvia_from("[source.stdin]\nformat = \"lines\"").warm();
    fake.warehouse_of(pipeline).set("warehouse.bigquery.commit_interval=10 ms")
}

#[test]
fn a_column_that_is_added_is_written_from_then_on() {
    let fake = with_tables();
    fake.drop_column(QUARANTINE, "pipeline", true);
    let pipeline = fed(&fake);
    let (run, mut stdin) = Running::start(&pipeline);
    let mut fed = 0;
    let mut more = |until: &dyn Fn(&Fake) -> bool| {
        while !until(&fake) {
            // A run that has ended says why below.
            if writeln!(stdin, "no json {fed}").is_err() {
                return;
            }
            fed += 1;
            fake.wait_until("the row", |content| content.count(QUARANTINE) == fed);
        }
    };
    more(&|fake| fake.count(QUARANTINE) == 5);
    // The look at the table fails at first.
    let away = fake.when(Call::Table).table(QUARANTINE).times(2, Fault::status(Code::Unavailable));
    fake.add_column(QUARANTINE, "pipeline STRING", true);
    // The next answer tells of it; one of the next rows has it.
    more(&|fake| {
        fake.content(|content| content.rows(QUARANTINE).last().is_some_and(|row| row.contains_key("pipeline")))
    });
    drop(stdin);
    run.finish().expect(0);
    fake.content(|content| {
        assert_eq!(content.hits(away), 2);
        content.expect_each_once(QUARANTINE, "raw_payload", (0..fed).map(|n| format!("no json {n}")));
    });
}

/// Nothing tells that a column is back; rows are written again, and the worker is ready.
#[test]
fn a_worker_is_ready_again_when_a_dropped_column_is_back() {
    let fake = with_tables();
    let pipeline = fed(&fake).set("admin.listen=127.0.0.1:0");
    let (mut run, mut stdin) = Running::start(&pipeline);
    let admin = run.admin();
    writeln!(stdin, "no json 0").unwrap();
    run.wait_patiently_until(|| fake.count(QUARANTINE) == 1);
    fake.drop_column(QUARANTINE, "error_stage", true);
    writeln!(stdin, "no json 1").unwrap();
    run.wait_for_log("no longer fits");
    run.wait_patiently_until(|| http::get(&admin, "/readyz").status == 503);
    fake.add_column(QUARANTINE, "error_stage STRING", true);
    run.wait_patiently_until(|| fake.count(QUARANTINE) == 2);
    run.wait_patiently_until(|| http::get(&admin, "/readyz").status == 200);
    drop(stdin);
    run.finish().expect(0);
}

//! Being asked to stop under load: what was taken is finished, the rest is given back at once.

use super::{bronze, expect_each_once, wait_for_rows};
use preflight_tests::pubsub::{Feed, message};
use preflight_tests::{Running, bookings};
use rustix::process::Signal;

const EVENTS: usize = 20_000;

/// What may be on its way to a worker when it closes its streams: nobody can give that back, and it comes again when its lease
/// has run out. Some responses of a hundred messages for each of two streams.
const ON_ITS_WAY: usize = 1_000;

#[test]
fn a_worker_that_stops_under_load_leaves_nothing_behind_and_the_next_one_gets_the_rest_at_once() {
    let feed = Feed::new();
    let ids = feed.publish(bookings::lines(EVENTS).lines().map(message));
    let pipeline = feed.pipeline().set("batch.max_events=100");
    let mut stopped_in_between = 0;
    for part in 1..=3 {
        let (mut run, _stdin) = Running::start(&pipeline);
        run.wait_patiently_until(|| bronze(&pipeline) >= (part * EVENTS / 5) as u64);
        run.stop().expect(0);
        stopped_in_between += u32::from(bronze(&pipeline) < EVENTS as u64);
        let log = feed.front().log();
        assert!(log.left() <= ON_ITS_WAY * part, "{} messages were neither acknowledged nor given back", log.left());
        // What is durable was acknowledged, though the process ended right after that.
        assert!(log.acked.len() as u64 >= bronze(&pipeline), "{} acks", log.acked.len());
    }
    assert!(stopped_in_between > 0, "no worker was stopped while there was more");
    let (mut run, _stdin) = Running::start(&pipeline);
    wait_for_rows(&mut run, &pipeline, EVENTS);
    run.stop().expect(0);
    expect_each_once(&pipeline, &ids);
}

/// Whoever waits for a micro-batch to be full gets what there is when the worker stops.
#[test]
fn the_micro_batch_in_progress_is_finished() {
    let feed = Feed::new();
    let ids = feed.publish(bookings::lines(10).lines().map(message));
    let pipeline = feed.pipeline().set("batch.max_age=10 m").set("admin.listen=127.0.0.1:0");
    let (mut run, _stdin) = Running::start(&pipeline);
    let admin = run.admin();
    run.wait_patiently_until(|| super::figure(&admin, "preflight_outstanding_messages") == 10);
    let report = run.stop().expect(0).json();
    assert_eq!(report["events"], 10);
    expect_each_once(&pipeline, &ids);
}

#[test]
fn a_worker_that_cannot_write_gives_everything_back_when_the_time_to_finish_is_over() {
    let feed = Feed::new();
    let ids = feed.publish(bookings::lines(500).lines().map(message));
    let pipeline = feed.pipeline().set("batch.max_events=100").set("run.drain_timeout=300 ms");
    let (mut run, _stdin) = Running::start(&pipeline);
    wait_for_rows(&mut run, &pipeline, 500);
    run.stop().expect(0);
    let pipeline = pipeline.set("admin.listen=127.0.0.1:0");
    let (mut run, _stdin) = Running::start(&pipeline);
    let admin = run.admin();
    run.wait_for_log("found the subscription");
    run.wait_patiently_until(|| preflight_tests::http::get(&admin, "/readyz").status == 200);
    let held = rusqlite::Connection::open(pipeline.database()).unwrap();
    held.execute_batch("BEGIN IMMEDIATE").unwrap();
    let more = feed.publish(bookings::from(500, 2_000).lines().map(message));
    run.wait_patiently_until(|| super::figure(&admin, "preflight_outstanding_messages") >= 500);
    let said = run.stop().expect(1).stderr;
    assert!(said.contains("messages were given back"), "{said}");
    let log = feed.front().log();
    assert!(!log.nacked.is_empty() && log.left() <= ON_ITS_WAY, "{} given back, {} left", log.nacked.len(), log.left());
    held.execute_batch("ROLLBACK").unwrap();
    let all = [ids, more].concat();
    let (mut run, _stdin) = Running::start(&pipeline);
    wait_for_rows(&mut run, &pipeline, all.len());
    run.stop().expect(0);
    expect_each_once(&pipeline, &all);
}

/// It waited for the database for minutes before it looked whether it was to stop.
#[test]
fn a_worker_that_waits_for_its_database_at_the_start_stops_when_it_is_asked() {
    let feed = Feed::new();
    let pipeline = feed.pipeline();
    let (mut run, _stdin) = Running::start(&pipeline);
    run.wait_for_log("found the subscription");
    run.stop().expect(0);
    let held = rusqlite::Connection::open(pipeline.database()).unwrap();
    held.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (mut run, _stdin) = Running::start(&pipeline);
    run.wait_for_log("trying again");
    assert_eq!(run.stop().expect(0).json()["events"], 0);
}

#[test]
fn a_second_signal_gives_everything_back_at_once() {
    let feed = Feed::new();
    let ids = feed.publish(bookings::lines(500).lines().map(message));
    let pipeline = feed.pipeline().set("batch.max_events=100").set("admin.listen=127.0.0.1:0");
    let (mut run, _stdin) = Running::start(&pipeline);
    let admin = run.admin();
    wait_for_rows(&mut run, &pipeline, 500);
    let held = rusqlite::Connection::open(pipeline.database()).unwrap();
    held.busy_timeout(std::time::Duration::from_secs(5)).unwrap();
    held.execute_batch("BEGIN IMMEDIATE").unwrap();
    let more = feed.publish(bookings::from(500, 500).lines().map(message));
    run.wait_patiently_until(|| super::figure(&admin, "preflight_outstanding_messages") >= 500);
    run.signal(Signal::TERM);
    run.wait_for_log("asked to stop");
    // The time to finish is half a minute.
    run.signal(Signal::TERM);
    let said = run.finish().expect(1).stderr;
    assert!(said.contains("stopped at once: messages were given back"), "{said}");
    assert_eq!(feed.front().log().left(), 0, "all that it held had come to it");
    held.execute_batch("ROLLBACK").unwrap();
    let all = [ids, more].concat();
    let (mut run, _stdin) = Running::start(&pipeline);
    wait_for_rows(&mut run, &pipeline, all.len());
    run.stop().expect(0);
    expect_each_once(&pipeline, &all);
}

//! Being asked to stop under load: what was taken is finished, the rest is given back at once.

use super::{bronze, expect_each_once, wait_for_rows};
use preflight_tests::pubsub::{Feed, message};
use preflight_tests::{Pipeline, Running, bookings};

const EVENTS: usize = 20_000;

/// A subscription whose leases last for ten minutes: what comes again within a test was given back.
fn long_leases() -> Feed {
    Feed::with(|subscription| subscription.set_ack_deadline_seconds(600))
}

/// A worker that holds much more than it has judged.
fn holding_much(feed: &Feed) -> Pipeline {
    feed.pipeline().set("batch.max_events=100").set("source.pubsub.max_outstanding_messages=10000")
}

#[test]
fn a_worker_that_stops_under_load_leaves_nothing_behind_and_the_next_one_gets_the_rest_at_once() {
    let feed = long_leases();
    let ids = feed.publish(bookings::lines(EVENTS).lines().map(message));
    let pipeline = holding_much(&feed);
    let mut stopped_in_between = 0;
    for part in 1..=3 {
        let (mut run, _stdin) = Running::start(&pipeline);
        run.wait_patiently_until(|| bronze(&pipeline) >= (part * EVENTS / 5) as u64);
        run.stop().expect(0);
        stopped_in_between += u32::from(bronze(&pipeline) < EVENTS as u64);
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
    let feed = long_leases();
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
    let feed = long_leases();
    let ids = feed.publish(bookings::lines(500).lines().map(message));
    let pipeline = feed.pipeline().set("batch.max_events=100").set("run.drain_timeout=300 ms");
    let (mut run, _stdin) = Running::start(&pipeline);
    wait_for_rows(&mut run, &pipeline, 500);
    run.stop().expect(0);
    let held = rusqlite::Connection::open(pipeline.database()).unwrap();
    held.execute_batch("BEGIN IMMEDIATE").unwrap();
    let more = feed.publish(bookings::from(500, 2_000).lines().map(message));
    let (mut run, _stdin) = Running::start(&pipeline);
    run.wait_for_log("trying again");
    let said = run.stop().expect(1).stderr;
    assert!(said.contains("messages were given back"), "{said}");
    held.execute_batch("ROLLBACK").unwrap();
    let all = [ids, more].concat();
    let (mut run, _stdin) = Running::start(&pipeline);
    wait_for_rows(&mut run, &pipeline, all.len());
    run.stop().expect(0);
    expect_each_once(&pipeline, &all);
}

//! Pub/Sub out of reach, and a warehouse that cannot be written: nothing is lost, and memory stays bounded.

use super::{expect_each_once, figure, observed, wait_for_rows};
use preflight_tests::pubsub::{Emulator, Feed, message};
use preflight_tests::{Proxy, Running, bookings, http};

/// A worker whose network is disturbed in the middle of things, and heals.
fn disturbed(disturb: impl Fn(&Proxy)) {
    let feed = Feed::new();
    let network = Proxy::to(&Emulator::shared().address);
    let mut ids = feed.publish(bookings::lines(500).lines().map(message));
    let pipeline = feed.pipeline_at(network.address()).set("admin.listen=127.0.0.1:0");
    let (mut run, _stdin) = Running::start(&pipeline);
    let admin = run.admin();
    wait_for_rows(&mut run, &pipeline, 500);
    disturb(&network);
    ids.extend(feed.publish(bookings::from(500, 500).lines().map(message)));
    run.wait_patiently_until(|| http::get(&admin, "/readyz").status == 503);
    let reasons = http::get(&admin, "/readyz").body;
    assert!(reasons.contains("no events come since") && reasons.contains(feed.subscription()), "{reasons}");
    network.open();
    wait_for_rows(&mut run, &pipeline, ids.len());
    run.wait_patiently_until(|| http::get(&admin, "/readyz").status == 200);
    assert!(figure(&admin, "preflight_stream_reopenings_total") > 0);
    run.stop().expect(0);
    expect_each_once(&pipeline, &ids);
}

#[test]
fn a_network_that_is_cut_is_told_and_the_worker_goes_on_when_it_is_back() {
    disturbed(Proxy::cut);
}

#[test]
fn a_network_that_goes_silent_is_told_and_the_worker_goes_on_when_it_is_back() {
    disturbed(Proxy::silence);
}

#[test]
fn a_warehouse_that_cannot_be_written_stops_the_pull_and_nothing_is_acked_meanwhile() {
    const MOST: u64 = 2_000;
    let feed = Feed::new();
    let pipeline =
        observed(&feed).set("batch.max_events=100").set(format!("source.pubsub.max_outstanding_messages={MOST}"));
    let mut ids = feed.publish(bookings::lines(100).lines().map(message));
    let (mut run, _stdin) = Running::start(&pipeline);
    let admin = run.admin();
    wait_for_rows(&mut run, &pipeline, 100);
    let acked = || figure(&admin, "preflight_messages_acked_total");
    run.wait_patiently_until(|| acked() == 100);
    let held = rusqlite::Connection::open(pipeline.database()).unwrap();
    held.execute_batch("BEGIN IMMEDIATE").unwrap();
    ids.extend(feed.publish(bookings::from(100, 10_000).lines().map(message)));
    // A lease is 10 s: they are extended, else messages would come again and again.
    run.wait_for_log("trying again");
    run.wait_for_log("trying again");
    let outstanding = || figure(&admin, "preflight_outstanding_messages");
    run.wait_patiently_until(|| outstanding() >= 1_000);
    assert_eq!(acked(), 100);
    assert!(outstanding() <= MOST, "{}", outstanding());
    held.execute_batch("ROLLBACK").unwrap();
    wait_for_rows(&mut run, &pipeline, ids.len());
    assert!(outstanding() <= MOST, "{}", outstanding());
    run.stop().expect(0);
    expect_each_once(&pipeline, &ids);
}

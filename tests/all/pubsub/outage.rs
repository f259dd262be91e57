//! Pub/Sub out of reach, and a warehouse that cannot be written: nothing is lost, and memory stays bounded.

use super::{expect_each_once, figure, observed, wait_for_rows};
use preflight_tests::pubsub::{Feed, message};
use preflight_tests::{Proxy, Running, bookings, http};
use std::time::{Duration, Instant};
use tonic::Code;

/// A worker whose network is disturbed in the middle of things, and heals.
fn disturbed(disturb: impl Fn(&Proxy), when_it_heals: impl Fn(&mut Running, &str)) {
    let feed = Feed::new();
    let network = Proxy::to(&feed.front().address());
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
    when_it_heals(&mut run, &admin);
    ids.extend(feed.publish(bookings::from(1_000, 10).lines().map(message)));
    wait_for_rows(&mut run, &pipeline, ids.len());
    run.stop().expect(0);
    expect_each_once(&pipeline, &ids);
}

#[test]
fn a_network_that_is_cut_is_told_and_the_worker_goes_on_when_it_is_back() {
    disturbed(Proxy::cut, |_, _| {});
}

#[test]
fn a_network_that_goes_silent_is_told_and_the_worker_goes_on_when_it_is_back() {
    // Nothing comes behind it: streams may be broken that nobody has ended, so they are opened anew.
    disturbed(Proxy::silence, |run, admin| {
        run.wait_patiently_until(|| figure(admin, "preflight_stream_reopenings_total") > 0);
    });
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

/// What was sent and not taken from the client had no lease that is extended: it came again and again, and went to the dead
/// letters.
#[test]
fn what_is_sent_while_the_warehouse_cannot_be_written_is_held_and_its_lease_extended() {
    const MANY: usize = 8_000;
    let feed = Feed::new();
    let pipeline = observed(&feed).set("batch.max_events=100");
    let mut ids = feed.publish(bookings::lines(100).lines().map(message));
    let (mut run, _stdin) = Running::start(&pipeline);
    let admin = run.admin();
    wait_for_rows(&mut run, &pipeline, 100);
    run.wait_patiently_until(|| figure(&admin, "preflight_messages_acked_total") == 100);
    let held = rusqlite::Connection::open(pipeline.database()).unwrap();
    held.execute_batch("BEGIN IMMEDIATE").unwrap();
    ids.extend(feed.publish(bookings::from(100, MANY).lines().map(message)));
    run.wait_patiently_until(|| figure(&admin, "preflight_outstanding_messages") == MANY as u64);
    let unextended = || {
        let log = feed.front().log();
        log.sent.iter().filter(|id| !log.acked.contains(*id) && !log.extended.contains(*id)).count()
    };
    run.wait_patiently_until(|| unextended() == 0);
    held.execute_batch("ROLLBACK").unwrap();
    wait_for_rows(&mut run, &pipeline, ids.len());
    assert_eq!(figure(&admin, "preflight_messages_received_total"), ids.len() as u64, "each came once");
    run.stop().expect(0);
    expect_each_once(&pipeline, &ids);
}

/// A stream that ended without an error was opened again at once, as fast as the network goes.
#[test]
fn streams_that_pubsub_ends_are_opened_again_with_pauses() {
    let feed = Feed::new();
    let pipeline = observed(&feed).set("source.pubsub.streams=1");
    let (mut run, _stdin) = Running::start(&pipeline);
    let admin = run.admin();
    let reopened = || figure(&admin, "preflight_stream_reopenings_total");
    run.wait_patiently_until(|| http::get(&admin, "/readyz").status == 200);
    let ended = Instant::now();
    feed.front().refuse_pulls(Some(Code::Ok));
    run.wait_patiently_until(|| http::get(&admin, "/readyz").status == 503);
    let reasons = http::get(&admin, "/readyz").body;
    assert!(reasons.contains("ends every stream that is opened"), "{reasons}");
    run.wait_patiently_until(|| reopened() >= 4);
    // Pauses of 100, 200, 400 and 800 ms, or half of that.
    assert!(ended.elapsed() >= Duration::from_millis(750), "{:?}", ended.elapsed());
    assert!(reopened() < 20, "{}", reopened());
    feed.front().refuse_pulls(None);
    let ids = feed.publish(bookings::lines(100).lines().map(message));
    wait_for_rows(&mut run, &pipeline, 100);
    run.wait_patiently_until(|| http::get(&admin, "/readyz").status == 200);
    run.stop().expect(0);
    expect_each_once(&pipeline, &ids);
}

/// Somebody takes a permission away, and gives it back.
#[test]
fn a_permission_that_is_taken_away_is_told_and_the_worker_goes_on_when_it_is_back() {
    let feed = Feed::new();
    let mut ids = feed.publish(bookings::lines(100).lines().map(message));
    let pipeline = observed(&feed);
    let (mut run, _stdin) = Running::start(&pipeline);
    let admin = run.admin();
    wait_for_rows(&mut run, &pipeline, 100);
    feed.front().refuse_pulls(Some(Code::PermissionDenied));
    run.wait_patiently_until(|| http::get(&admin, "/readyz").status == 503);
    let reasons = http::get(&admin, "/readyz").body;
    assert!(reasons.contains("we may not use it") && reasons.contains("roles/pubsub.subscriber"), "{reasons}");
    ids.extend(feed.publish(bookings::from(100, 100).lines().map(message)));
    feed.front().refuse_pulls(None);
    wait_for_rows(&mut run, &pipeline, 200);
    run.wait_patiently_until(|| http::get(&admin, "/readyz").status == 200);
    assert!(figure(&admin, "preflight_stream_reopenings_total") > 0);
    run.stop().expect(0);
    expect_each_once(&pipeline, &ids);
}

/// On a quiet topic nothing comes that shows it: it was not ready for ever.
#[test]
fn a_worker_on_a_quiet_topic_is_ready_again_when_its_streams_stay_open() {
    let feed = Feed::new();
    let pipeline = observed(&feed);
    let (mut run, _stdin) = Running::start(&pipeline);
    let admin = run.admin();
    run.wait_patiently_until(|| http::get(&admin, "/readyz").status == 200);
    feed.front().refuse_pulls(Some(Code::PermissionDenied));
    run.wait_patiently_until(|| http::get(&admin, "/readyz").status == 503);
    feed.front().refuse_pulls(None);
    run.wait_patiently_until(|| http::get(&admin, "/readyz").status == 200);
    run.stop().expect(0);
}

/// Rows are there, acks are not: the messages come again, are recognised, and acknowledged then.
fn acks_fail(feed: &Feed, unconfirmed: u64) {
    feed.front().refuse_acks(Some(Code::InvalidArgument));
    let ids = feed.publish(bookings::lines(300).lines().map(message));
    let pipeline = observed(feed);
    let (mut run, _stdin) = Running::start(&pipeline);
    let admin = run.admin();
    wait_for_rows(&mut run, &pipeline, 300);
    run.wait_patiently_until(|| feed.front().log().refused.len() >= 300);
    run.wait_patiently_until(|| figure(&admin, "preflight_acks_unconfirmed_total") >= unconfirmed);
    assert_eq!(feed.front().log().acked.len(), 0);
    feed.front().refuse_acks(None);
    // Each again, when its lease has run out.
    run.wait_patiently_until(|| feed.front().log().acked.len() >= 300);
    assert!(figure(&admin, "preflight_messages_received_total") >= 600);
    let report = run.stop().expect(0).json();
    let count = |what: &str| report[what].as_u64().expect("a count");
    assert!(count("redelivered") >= 300 && count("events") == 300 + count("redelivered"), "{report}");
    expect_each_once(&pipeline, &ids);
}

#[test]
fn messages_whose_acks_are_lost_come_again_and_have_their_rows_once() {
    acks_fail(&Feed::new(), 0);
}

#[test]
fn messages_whose_acks_an_exactly_once_subscription_refuses_come_again_and_have_their_rows_once() {
    acks_fail(&Feed::with(|subscription| subscription.set_enable_exactly_once_delivery(true)), 300);
}

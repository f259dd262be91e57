//! What comes of messages, from a subscription to the tables.

use preflight_tests::pubsub::{Feed, message};
use preflight_tests::{Running, bookings, tables};
use rustix::process::Signal;

#[test]
fn events_of_a_subscription_become_rows_until_it_is_asked_to_stop() {
    let feed = Feed::new();
    let ids = feed.publish(bookings::lines(1_000).lines().map(message));
    let pipeline = feed.pipeline();
    let (mut run, _stdin) = Running::start(&pipeline);
    run.wait_patiently_until(|| tables::newest_rowid(&pipeline.database(), "raw_bookings") >= Some(1_000));
    run.signal(Signal::TERM);
    let report = run.finish().expect(0).json();
    assert_eq!(report["events"], 1_000);
    let mut seen = tables::column(&pipeline.database(), "raw_bookings", "message_id");
    let mut expected = ids;
    seen.sort();
    expected.sort();
    assert_eq!(seen, expected);
}

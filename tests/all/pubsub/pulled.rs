//! What comes of messages, from a subscription to the tables.

use super::{bronze, expect_each_once, figure, observed, wait_for_rows};
use base64::Engine as _;
use google_cloud_pubsub::model::DeadLetterPolicy;
use preflight_tests::pubsub::{Feed, message};
use preflight_tests::{Booking, Running, bookings, tables};
use serde_json::json;

#[test]
fn events_of_a_subscription_become_rows_until_it_is_asked_to_stop() {
    let feed = Feed::new();
    let ids = feed.publish(bookings::lines(1_000).lines().map(message));
    let pipeline = feed.pipeline();
    let (mut run, _stdin) = Running::start(&pipeline);
    wait_for_rows(&mut run, &pipeline, 1_000);
    // It has no end: what is published now comes, too.
    let more = feed.publish(bookings::from(1_000, 10).lines().map(message));
    wait_for_rows(&mut run, &pipeline, 1_010);
    let report = run.stop().expect(0).json();
    assert_eq!((&report["events"], &report["complete"]), (&json!(1_010), &json!(false)));
    expect_each_once(&pipeline, &[ids, more].concat());
}

#[test]
fn a_row_has_all_that_its_message_says() {
    let feed = Feed::with(|subscription| subscription.set_enable_message_ordering(true));
    let good = message(Booking::v2("BK-1").json()).set_attributes([("event_version", "2"), ("trace", "t")]);
    let ids = feed.publish([
        good.set_ordering_key("PAX-1"),
        message("").set_attributes([("only", "attributes")]),
        message(b"\xff\x00not text".to_vec()),
    ]);
    let pipeline = feed.pipeline();
    let (mut run, _stdin) = Running::start(&pipeline);
    wait_for_rows(&mut run, &pipeline, 3);
    run.stop().expect(0);
    let rows = tables::rows(&pipeline.database(), "raw_bookings");
    let row = |id: &str| rows.iter().find(|row| row["message_id"] == id).expect("a row of that message");
    let one = row(&ids[0]);
    assert_eq!(one["subscription_name"], feed.subscription());
    assert_eq!(one["attributes"], r#"{"event_version":"2","trace":"t"}"#);
    assert_eq!(row(&ids[1])["attributes"], r#"{"only":"attributes"}"#);
    let quarantine = tables::rows(&pipeline.database(), "poisoned_events");
    let poisoned =
        |id: &str| quarantine.iter().find(|row| row["source_message_id"] == id).expect("a row of that message");
    let bytes = base64::engine::general_purpose::STANDARD.encode(b"\xff\x00not text");
    assert_eq!(poisoned(&ids[2])["raw_bytes"], json!({ "base64": bytes }));
    assert_eq!(poisoned(&ids[1])["raw_size"], 0);
    assert_eq!(poisoned(&ids[1])["ordering_key"], json!(null));
    assert_eq!(tables::column(&pipeline.database(), "fact_bookings", "source_message_id"), [ids[0].as_str()]);
    expect_each_once(&pipeline, &ids);
}

/// The largest message that Pub/Sub takes has ten million bytes.
#[test]
fn messages_of_ten_million_bytes_are_kept_whole_or_refused_by_the_limit() {
    let feed = Feed::new();
    let ids = feed.publish([message(vec![b'x'; 9_900_000]), message(Booking::v1("BK-1").json())]);
    let size = |pipeline: &preflight_tests::Pipeline| {
        let sql = format!(
            "SELECT raw_size AS n, error_stage AS s FROM poisoned_events WHERE source_message_id = '{}'",
            ids[0]
        );
        let rows = tables::query(&pipeline.database(), &sql);
        (rows[0]["n"].clone(), rows[0]["s"].clone())
    };
    // Two flow-control shares of a few megabytes each: one message is above a share.
    let pipeline = feed.pipeline().set("source.pubsub.max_outstanding_bytes=4 MiB");
    let (mut run, _stdin) = Running::start(&pipeline);
    wait_for_rows(&mut run, &pipeline, 2);
    run.stop().expect(0);
    assert_eq!(size(&pipeline), (json!(9_900_000), json!("PARSE_JSON")));
    expect_each_once(&pipeline, &ids);

    let feed = Feed::new();
    let ids = feed.publish([message(vec![b'x'; 9_900_000])]);
    let pipeline = feed.pipeline().set("limits.payload=1 MiB");
    let (mut run, _stdin) = Running::start(&pipeline);
    wait_for_rows(&mut run, &pipeline, 1);
    run.stop().expect(0);
    let row = &tables::rows(&pipeline.database(), "poisoned_events")[0];
    assert_eq!((&row["error_stage"], &row["source_message_id"]), (&json!("PAYLOAD_TOO_LARGE"), &json!(ids[0])));
    assert!(row["error_reason"].as_str().unwrap().starts_with("9900000 bytes are above"), "{}", row["error_reason"]);
}

#[test]
fn events_with_an_ordering_key_are_written_in_the_order_they_were_published_in() {
    const KEYS: usize = 5;
    let feed = Feed::with(|subscription| subscription.set_enable_message_ordering(true));
    let keyed = |n: usize| {
        let key = format!("PAX-{}", n % KEYS);
        message(Booking::v1(&format!("BK-{n}")).json()).set_ordering_key(key)
    };
    let ids = feed.publish((0..1_000).map(keyed));
    let pipeline = feed.pipeline().set("source.pubsub.streams=4").set("batch.max_events=50");
    let (mut run, _stdin) = Running::start(&pipeline);
    wait_for_rows(&mut run, &pipeline, ids.len());
    run.stop().expect(0);
    expect_each_once(&pipeline, &ids);
    let written = tables::column(&pipeline.database(), "fact_bookings", "booking_id");
    for key in 0..KEYS {
        let number = |id: &String| id.strip_prefix("BK-").and_then(|n| n.parse::<usize>().ok()).expect("BK-N");
        let of_key: Vec<usize> = written.iter().map(number).filter(|n| n % KEYS == key).collect();
        assert!(of_key.is_sorted(), "PAX-{key}: {of_key:?}");
    }
}

#[test]
fn acks_of_an_exactly_once_subscription_are_confirmed() {
    let feed = Feed::with(|subscription| subscription.set_enable_exactly_once_delivery(true));
    let ids = feed.publish(bookings::lines(3_000).lines().map(message));
    let pipeline = observed(&feed);
    let (mut run, _stdin) = Running::start(&pipeline);
    let admin = run.admin();
    wait_for_rows(&mut run, &pipeline, ids.len());
    run.wait_patiently_until(|| figure(&admin, "preflight_messages_acked_total") == 3_000);
    assert_eq!(figure(&admin, "preflight_acks_unconfirmed_total"), 0);
    assert_eq!(figure(&admin, "preflight_outstanding_messages"), 0);
    run.stop().expect(0);
    expect_each_once(&pipeline, &ids);
}

#[test]
fn a_message_that_was_given_back_says_how_often_it_came() {
    let dead = Feed::new();
    let feed = Feed::with(|subscription| {
        let policy = DeadLetterPolicy::new().set_dead_letter_topic(dead.topic()).set_max_delivery_attempts(10);
        subscription.set_dead_letter_policy(policy)
    });
    let ids = feed.publish([message("not a booking")]);
    for _ in 0..2 {
        assert_eq!(feed.nack(10), ids);
    }
    let pipeline = observed(&feed);
    let (mut run, _stdin) = Running::start(&pipeline);
    let admin = run.admin();
    wait_for_rows(&mut run, &pipeline, 1);
    assert_eq!(figure(&admin, "preflight_messages_redelivered_total"), 1);
    run.stop().expect(0);
    assert_eq!(tables::column(&pipeline.database(), "poisoned_events", "delivery_attempt"), ["3"]);
    assert_eq!(bronze(&pipeline), 1);
}

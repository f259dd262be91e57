//! Pub/Sub as a source, with Google's emulator.

mod crash;
mod outage;
mod pulled;
mod refused;
mod soak;
mod stop;

use preflight_tests::pubsub::Feed;
use preflight_tests::{Pipeline, Running, http, tables};

/// A worker on this subscription that can be asked how it is.
fn observed(feed: &Feed) -> Pipeline {
    feed.pipeline().set("admin.listen=127.0.0.1:0")
}

/// How many rows bronze has; 0 while there is no table.
fn bronze(pipeline: &Pipeline) -> u64 {
    tables::newest_rowid(&pipeline.database(), "raw_bookings").unwrap_or(0)
}

/// Waits until bronze has so many rows.
#[track_caller]
fn wait_for_rows(run: &mut Running, pipeline: &Pipeline, rows: usize) {
    run.wait_patiently_until(|| bronze(pipeline) >= rows as u64);
}

/// Asserts that each message has one row in bronze, and one in silver or quarantine.
#[track_caller]
fn expect_each_once(pipeline: &Pipeline, published: &[String]) {
    let sorted = |mut ids: Vec<String>| {
        ids.sort();
        ids
    };
    let ids = |table: &str, column: &str| tables::column(&pipeline.database(), table, column);
    let published = sorted(published.to_vec());
    assert_eq!(sorted(ids("raw_bookings", "message_id")), published);
    let judged = [ids("fact_bookings", "source_message_id"), ids("poisoned_events", "source_message_id")].concat();
    assert_eq!(sorted(judged), published);
}

/// A figure of the metrics of a worker; 0 before it pulls.
#[track_caller]
fn figure(admin: &str, name: &str) -> u64 {
    let answer = http::get(admin, "/metrics");
    let series = format!("{name}{{pipeline=\"test\"}} ");
    let value = answer.body.lines().find_map(|line| line.strip_prefix(&series));
    value.map_or(0, |value| value.parse().expect("a count"))
}

//! Quarantine: looking into it, and replaying it with other rules than those that rejected, exactly once.

mod crash;
mod late;
mod list;
mod promoted;
mod refusals;
mod replay;
mod running;
mod shared;

use preflight_tests::booking::envelope;
use preflight_tests::{Booking, Pipeline, paths, tables};
use rusqlite::Connection;
use serde_json::Value;

/// Bookings of event version 2, one a line, called `prefix-0`, `prefix-1`…
fn of_version_2(prefix: &str, count: usize) -> String {
    (0..count)
        .map(|number| {
            envelope(Booking::v2(&format!("{prefix}-{number}")).json(), &[("event_version", "2"), ("source", "web")])
        })
        .collect()
}

/// A pipeline that serves event version 1 only, over envelopes.
fn without_version_2(input: &str) -> Pipeline {
    Pipeline::with_rule(&paths::rule("offvia-booking"), input).warm().set("source.file.format=envelope")
}

/// The same once a rule for event version 2 is there, and silver has a column for what it adds.
fn with_version_2(pipeline: Pipeline) -> Pipeline {
    let database = Connection::open(pipeline.database()).unwrap();
    database.execute_batch("ALTER TABLE fact_bookings ADD COLUMN loyalty_tier TEXT").unwrap();
    let rule = paths::rule("offvia-booking-v2");
    pipeline.set(format!("rules.components.\"2\"={}", rule.display()))
}

/// A pipeline with so many rows of stage ROUTING in quarantine, and by now a rule for them.
fn routable(count: usize) -> Pipeline {
    let pipeline = without_version_2(&of_version_2("BK", count));
    pipeline.run().expect(0);
    assert_eq!(tables::count(&pipeline.database(), "poisoned_events"), count as u64);
    with_version_2(pipeline)
}

/// Replays and returns the report.
#[track_caller]
fn replay(pipeline: &Pipeline, arguments: &[&str]) -> Value {
    let arguments: Vec<&str> = arguments.iter().chain(&["--json"]).copied().collect();
    pipeline.quarantine("replay", &arguments).expect(0).json()
}

/// The ids of silver's bookings, sorted.
fn silver(pipeline: &Pipeline) -> Vec<String> {
    let mut ids = tables::column(&pipeline.database(), "fact_bookings", "booking_id");
    ids.sort();
    ids
}

/// `prefix-0`, `prefix-1`…, sorted.
fn names(prefix: &str, count: usize) -> Vec<String> {
    let mut names: Vec<String> = (0..count).map(|number| format!("{prefix}-{number}")).collect();
    names.sort();
    names
}

/// How many quarantine rows are not resolved.
fn unresolved(pipeline: &Pipeline) -> u64 {
    let sql = "SELECT count(*) AS n FROM poisoned_events WHERE resolved_at IS NULL AND resolved_by IS NULL";
    tables::query(&pipeline.database(), sql)[0]["n"].as_u64().unwrap()
}

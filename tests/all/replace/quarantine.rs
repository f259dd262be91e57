//! Replaying a quarantine that is replaced.

use super::{crash_at, pipeline, published, run_with, staged};
use preflight::failpoint;
use preflight_tests::{Pipeline, Running, bookings, paths, tables};
use rusqlite::Connection;

/// Bookings of event version 2 that no rule serves, and by now a rule for them.
fn routable() -> Pipeline {
    let rule = paths::rule("offvia-booking");
    let input: String = (0..20)
        .map(|number| {
            let booking = preflight_tests::Booking::v2(&format!("BK-{number}"));
            preflight_tests::booking::envelope(booking.json(), &[("event_version", "2"), ("source", "web")])
        })
        .collect();
    let base = Pipeline::with_rule(&rule, input).warm().set("source.file.format=envelope");
    let base = base.set("silver.write=replace").set("quarantine.write=replace");
    base.run().expect(0);
    assert_eq!(tables::count(&base.database(), "poisoned_events"), 20);
    let database = Connection::open(base.database()).unwrap();
    database.execute_batch("ALTER TABLE fact_bookings ADD COLUMN loyalty_tier TEXT").unwrap();
    base.set(format!("rules.components.\"2\"={}", paths::rule("offvia-booking-v2").display()))
}

#[test]
fn a_replay_adds_to_what_is_published_and_the_next_run_replaces_both() {
    let pipeline = routable();
    pipeline.quarantine("replay", &["--all"]).expect(0);
    assert_eq!(tables::count(&pipeline.database(), "fact_bookings"), 20);
    let resolved = "SELECT count(*) AS n FROM poisoned_events WHERE resolved_at IS NOT NULL";
    assert_eq!(tables::query(&pipeline.database(), resolved)[0]["n"], 20);
    pipeline.quarantine("replay", &["--all"]).expect(0);
    assert_eq!(tables::count(&pipeline.database(), "fact_bookings"), 20, "each of them once");
    pipeline.run().expect(0);
    assert_eq!(tables::count(&pipeline.database(), "fact_bookings"), 20);
    assert_eq!(tables::count(&pipeline.database(), "poisoned_events"), 0);
}

#[test]
fn while_a_run_is_not_over_nothing_is_replayed() {
    let mut killed = published(110, &bookings::lines(600));
    crash_at(&mut killed, failpoint::ROWS_APPENDED, 3);
    let failed = published(110, &bookings::lines(600));
    run_with(&failed, &["--max-rejects", "3"]).expect(1);
    for pipeline in [killed, failed] {
        let ended = pipeline.quarantine("replay", &["--all"]).expect(2);
        assert!(ended.stderr.contains("is not over") && ended.stderr.contains("--restart"), "{}", ended.stderr);
        pipeline.quarantine("list", &[]).expect(0);
        pipeline.run().expect(0);
        pipeline.quarantine("replay", &["--all"]).expect(0);
    }
}

#[test]
fn a_worker_that_replaces_is_asked_in_vain() {
    let pipeline = pipeline("");
    let file = std::fs::read_to_string(pipeline.file()).unwrap();
    std::fs::write(pipeline.file(), file.replace("[source.file]\npath = \"input.ndjson\"", "[source.stdin]")).unwrap();
    pipeline.run().expect(0);
    let (mut run, stdin) = Running::start(&pipeline);
    run.wait_until(|| !staged(&pipeline).is_empty());
    let ended = pipeline.quarantine("replay", &["--all"]).expect(1);
    assert!(ended.stderr.contains("is not over"), "{}", ended.stderr);
    drop(stdin);
    run.finish().expect(0);
}

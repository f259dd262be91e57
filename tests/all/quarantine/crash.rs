//! A replay that is killed at any point and called again brings every event to silver once, and marks every row.

use super::{names, replay, routable, silver, unresolved};
use preflight::failpoint;
use preflight_tests::{Pipeline, tables};
use rusqlite::Connection;

/// Points that a replay by the command passes, and how often in three chunks.
const POINTS: [(&str, u32); 9] = [
    (failpoint::UNDONE_SENT, 1),
    (failpoint::STREAM_FINALIZED, 1),
    (failpoint::STREAM_CLOSED, 1),
    (failpoint::STREAM_CREATED, 1),
    (failpoint::STREAM_RECORDED, 1),
    (failpoint::BATCH_JUDGED, 3),
    (failpoint::LEDGER_COMMITTED, 3),
    (failpoint::ROWS_APPENDED, 3),
    (failpoint::ROWS_RESOLVED, 3),
];

fn pipeline() -> Pipeline {
    routable(25).set("batch.max_events=10")
}

#[track_caller]
fn expect_exact(pipeline: &Pipeline, when: &str) {
    assert_eq!(silver(pipeline), names("BK", 25), "{when}");
    assert_eq!(unresolved(pipeline), 0, "{when}");
    assert_eq!(tables::count(&pipeline.database(), "poisoned_events"), 25, "{when}");
    assert_eq!(tables::count(&pipeline.database(), "raw_bookings"), 25, "{when}");
}

fn kill_at(pipeline: &mut Pipeline, point: &str, pass: u32) {
    pipeline.environment = vec![(failpoint::VARIABLE.into(), format!("{point}={pass}"))];
    let ended = pipeline.quarantine("replay", &["--all"]);
    assert!(ended.was_killed(), "{point}={pass} was not passed: {ended:?}");
    pipeline.environment.clear();
}

#[test]
fn killed_at_any_point_a_replay_ends_exact_when_it_is_called_again() {
    for (point, most) in POINTS.into_iter().chain([(failpoint::ENTRY_DONE, 3)]) {
        for pass in 1..=most {
            let mut pipeline = pipeline();
            kill_at(&mut pipeline, point, pass);
            replay(&pipeline, &["--all"]);
            expect_exact(&pipeline, &format!("{point}={pass}"));
        }
    }
}

#[test]
fn a_run_finishes_what_a_killed_replay_had_promised() {
    for point in [failpoint::LEDGER_COMMITTED, failpoint::ROWS_APPENDED, failpoint::ROWS_RESOLVED] {
        let mut pipeline = pipeline();
        kill_at(&mut pipeline, point, 2);
        let report = pipeline.run().expect(0).json();
        assert_eq!((&report["resumed_commits"], &report["events"]), (&1.into(), &0.into()), "{point}");
        assert_eq!((silver(&pipeline).len(), unresolved(&pipeline)), (20, 5), "{point}: two chunks of three");
        replay(&pipeline, &["--all"]);
        expect_exact(&pipeline, point);
    }
}

#[test]
fn killed_again_and_again_a_replay_ends_exact() {
    let mut pipeline = pipeline();
    for point in [failpoint::ROWS_APPENDED, failpoint::ROWS_RESOLVED, failpoint::ROWS_APPENDED, failpoint::ENTRY_DONE] {
        kill_at(&mut pipeline, point, 1);
    }
    replay(&pipeline, &["--all"]);
    expect_exact(&pipeline, "after four kills");
}

#[test]
fn killed_after_silver_refused_a_row_its_event_stays_in_quarantine() {
    for point in [failpoint::ROWS_APPENDED, failpoint::ENTRY_REPLACED, failpoint::ROWS_RESOLVED] {
        let mut pipeline = pipeline();
        let database = Connection::open(pipeline.database()).unwrap();
        database
            .execute_batch(
                "CREATE TRIGGER no BEFORE INSERT ON fact_bookings WHEN new.booking_id = 'BK-3'
                 BEGIN SELECT RAISE(ABORT, 'not now'); END",
            )
            .unwrap();
        kill_at(&mut pipeline, point, 1);
        replay(&pipeline, &["--all"]);
        assert_eq!((silver(&pipeline).len(), unresolved(&pipeline)), (24, 1), "{point}");
        database.execute_batch("DROP TRIGGER no").unwrap();
        replay(&pipeline, &["--all"]);
        expect_exact(&pipeline, point);
    }
}

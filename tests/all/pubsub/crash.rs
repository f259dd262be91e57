//! A worker that is killed at any point: the next one gets what was not acknowledged, and every event has its rows once.

use super::{expect_each_once, wait_for_rows};
use preflight::failpoint;
use preflight_tests::pubsub::{Feed, message};
use preflight_tests::{Pipeline, Running, bookings};
use std::thread;

/// Points that a run passes whose table refuses a row; `ledger::refused` kills there.
fn needs_refusal(point: &str) -> bool {
    point == failpoint::ENTRY_REPLACED
}

/// Points that only a start with an earlier run's streams passes.
fn needs_earlier_run(point: &str) -> bool {
    [failpoint::UNDONE_SENT, failpoint::STREAM_FINALIZED, failpoint::STREAM_CLOSED].contains(&point)
}

/// Runs a worker until it is killed at a point.
#[track_caller]
fn kill_at(pipeline: &mut Pipeline, point: &str, pass: u32) {
    pipeline.environment = vec![(failpoint::VARIABLE.into(), format!("{point}={pass}"))];
    let (run, _stdin) = Running::start(pipeline);
    let ended = run.finish();
    pipeline.environment.clear();
    assert!(ended.was_killed(), "{point}={pass} was not passed: {ended:?}");
}

/// All at the same time: most of it is waiting for the leases of a killed worker to run out.
#[test]
fn killed_at_any_point_and_started_again_a_worker_ends_exact() {
    thread::scope(|scope| {
        for point in failpoint::ALL.into_iter().filter(|point| !needs_refusal(point)) {
            let named = thread::Builder::new().name(point.to_owned());
            named.spawn_scoped(scope, move || killed_at(point)).unwrap();
        }
    });
}

fn killed_at(point: &str) {
    let feed = Feed::new();
    let ids = feed.publish(bookings::lines(300).lines().map(message));
    let mut pipeline = feed.pipeline().set("batch.max_events=50").set("run.threads=1");
    if needs_earlier_run(point) {
        kill_at(&mut pipeline, failpoint::ROWS_APPENDED, 2);
        kill_at(&mut pipeline, point, 1);
    } else {
        kill_at(&mut pipeline, point, 2);
    }
    let (mut run, _stdin) = Running::start(&pipeline);
    // All rows may be there already: it would be stopped before it listens for signals.
    run.wait_for_log("found the subscription");
    wait_for_rows(&mut run, &pipeline, ids.len());
    run.stop().expect(0);
    expect_each_once(&pipeline, &ids);
}

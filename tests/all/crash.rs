//! A worker that is killed at any moment and started again writes every row exactly once, in order.

use preflight::failpoint;
use preflight_tests::tables::{self, Tiers};
use preflight_tests::{Ended, Pipeline, Running, bookings};
use rustix::process::Signal;

/// Small micro-batches: many commits.
fn pipeline(input: &str) -> Pipeline {
    Pipeline::offvia(input).warm().set("batch.max_events=50").set("run.threads=2")
}

/// What an uninterrupted run writes.
fn uninterrupted(input: &str) -> Tiers {
    let pipeline = pipeline(input);
    pipeline.run().expect(0);
    tables::tiers(&pipeline.database())
}

/// A run that is killed when it passes a point for the `pass`-th time.
fn run_into(pipeline: &mut Pipeline, point: &str, pass: u32) -> Ended {
    pipeline.environment = vec![(failpoint::VARIABLE.into(), format!("{point}={pass}"))];
    let ended = pipeline.run();
    pipeline.environment.clear();
    ended
}

#[track_caller]
fn crash_at(pipeline: &mut Pipeline, point: &str, pass: u32) {
    let ended = run_into(pipeline, point, pass);
    assert!(ended.was_killed(), "{point}={pass} was not passed: {ended:?}");
}

/// How often a run over these inputs surely passes a point.
fn passes(point: &str) -> u32 {
    if point == failpoint::UNDONE_SENT { 1 } else { 3 }
}

/// Points that only a start with an earlier run's streams passes.
fn needs_earlier_run(point: &str) -> bool {
    [failpoint::UNDONE_SENT, failpoint::STREAM_FINALIZED, failpoint::STREAM_CLOSED].contains(&point)
}

/// Points that only a run passes whose table refuses a row: see `ledger::refused`, which kills there.
fn needs_refusal(point: &str) -> bool {
    point == failpoint::ENTRY_REPLACED
}

fn points() -> impl Iterator<Item = &'static str> {
    failpoint::ALL.into_iter().filter(|point| !needs_refusal(point))
}

#[test]
fn killed_at_any_point_of_its_first_run_a_worker_ends_exact() {
    let input = bookings::lines(600);
    let expected = uninterrupted(&input);
    for point in points().filter(|point| !needs_earlier_run(point)) {
        for pass in 1..=passes(point) {
            let mut pipeline = pipeline(&input);
            crash_at(&mut pipeline, point, pass);
            pipeline.run().expect(0);
            tables::tiers(&pipeline.database()).expect(&expected, &format!("{point}={pass}"));
        }
    }
}

#[test]
fn killed_at_any_point_of_a_resumed_run_a_worker_ends_exact() {
    let input = bookings::lines(600);
    let expected = uninterrupted(&input);
    for point in points() {
        for pass in 1..=passes(point) {
            let mut pipeline = pipeline(&input);
            crash_at(&mut pipeline, failpoint::ROWS_APPENDED, 3);
            crash_at(&mut pipeline, point, pass);
            pipeline.run().expect(0);
            tables::tiers(&pipeline.database()).expect(&expected, &format!("{point}={pass}"));
        }
    }
}

#[test]
fn thirty_kills_in_a_row_end_exact() {
    let mut random = fastrand::Rng::with_seed(1_905);
    let points: Vec<&str> = points().collect();
    let mut events = 500;
    let mut pipeline = pipeline(&bookings::lines(events)).set("batch.max_events=20");
    let mut kills = 0;
    while kills < 30 {
        let point = random.choice(&points).expect("there are points");
        let ended = run_into(&mut pipeline, point, random.u32(1..=passes(point)));
        if ended.was_killed() {
            kills += 1;
        } else {
            // It got to the end before it came to the point: the file grows, and the next run has work again.
            ended.expect(0);
            events += 300;
            pipeline.write_input(bookings::lines(events));
        }
    }
    pipeline.run().expect(0);
    tables::tiers(&pipeline.database()).expect(&uninterrupted(&bookings::lines(events)), "after thirty kills");
}

#[test]
fn killed_from_outside_at_random_moments_a_worker_ends_exact() {
    const EVENTS: usize = 200_000;
    const KILLS: usize = 10;
    let mut random = fastrand::Rng::with_seed(90_210);
    let large = |input: &str| Pipeline::offvia(input).warm().set("batch.max_events=1000");
    let input = bookings::lines(EVENTS);
    let pipeline = large(&input);
    for kill in 0..KILLS {
        let rows = (kill * EVENTS + random.usize(0..EVENTS)) / (KILLS + 1);
        let (mut run, _stdin) = Running::start(&pipeline);
        // Where in the protocol the worker then is, nobody knows.
        run.wait_until(|| tables::newest_rowid(&pipeline.database(), "raw_bookings") >= Some(rows as u64));
        run.signal(Signal::KILL);
        assert!(run.finish().was_killed(), "it was still running at {rows} rows");
    }
    pipeline.run().expect(0);
    let expected = large(&input);
    expected.run().expect(0);
    for table in ["raw_bookings", "fact_bookings", "poisoned_events"] {
        let fingerprint = |pipeline: &Pipeline| tables::fingerprint(&pipeline.database(), table);
        assert_eq!(fingerprint(&pipeline), fingerprint(&expected), "{table}");
    }
    assert_eq!(tables::count(&pipeline.database(), "raw_bookings"), EVENTS as u64);
}

//! A worker that is killed at any moment and started again, against the fake and against the emulator.

use super::{Expected, expect_exact, expect_same_bytes};
use preflight::failpoint;
use preflight_tests::bigquery::{Emulator, Fake};
use preflight_tests::{Ended, Pipeline, Running, bookings};
use rustix::process::Signal;

/// Twelve micro-batches: more than one run promises before it is killed.
const EVENTS: usize = 600;

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

/// How often a run surely passes a point.
fn passes(point: &str) -> u32 {
    if point == failpoint::UNDONE_SENT { 1 } else { 3 }
}

/// Points that only a start with an earlier run's streams passes.
fn needs_earlier_run(point: &str) -> bool {
    [failpoint::UNDONE_SENT, failpoint::STREAM_FINALIZED, failpoint::STREAM_CLOSED].contains(&point)
}

/// All but the one that only a refused row leads to: see `rows`, which kills there.
fn points() -> impl Iterator<Item = &'static str> {
    failpoint::ALL.into_iter().filter(|point| *point != failpoint::ENTRY_REPLACED)
}

#[test]
fn killed_at_any_point_of_its_first_run_a_worker_ends_exact() {
    for point in points().filter(|point| !needs_earlier_run(point)) {
        for pass in 1..=passes(point) {
            let fake = Fake::start();
            let mut pipeline = fake.offvia(bookings::lines(EVENTS));
            crash_at(&mut pipeline, point, pass);
            pipeline.run().expect(0);
            expect_exact(&fake, EVENTS, &format!("{point}={pass}"));
            expect_same_bytes(&fake);
        }
    }
}

#[test]
fn killed_at_any_point_of_a_resumed_run_a_worker_ends_exact() {
    for point in points() {
        for pass in 1..=passes(point) {
            let fake = Fake::start();
            let mut pipeline = fake.offvia(bookings::lines(EVENTS));
            crash_at(&mut pipeline, failpoint::ROWS_APPENDED, 3);
            crash_at(&mut pipeline, point, pass);
            pipeline.run().expect(0);
            expect_exact(&fake, EVENTS, &format!("{point}={pass}"));
            expect_same_bytes(&fake);
        }
    }
}

/// The same while the stream is gone that undone rows are bound to: they are looked for, and the rest is moved.
#[test]
fn killed_while_it_looks_for_the_rows_of_a_lost_stream_a_worker_ends_exact() {
    for point in
        [failpoint::STREAM_CREATED, failpoint::STREAM_RECORDED, failpoint::ROWS_APPENDED, failpoint::UNDONE_SENT]
    {
        for before in [failpoint::ROWS_APPENDED, failpoint::LEDGER_COMMITTED] {
            for pass in 1..=passes(point) {
                let fake = Fake::start();
                let mut pipeline = fake.offvia(bookings::lines(EVENTS));
                crash_at(&mut pipeline, before, 3);
                for table in super::TABLES {
                    fake.expire_streams(table);
                }
                crash_at(&mut pipeline, point, pass);
                pipeline.run().expect(0);
                expect_exact(&fake, EVENTS, &format!("{before}, then {point}={pass}"));
            }
        }
    }
}

#[test]
fn thirty_kills_in_a_row_end_exact() {
    let mut random = fastrand::Rng::with_seed(1_905);
    let points: Vec<&str> = points().collect();
    let fake = Fake::start();
    let mut events = 500;
    let mut pipeline = fake.offvia(bookings::lines(events)).set("batch.max_events=20");
    let mut kills = 0;
    while kills < 30 {
        let point = random.choice(&points).unwrap();
        let ended = run_into(&mut pipeline, point, random.u32(1..=passes(point)));
        if ended.was_killed() {
            kills += 1;
            if random.u8(..) < 60 {
                for table in super::TABLES {
                    fake.expire_streams(table);
                }
            }
        } else {
            // It got to the end before it came to the point: the file grows, and the next run has work again.
            ended.expect(0);
            events += 300;
            pipeline.write_input(bookings::lines(events));
        }
    }
    pipeline.run().expect(0);
    expect_exact(&fake, events, "after thirty kills");
}

#[test]
fn killed_from_outside_at_random_moments_a_worker_ends_exact() {
    const MANY: usize = 20_000;
    const KILLS: usize = 8;
    let mut random = fastrand::Rng::with_seed(90_210);
    let fake = Fake::start();
    let pipeline = fake.offvia(bookings::lines(MANY)).set("batch.max_events=200");
    for kill in 0..KILLS {
        let rows = (kill * MANY + random.usize(0..MANY)) / (KILLS + 1);
        let (run, _stdin) = Running::start(&pipeline);
        // Where in the protocol the worker then is, nobody knows.
        fake.wait_until("so many rows", |content| content.count(super::BRONZE) >= rows);
        run.signal(Signal::KILL);
        assert!(run.finish().was_killed(), "it was still running at {rows} rows");
    }
    pipeline.run().expect(0);
    expect_exact(&fake, MANY, "after random kills");
}

/// Every row once, in a dataset of the emulator.
#[track_caller]
fn expect_exact_in(dataset: &str, count: usize, when: &str) {
    let expected = Expected::of_lines(count);
    for (table, id, expected) in [
        ("raw_bookings", "message_id", expected.bronze),
        ("fact_bookings", "source_message_id", expected.silver),
        ("poisoned_events", "source_message_id", expected.quarantine),
    ] {
        let rows = Emulator::shared().query(&format!("SELECT {id} AS id FROM `{dataset}.{table}`"));
        let mut found: Vec<&str> = rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
        let mut expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{when}: {table}");
    }
}

#[test]
fn on_the_emulator_a_worker_that_is_killed_at_any_point_ends_exact() {
    let emulator = Emulator::shared();
    for point in points() {
        let dataset = emulator.dataset("crash");
        let pipeline = Pipeline::offvia(bookings::lines(EVENTS)).warm().set("batch.max_events=50");
        let mut pipeline = emulator.warehouse_of(pipeline, &dataset);
        if needs_earlier_run(point) {
            crash_at(&mut pipeline, failpoint::ROWS_APPENDED, 3);
            crash_at(&mut pipeline, point, 1);
        } else {
            crash_at(&mut pipeline, point, 2);
            crash_at(&mut pipeline, point, 1);
        }
        pipeline.run().expect(0);
        expect_exact_in(&dataset, EVENTS, point);
    }
}

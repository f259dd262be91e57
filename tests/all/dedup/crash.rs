//! A worker that is killed at any point of the commit protocol and started again counts every event once.

use super::{Line, counts, pipeline};
use preflight::failpoint;
use preflight_tests::tables::{self, Tiers};
use preflight_tests::{Booking, Pipeline};

/// Points that only a start with an earlier run's streams passes.
const OF_A_START: [&str; 3] = [failpoint::UNDONE_SENT, failpoint::STREAM_FINALIZED, failpoint::STREAM_CLOSED];

/// Two hundred events, many of them duplicates near and far, conflicts and bad ones, also of those.
fn lines() -> Vec<Line> {
    let mut random = fastrand::Rng::with_seed(5_050);
    (0..200)
        .map(|_| {
            let key = random.u32(0..60);
            let id = if random.u32(0..10) == 0 { format!("BK-{key}-other") } else { format!("BK-{key}") };
            let fare = if key.is_multiple_of(5) { "\"-1\"" } else { "\"749.50\"" };
            Line::of(Booking::v1(&id).with("fare", fare).json()).attribute("event_id", &key.to_string())
        })
        .collect()
}

fn offvia(by: &str, lines: &[Line]) -> Pipeline {
    pipeline(by, lines).set("batch.max_events=10").set("run.threads=2")
}

fn uninterrupted(by: &str, lines: &[Line]) -> Tiers {
    let pipeline = offvia(by, lines);
    let [silver, quarantine, duplicates] = counts(&pipeline.run().expect(0).json());
    assert!(silver > 20 && quarantine > 10 && duplicates > 50, "{silver} {quarantine} {duplicates}");
    tables::tiers(&pipeline.database())
}

fn crash_at(pipeline: &mut Pipeline, point: &str, pass: u32) {
    pipeline.environment = vec![(failpoint::VARIABLE.into(), format!("{point}={pass}"))];
    let ended = pipeline.run();
    assert!(ended.was_killed(), "{point}={pass} was not passed: {ended:?}");
    pipeline.environment.clear();
}

#[test]
fn killed_at_any_point_a_worker_that_dedups_ends_exact() {
    let lines = lines();
    for by in ["{ attribute = \"event_id\" }", "{ columns = [\"booking_id\"] }"] {
        let expected = uninterrupted(by, &lines);
        for point in failpoint::ALL.into_iter().filter(|point| *point != failpoint::ENTRY_REPLACED) {
            for pass in [1, 3] {
                if point == failpoint::UNDONE_SENT && pass > 1 {
                    continue;
                }
                let mut pipeline = offvia(by, &lines);
                if OF_A_START.contains(&point) {
                    crash_at(&mut pipeline, failpoint::ROWS_APPENDED, 6);
                }
                crash_at(&mut pipeline, point, pass);
                pipeline.run().expect(0);
                tables::tiers(&pipeline.database()).expect(&expected, &format!("{by} {point}={pass}"));
            }
        }
    }
}

#[test]
fn twenty_kills_in_a_row_lose_no_key() {
    let lines = lines();
    let by = "{ attribute = \"event_id\" }";
    let expected = uninterrupted(by, &lines);
    let mut random = fastrand::Rng::with_seed(7);
    let mut pipeline = offvia(by, &lines).set("batch.max_events=5");
    for _ in 0..20 {
        let point =
            random.choice([failpoint::BATCH_JUDGED, failpoint::LEDGER_COMMITTED, failpoint::ENTRY_DONE]).unwrap();
        crash_at(&mut pipeline, point, 1);
    }
    pipeline.run().expect(0);
    tables::tiers(&pipeline.database()).expect(&expected, "after twenty kills");
}

//! A run that replaces tables is killed at any moment: until it publishes they have the rows they had, and the next run ends right.

use super::{Expected, crash_at, published, run_into, staged};
use preflight::failpoint;
use preflight_tests::bookings;

const OLD: usize = 110;
const NEW: usize = 600;

/// Points that such a run passes: no table refuses a row here.
fn points() -> impl Iterator<Item = &'static str> {
    let always = failpoint::ALL.into_iter().filter(|point| *point != failpoint::ENTRY_REPLACED);
    always.chain(failpoint::REPLACE)
}

/// How often it surely passes a point.
fn passes(point: &str) -> u32 {
    if point == failpoint::UNDONE_SENT || failpoint::REPLACE.contains(&point) { 1 } else { 3 }
}

/// Whether the tables have the new rows at a point.
fn is_behind_tables(point: &str) -> bool {
    [failpoint::TABLES_PUBLISHED, failpoint::FILES_PUBLISHED, failpoint::RUN_PUBLISHED].contains(&point)
}

#[test]
fn killed_at_any_point_it_leaves_the_old_rows_or_the_new_and_ends_right() {
    let (old, new) = (bookings::lines(OLD), bookings::lines(NEW));
    let (before, after) = (Expected::of(&old), Expected::of(&new));
    for point in points() {
        for pass in 1..=passes(point) {
            let when = format!("{point}={pass}");
            let mut pipeline = published(OLD, &new);
            crash_at(&mut pipeline, point, pass);
            if point == failpoint::TABLES_PUBLISHED {
                preflight_tests::tables::tiers(&pipeline.database()).expect(&after.tiers, &when);
                assert_eq!(std::fs::read_to_string(super::rejects(&pipeline)).unwrap(), before.rejects, "{when}");
            } else if is_behind_tables(point) {
                after.expect(&pipeline, &when);
            } else {
                before.expect(&pipeline, &when);
            }
            let report = pipeline.run().expect(0).json();
            after.expect(&pipeline, &when);
            // All that was ever read of the run is told, also of what the killed process had read.
            assert_eq!(report["events"], NEW, "{when}");
            assert_eq!(report["silver"], after.tiers.silver.len(), "{when}");
            assert_eq!(report["quarantine"], after.tiers.quarantine.len(), "{when}");
            assert_eq!(report["run"]["published"], true, "{when}");
            assert_eq!(staged(&pipeline), [] as [&str; 0], "{when}");
        }
    }
}

#[test]
fn killed_at_any_point_of_a_run_that_is_gone_on_with_it_ends_right() {
    let (old, new) = (bookings::lines(OLD), bookings::lines(NEW));
    let (before, after) = (Expected::of(&old), Expected::of(&new));
    for point in points().filter(|point| ![failpoint::RUN_BEGUN, failpoint::RUN_STAGED].contains(point)) {
        let mut pipeline = published(OLD, &new);
        crash_at(&mut pipeline, failpoint::ROWS_APPENDED, 3);
        crash_at(&mut pipeline, point, 1);
        if !is_behind_tables(point) {
            before.expect(&pipeline, point);
        }
        let report = pipeline.run().expect(0).json();
        after.expect(&pipeline, point);
        assert_eq!(report["events"], NEW, "{point}");
        assert_eq!(staged(&pipeline), [] as [&str; 0], "{point}");
    }
}

#[test]
fn thirty_kills_in_a_row_end_right() {
    let (old, new) = (bookings::lines(OLD), bookings::lines(NEW));
    let (before, after) = (Expected::of(&old), Expected::of(&new));
    let mut random = fastrand::Rng::with_seed(2_606);
    let points: Vec<&str> = points().collect();
    let mut pipeline = published(OLD, &new).set("batch.max_events=20");
    let (mut kills, mut has_new) = (0, false);
    while kills < 30 {
        let point = random.choice(&points).unwrap();
        let ended = run_into(&mut pipeline, point, random.u32(1..=passes(point)));
        has_new |= !ended.was_killed() || is_behind_tables(point);
        if ended.was_killed() {
            kills += 1;
        } else {
            ended.expect(0);
        }
        let expected = if has_new { &after } else { &before };
        preflight_tests::tables::tiers(&pipeline.database())
            .expect(&expected.tiers, &format!("kill {kills} at {point}"));
    }
    pipeline.run().expect(0);
    after.expect(&pipeline, "after thirty kills");
}

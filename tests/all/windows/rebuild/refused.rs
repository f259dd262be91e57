//! What is refused, with what to do. Nothing is written then.

use super::{lacking, minutes, rebuilt};
use preflight::failpoint;
use preflight_tests::orders::{self, Orders, PER_MINUTE};
use preflight_tests::{Ended, Pipeline, tables};

#[track_caller]
fn refused(pipeline: &Pipeline, aggregate: &str, range: &str, parts: &[&str]) {
    let ended = pipeline.rebuild(aggregate, range, &[]).expect(2);
    for part in parts {
        assert!(ended.stderr.contains(part), "{part} is not in: {}", ended.stderr);
    }
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let pipeline = lacking();
    let before = tables::rows(&pipeline.database(), "per_minute");
    refused(&pipeline, "per_hour", &minutes(0, 1), &["no aggregate \"per_hour\"", "its aggregates are per_minute"]);
    refused(&pipeline, "per_minute", &minutes(1, 1), &["is empty", "comes behind its beginning"]);
    refused(&pipeline, "per_minute", &minutes(2, 1), &["is empty"]);
    refused(&pipeline, "per_minute", "today..tomorrow", &["\"today\"", "2026-01-31T12:00:00Z..2026-01-31T13:00:00Z"]);
    refused(&pipeline, "per_minute", "2026-01-31T12:00:00Z", &["it has no \"..\""]);
    for arguments in [&["--range", "a..b"][..], &["--from", "bronze", "--range", &minutes(0, 1)]] {
        let mut command = pipeline.command("rebuild");
        Ended::from_output(command.arg("per_minute").args(arguments).output().unwrap()).expect(2);
    }
    assert_eq!(tables::rows(&pipeline.database(), "per_minute"), before);
    refused(&orders::pipeline(&[], ""), "per_minute", &minutes(0, 1), &["it has none"]);
}

#[test]
fn a_pipeline_that_never_ran_has_nothing_to_rebuild() {
    let pipeline = orders::pipeline(&[PER_MINUTE], "");
    refused(&pipeline, "per_minute", &minutes(0, 1), &["is new", "run the pipeline first"]);
    assert!(!pipeline.ledger().exists());
}

#[test]
fn more_windows_than_may_be_held_are_refused_before_anything_is_written() {
    let pipeline = lacking().set("limits.open_windows=10");
    let before = tables::rows(&pipeline.database(), "per_minute");
    refused(
        &pipeline,
        "per_minute",
        &minutes(0, 10),
        &["more than 10 windows", "limits.open_windows", "narrower range"],
    );
    assert_eq!(tables::rows(&pipeline.database(), "per_minute"), before);
    rebuilt(&pipeline, "per_minute", &minutes(0, 3));
    rebuilt(&pipeline, "per_minute", &minutes(3, 7));
    super::expect_per_minute(&pipeline);
}

#[test]
fn a_range_whose_windows_a_killed_run_has_left_open_is_refused_until_it_is_finished() {
    let orders = Orders { count: 2_000, skus: 10, within: 20 * 60_000_000, shuffled: 60_000_000 };
    let mut pipeline = orders::pipeline(&[PER_MINUTE], orders.lines()).set("batch.max_events=500");
    pipeline.environment = vec![(failpoint::VARIABLE.into(), format!("{}=3", failpoint::LEDGER_COMMITTED))];
    assert!(pipeline.run().was_killed());
    pipeline.environment.clear();
    let parts = ["windows of per_minute are open", "latest end", "end of its source first"];
    refused(&pipeline, "per_minute", &minutes(0, 30), &parts);
    // Those that are behind the watermark are closed.
    rebuilt(&pipeline, "per_minute", &minutes(-10, 1));
    pipeline.run().expect(0);
    rebuilt(&pipeline, "per_minute", &minutes(-10, 30));
    super::expect_per_minute(&pipeline);
}

//! `--max-rejects`: a run fails before anything is replaced.

use super::{Expected, pipeline, published, rejected, rejects, run_with, staged};
use preflight_tests::{Ended, Pipeline, bookings, tables};
use std::fs;

/// `count` events, the last `bad` of which are rejected.
fn events(count: usize, bad: usize) -> String {
    format!("{}{}", bookings::good(count - bad), "no json\n".repeat(bad))
}

#[track_caller]
fn stops(ended: Ended, words: &[&str]) {
    let ended = ended.expect(1);
    for word in words {
        assert!(ended.stderr.contains(word), "{word:?} is not in: {}", ended.stderr);
    }
}

#[test]
fn as_many_as_the_bound_pass_and_one_more_fails() {
    let before = Expected::of(&bookings::lines(110));
    for (bound, passes, fails) in [("10", (400, 10), (400, 11)), ("1%", (400, 4), (400, 5)), ("0", (50, 0), (50, 1))] {
        let pipeline = published(110, &events(fails.0, fails.1));
        let message = format!("{} of {} events were rejected, more than --max-rejects {bound}", fails.1, fails.0);
        stops(run_with(&pipeline, &["--max-rejects", bound]), &[&message, "nothing was replaced"]);
        before.expect(&pipeline, bound);
        pipeline.write_input(events(passes.0, passes.1));
        let report = run_with(&pipeline, &["--max-rejects", bound]).expect(0).json();
        assert_eq!(report["quarantine"].as_u64(), Some(passes.1 as u64), "{bound}");
        assert_eq!(tables::count(&pipeline.database(), "fact_bookings"), (passes.0 - passes.1) as u64, "{bound}");
        assert_eq!(staged(&pipeline), [] as [&str; 0], "what the failed run had left is dropped");
    }
}

#[test]
fn a_percentage_is_of_what_is_no_duplicate() {
    // 100 events and 100 duplicates: two rejects are 2% of the former.
    let good = bookings::good(98);
    let input = format!("{good}no json\nneither\n{good}no json\nneither\n");
    let pipeline = pipeline(&input).set("dedup.by=payload");
    stops(run_with(&pipeline, &["--max-rejects", "1.9999%"]), &["2 of 100 events"]);
    run_with(&pipeline, &["--max-rejects", "2%"]).expect(0);
}

#[test]
fn the_rejects_of_a_failed_run_can_be_looked_at() {
    let input = bookings::lines(600);
    let pipeline = published(110, &input).set("run.max_rejects=20");
    let ended = pipeline.run().expect(1);
    let staged = staged(&pipeline);
    let table = staged.iter().find(|name| name.starts_with("poisoned_events__run_")).unwrap();
    let file = staged.iter().find(|name| name.starts_with("bookings")).unwrap();
    for place in [table, file] {
        assert!(ended.stderr.contains(place.as_str()), "{place}: {}", ended.stderr);
    }
    let mut listed = pipeline.command("quarantine list");
    listed.args(["--json", "--set", &format!("quarantine.table={table}")]);
    let listed = Ended::from_output(listed.output().unwrap()).expect(0).json();
    assert_eq!(listed["rows"].as_u64(), Some(tables::count(&pipeline.database(), table)));
    // It ends with the first that is one too many, not with the source.
    let rows = tables::count(&pipeline.database(), table);
    assert!((21..200).contains(&rows), "{rows}");
    let text = fs::read_to_string(pipeline.directory().join("rejected").join(file)).unwrap();
    assert!(rejected(&input).starts_with(&text) && text.lines().count() as u64 == rows, "{text}");
    // The command line overrules the pipeline file; the next run begins anew.
    let again = run_with(&pipeline, &["--max-rejects", "1000"]).expect(0);
    assert!(again.stderr.contains("too many of its events were rejected"), "{}", again.stderr);
    assert_eq!(again.json()["events"], 600);
    Expected::of(&input).expect(&pipeline, "again");
}

/// A run that was killed counts what it had rejected before.
#[test]
fn rejects_before_a_kill_count() {
    let input = format!("{}{}", "no json\n".repeat(60), bookings::good(400));
    let mut pipeline = published(110, &input);
    super::crash_at(&mut pipeline, preflight::failpoint::ROWS_APPENDED, 4);
    stops(run_with(&pipeline, &["--max-rejects", "59"]), &["60 of "]);
    let mut pipeline = published(110, &input);
    super::crash_at(&mut pipeline, preflight::failpoint::ROWS_APPENDED, 4);
    run_with(&pipeline, &["--max-rejects", "60"]).expect(0);
}

#[test]
fn a_run_that_appends_stops_and_what_it_has_written_stays() {
    let pipeline = Pipeline::offvia(events(400, 30)).warm().set("batch.max_events=50");
    stops(
        run_with(&pipeline, &["--max-rejects", "5"]),
        &["what was read until then is written", "table poisoned_events"],
    );
    let rows = tables::count(&pipeline.database(), "fact_bookings");
    assert!(rows >= 350, "{rows}");
    pipeline.run().expect(0);
    assert_eq!(tables::count(&pipeline.database(), "fact_bookings"), 370);
    assert_eq!(tables::count(&pipeline.database(), "poisoned_events"), 30);
    assert!(!rejects(&pipeline).exists());
}

#[test]
fn what_is_no_bound_is_refused() {
    let pipeline = pipeline("");
    for wrong in ["many", "101%", "-1"] {
        run_with(&pipeline, &[&format!("--max-rejects={wrong}")]).expect(2);
    }
    let live = Pipeline::offvia_from("[source.pubsub]\nsubscription = \"projects/p/subscriptions/sub\"");
    let ended = run_with(&live.set("warehouse.sqlite.path=w.db"), &["--max-rejects", "1%"]).expect(2);
    assert!(ended.stderr.contains("--max-rejects: a percentage is known"), "{}", ended.stderr);
}

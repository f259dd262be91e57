//! Pipelines that share one quarantine table: each takes its own rows.

use super::{names, of_version_2, replay, silver, unresolved, with_version_2, without_version_2};
use preflight::failpoint;
use preflight_tests::{Ended, Pipeline, tables};
use rusqlite::Connection;
use serde_json::json;

/// A pipeline with three rows in quarantine, and by now a rule for them. Behind them are two rows of the other pipeline,
/// whose events have the same message ids.
fn shared() -> Pipeline {
    let pipeline = without_version_2(&of_version_2("BK", 3));
    pipeline.run().expect(0);
    pipeline.write_input(of_version_2("OTHER", 2));
    let pipeline = as_other(pipeline);
    let run = pipeline.command("run").arg("--new-ledger").output().unwrap();
    Ended::from_output(run).expect(0);
    with_version_2(as_first(pipeline))
}

/// The same file as another pipeline: it has its own ledger.
fn as_other(pipeline: Pipeline) -> Pipeline {
    pipeline.set("name=other")
}

fn as_first(mut pipeline: Pipeline) -> Pipeline {
    pipeline.settings.retain(|setting| !setting.starts_with("name="));
    pipeline
}

fn sql(pipeline: &Pipeline, sql: &str) {
    Connection::open(pipeline.database()).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn rows_of_another_pipeline_are_not_listed_shown_or_replayed() {
    let mut pipeline = shared();
    for own in [["BK", "3"], ["OTHER", "2"]] {
        let ([prefix, count], before) = (own, silver(&pipeline).len());
        let count: usize = count.parse().unwrap();
        let listed = pipeline.quarantine("list", &["--json"]).expect(0).json();
        assert_eq!(listed["rows"], count, "{prefix}");
        assert_eq!(listed["groups"][0]["rows"], count, "{prefix}");
        let anothers = if prefix == "BK" { "4" } else { "1" };
        let ended = pipeline.quarantine("show", &[anothers]).expect(2);
        assert!(ended.stderr.contains(&format!("there is no row {anothers}")), "{}", ended.stderr);
        assert_eq!(replay(&pipeline, &["--id", anothers])["selected"], 0);
        assert_eq!(replay(&pipeline, &["--all", "--dry-run"])["selected"], count);
        assert_eq!(replay(&pipeline, &["--all"])["accepted"], count);
        assert_eq!(silver(&pipeline).len(), before + count);
        pipeline = as_other(pipeline);
    }
    assert_eq!(silver(&pipeline), [names("BK", 3), names("OTHER", 2)].concat());
    assert_eq!(unresolved(&pipeline), 0);
}

/// Marked is the row of the pipeline that replayed it, also where another's has its number and its message id by then.
#[test]
fn rows_of_another_pipeline_are_not_marked() {
    let mut pipeline = shared().env(failpoint::VARIABLE, failpoint::ROWS_APPENDED);
    assert!(pipeline.quarantine("replay", &["--id", "1,2"]).was_killed());
    pipeline.environment.clear();
    sql(
        &pipeline,
        "CREATE TABLE turned AS SELECT * FROM poisoned_events ORDER BY rowid DESC; DELETE FROM poisoned_events;
         INSERT INTO poisoned_events SELECT * FROM turned WHERE source_message_id <> 'input.ndjson:3'
           ORDER BY pipeline = 'test', source_message_id",
    );
    assert_eq!(tables::column(&pipeline.database(), "poisoned_events", "pipeline"), ["other", "other", "test", "test"]);
    assert_eq!(replay(&pipeline, &["--all"])["selected"], 0, "what was promised is delivered first");
    let marked = "SELECT pipeline FROM poisoned_events WHERE resolved_at IS NOT NULL";
    let marked = tables::query(&pipeline.database(), marked);
    assert!(marked.len() == 2 && marked.iter().all(|row| row["pipeline"] == "test"), "{marked:?}");
    assert_eq!(silver(&pipeline), names("BK", 2));
}

#[test]
fn rows_of_which_nothing_says_whose_they_are_are_listed_and_left() {
    let pipeline = shared();
    sql(&pipeline, "UPDATE poisoned_events SET pipeline = NULL WHERE rowid IN (1, 4)");
    assert_eq!(pipeline.quarantine("list", &["--json"]).expect(0).json()["rows"], 4);
    let report = replay(&pipeline, &["--all"]);
    assert_eq!((&report["selected"], &report["accepted"]), (&4.into(), &2.into()));
    assert_eq!(report["not_replayable"], json!({ "nothing says which pipeline's it is: pipeline is null": 2 }));
    sql(&pipeline, "UPDATE poisoned_events SET pipeline = 'test' WHERE rowid = 1");
    assert_eq!(replay(&pipeline, &["--id", "1"])["accepted"], 1);
    assert_eq!(silver(&pipeline), names("BK", 3));
}

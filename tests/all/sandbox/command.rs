//! The same through the real command: faults are quarantine rows, and the run ends well.

use preflight_tests::{Ended, Pipeline, paths, tables};
use serde_json::{Map, Value};

fn pipeline(payloads: &[&str]) -> Pipeline {
    let lines: String = payloads.iter().flat_map(|payload| [payload, "\n"]).collect();
    Pipeline::with_rule(&paths::rule("hostile-rule"), lines).warm()
}

fn run(pipeline: &Pipeline) -> Ended {
    pipeline.run().expect(0)
}

fn quarantine(pipeline: &Pipeline) -> Vec<Map<String, Value>> {
    tables::stable_rows(&pipeline.database(), "poisoned_events")
}

#[test]
fn faults_are_quarantined_with_their_code_and_their_payload() {
    let faults = [
        ("spin", "fuel"),
        ("allocate", "memory"),
        ("recurse", "stack"),
        ("panic:boom", "panic"),
        ("oob", "trap"),
        ("bad-utf8", "abi"),
        ("null", "manifest"),
        ("lookup", "import"),
    ];
    let payloads: Vec<&str> = faults.iter().flat_map(|(payload, _)| [*payload, "ok"]).collect();
    let pipeline = pipeline(&payloads);
    let report = run(&pipeline).json();
    assert_eq!((&report["silver"], &report["quarantine"]), (&8.into(), &8.into()));
    let rows = quarantine(&pipeline);
    let found: Vec<(&str, &str)> =
        rows.iter().map(|row| (row["raw_payload"].as_str().unwrap(), row["error_code"].as_str().unwrap())).collect();
    assert_eq!(found, faults);
    for row in &rows {
        assert_eq!(row["error_stage"], "RULE_FAULT");
        assert_eq!(row["rule"], "hostile-rule@0.1.0");
        assert!(row["rule_digest"].as_str().unwrap().starts_with("sha256:"));
    }
    assert_eq!(rows[3]["error_reason"], "boom");
}

#[test]
fn the_wall_clock_is_a_limit_of_the_pipeline_file() {
    let pipeline = pipeline(&["spin", "ok"]).set("limits.fuel_base=9000000000000000000").set("limits.wall_clock=50 ms");
    run(&pipeline);
    assert_eq!(quarantine(&pipeline)[0]["error_code"], "wall_clock");
    assert_eq!(tables::count(&pipeline.database(), "fact_bookings"), 1);
}

#[test]
fn the_log_is_kept_up_to_its_budget_and_the_loss_is_told() {
    let pipeline = pipeline(&["log:100", "ok"]).set("limits.log=200 B");
    let ended = run(&pipeline);
    let lines = ended.stderr.lines().filter(|line| line.contains("\"target\":\"rule\"")).count();
    assert_eq!(lines, 200 / ("line 0".len() + 16), "{}", ended.stderr);
    assert!(ended.stderr.contains("logged more than `limits.log` allows"), "{}", ended.stderr);
    assert!(ended.stderr.contains("\"lines\":91"), "the loss is counted: {}", ended.stderr);
    assert_eq!(tables::count(&pipeline.database(), "fact_bookings"), 2, "a lost log line costs no event");
}

#[test]
fn what_a_guest_logs_cannot_forge_a_line() {
    let pipeline = pipeline(&["panic:\"}\\u001b[2J{\"level\":\"ERROR\""]);
    let ended = run(&pipeline);
    for line in ended.stderr.lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok(), "{line}");
    }
}

#[test]
fn faults_that_did_not_stand_are_counted() {
    let pipeline = pipeline(&["ok", "ok", "trap-after:2", "ok"]).set("run.threads=1");
    let report = run(&pipeline).json();
    assert_eq!((&report["silver"], &report["recovered_faults"]), (&4.into(), &1.into()));
}

#[test]
fn verdicts_depend_neither_on_batches_nor_on_threads_nor_on_isolation() {
    let kinds = ["ok", "spin", "trap-after:2", "panic:x", "ok", "text:1000", "nan", "trap-after:7", "reason:10", "oob"];
    let payloads: Vec<&str> = kinds.iter().copied().cycle().take(300).collect();
    let outcome = |settings: &[&str]| {
        let pipeline = settings.iter().fold(pipeline(&payloads), |pipeline, setting| pipeline.set(*setting));
        run(&pipeline);
        tables::tiers(&pipeline.database())
    };
    let expected = outcome(&[]);
    assert_eq!(expected.silver.len() + expected.quarantine.len(), 300);
    for settings in [
        &["batch.max_events=1"][..],
        &["batch.max_events=7", "run.threads=1"],
        &["run.threads=4"],
        &["rules.isolation=event"],
        &["limits.events_per_instance=1"],
    ] {
        outcome(settings).expect(&expected, &settings.join(" "));
    }
}

//! Events that a replay brings too late for windows: it is said beforehand how many, and what brings them into the aggregates.

use preflight_tests::orders::{self, PER_MINUTE, PER_VISIT, order};
use preflight_tests::{Ended, Pipeline, Running, tables};
use serde_json::json;
use std::io::Write as _;
use std::process::Command;

/// Two orders whose rule has no fuel, then orders that move the watermark to the 28th minute, with what is needed to replay them.
fn starved(pipeline: Pipeline) -> Pipeline {
    let late = order("L0", "A", 65, 70) + &order("L1", "A", 130, 135);
    pipeline.write_input(&late);
    let mut pipeline = pipeline.set("limits.fuel_base=1").set("limits.fuel_per_byte=0");
    assert_eq!(pipeline.run().expect(0).json()["rejected"][0]["stage"], "RULE_FAULT");
    pipeline.settings.retain(|setting| !setting.starts_with("limits."));
    pipeline.write_input(late + &order("E0", "A", 60, 140) + &order("F", "A", 1_700, 1_800));
    pipeline.run().expect(0);
    assert_eq!(tables::count(&pipeline.database(), "orders"), 2);
    pipeline
}

/// A command as it was printed, as a shell runs it.
fn shell(pipeline: &Pipeline, command: &str) -> Ended {
    let program = preflight_tests::paths::preflight();
    let command = command.replacen("preflight", &program.display().to_string(), 1);
    Ended::from_output(Command::new("sh").args(["-c", &command]).current_dir(pipeline.directory()).output().unwrap())
}

fn sums(pipeline: &Pipeline, table: &str) -> String {
    tables::query(&pipeline.database(), &format!("SELECT sum(orders) AS n FROM {table}"))[0]["n"].to_string()
}

#[test]
fn what_will_be_late_is_said_beforehand_and_a_command_that_repairs_it_is_named() {
    let pipeline = starved(orders::pipeline(&[PER_MINUTE, PER_VISIT], "").set("batch.max_events=1"));
    let dry = pipeline.quarantine("replay", &["--all", "--dry-run", "--json"]).expect(0).json();
    assert_eq!((&dry["accepted"], &dry["late"]), (&2.into(), &().into()), "{dry}");
    let expected = &dry["expected_late"];
    let of: Vec<_> = [0, 1].map(|index| (&expected[index]["aggregate"], &expected[index]["events"])).into();
    assert_eq!(of, [(&"per_minute".into(), &2.into()), (&"per_visit".into(), &2.into())], "{dry}");
    let rebuild = expected[0]["rebuild"].as_str().unwrap();
    assert!(
        rebuild.contains("pipeline.toml per_minute ") && rebuild.contains(" --set batch.max_events=1 "),
        "{rebuild}"
    );
    assert!(
        rebuild.ends_with("--from silver --range 2024-05-01T14:01:00.000000Z..2024-05-01T14:03:00.000000Z"),
        "{rebuild}"
    );
    let text = pipeline.quarantine("replay", &["--all", "--dry-run"]).expect(0).stdout;
    assert!(text.contains("2 events are late for windows of per_minute") && text.contains(rebuild), "{text}");
    assert_eq!(tables::count(&pipeline.database(), "orders"), 2, "nothing was written");

    let replayed = pipeline.quarantine("replay", &["--all"]).expect(0);
    for part in ["2 events are late for windows of per_minute", "not into per_minute", rebuild] {
        assert!(replayed.stderr.contains(part), "{part}: {}", replayed.stderr);
    }
    assert!(replayed.stdout.contains("late for per_minute"), "{}", replayed.stdout);
    assert_eq!(tables::count(&pipeline.database(), "late_orders"), 4, "each for each aggregate");
    assert_eq!((sums(&pipeline, "per_minute_latest"), sums(&pipeline, "per_visit_latest")), ("2".into(), "2".into()));
    for expected in expected.as_array().unwrap() {
        shell(&pipeline, expected["rebuild"].as_str().unwrap()).expect(0);
    }
    assert_eq!((sums(&pipeline, "per_minute_latest"), sums(&pipeline, "per_visit_latest")), ("4".into(), "4".into()));
}

#[test]
fn what_was_late_indeed_is_in_the_report() {
    let pipeline = starved(orders::pipeline(&[PER_MINUTE], "").set("batch.max_events=1"));
    let report = pipeline.quarantine("replay", &["--all", "--json"]).expect(0).json();
    assert_eq!((&report["accepted"], &report["late"]), (&2.into(), &json!({ "per_minute": 2 })), "{report}");
    assert_eq!(report["expected_late"][0]["events"], 2, "{report}");
}

#[test]
fn nothing_is_late_where_no_window_is_closed() {
    let pipeline = orders::pipeline(&[PER_MINUTE], order("L0", "A", 65, 70)).set("batch.max_events=1");
    let mut pipeline = pipeline.set("limits.fuel_base=1").set("limits.fuel_per_byte=0");
    pipeline.run().expect(0);
    pipeline.settings.retain(|setting| !setting.starts_with("limits."));
    let replayed = pipeline.quarantine("replay", &["--all", "--json"]).expect(0);
    assert!(!replayed.stderr.contains("late"), "{}", replayed.stderr);
    assert_eq!((&replayed.json()["accepted"], &replayed.json()["late"]), (&1.into(), &().into()));
}

/// The watermark is read beside the worker that holds the ledger.
#[test]
fn beside_a_running_worker_it_is_said_as_well() {
    let pipeline = starved(orders::pipeline(&[PER_MINUTE], "").set("batch.max_events=1").set("batch.max_age=10 ms"));
    let pipeline = pipeline.set("source.stdin.format=envelope");
    let file = std::fs::read_to_string(pipeline.file()).unwrap();
    let file = file.replace("[source.file]\npath = \"input.ndjson\"\nformat = \"envelope\"", "[source.stdin]");
    std::fs::write(pipeline.file(), file).unwrap();
    let (mut run, mut stdin) = Running::start(&pipeline);
    stdin.write_all(order("G", "A", 1_710, 1_810).as_bytes()).unwrap();
    run.wait_patiently_until(|| tables::newest_rowid(&pipeline.database(), "orders") == Some(3));
    let replayed = pipeline.quarantine("replay", &["--all", "--json"]).expect(0);
    assert!(replayed.stderr.contains("2 events are late for windows of per_minute"), "{}", replayed.stderr);
    assert_eq!(replayed.json()["late"], json!({ "per_minute": 2 }));
    drop(stdin);
    run.finish().expect(0);
}

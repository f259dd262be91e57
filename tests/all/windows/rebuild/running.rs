//! A running worker rebuilds when it is asked.

use super::{counts, expect_per_minute, minutes, number, order};
use preflight::failpoint;
use preflight_tests::orders::{self, PER_MINUTE};
use preflight_tests::{Pipeline, Running, tables};
use std::io::Write as _;
use std::process::ChildStdin;

/// A worker whose input is open. The watermark is at the 28th minute, and three orders came too late.
fn working(pipeline: &Pipeline) -> (Running, ChildStdin) {
    let (mut run, mut stdin) = Running::start(pipeline);
    stdin.write_all(super::with_late_orders().as_bytes()).unwrap();
    run.wait_patiently_until(|| tables::newest_rowid(&pipeline.database(), "late_orders") == Some(3));
    (run, stdin)
}

fn pipeline() -> Pipeline {
    orders::from_stdin(&[PER_MINUTE]).set("batch.max_events=1").set("batch.max_age=10 ms")
}

#[test]
fn a_running_worker_rebuilds_and_goes_on_under_its_epoch() {
    let pipeline = pipeline();
    let (run, mut stdin) = working(&pipeline);
    let asked = pipeline.rebuild("per_minute", &minutes(0, 24), &["--json"]).expect(0);
    assert!(asked.stderr.contains(&format!("waiting for the worker that holds the ledger (process {})", run.id())));
    let report = asked.json();
    assert_eq!(counts(&report), [15, 0, 0], "{report}");
    let lived = number(&pipeline, "SELECT min(epoch) AS n FROM per_minute");
    assert!(report["epoch"].as_i64().unwrap() > lived);
    // The window of the 28th minute is open: it takes more, and fires under the epoch that it was opened in.
    stdin.write_all((order("M0", "A", 1_705, 1_802) + &order("M1", "B", 1_706, 1_802)).as_bytes()).unwrap();
    drop(stdin);
    let ended = run.finish().expect(0).json();
    assert_eq!((&ended["events"], &ended["silver"]), (&26.into(), &26.into()), "its report counts its own events");
    let later = "SELECT count(*) AS n FROM per_minute WHERE window_start >= '2024-05-01T14:28'";
    assert_eq!(number(&pipeline, later), 2);
    assert_eq!(number(&pipeline, &format!("{later} AND epoch = {lived}")), 2);
    expect_per_minute(&pipeline);
}

#[test]
fn a_worker_refuses_a_range_whose_windows_may_still_take_events() {
    let pipeline = pipeline();
    let (run, _stdin) = working(&pipeline);
    let before = tables::rows(&pipeline.database(), "per_minute");
    for arguments in [&["--json"][..], &["--dry-run"][..]] {
        let asked = pipeline.rebuild("per_minute", &minutes(0, 25), arguments).expect(2);
        for part in ["may still take events", "is 2024-05-01T14:24:01", "4 m (allowed_lateness)"] {
            assert!(asked.stderr.contains(part), "{part}: {}", asked.stderr);
        }
    }
    assert_eq!(tables::rows(&pipeline.database(), "per_minute"), before);
    let dry = pipeline.rebuild("per_minute", &minutes(0, 24), &["--dry-run", "--json"]).expect(0).json();
    assert_eq!(counts(&dry), [15, 0, 0]);
    assert_eq!(tables::rows(&pipeline.database(), "per_minute"), before);
    run.stop().expect(0);
}

#[test]
fn what_a_worker_knows_nothing_of_it_refuses() {
    let pipeline = pipeline();
    let (_run, _stdin) = working(&pipeline);
    let mut file = std::fs::read_to_string(pipeline.file()).unwrap();
    file.push_str(&PER_MINUTE.replace("per_minute", "by_minute"));
    std::fs::write(pipeline.file(), file).unwrap();
    let asked = pipeline.rebuild("by_minute", &minutes(0, 1), &[]).expect(2);
    assert!(asked.stderr.contains("no aggregate \"by_minute\": its aggregates are per_minute"), "{}", asked.stderr);
}

#[test]
fn a_worker_that_is_killed_while_it_rebuilds_leaves_it_to_the_command() {
    for point in [failpoint::REQUEST_TAKEN, failpoint::REQUEST_DONE] {
        let mut pipeline = pipeline().env(failpoint::VARIABLE, &format!("{point}=1"));
        let (run, _stdin) = working(&pipeline);
        pipeline.environment.clear();
        let asked = pipeline.rebuild("per_minute", &minutes(0, 24), &["--json"]).expect(0);
        assert!(run.finish().was_killed(), "{point} was not passed");
        assert!(asked.stderr.contains("the worker ended while it rebuilt"), "{point}: {}", asked.stderr);
        assert_eq!(counts(&asked.json()), [15, 0, 0], "{point}");
        let twice = "SELECT count(*) AS n FROM (SELECT 1 FROM per_minute GROUP BY window_id, epoch, pane_index HAVING count(*) > 1)";
        assert_eq!(number(&pipeline, twice), 0, "{point}");
        pipeline.set("source.stdin.format=envelope").run().expect(0);
    }
}

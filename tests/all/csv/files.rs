//! Several files, compressed files, files that grow, and runs that are killed among them.

use super::{HEADER, booking, bookings, gzip, message_ids, pipeline, rejected, silver, write};
use preflight::failpoint;
use preflight_tests::{Ended, Pipeline, tables};
use serde_json::Value;
use std::io::Write as _;
use std::process::Stdio;

#[track_caller]
fn run(pipeline: &Pipeline, events: u64) -> Value {
    let report = pipeline.run().expect(0).json();
    assert_eq!(report["events"], events);
    report
}

fn file(ids: &[&str]) -> String {
    let records: Vec<String> = ids.iter().map(|id| booking(id, "PAX-1") + "\n").collect();
    format!("{HEADER}\n{}", records.concat())
}

#[test]
fn files_of_a_pattern_are_read_in_order_once_and_new_ones_by_the_next_run() {
    let pipeline = pipeline("").set("source.file.path=in/**/*.csv");
    write(&pipeline, "in/b.csv", file(&["3"]));
    write(&pipeline, "in/a/b.csv", file(&["1", "2"]));
    write(&pipeline, "in/c.txt", "not this\n");
    run(&pipeline, 3);
    assert_eq!(silver(&pipeline), ["1", "2", "3"]);
    run(&pipeline, 0);
    write(&pipeline, "in/a/a.csv", gzip(file(&["4"]).as_bytes()));
    let mut grows = std::fs::File::options().append(true).open(pipeline.directory().join("in/b.csv")).unwrap();
    write!(grows, "\r\n\n{}", booking("5", "PAX-1")).unwrap();
    run(&pipeline, 2);
    grows.write_all(b"\n").unwrap();
    run(&pipeline, 0);
    assert_eq!(message_ids(&pipeline), ["a/b.csv:2", "a/b.csv:3", "b.csv:2", "a/a.csv:2", "b.csv:5"]);
    assert_eq!(rejected(&pipeline), []);
    // Replaced, it is another file.
    write(&pipeline, "in/b.csv", file(&["6"]));
    run(&pipeline, 1);
    assert_eq!(message_ids(&pipeline).last().unwrap(), "b.csv#2:2");
}

#[test]
fn a_compressed_file_goes_on_where_it_was_read_to() {
    let text = file(&["1", "2"]);
    let pipeline = pipeline(gzip(text.as_bytes()));
    run(&pipeline, 2);
    run(&pipeline, 0);
    // A member more is more of the same file.
    let member = gzip((booking("3", "PAX-1") + "\n").as_bytes());
    write(&pipeline, "bookings.csv", [gzip(text.as_bytes()), member].concat());
    run(&pipeline, 1);
    // It is the same file when it is not compressed any more.
    write(&pipeline, "bookings.csv", text + &booking("3", "PAX-1") + "\n" + &booking("4", "PAX-1"));
    run(&pipeline, 1);
    assert_eq!(silver(&pipeline), ["1", "2", "3", "4"]);
    assert_eq!(message_ids(&pipeline), [2, 3, 4, 5].map(|line| format!("bookings.csv:{line}")));
}

#[test]
fn an_archive_that_is_cut_off_gives_its_whole_records_and_ends_the_run() {
    let text = bookings(20_000);
    let whole = gzip(text.as_bytes());
    let pipeline = pipeline(&whole[..whole.len() / 2]);
    for _ in 0..2 {
        let error = pipeline.run().expect(1).stderr;
        assert!(error.contains("bookings.csv: the gzip archive is cut off"), "{error}");
    }
    let before = message_ids(&pipeline).len();
    assert!((1_000..20_000).contains(&before), "{before} records");
    write(&pipeline, "bookings.csv", &whole);
    run(&pipeline, 20_000 - before as u64);
    let expected = super::pipeline(&text);
    run(&expected, 20_000);
    tables::tiers(&pipeline.database()).expect(&tables::tiers(&expected.database()), "cut off and made whole");
}

#[test]
fn killed_anywhere_in_several_files_it_goes_on_exactly() {
    let pipeline = || {
        let pipeline = pipeline("").set("source.file.path=in/*").set("batch.max_events=100");
        write(&pipeline, "in/a.csv", bookings(250));
        write(&pipeline, "in/b.csv.gz", gzip(bookings(330).as_bytes()));
        write(&pipeline, "in/c.csv", HEADER);
        write(&pipeline, "in/d.csv", bookings(99).replace('\n', "\r\n"));
        pipeline
    };
    let expected = pipeline();
    run(&expected, 250 + 330 + 99);
    let expected = tables::tiers(&expected.database());
    // A micro-batch ends with its file.
    for pass in 1..=8 {
        let mut killed = pipeline().env(failpoint::VARIABLE, &format!("{}={pass}", failpoint::ROWS_APPENDED));
        assert!(killed.run().was_killed(), "pass {pass} was not passed");
        killed.environment.clear();
        killed.run().expect(0);
        tables::tiers(&killed.database()).expect(&expected, &format!("killed at pass {pass}"));
    }
}

#[test]
fn records_come_from_standard_input_too() {
    let pipeline = Pipeline::offvia("").warm().set("source.stdin.format=csv").set("source.stdin.csv.delimiter=;");
    for compress in [false, true] {
        let text = file(&["1"]).replace(',', ";") + "broken\n";
        let bytes = if compress { gzip(text.as_bytes()) } else { text.into_bytes() };
        let mut command = pipeline.command("run");
        command.arg("--json").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(&bytes).unwrap();
        let report = Ended::from_output(child.wait_with_output().unwrap()).expect(0).json();
        assert_eq!((&report["silver"], &report["quarantine"]), (&1.into(), &1.into()));
    }
    assert!(message_ids(&pipeline).iter().all(|id| id.starts_with("stdin-")));
}

#[test]
fn a_record_above_the_limit_is_refused_and_those_behind_it_are_read() {
    let long = "x".repeat(3_000);
    let text = [
        HEADER.to_owned(),
        booking("1", &long),
        // Open over its limit: the line alone is broken.
        booking("2", &format!("\"{}\n{}\n\"", &long[..1_500], &long[..1_500])),
        booking("3", "PAX-1"),
    ];
    let pipeline = pipeline(text.join("\n")).set("limits.payload=2 kB");
    pipeline.run().expect(0);
    assert_eq!(silver(&pipeline), ["3"]);
    let stages: Vec<String> = rejected(&pipeline).into_iter().map(|(stage, _)| stage).collect();
    assert_eq!(stages, ["PAYLOAD_TOO_LARGE", "PARSE_CSV", "PARSE_CSV", "PARSE_CSV"]);
}

#[test]
fn two_rules_are_compared_on_records() {
    let pipeline = pipeline(file(&["1", "2"]) + "broken\n");
    let rule = preflight_tests::paths::rule("offvia-booking").display().to_string();
    let input = pipeline.directory().join("*.csv").display().to_string();
    let ended =
        preflight_tests::pipeline::preflight(["diff", &rule, &rule, "--input", &input, "--format", "csv"]).expect(0);
    assert!(ended.stdout.contains("2 events"), "{}", ended.stdout);
    assert!(
        ended.stdout.contains("1 events skipped: not whole, PARSE_CSV")
            || ended.stdout.contains("not whole, PARSE_CSV"),
        "{}",
        ended.stdout
    );
}

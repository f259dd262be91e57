//! Where events come from: files that are read again, grow or are replaced; pipes; and being asked to stop.

use preflight::failpoint;
use preflight_tests::{Booking, Ended, Pipeline, Running, bookings, tables};
use rustix::process::Signal;
use serde_json::Value;
use std::io::Write as _;
use std::process::Stdio;

fn booking(id: &str) -> String {
    Booking::v1(id).json() + "\n"
}

fn ids(pipeline: &Pipeline) -> Vec<String> {
    tables::column(&pipeline.database(), "fact_bookings", "booking_id")
}

fn message_ids(pipeline: &Pipeline) -> Vec<String> {
    tables::column(&pipeline.database(), "raw_bookings", "message_id")
}

fn append(pipeline: &Pipeline, text: &str) {
    let mut file = std::fs::File::options().append(true).open(pipeline.input()).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[track_caller]
fn run(pipeline: &Pipeline, events: u64) -> Value {
    let report = pipeline.run().expect(0).json();
    assert_eq!(report["events"], events);
    assert_eq!(report["complete"], true);
    report
}

#[test]
fn the_same_file_again_adds_nothing() {
    let pipeline = Pipeline::offvia(booking("1") + &booking("2") + "x\n").warm();
    run(&pipeline, 3);
    let report = run(&pipeline, 0);
    assert_eq!((&report["bronze"], &report["silver"], &report["quarantine"]), (&0.into(), &0.into(), &0.into()));
    // It is the same file by any other path, and whatever its times say.
    let link = pipeline.directory().join("link.ndjson");
    std::os::unix::fs::symlink(pipeline.input(), &link).unwrap();
    let now = std::time::SystemTime::now();
    std::fs::File::options().append(true).open(pipeline.input()).unwrap().set_modified(now).unwrap();
    let pipeline = pipeline.set("source.file.path=./link.ndjson");
    run(&pipeline, 0);
    assert_eq!(ids(&pipeline), ["1", "2"]);
}

#[test]
fn a_file_that_grew_goes_on_where_it_ended() {
    let pipeline = Pipeline::offvia(booking("1")).warm();
    run(&pipeline, 1);
    append(&pipeline, &(booking("2") + &booking("3")));
    run(&pipeline, 2);
    append(&pipeline, &booking("4"));
    run(&pipeline, 1);
    assert_eq!(ids(&pipeline), ["1", "2", "3", "4"]);
    assert_eq!(message_ids(&pipeline), [1, 2, 3, 4].map(|line| format!("input.ndjson:{line}")));
}

#[test]
fn a_last_line_without_an_end_is_judged_and_its_end_is_no_event() {
    let pipeline = Pipeline::offvia(booking("1") + booking("2").trim_end()).warm();
    run(&pipeline, 2);
    run(&pipeline, 0);
    append(&pipeline, "\n");
    run(&pipeline, 0);
    append(&pipeline, &booking("3"));
    run(&pipeline, 1);
    append(&pipeline, booking("4").trim_end());
    run(&pipeline, 1);
    append(&pipeline, &("\n".to_owned() + &booking("5")));
    run(&pipeline, 1);
    append(&pipeline, "\n");
    run(&pipeline, 1);
    assert_eq!(ids(&pipeline), ["1", "2", "3", "4", "5"]);
    assert_eq!(tables::column(&pipeline.database(), "poisoned_events", "error_reason"), ["payload is empty"]);
    assert_eq!(message_ids(&pipeline), (1..=6).map(|line| format!("input.ndjson:{line}")).collect::<Vec<_>>());
}

/// The end of a line may come in two bytes: what is before the newline was an event of one carriage return.
#[test]
fn a_carriage_return_before_the_end_that_came_later_is_no_event() {
    let pipeline = Pipeline::offvia(booking("1").trim_end()).warm();
    run(&pipeline, 1);
    append(&pipeline, &("\r\n".to_owned() + booking("2").trim_end()));
    run(&pipeline, 1);
    append(&pipeline, "\r");
    run(&pipeline, 0);
    append(&pipeline, "\n");
    run(&pipeline, 0);
    append(&pipeline, &booking("3"));
    run(&pipeline, 1);
    // Only there: a line that was ended is followed by another, whatever that holds.
    append(&pipeline, "\r\n");
    run(&pipeline, 1);
    assert_eq!(ids(&pipeline), ["1", "2", "3"]);
    assert_eq!(message_ids(&pipeline), [1, 2, 3, 4].map(|line| format!("input.ndjson:{line}")));
}

/// Both halves were judged, so both are kept: whoever appends in the middle of a line finds them in quarantine.
#[test]
fn a_line_that_grew_in_its_middle_is_two_events() {
    let whole = booking("torn");
    let (first, second) = whole.split_at(40);
    let pipeline = Pipeline::offvia(booking("1") + first).warm();
    run(&pipeline, 2);
    append(&pipeline, &(second.to_owned() + &booking("2")));
    run(&pipeline, 2);
    assert_eq!(ids(&pipeline), ["1", "2"]);
    assert_eq!(tables::column(&pipeline.database(), "poisoned_events", "raw_payload"), [first, second.trim_end()]);
}

#[test]
fn a_file_that_was_replaced_is_read_as_new_with_fresh_message_ids() {
    let pipeline = Pipeline::offvia(booking("1") + &booking("2")).warm();
    run(&pipeline, 2);
    pipeline.write_input(booking("3") + &booking("4") + &booking("5"));
    run(&pipeline, 3);
    run(&pipeline, 0);
    append(&pipeline, &booking("6"));
    run(&pipeline, 1);
    pipeline.write_input(booking("7"));
    run(&pipeline, 1);
    assert_eq!(ids(&pipeline), ["1", "2", "3", "4", "5", "6", "7"]);
    let expected = ["", "", "#2", "#2", "#2", "#2", "#3"].iter().zip([1, 2, 1, 2, 3, 4, 1]);
    assert_eq!(
        message_ids(&pipeline),
        expected.map(|(file, line)| format!("input.ndjson{file}:{line}")).collect::<Vec<_>>()
    );
}

#[test]
fn a_file_that_was_cut_or_changed_is_another_file() {
    let both = booking("1") + &booking("2");
    let pipeline = Pipeline::offvia(&both).warm();
    run(&pipeline, 2);
    // Cut: what is left is read as new. Nothing left: nothing to read, nothing forgotten.
    pipeline.write_input(booking("1"));
    run(&pipeline, 1);
    pipeline.write_input("");
    run(&pipeline, 0);
    // One byte changed somewhere before the end.
    pipeline.write_input(both.replace("PAX-4821", "PAX-4822"));
    run(&pipeline, 2);
    assert_eq!(ids(&pipeline), ["1", "2", "1", "1", "2"]);
    let unique: std::collections::BTreeSet<String> = message_ids(&pipeline).into_iter().collect();
    assert_eq!(unique.len(), 5, "no message id twice: {unique:?}");
}

#[test]
fn an_empty_file_is_no_event() {
    let pipeline = Pipeline::offvia("").warm();
    run(&pipeline, 0);
    append(&pipeline, "\n");
    run(&pipeline, 1);
    assert_eq!(tables::count(&pipeline.database(), "raw_bookings"), 1);
}

#[test]
fn several_files_have_a_position_each() {
    let pipeline = Pipeline::offvia(booking("1")).warm();
    let other = pipeline.directory().join("other.ndjson");
    std::fs::write(&other, booking("2")).unwrap();
    run(&pipeline, 1);
    let pipeline = pipeline.set("source.file.path=other.ndjson");
    run(&pipeline, 1);
    run(&pipeline, 0);
    let pipeline = pipeline.set("source.file.path=input.ndjson");
    run(&pipeline, 0);
    assert_eq!(message_ids(&pipeline), ["input.ndjson:1", "other.ndjson:1"]);
}

/// Runs it with these bytes on standard input.
fn piped(pipeline: &Pipeline, input: &[u8]) -> Value {
    let mut command = pipeline.command("run");
    command.arg("--json").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    Ended::from_output(child.wait_with_output().unwrap()).expect(0).json()
}

/// Standard input as a source, without a file.
fn from_stdin(format: &str) -> Pipeline {
    Pipeline::offvia("").warm().set(format!("source.stdin.format={format}"))
}

#[test]
fn standard_input_is_read_in_both_formats() {
    let lines = from_stdin("lines");
    assert_eq!(piped(&lines, (booking("1") + "\n" + &booking("2")).as_bytes())["silver"], 2);
    assert_eq!(tables::column(&lines.database(), "raw_bookings", "subscription_name"), ["stdin"; 3]);
    let envelopes = from_stdin("envelope");
    let line = serde_json::json!({ "data": booking("1"), "message_id": "m" }).to_string();
    assert_eq!(piped(&envelopes, line.as_bytes())["silver"], 1);
    assert_eq!(message_ids(&envelopes), ["m"]);
    // A pipe cannot be recognised: the same lines are other events, with other ids.
    assert_eq!(piped(&lines, booking("1").as_bytes())["silver"], 1);
    let unique: std::collections::BTreeSet<String> = message_ids(&lines).into_iter().collect();
    assert_eq!(unique.len(), 4, "{unique:?}");
    assert_eq!(piped(&lines, b"")["events"], 0);
}

#[test]
fn a_pipe_is_read_as_a_file_too() {
    let pipeline = Pipeline::offvia("").warm().set("source.file.path=/dev/stdin");
    let input = bookings::good(5_000);
    assert_eq!(piped(&pipeline, input.as_bytes())["silver"], 5_000);
    assert_eq!(piped(&pipeline, booking("1").as_bytes())["silver"], 1);
    let fifo = pipeline.directory().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let pipeline = pipeline.set("source.file.path=fifo");
    let running = Running::start(&pipeline);
    std::fs::write(&fifo, booking("2") + "x").unwrap();
    let report = running.0.finish().expect(0).json();
    assert_eq!((&report["silver"], &report["quarantine"]), (&1.into(), &1.into()));
}

/// It waited in `open` for somebody to write, and did not notice that it was asked to stop.
#[test]
fn a_named_pipe_that_nobody_writes_to_does_not_keep_it_from_stopping() {
    let pipeline = Pipeline::offvia("").warm().set("source.file.path=fifo");
    let fifo = pipeline.directory().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let (mut running, _stdin) = Running::start(&pipeline);
    running.wait_until(|| pipeline.ledger().join("ledger.db").exists());
    running.signal(Signal::TERM);
    assert_eq!(running.finish().expect(0).json()["events"], 0);
}

/// `:memory:` and an empty path were databases in memory: exit code 0, a ledger that said that all was written, and no rows.
#[test]
fn a_database_is_a_file_whatever_it_is_called() {
    for name in [":memory:", "file:x?mode=memory"] {
        let pipeline = Pipeline::offvia(booking("1")).warm().set(format!("warehouse.sqlite.path={name}"));
        run(&pipeline, 1);
        assert_eq!(tables::count(&pipeline.directory().join(name), "fact_bookings"), 1);
        run(&pipeline, 0);
    }
}

#[test]
fn events_of_a_slow_pipe_are_written_before_it_ends() {
    let pipeline = from_stdin("lines").set("batch.max_age=50 ms");
    let (mut running, mut stdin) = Running::start(&pipeline);
    let silver = || tables::newest_rowid(&pipeline.database(), "fact_bookings").unwrap_or(0);
    for number in 1..=3 {
        // A line that has not ended yet is no event yet.
        let line = booking(&number.to_string());
        let (start, end) = line.split_at(30);
        stdin.write_all(start.as_bytes()).unwrap();
        stdin.write_all(end.as_bytes()).unwrap();
        running.wait_until(|| silver() == number);
    }
    running.signal(Signal::TERM);
    let report = running.finish().expect(0).json();
    assert_eq!((&report["silver"], &report["complete"]), (&3.into(), &false.into()));
    drop(stdin);
}

/// What had been read from the pipe and was not yet in a micro-batch was dropped, and the exit code was 0.
#[test]
fn all_that_was_read_from_a_pipe_is_written_before_it_stops() {
    let pipeline = from_stdin("lines").set("batch.max_events=1");
    let (mut running, mut stdin) = Running::start(&pipeline);
    let lines = bookings::good(200);
    assert!(lines.len() < 64 * 1024, "a pipe takes it at once, and so does a read");
    stdin.write_all((lines + "cut of").as_bytes()).unwrap();
    let bronze = || tables::newest_rowid(&pipeline.database(), "raw_bookings").unwrap_or(0);
    running.wait_until(|| bronze() > 0);
    running.signal(Signal::TERM);
    let report = running.finish().expect(0).json();
    assert_eq!((&report["silver"], &report["quarantine"]), (&200.into(), &1.into()));
    assert_eq!(tables::column(&pipeline.database(), "poisoned_events", "raw_payload"), ["cut of"]);
    drop(stdin);
}

/// A position stored while a line above the limit was being read had a digest that reached into it: at the next start the
/// file was another one, and every row was written again.
#[test]
fn killed_in_the_middle_of_a_line_that_is_too_long_it_goes_on_exactly() {
    let input = booking("1") + &"x".repeat(2_000_000) + "\n" + &booking("2") + &booking("3");
    // Each micro-batch ends with what one read gave, so the first ends within the long line.
    let pipeline = || Pipeline::offvia(&input).warm().set("limits.payload=2 kB").set("batch.max_age=0 ms");
    let expected = pipeline();
    run(&expected, 4);
    let expected = tables::tiers(&expected.database());
    for pass in 1..=2 {
        let mut killed = pipeline().env(failpoint::VARIABLE, &format!("{}={pass}", failpoint::ROWS_APPENDED));
        assert!(killed.run().was_killed(), "pass {pass} was not passed");
        killed.environment.clear();
        killed.run().expect(0);
        tables::tiers(&killed.database()).expect(&expected, &format!("killed at pass {pass}"));
    }
}

const MANY: usize = 60_000;

/// What one run without a stop writes.
fn uninterrupted(input: &str) -> tables::Tiers {
    let pipeline = Pipeline::offvia(input).warm();
    pipeline.run().expect(0);
    tables::tiers(&pipeline.database())
}

#[test]
fn stopping_under_load_and_going_on_is_as_never_stopping() {
    let input = bookings::lines(MANY);
    let mut pipeline = Pipeline::offvia(&input).warm();
    let bronze = |pipeline: &Pipeline| tables::newest_rowid(&pipeline.database(), "raw_bookings").unwrap_or(0);
    for stop in 1..=4 {
        // Micro-batches of different sizes, so that the stops fall anywhere.
        pipeline.settings.push(format!("batch.max_events={}", stop * 37));
        let before = bronze(&pipeline);
        let (mut running, _stdin) = Running::start(&pipeline);
        running.wait_until(|| bronze(&pipeline) > before + 500);
        running.signal(if stop % 2 == 0 { Signal::TERM } else { Signal::INT });
        let report = running.finish().expect(0).json();
        assert_eq!(report["complete"], false, "it was stopped too late to show anything");
        assert_eq!(bronze(&pipeline) - before, report["events"].as_u64().unwrap(), "all that was read is written");
    }
    assert_eq!(pipeline.run().expect(0).json()["complete"], true);
    tables::tiers(&pipeline.database()).expect(&uninterrupted(&input), "after four stops");
}

#[test]
fn a_second_signal_ends_it_at_once_and_nothing_is_lost() {
    let input = bookings::lines(5_000);
    let pipeline = Pipeline::offvia(&input).warm();
    // The tables are there, and another program holds them: the run has promised rows that it cannot deliver.
    pipeline.write_input("");
    pipeline.run().expect(0);
    pipeline.write_input(&input);
    let pipeline = pipeline.set("batch.max_events=500");
    let (mut running, _stdin) = Running::start(&pipeline);
    let bronze = || tables::newest_rowid(&pipeline.database(), "raw_bookings").unwrap_or(0);
    running.wait_until(|| bronze() > 0);
    let connection = rusqlite::Connection::open(pipeline.database()).unwrap();
    connection.busy_timeout(std::time::Duration::from_secs(5)).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    running.signal(Signal::INT);
    running.wait_for_log("asked to stop");
    running.signal(Signal::TERM);
    running.wait_for_log("stopped by a second signal");
    running.finish().expect(1);
    connection.execute_batch("ROLLBACK").unwrap();
    pipeline.run().expect(0);
    tables::tiers(&pipeline.database()).expect(&uninterrupted(&input), "after two signals");
}

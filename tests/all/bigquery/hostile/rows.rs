//! Rows that a table refuses although every check was made.

use super::{EVENTS, Expected, column, expect_exact, stops};
use preflight::failpoint;
use preflight_tests::bigquery::Fake;
use preflight_tests::bigquery::fake::{Call, Ending, Fault};
use preflight_tests::bigquery::offvia::{BRONZE, QUARANTINE, SILVER};
use preflight_tests::{Pipeline, Running, bookings};
use rustix::process::Signal;
use std::sync::Arc;

/// The numbers of bookings that silver refuses: the third of ten, two of one micro-batch, and a whole one but for one row.
fn is_refused(number: usize) -> bool {
    matches!(number, 3 | 61 | 72) || (150..199).contains(&number)
}

/// A fake whose silver table refuses them.
fn refusing() -> Fake {
    let fake = Fake::start();
    let test = |row: &serde_json::Map<String, serde_json::Value>| {
        let number = row["booking_id"].as_str()?.strip_prefix("BK-")?.parse().ok()?;
        is_refused(number).then(|| format!("booking {number} is not welcome"))
    };
    fake.when(Call::Append).table(SILVER).always(Fault::Rows(Arc::new(test)));
    fake
}

/// Every event is in one place: the refused ones in quarantine, with the reason and the original.
#[track_caller]
fn expect_split(fake: &Fake, when: &str) {
    let mut expected = Expected::of_lines(EVENTS);
    let line = |id: &String| id.rsplit(':').next().unwrap().parse::<usize>().unwrap() - 1;
    let (refused, silver): (Vec<String>, Vec<String>) =
        expected.silver.into_iter().partition(|id| is_refused(line(id)));
    assert!(refused.len() > 30, "{}", refused.len());
    expected.quarantine.extend(refused.clone());
    fake.content(|content| {
        assert_eq!(column(&content, BRONZE, "message_id"), expected.bronze, "{when}");
        assert_eq!(column(&content, SILVER, "source_message_id"), silver, "{when}");
        content.expect_each_once(QUARANTINE, "source_message_id", &expected.quarantine);
        for row in content.rows(QUARANTINE) {
            let id = row["source_message_id"].as_str().unwrap().to_owned();
            if refused.contains(&id) {
                assert_eq!(row["error_stage"], "SINK_REJECTED", "{when}: {row:?}");
                assert!(row["error_reason"].as_str().unwrap().contains("is not welcome"), "{when}: {row:?}");
                assert!(
                    row["raw_payload"].as_str().unwrap().contains(&format!("BK-{}\"", line(&id))),
                    "{when}: {row:?}"
                );
            }
        }
    });
}

#[test]
fn refused_rows_go_to_quarantine_and_their_neighbours_to_silver() {
    let fake = refusing();
    let report = fake.offvia(bookings::lines(EVENTS)).run().expect(0).json();
    expect_split(&fake, "uninterrupted");
    let stages = report["rejected"].as_array().unwrap();
    assert!(
        stages.iter().any(|line| line["stage"] == "SINK_REJECTED" && line["events"].as_u64() > Some(30)),
        "{report}"
    );
}

#[test]
fn killed_while_rows_are_refused_a_worker_ends_exact() {
    for point in [failpoint::ENTRY_REPLACED, failpoint::ROWS_APPENDED, failpoint::ENTRY_DONE] {
        for pass in [1, 2, 3] {
            let fake = refusing();
            let mut pipeline = fake.offvia(bookings::lines(EVENTS));
            pipeline.environment = vec![(failpoint::VARIABLE.into(), format!("{point}={pass}"))];
            let ended = pipeline.run();
            assert!(ended.was_killed(), "{point}={pass} was not passed: {ended:?}");
            pipeline.environment.clear();
            pipeline.run().expect(0);
            expect_split(&fake, &format!("{point}={pass}"));
        }
    }
}

#[test]
fn rows_are_refused_while_answers_are_lost() {
    for seed in 0..3 {
        let fake = refusing();
        // Rules come first; what they leave is at random.
        let faults = vec![Fault::Before(Ending::Reset), Fault::After(Ending::Reset)];
        fake.at_random(seed, 0.4, &[Call::Append, Call::Create, Call::Finalize], faults);
        fake.offvia(bookings::lines(EVENTS)).run().expect(0);
        assert!(fake.stop_random() > 0);
        expect_split(&fake, &format!("seed {seed}"));
    }
}

/// Bronze and quarantine take every event. Where they do not, nothing may pass for written.
#[test]
fn a_row_that_bronze_or_quarantine_refuses_stops_the_run_and_is_kept() {
    for (table, tier, id) in [(BRONZE, "bronze", "message_id"), (QUARANTINE, "quarantine", "source_message_id")] {
        let fake = Fake::start();
        let rule = fake.when(Call::Append).table(table).always(Fault::rows(id, "input.ndjson:66"));
        let pipeline = fake.offvia(bookings::lines(EVENTS));
        for _ in 0..2 {
            stops(pipeline.run(), 1, &[&format!("cannot write to {tier}"), "input.ndjson:66", "Nothing is lost"]);
        }
        fake.lift(rule);
        pipeline.run().expect(0);
        expect_exact(&fake, EVENTS, tier);
    }
}

/// More than one request of an entry: what was written of it stays written.
#[test]
fn an_entry_of_many_requests_is_exact_whatever_happens_to_one_of_them() {
    let wide = || {
        let line = |number: usize| {
            let booking = bookings::from(number, 1);
            if number % 11 == 10 {
                booking
            } else {
                booking.replace("\"JFK\"", &format!("\"JFK\", \"note\": \"{}\"", "x".repeat(40_000)))
            }
        };
        (0..EVENTS).map(line).collect::<String>()
    };
    let run = |pipeline: &Pipeline| pipeline.run().expect(0);
    for from in 1..=4 {
        for fault in [Fault::After(Ending::Reset), Fault::Before(Ending::Reset), Fault::rows("message_id", "none")] {
            let fake = Fake::start();
            fake.when(Call::Append).table(BRONZE).from(from).once(fault.clone());
            let pipeline = fake.offvia(wide()).set("batch.max_events=300").set("batch.max_bytes=64 MiB");
            run(&pipeline);
            expect_exact(&fake, EVENTS, &format!("request {from}, {fault:?}"));
            assert!(fake.content(|content| content.appends(BRONZE).len()) > 5);
        }
    }
    // A lost answer to the third request of an entry, and a restart in between.
    let fake = Fake::start();
    let pipeline = fake.offvia(wide()).set("batch.max_events=300").set("batch.max_bytes=64 MiB");
    let rule = fake.when(Call::Append).table(BRONZE).from(3).once(Fault::After(Ending::Hang));
    let (worker, _stdin) = Running::start(&pipeline);
    fake.wait_until("the third request", |content| content.hits(rule) == 1);
    worker.signal(Signal::KILL);
    assert!(worker.finish().was_killed());
    run(&pipeline);
    expect_exact(&fake, EVENTS, "killed within an entry");
}

//! BigQuery says no for a long time: nothing is lost, and no more is read than there is room for.

use super::{EVENTS, expect_exact};
use preflight_tests::bigquery::Fake;
use preflight_tests::bigquery::fake::{Call, Ending, Fault, Refusal, api::storage_error::StorageErrorCode};
use preflight_tests::bigquery::offvia::{BRONZE, SILVER};
use preflight_tests::{Running, bookings, http};
use std::time::Duration;
use tonic::Code;

/// How much of its memory a process has had at once, bytes.
fn peak_memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[test]
fn while_bigquery_is_exhausted_a_bounded_number_of_events_is_read_and_none_is_lost() {
    // 120 MB of events, of which a worker must not take more than it has room for.
    const MANY: usize = 60_000;
    let padded: String = bookings::lines(MANY).lines().map(|line| format!("{line}{}\n", " ".repeat(2_000))).collect();
    let fake = Fake::start();
    let rule = fake.when(Call::Append).table(SILVER).always(Fault::answer(Code::ResourceExhausted));
    let pipeline = fake.offvia(padded).set("batch.max_events=500").set("admin.listen=127.0.0.1:0");
    let (mut run, _stdin) = Running::start(&pipeline);
    let admin = run.admin();
    fake.wait_until("seven tries", |content| content.hits(rule) >= 7);
    let metrics = http::get(&admin, "/metrics");
    let read = fake.count(BRONZE);
    assert_eq!(fake.count(SILVER), 0);
    assert!(read <= 500, "more than one commit was sent: {read}");
    assert_eq!(metrics.counted("preflight_events_total"), 0, "nothing counts as durable");
    let ready = http::get(&admin, "/readyz");
    assert_eq!(ready.status, 503, "{ready:?}");
    assert!(ready.body.contains("silver") && ready.body.contains("RESOURCE_EXHAUSTED"), "{ready:?}");
    assert!(peak_memory(run.id()) < 400 << 20, "{} bytes", peak_memory(run.id()));
    let position = std::fs::metadata(pipeline.directory().join("ledger/ledger.db")).unwrap();
    assert!(position.len() < 64 << 20, "the ledger has {} bytes", position.len());
    fake.lift(rule);
    run.finish().expect(0);
    expect_exact(&fake, MANY, "exhausted for long");
}

/// What somebody has to repair in the project, and what passes: either way the worker waits, and then goes on.
#[test]
fn what_is_repaired_while_a_worker_waits_needs_no_restart() {
    let denied = Refusal::new(Code::PermissionDenied, "Access Denied");
    let missing = Refusal::new(Code::NotFound, "no table").of(StorageErrorCode::TableNotFound, "table");
    let key = Refusal::new(Code::FailedPrecondition, "key").of(StorageErrorCode::KmsServiceError, "key");
    for refusal in [denied, missing, key] {
        for fault in [Fault::Answer(refusal.clone()), Fault::Before(Ending::Error(refusal))] {
            let fake = Fake::start();
            let rule = fake.when(Call::Append).table(SILVER).from(2).times(4, fault.clone());
            let ended = fake.offvia(bookings::lines(EVENTS)).run().expect(0);
            assert_eq!(fake.content(|content| content.hits(rule)), 4);
            expect_exact(&fake, EVENTS, &format!("{fault:?}"));
            assert!(ended.stderr.contains("cannot write, trying again"), "{}", ended.stderr);
        }
    }
}

#[test]
fn a_worker_gives_up_when_it_is_told_to_and_the_next_goes_on() {
    let fake = Fake::start();
    let rule = fake.when(Call::Append).table(SILVER).from(3).always(Fault::status(Code::Unavailable));
    let pipeline = fake.offvia(bookings::lines(EVENTS)).set("warehouse.bigquery.give_up_after=200 ms");
    super::stops(pipeline.run(), 1, &["cannot write to silver", "Nothing is lost"]);
    fake.lift(rule);
    pipeline.run().expect(0);
    expect_exact(&fake, EVENTS, "given up");
}

#[test]
fn other_calls_are_repeated_too() {
    for (call, fault) in [
        (Call::Create, Fault::status(Code::Unavailable)),
        (Call::Create, Fault::After(Ending::Reset)),
        (Call::Get, Fault::status(Code::Unavailable)),
        (Call::Table, Fault::answer(Code::Unavailable)),
        (Call::Query, Fault::answer(Code::Unavailable)),
        (Call::Finalize, Fault::status(Code::Unavailable)),
        (Call::Finalize, Fault::After(Ending::Reset)),
    ] {
        let fake = Fake::start();
        let rule = fake.when(call).times(2, fault.clone());
        let pipeline = fake.offvia(bookings::lines(100));
        pipeline.run().expect(0);
        // Only a second start finalizes.
        pipeline.write_input(bookings::lines(EVENTS));
        pipeline.run().expect(0);
        assert_eq!(fake.content(|content| content.hits(rule)), 2, "{call:?}: {fault:?}");
        expect_exact(&fake, EVENTS, &format!("{call:?}: {fault:?}"));
    }
}

/// Neither while it writes nor while it starts.
#[test]
fn a_bigquery_that_is_silent_keeps_no_worker_from_stopping() {
    // A request is waited for three times as long.
    const PROMPTLY: Duration = Duration::from_secs(20);
    let fake = Fake::start();
    let writing = fake.when(Call::Append).table(SILVER).always(Fault::Before(Ending::Hang));
    let pipeline =
        fake.offvia(bookings::lines(EVENTS)).set("run.drain_timeout=1 s").set("warehouse.bigquery.request_timeout=1 m");
    let (run, _stdin) = Running::start_for(&pipeline, PROMPTLY);
    fake.wait_until("an append", |content| content.hits(writing) >= 1);
    let stopped = run.stop().expect(1);
    assert!(stopped.stderr.contains("was not finished within 1s"), "{}", stopped.stderr);
    fake.lift(writing);
    let looking = fake.when(Call::Table).always(Fault::Before(Ending::Hang));
    let (run, _stdin) = Running::start_for(&pipeline, PROMPTLY);
    fake.wait_until("a look", |content| content.hits(looking) >= 1);
    run.stop().expect(0);
    fake.lift(looking);
    pipeline.run().expect(0);
    expect_exact(&fake, EVENTS, "stopped while BigQuery was silent");
}

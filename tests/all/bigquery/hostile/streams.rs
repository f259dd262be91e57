//! Streams that are finalized, forgotten, or written to by somebody else.

use super::{EVENTS, expect_exact, expect_same_bytes, stops, stream_of};
use preflight_tests::bigquery::Fake;
use preflight_tests::bigquery::fake::{
    Call, Ending, Fault, FinalizeAgain, Refusal, api::storage_error::StorageErrorCode,
};
use preflight_tests::bigquery::offvia::{BRONZE, QUARANTINE, SILVER};
use preflight_tests::{Pipeline, Running, bookings};
use rustix::process::Signal;
use tonic::Code;

/// A run that waits for the answer to its third append of silver, whose rows are there.
fn waiting(fake: &Fake, pipeline: &Pipeline) -> (Running, impl FnOnce()) {
    let rule = fake.when(Call::Append).table(SILVER).from(3).once(Fault::Held);
    let (run, _stdin) = Running::start(pipeline);
    fake.wait_until("the third append of silver", |content| content.hits(rule) == 1);
    (run, move || fake.lift(rule))
}

/// A run that was killed when it had no answer to its third append of silver.
fn killed(fake: &Fake, pipeline: &Pipeline, fault: Fault) {
    let rule = fake.when(Call::Append).table(SILVER).from(3).once(fault);
    let (run, _stdin) = Running::start(pipeline);
    fake.wait_until("the third append of silver", |content| content.hits(rule) == 1);
    run.signal(Signal::KILL);
    assert!(run.finish().was_killed());
}

#[test]
fn a_stream_that_another_worker_finalizes_ends_the_run_and_the_next_goes_on() {
    for again in [FinalizeAgain::Counts, FinalizeAgain::Refuses] {
        let fake = Fake::start();
        fake.finalize_again(again);
        let pipeline = fake.offvia(bookings::lines(EVENTS));
        let (run, go_on) = waiting(&fake, &pipeline);
        fake.someone_finalizes(&stream_of(&fake, SILVER));
        go_on();
        stops(run.finish(), 1, &["cannot write to silver", "finalized or gone", "another worker has taken over"]);
        pipeline.run().expect(0);
        expect_exact(&fake, EVENTS, &format!("{again:?}"));
    }
}

#[test]
fn a_stream_that_is_forgotten_ends_the_run_and_the_next_looks_for_its_rows() {
    let fake = Fake::start();
    let pipeline = fake.offvia(bookings::lines(EVENTS));
    let (run, go_on) = waiting(&fake, &pipeline);
    fake.expire_streams(SILVER);
    go_on();
    stops(run.finish(), 1, &["cannot write to silver", "finalized or gone", "The next run looks"]);
    pipeline.run().expect(0);
    expect_exact(&fake, EVENTS, "forgotten");
}

/// Nothing says how many rows the stream had: the message ids in the table do.
#[test]
fn what_is_undone_when_its_stream_is_forgotten_is_written_unless_it_is_there() {
    for fault in [Fault::Held, Fault::Before(Ending::Hang)] {
        let fake = Fake::start();
        let pipeline = fake.offvia(bookings::lines(EVENTS));
        killed(&fake, &pipeline, fault.clone());
        for table in [BRONZE, SILVER, QUARANTINE] {
            fake.expire_streams(table);
        }
        pipeline.run().expect(0);
        expect_exact(&fake, EVENTS, &format!("{fault:?}"));
    }
}

#[test]
fn what_is_undone_when_its_stream_was_finalized_is_written_unless_it_is_there() {
    for again in [FinalizeAgain::Counts, FinalizeAgain::Refuses] {
        for fault in [Fault::Held, Fault::Before(Ending::Hang)] {
            let fake = Fake::start();
            let pipeline = fake.offvia(bookings::lines(EVENTS));
            killed(&fake, &pipeline, fault.clone());
            for table in [BRONZE, SILVER, QUARANTINE] {
                fake.someone_finalizes(&stream_of(&fake, table));
            }
            fake.finalize_again(again);
            pipeline.run().expect(0);
            expect_exact(&fake, EVENTS, &format!("{again:?}, {fault:?}"));
        }
    }
}

#[test]
fn without_message_ids_in_the_table_an_operator_is_asked_and_nothing_is_written() {
    let fake = Fake::start();
    let pipeline = fake.offvia(bookings::lines(EVENTS));
    let file = std::fs::read_to_string(pipeline.file()).unwrap();
    std::fs::write(pipeline.file(), file.replace("source_message_id = \"message_id\"\n", "")).unwrap();
    killed(&fake, &pipeline, Fault::Held);
    fake.expire_streams(SILVER);
    let there = fake.count(SILVER);
    for _ in 0..2 {
        stops(pipeline.run(), 1, &["cannot write to silver", "cannot be told", "--new-ledger"]);
    }
    assert_eq!(fake.count(SILVER), there);
}

/// Two forms of the same: a finalized stream, or one that is not there, in the words of other versions of the service.
#[test]
fn every_way_to_say_that_a_stream_is_gone_is_understood() {
    let gone = |code, storage| Refusal::new(code, "gone").of(storage, "stream");
    for refusal in [
        gone(Code::InvalidArgument, StorageErrorCode::StreamFinalized),
        gone(Code::NotFound, StorageErrorCode::StreamNotFound),
        gone(Code::FailedPrecondition, StorageErrorCode::InvalidStreamState),
        Refusal::new(Code::FailedPrecondition, "gone"),
    ] {
        for fault in [Fault::Answer(refusal.clone()), Fault::Before(Ending::Error(refusal))] {
            let fake = Fake::start();
            let rule = fake.when(Call::Append).table(SILVER).from(3).once(fault.clone());
            let pipeline = fake.offvia(bookings::lines(EVENTS));
            stops(pipeline.run(), 1, &["cannot write to silver", "finalized or gone"]);
            assert_eq!(fake.content(|content| content.hits(rule)), 1);
            pipeline.run().expect(0);
            expect_exact(&fake, EVENTS, &format!("{fault:?}"));
        }
    }
}

#[test]
fn an_offset_that_is_out_of_range_ends_the_run_and_is_looked_at_by_the_next() {
    let fake = Fake::start();
    let refusal = Refusal::new(Code::OutOfRange, "The offset is beyond stream, expected offset 3, received 9");
    let refusal = refusal.of(StorageErrorCode::OffsetOutOfRange, "stream");
    fake.when(Call::Append).table(SILVER).from(3).once(Fault::Answer(refusal));
    let pipeline = fake.offvia(bookings::lines(EVENTS));
    stops(pipeline.run(), 1, &["cannot write to silver", "beyond the end of the stream"]);
    pipeline.run().expect(0);
    expect_exact(&fake, EVENTS, "out of range");
    expect_same_bytes(&fake);
}

/// The rows at our offset are somebody else's: taking them for ours would lose ours.
#[test]
fn an_offset_that_somebody_else_took_is_not_taken_for_ours() {
    for rows in [1, 37, 200] {
        let fake = Fake::start();
        fake.when(Call::Append).table(SILVER).from(3).once(Fault::SomeoneWrites(rows));
        let pipeline = fake.offvia(bookings::lines(EVENTS));
        stops(pipeline.run(), 1, &["cannot write to silver", "another"]);
        pipeline.run().expect(0);
        let others = usize::try_from(rows).unwrap();
        super::expect_exact_but_for_others(&fake, EVENTS, others, &format!("{rows} rows of another"));
    }
}

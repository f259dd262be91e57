//! Answers that are lost, late or errors: what was written is not written again, what was not is.

use super::{EVENTS, expect_exact, expect_same_bytes};
use preflight_tests::bigquery::Fake;
use preflight_tests::bigquery::fake::{Call, Ending, Fault, Refusal};
use preflight_tests::bigquery::offvia::{BRONZE, QUARANTINE, SILVER};
use preflight_tests::{Running, bookings};
use rustix::process::Signal;
use tonic::Code;

/// What may be answered although nothing is wrong with the request.
const PASSING: [Code; 8] = [
    Code::Unavailable,
    Code::Aborted,
    Code::Internal,
    Code::DeadlineExceeded,
    Code::Cancelled,
    Code::Unknown,
    Code::ResourceExhausted,
    Code::Unauthenticated,
];

fn error(code: Code) -> Refusal {
    Refusal::new(code, "the fake's")
}

/// A run to its end, in which something goes wrong with an append now and then.
#[track_caller]
fn disturbed(table: &str, from: u64, fault: &Fault) -> Fake {
    let fake = Fake::start();
    let rule = fake.when(Call::Append).table(table).from(from).once(fault.clone());
    fake.offvia(bookings::lines(EVENTS)).run().expect(0);
    let when = format!("{table}, append {from}, {fault:?}");
    assert_eq!(fake.content(|content| content.hits(rule)), 1, "{when}");
    expect_exact(&fake, EVENTS, &when);
    expect_same_bytes(&fake);
    fake
}

/// Each of these to another table and another append.
fn disturb_all(faults: impl IntoIterator<Item = Fault>) {
    for (number, fault) in faults.into_iter().enumerate() {
        disturbed([SILVER, BRONZE, QUARANTINE][number % 3], [1, 3, 6][number / 3 % 3], &fault);
    }
}

fn endings() -> impl Iterator<Item = Ending> {
    let errors = PASSING.into_iter().map(|code| Ending::Error(error(code)));
    [Ending::Reset, Ending::Close].into_iter().chain(errors)
}

#[test]
fn a_run_that_nothing_happens_to_writes_every_row_once_and_in_order() {
    let fake = Fake::start();
    fake.offvia(bookings::lines(EVENTS)).run().expect(0);
    expect_exact(&fake, EVENTS, "undisturbed");
    let refused = fake.content(|content| content.appends(SILVER).iter().filter(|append| !append.written).count());
    assert_eq!(refused, 0);
}

#[test]
fn rows_whose_answer_is_lost_are_not_written_again() {
    for table in [BRONZE, SILVER, QUARANTINE] {
        let fake = disturbed(table, 2, &Fault::After(Ending::Reset));
        let appends = fake.content(|content| content.appends(table));
        let answers: Vec<_> = appends.iter().map(|append| (append.offset, append.written, append.answer)).collect();
        let (offset, already) = (answers[1].0, Some(Code::AlreadyExists));
        assert_eq!(answers[1..3], [(offset, true, None), (offset, false, already)], "{answers:?}");
    }
    disturb_all(endings().map(Fault::After));
}

#[test]
fn rows_that_were_not_written_when_the_call_ended_are_written() {
    disturb_all(endings().map(Fault::Before));
}

#[test]
fn an_error_in_an_answer_is_believed_by_what_the_offset_says_afterwards() {
    disturb_all(PASSING.map(Fault::answer));
    disturb_all(PASSING.map(|code| Fault::AnswerAfter(error(code))));
}

#[test]
fn a_connection_that_ends_behind_every_answer_is_opened_again() {
    let fake = Fake::start();
    let rule = fake.when(Call::Append).always(Fault::Behind(Ending::Close));
    fake.offvia(bookings::lines(EVENTS)).run().expect(0);
    assert!(fake.content(|content| content.hits(rule)) >= 18);
    expect_exact(&fake, EVENTS, "one append a connection");
}

#[test]
fn a_call_that_hangs_is_given_up_and_repeated() {
    for fault in [Fault::Before(Ending::Hang), Fault::After(Ending::Hang)] {
        for (call, table) in [(Call::Append, BRONZE), (Call::Append, SILVER), (Call::Create, QUARANTINE)] {
            let fake = Fake::start();
            let rule = fake.when(call).table(table).once(fault.clone());
            let pipeline = fake.offvia(bookings::lines(EVENTS)).set("warehouse.bigquery.request_timeout=300 ms");
            pipeline.run().expect(0);
            assert_eq!(fake.content(|content| content.hits(rule)), 1);
            expect_exact(&fake, EVENTS, &format!("{call:?} of {table}: {fault:?}"));
        }
    }
}

/// A lost answer and a restart in between: the ledger holds what was sent and not confirmed, and sends it once more.
#[test]
fn killed_before_the_answer_came_a_worker_takes_what_is_there_as_written() {
    for table in [BRONZE, SILVER, QUARANTINE] {
        for append in [1, 4] {
            for fault in [Fault::Held, Fault::After(Ending::Hang), Fault::Before(Ending::Hang)] {
                let when = format!("{table}, append {append}, {fault:?}");
                let fake = Fake::start();
                let pipeline = fake.offvia(bookings::lines(EVENTS));
                let rule = fake.when(Call::Append).table(table).from(append).once(fault.clone());
                let (run, _stdin) = Running::start(&pipeline);
                fake.wait_until(&when, |content| content.hits(rule) == 1);
                run.signal(Signal::KILL);
                assert!(run.finish().was_killed());
                pipeline.run().expect(0);
                expect_exact(&fake, EVENTS, &when);
                expect_same_bytes(&fake);
                let sent = fake.content(|content| content.appends(table));
                let at = usize::try_from(append).unwrap() - 1;
                let again = sent.iter().skip(at + 1).find(|later| later.offset == sent[at].offset).unwrap();
                let written_at_first = !matches!(fault, Fault::Before(_));
                assert_eq!(
                    (sent[at].written, again.written),
                    (written_at_first, !written_at_first),
                    "{when}: {sent:?}"
                );
                assert_eq!(sent[at].answer.is_some(), matches!(fault, Fault::Held), "{when}");
            }
        }
    }
}

/// Everything may be lost again and again.
#[test]
fn rows_get_in_once_although_every_fifth_call_fails() {
    for seed in 0..3 {
        let fake = Fake::start();
        let faults = endings().map(Fault::Before).chain(endings().map(Fault::After));
        let faults = faults.chain(PASSING.map(Fault::answer)).chain([Fault::Behind(Ending::Reset)]).collect();
        fake.at_random(seed, 0.2, &[Call::Append, Call::Create, Call::Finalize], faults);
        let pipeline = fake.offvia(bookings::lines(EVENTS)).set("batch.max_events=10");
        for _ in 0..2 {
            pipeline.run().expect(0);
        }
        assert!(fake.stop_random() > 10);
        expect_exact(&fake, EVENTS, &format!("seed {seed}"));
    }
}

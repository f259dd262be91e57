//! What is made to go wrong goes wrong as it should.

use super::writer::{Answered, row};
use super::{TABLE, fake, stream};
use preflight_tests::bigquery::Fake;
use preflight_tests::bigquery::fake::api::storage_error::StorageErrorCode;
use preflight_tests::bigquery::fake::{Call, Ending, Fault, Refusal};
use std::time::Duration;
use tonic::Code;

/// Nothing is said for as long as a test cares to wait.
const SILENT: Duration = Duration::from_millis(200);

fn on_append(fake: &Fake, fault: Fault) {
    fake.when(Call::Append).table(TABLE).from(2).once(fault);
}

/// Appends `a`, then `b` into a fault. Gives what came of that, and how many rows there are.
fn second(fault: Fault) -> (Answered, usize) {
    let fake = fake();
    let (writer, stream) = stream(&fake);
    on_append(&fake, fault);
    let mut line = writer.open(&stream);
    assert!(line.append(0, &[row("a")]).is_written_at(0));
    let answered = line.append(1, &[row("b")]);
    (answered, fake.count(TABLE))
}

#[test]
fn a_call_ends_before_or_after_the_rows_are_written() {
    let unavailable = Ending::Error(Refusal::new(Code::Unavailable, "gone away"));
    for ending in [Ending::Reset, Ending::Close, unavailable] {
        for (fault, rows) in [(Fault::Before(ending.clone()), 1), (Fault::After(ending.clone()), 2)] {
            let (answered, there) = second(fault);
            let Answered::Ended(status) = answered else { panic!("{ending:?}: {answered:?}") };
            assert_eq!(there, rows, "{ending:?}");
            match &ending {
                Ending::Close => assert_eq!(status.code(), Code::Ok),
                Ending::Reset => assert_ne!(status.code(), Code::Ok),
                _ => assert_eq!((status.code(), status.message()), (Code::Unavailable, "gone away")),
            }
        }
    }
}

#[test]
fn an_error_in_an_answer_comes_with_and_without_the_rows() {
    for (fault, rows) in [
        (Fault::answer(Code::Internal), 1),
        (Fault::AnswerAfter(Refusal::new(Code::Internal, "written all the same")), 2),
    ] {
        let (answered, there) = second(fault);
        assert!(matches!(&answered, Answered::Refused(..)), "{answered:?}");
        assert_eq!((answered.error().0, there), (Code::Internal, rows));
    }
    let (answered, there) = second(Fault::Behind(Ending::Close));
    assert!(answered.is_written_at(1) && there == 2);
}

#[test]
fn behind_an_error_a_call_may_do_nothing_more() {
    let fake = fake();
    let (writer, stream) = stream(&fake);
    let mut line = writer.open(&stream);
    assert!(line.append(0, &[row("a")]).is_written_at(0));
    assert_eq!(line.append(0, &[row("a")]).error().0, Code::AlreadyExists);
    assert!(line.append(1, &[row("b")]).is_written_at(1));
    fake.abort_behind_errors();
    assert_eq!(line.append(2, &[row("c")]).error(), (Code::Aborted, None));
    assert!(writer.open(&stream).append(2, &[row("c")]).is_written_at(2));
}

#[test]
fn a_call_that_hangs_says_nothing() {
    for (fault, rows) in [(Fault::Before(Ending::Hang), 1), (Fault::After(Ending::Hang), 2)] {
        let fake = fake();
        let (writer, stream) = stream(&fake);
        on_append(&fake, fault);
        let mut line = writer.open(&stream);
        assert!(line.append(0, &[row("a")]).is_written_at(0));
        line.send(1, &[row("b")]);
        assert!(matches!(line.answer_within(SILENT), Answered::Silence));
        assert_eq!(fake.count(TABLE), rows);
        // Another call is served meanwhile.
        let mut other = writer.open(&stream);
        assert_eq!(other.append(i64::try_from(rows).unwrap(), &[row("c")]).error_or_ok(), Code::Ok);
    }
}

#[test]
fn what_is_held_is_answered_when_its_rule_is_lifted() {
    let fake = fake();
    let (writer, stream) = stream(&fake);
    let rule = fake.when(Call::Append).always(Fault::Held);
    let mut line = writer.open(&stream);
    line.send(0, &[row("a")]);
    fake.wait_until("the row is written", |content| content.count(TABLE) == 1);
    assert!(matches!(line.answer_within(SILENT), Answered::Silence));
    assert_eq!(fake.content(|content| content.hits(rule)), 1);
    fake.lift(rule);
    assert!(line.answer().is_written_at(0));
    assert!(line.append(1, &[row("b")]).is_written_at(1), "a lifted rule holds no longer");
}

#[test]
fn rows_can_be_refused_and_streams_can_vanish() {
    let fake = fake();
    let (writer, stream) = stream(&fake);
    let rule = fake.when(Call::Append).table(TABLE).always(Fault::rows("id", "b"));
    let mut line = writer.open(&stream);
    let Answered::Refused(_, rows) = line.append(0, &[row("a"), row("b")]) else { panic!("it is refused") };
    assert_eq!(rows[0].0, 1);
    assert!(line.append(0, &[row("a")]).is_written_at(0));
    fake.lift(rule);
    assert!(line.append(1, &[row("b")]).is_written_at(1));

    fake.when(Call::Append).once(Fault::SomeoneWrites(2));
    let taken = line.append(2, &[row("c")]);
    assert_eq!(taken.error(), (Code::AlreadyExists, Some(StorageErrorCode::OffsetAlreadyExists)));
    assert!(taken.text().contains("expected offset 4"), "{}", taken.text());

    fake.when(Call::Append).once(Fault::StreamGone);
    assert_eq!(line.append(4, &[row("c")]).error(), (Code::NotFound, Some(StorageErrorCode::StreamNotFound)));
    fake.content(|content| {
        let places = content.places(TABLE, "id");
        assert_eq!((places.len(), places["(none)"].len()), (3, 2), "{places:?}");
    });
}

#[test]
fn rules_count_what_they_are_about() {
    let fake = fake();
    fake.create_table("CREATE TABLE d.other (id STRING)");
    let (writer, stream) = stream(&fake);
    let other = writer.create("d.other").unwrap();
    let rule = fake.when(Call::Append).table("d.other").from(2).times(2, Fault::answer(Code::Aborted));
    let (mut one, mut two) = (writer.open(&stream), writer.open(&other));
    for offset in 0..4 {
        assert!(one.append(offset, &[row("a")]).is_written_at(offset));
    }
    let codes: Vec<Code> = [0, 1, 1, 1].map(|offset| two.append(offset, &[row("a")]).error_or_ok()).into();
    assert_eq!(codes, [Code::Ok, Code::Aborted, Code::Aborted, Code::Ok]);
    assert_eq!(fake.content(|content| content.hits(rule)), 2);
}

#[test]
fn other_calls_can_fail_too() {
    let fake = fake();
    let (writer, stream) = stream(&fake);
    fake.when(Call::Create).once(Fault::After(Ending::Reset));
    writer.create(TABLE).unwrap_err();
    assert_eq!(fake.content(|content| content.streams(TABLE).len()), 2, "it was made, and nobody knows");
    fake.when(Call::Finalize).once(Fault::After(Ending::Error(Refusal::new(Code::Unavailable, "lost"))));
    assert_eq!(writer.finalize(&stream).unwrap_err().code(), Code::Unavailable);
    assert_eq!(writer.open(&stream).append(0, &[row("a")]).error().1, Some(StorageErrorCode::StreamFinalized));
    fake.when(Call::Create).once(Fault::status(Code::PermissionDenied));
    assert_eq!(writer.create(TABLE).unwrap_err().code(), Code::PermissionDenied);
}

#[test]
fn the_same_seed_gives_the_same_faults() {
    let run = |seed| {
        let fake = fake();
        let (writer, stream) = stream(&fake);
        fake.at_random(seed, 0.5, &[Call::Append], vec![Fault::answer(Code::Aborted), Fault::answer(Code::Internal)]);
        let (mut line, mut offset) = (writer.open(&stream), 0);
        let codes: Vec<Code> = (0..30)
            .map(|_| {
                let code = line.append(offset, &[row("a")]).error_or_ok();
                offset += i64::from(code == Code::Ok);
                code
            })
            .collect();
        assert_eq!(fake.stop_random(), codes.iter().filter(|code| **code != Code::Ok).count() as u64);
        assert!(line.append(offset, &[row("a")]).is_written_at(offset));
        codes
    };
    let first = run(7);
    assert_eq!(first, run(7));
    assert_ne!(first, run(8));
    for code in [Code::Ok, Code::Aborted, Code::Internal] {
        assert!(first.contains(&code), "{first:?}");
    }
}

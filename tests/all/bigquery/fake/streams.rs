//! Offsets and streams.

use super::writer::{Answered, path, row};
use super::{TABLE, fake, stream};
use preflight_tests::bigquery::fake::FinalizeAgain;
use preflight_tests::bigquery::fake::api::storage_error::StorageErrorCode;
use preflight_tests::bigquery::fake::api::{WriteStream, WriteStreamView, write_stream};
use tonic::Code;

#[test]
fn an_offset_is_taken_once_and_in_order() {
    let fake = fake();
    let (writer, stream) = stream(&fake);
    let mut line = writer.open(&stream);
    assert!(line.append(0, &[row("a"), row("b")]).is_written_at(0));
    let again = line.append(0, &[row("other")]);
    assert_eq!(again.error(), (Code::AlreadyExists, Some(StorageErrorCode::OffsetAlreadyExists)));
    assert!(again.text().contains("expected offset 2, received 0"), "{}", again.text());
    let gap = line.append(3, &[row("c")]);
    assert_eq!(gap.error(), (Code::OutOfRange, Some(StorageErrorCode::OffsetOutOfRange)));
    assert!(gap.text().contains("expected offset 2, received 3"), "{}", gap.text());
    // Errors in answers end nothing.
    assert!(line.append(2, &[row("c")]).is_written_at(2));
    fake.content(|content| {
        content.expect_each_once(TABLE, "id", ["a", "b", "c"]);
        let places = content.places(TABLE, "id");
        assert_eq!((places["c"][0].offset, places["c"][0].stream.as_str()), (Some(2), stream.as_str()));
        let appends = content.appends(TABLE);
        let seen: Vec<_> =
            appends.iter().map(|append| (append.offset, append.rows, append.written, append.answer)).collect();
        assert_eq!(
            seen,
            [
                (Some(0), 2, true, Some(Code::Ok)),
                (Some(0), 1, false, Some(Code::AlreadyExists)),
                (Some(3), 1, false, Some(Code::OutOfRange)),
                (Some(2), 1, true, Some(Code::Ok)),
            ]
        );
    });
}

/// After a request that failed, those behind it that are under way fail, until one is written.
#[test]
fn requests_behind_a_failed_one_fail_until_one_is_written() {
    let fake = fake();
    let (writer, stream) = stream(&fake);
    let mut line = writer.open(&stream);
    assert!(line.append(0, &[row("a")]).is_written_at(0));
    line.send(1, &[Vec::new()]);
    line.send(2, &[row("c")]);
    line.send(3, &[row("d")]);
    line.send(1, &[row("b")]);
    line.send(2, &[row("c")]);
    let codes = [line.answer(), line.answer(), line.answer()].map(|answer| answer.error().0);
    assert_eq!(codes, [Code::InvalidArgument, Code::OutOfRange, Code::OutOfRange]);
    assert!(line.answer().is_written_at(1) && line.answer().is_written_at(2));
    fake.content(|content| content.expect_each_once(TABLE, "id", ["a", "b", "c"]));
}

#[test]
fn two_calls_may_append_to_one_stream() {
    let fake = fake();
    let (writer, stream) = stream(&fake);
    let (mut one, mut two) = (writer.open(&stream), writer.open(&stream));
    assert!(one.append(0, &[row("a")]).is_written_at(0));
    assert!(two.append(1, &[row("b")]).is_written_at(1));
    assert_eq!(one.append(1, &[row("c")]).error().0, Code::AlreadyExists);
    assert_eq!(fake.count(TABLE), 2);
}

#[test]
fn a_finalized_stream_has_a_count_and_takes_no_more() {
    let fake = fake();
    let (writer, stream) = stream(&fake);
    let mut line = writer.open(&stream);
    assert!(line.append(0, &[row("a"), row("b")]).is_written_at(0));
    assert_eq!(writer.finalize(&stream).unwrap(), 2);
    for offset in [0, 2, 9] {
        let refused = line.append(offset, &[row("c")]);
        assert_eq!(refused.error(), (Code::InvalidArgument, Some(StorageErrorCode::StreamFinalized)));
    }
    assert_eq!(writer.finalize(&stream).unwrap(), 2);
    for (again, details) in [(FinalizeAgain::Refuses, true), (FinalizeAgain::RefusesPlainly, false)] {
        fake.finalize_again(again);
        let refused = Answered::Ended(writer.finalize(&stream).unwrap_err());
        assert_eq!(refused.error(), (Code::InvalidArgument, details.then_some(StorageErrorCode::StreamFinalized)));
    }
    fake.content(|content| assert_eq!(content.streams(TABLE), [(stream.clone(), 2, true)]));
}

#[test]
fn a_stream_that_is_not_there_or_was_forgotten_is_not_found() {
    let fake = fake();
    let (writer, stream) = stream(&fake);
    let mut line = writer.open(&stream);
    assert!(line.append(0, &[row("a")]).is_written_at(0));
    fake.expire_streams(TABLE);
    let gone = (Code::NotFound, Some(StorageErrorCode::StreamNotFound));
    assert_eq!(line.append(1, &[row("b")]).error(), gone);
    assert_eq!(writer.open(&stream).append(1, &[row("b")]).error(), gone);
    assert_eq!(writer.finalize(&stream).unwrap_err().code(), Code::NotFound);
    assert_eq!(writer.get(&stream, WriteStreamView::Basic).unwrap_err().code(), Code::NotFound);
    let never = format!("{}/streams/never", path(TABLE));
    assert_eq!(writer.open(&never).append(0, &[row("b")]).error(), gone);
}

#[test]
fn streams_are_made_for_tables_that_are_there() {
    let fake = fake();
    let (writer, stream) = stream(&fake);
    assert_eq!(writer.create("d.none").unwrap_err().code(), Code::NotFound);
    let pending = WriteStream { r#type: write_stream::Type::Pending.into(), ..WriteStream::default() };
    let params = format!("parent={}", path(TABLE));
    assert_eq!(writer.create_as(TABLE, pending, &params).unwrap_err().code(), Code::InvalidArgument);
    let committed = WriteStream { r#type: write_stream::Type::Committed.into(), ..WriteStream::default() };
    assert_eq!(writer.create_as(TABLE, committed, "parent=elsewhere").unwrap_err().code(), Code::InvalidArgument);

    assert!(writer.get(&stream, WriteStreamView::Basic).unwrap().table_schema.is_none());
    let schema = writer.get(&stream, WriteStreamView::Full).unwrap().table_schema.unwrap();
    assert_eq!(schema.fields.len(), 10);
    assert_eq!(schema.fields[9].max_length, 3);
    let default = format!("{}/streams/_default", path(TABLE));
    assert!(writer.get(&default, WriteStreamView::Full).unwrap().table_schema.is_some());

    fake.drop_table(TABLE);
    assert_eq!(writer.open(&stream).append(0, &[row("a")]).error().0, Code::NotFound);
}

#[test]
fn a_default_stream_has_no_offsets() {
    let fake = fake();
    let (writer, _) = stream(&fake);
    let default = format!("{}/streams/_default", path(TABLE));
    let mut line = writer.open(&default);
    let request = line.request(None, &[row("a")]);
    line.send_as(request.clone());
    assert!(line.answer().is_written_at(-1));
    line.send_as(request);
    assert!(line.answer().is_written_at(-1));
    assert_eq!(writer.open(&default).append(0, &[row("b")]).error().0, Code::InvalidArgument);
    assert_eq!(fake.content(|content| content.places(TABLE, "id")["a"].len()), 2);
}

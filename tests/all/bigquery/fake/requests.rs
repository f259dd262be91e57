//! What every request must have.

use super::writer::{descriptor, path, row};
use super::{TABLE, fake, stream};
use preflight_tests::bigquery::fake::MAX_REQUEST;
use preflight_tests::bigquery::fake::api::storage_error::StorageErrorCode::SchemaMismatchExtraFields;
use prost::Message as _;
use prost_types::field_descriptor_proto::Type;
use tonic::Code;

#[test]
fn the_first_request_of_a_call_needs_routing_header_stream_and_schema() {
    let fake = fake();
    let (writer, stream) = stream(&fake);
    let schema = || Some(descriptor(&[("id", Type::String)]));
    let params = format!("write_stream={stream}");
    for (schema, header) in [(schema(), None), (schema(), Some("write_stream=other")), (None, Some(params.as_str()))] {
        let refused = writer.open_as(&stream, schema, header).append(0, &[row("a")]);
        assert_eq!(refused.error().0, Code::InvalidArgument, "{}", refused.text());
    }
    let escaped = params.replace('/', "%2F");
    assert!(writer.open_as(&stream, schema(), Some(&escaped)).append(0, &[row("a")]).is_written_at(0));
}

#[test]
fn a_call_is_for_one_stream_and_one_schema() {
    let fake = fake();
    let (writer, stream) = stream(&fake);
    let other = writer.create(TABLE).unwrap();
    let mut line = writer.open(&stream);
    assert!(line.append(0, &[row("a")]).is_written_at(0));
    line.schema = Some(descriptor(&[("id", Type::String)]));
    assert!(line.append(1, &[row("b")]).is_written_at(1), "the same schema again is no harm");
    line.schema = Some(descriptor(&[("id", Type::String), ("n", Type::Int64)]));
    assert_eq!(line.append(2, &[row("c")]).error().0, Code::InvalidArgument);

    let mut line = writer.open(&stream);
    assert!(line.append(2, &[row("c")]).is_written_at(2));
    line.stream = other;
    assert_eq!(line.append(0, &[row("d")]).error().0, Code::InvalidArgument);
}

#[test]
fn a_request_needs_rows_and_an_offset_and_stays_below_10_mb() {
    let fake = fake();
    let (writer, stream) = stream(&fake);
    assert_eq!(writer.open(&stream).append(0, &[]).error().0, Code::InvalidArgument);
    assert_eq!(writer.open(&stream).append(-1, &[row("a")]).error().0, Code::InvalidArgument);
    let mut line = writer.open(&stream);
    let request = line.request(None, &[row("a")]);
    line.send_as(request);
    assert_eq!(line.answer().error().0, Code::InvalidArgument);

    assert!(writer.open(&stream).append(0, &[row("a")]).is_written_at(0));
    let large = |length: usize| row(&"x".repeat(length));
    // All but the text of the row: keys, lengths, the schema and the name of the stream.
    let guess = MAX_REQUEST - 1_000;
    let around = writer.open(&stream).request(Some(1), &[large(guess)]).encoded_len() - guess;
    assert!(writer.open(&stream).append(1, &[large(MAX_REQUEST - around)]).is_written_at(1));
    let refused = writer.open(&stream).append(2, &[large(MAX_REQUEST - around + 1)]);
    assert_eq!(refused.error().0, Code::InvalidArgument);
    assert!(refused.text().contains("too large"), "{}", refused.text());
}

#[test]
fn a_schema_fits_the_table() {
    let fake = fake();
    let (writer, stream) = stream(&fake);
    let params = format!("write_stream={stream}");
    let refused = |fields: &[(&str, Type)]| {
        let answer = writer.open_as(&stream, Some(descriptor(fields)), Some(&params)).append(0, &[row("a")]);
        (answer.error(), answer.text().to_owned())
    };
    let (error, text) = refused(&[("id", Type::String), ("more", Type::String)]);
    assert_eq!(error, (Code::InvalidArgument, Some(SchemaMismatchExtraFields)));
    assert!(text.contains("extra fields: 'more'") && text.contains(&path(TABLE)), "{text}");
    for fields in [
        &[("fare", Type::String)][..],                   // without the required column
        &[("id", Type::String), ("seen", Type::String)], // TIMESTAMP is no text
        &[("id", Type::String), ("n", Type::String)],    // nor is INT64
        &[("id", Type::Bytes)],                          // nor is STRING bytes
        &[("id", Type::String), ("ID", Type::String)],   // twice
    ] {
        let (error, text) = refused(fields);
        assert_eq!(error, (Code::InvalidArgument, None), "{text}");
    }
    assert_eq!(fake.count(TABLE), 0);
}

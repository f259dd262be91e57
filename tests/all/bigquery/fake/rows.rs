//! Rows that a table refuses.

use super::writer::{Answered, descriptor, row, row_with, row_with_text};
use super::{TABLE, fake, stream};
use preflight_tests::bigquery::Fake;
use prost_types::DescriptorProto;
use prost_types::field_descriptor_proto::Type;
use tonic::Code;

/// The columns of the table, numbered as they stand.
fn all() -> DescriptorProto {
    descriptor(&[
        ("id", Type::String),
        ("fare", Type::String),
        ("seen", Type::Int64),
        ("day", Type::Int32),
        ("n", Type::Int64),
        ("x", Type::Double),
        ("b", Type::Bool),
        ("raw", Type::Bytes),
        ("j", Type::String),
        ("short", Type::String),
    ])
}

/// Why the only row of a request is refused.
fn refused(fake: &Fake, bad: Vec<u8>) -> String {
    let (writer, stream) = stream(fake);
    let params = format!("write_stream={stream}");
    match writer.open_as(&stream, Some(all()), Some(&params)).append(0, &[bad]) {
        Answered::Refused(status, rows) => {
            assert_eq!(Code::from(status.code), Code::InvalidArgument);
            assert_eq!(rows.len(), 1);
            rows[0].1.clone()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_refused_row_refuses_its_whole_request() {
    let fake = fake();
    let (writer, stream) = stream(&fake);
    let params = format!("write_stream={stream}");
    let mut line = writer.open_as(&stream, Some(all()), Some(&params));
    let rows: Vec<Vec<u8>> = (0..10)
        .map(|number| row_with_text(&format!("r{number}"), 2, if number == 3 || number == 7 { "many" } else { "1.5" }))
        .collect();
    let Answered::Refused(_, errors) = line.append(0, &rows) else { panic!("it is refused") };
    assert_eq!(errors.iter().map(|(index, _)| *index).collect::<Vec<_>>(), [3, 7]);
    assert!(errors[0].1.contains("fare") && errors[0].1.contains("Invalid NUMERIC value: many"), "{errors:?}");
    assert_eq!(fake.count(TABLE), 0);
    let good: Vec<Vec<u8>> = (0..10).filter(|n| *n != 3 && *n != 7).map(|n| rows[n].clone()).collect();
    assert!(line.append(0, &good).is_written_at(0));
    assert_eq!(fake.count(TABLE), 8);
}

#[test]
fn values_are_kept_as_they_came() {
    let fake = fake();
    let (writer, stream) = stream(&fake);
    let params = format!("write_stream={stream}");
    let mut bytes = row_with_text("a", 2, "-0.50");
    for (field, value) in [(4, -1), (5, i64::MIN), (7, 1)] {
        bytes = [bytes, row_with("", field, value)[2..].to_vec()].concat();
    }
    prost::encoding::double::encode(6, &1.25, &mut bytes);
    prost::encoding::bytes::encode(8, &vec![0xff_u8, 0], &mut bytes);
    prost::encoding::string::encode(9, &"{\"k\": 1}".to_owned(), &mut bytes);
    assert!(writer.open_as(&stream, Some(all()), Some(&params)).append(0, &[bytes]).is_written_at(0));
    let rows = fake.content(|content| content.rows(TABLE));
    let expected = serde_json::json!({
        "id": "a", "fare": "-0.50", "day": -1, "n": i64::MIN, "b": true, "x": 1.25, "raw": "/wA=", "j": "{\"k\": 1}",
    });
    assert_eq!(serde_json::Value::Object(rows[0].clone()), expected);
}

#[test]
fn what_a_column_cannot_hold_is_refused_by_name() {
    let fake = fake();
    let year_10000 = 253_402_300_800_000_000;
    for (row, column) in [
        (Vec::new(), "id"),
        (row_with_text("a", 2, "1e5"), "fare"),
        (row_with_text("a", 2, "0.0000000001"), "fare"),
        (row_with("a", 3, year_10000), "seen"),
        (row_with("a", 3, 0), "seen"),
        (row_with("a", 4, 3_000_000), "day"),
        (row_with("a", 4, i64::MAX), "day"),
        (row_with("a", 7, 2), "b"),
        (row_with_text("a", 9, "{not json"), "j"),
        (row_with_text("a", 10, "four"), "short"),
        (row_with_text("a", 5, "text"), "n"),
        (row_with_text("a", 1, "again"), "id"),
        (vec![0x0a, 1, 0xff], "id"),
    ] {
        let why = refused(&fake, row);
        assert!(why.starts_with(&format!("Field {column}")), "{column}: {why}");
    }
    assert!(refused(&fake, row_with("a", 3, 0)).contains("outside the allowed bounds"));
    for row in [row_with("a", 99, 1), vec![0x0a], vec![0x0a, 9, b'x'], vec![0xff], row("a")[..2].to_vec()] {
        refused(&fake, row);
    }
    assert_eq!(fake.count(TABLE), 0);
}

#[test]
fn a_default_fills_what_is_missing_where_the_writer_asks_for_it() {
    use preflight_tests::bigquery::fake::api::append_rows_request::MissingValueInterpretation::{
        DefaultValue, NullValue,
    };
    let fake = Fake::start();
    fake.create_table("CREATE TABLE d.t (id STRING, kind STRING NOT NULL DEFAULT 'none')");
    let (writer, stream) = stream(&fake);
    assert_eq!(writer.open(&stream).append(0, &[row("a")]).error().0, Code::InvalidArgument);
    let mut line = writer.open(&stream);
    let mut request = line.request(Some(0), &[row("a")]);
    request.default_missing_value_interpretation = DefaultValue.into();
    request.missing_value_interpretations.insert("id".to_owned(), NullValue.into());
    line.send_as(request.clone());
    assert!(line.answer().is_written_at(0));
    let mut line = writer.open(&stream);
    request.missing_value_interpretations.insert("kind".to_owned(), NullValue.into());
    line.send_as(request);
    assert_eq!(line.answer().error().0, Code::InvalidArgument);
}

#[test]
fn a_change_of_the_schema_is_told_and_holds_for_open_calls() {
    let fake = fake();
    let (writer, stream) = stream(&fake);
    let params = format!("write_stream={stream}");
    let wide = || Some(descriptor(&[("id", Type::String), ("more", Type::Int64)]));
    let mut line = writer.open(&stream);
    assert!(line.append(0, &[row("a")]).is_written_at(0));

    fake.add_column(TABLE, "more INT64", false);
    let early = writer.open_as(&stream, wide(), Some(&params)).append(1, &[row_with("b", 2, 5)]);
    assert_eq!(early.error().0, Code::InvalidArgument, "the interface does not know the column yet");
    fake.catch_up(TABLE);
    line.send(1, &[row("b")]);
    assert!(line.next_tells("more"));
    let mut open = writer.open_as(&stream, wide(), Some(&params));
    assert!(open.append(2, &[row_with("c", 2, 5)]).is_written_at(2));

    fake.drop_column(TABLE, "more", true);
    let gone = open.append(3, &[row_with("d", 2, 5)]);
    assert!(gone.text().contains("extra fields: 'more'"), "{}", gone.text());
    line.send(3, &[row("d")]);
    assert!(!line.next_tells("more"));
    assert_eq!(fake.count(TABLE), 4);
}

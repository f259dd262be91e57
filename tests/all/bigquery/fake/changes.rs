//! Rows that replace others: what change data capture takes, and what it keeps.

use super::writer::{Answered, Writer, descriptor, path, row};
use preflight_tests::bigquery::Fake;
use prost::encoding::{string, uint64};
use prost_types::DescriptorProto;
use prost_types::field_descriptor_proto::Type;
use tonic::Code;

const TABLE: &str = "d.keyed";

fn fake() -> Fake {
    let fake = Fake::start();
    fake.create_table("CREATE TABLE d.keyed (id STRING NOT NULL, n INT64, PRIMARY KEY (id) NOT ENFORCED)");
    fake.create_table("CREATE TABLE d.plain (id STRING NOT NULL, n INT64)");
    fake
}

fn schema() -> DescriptorProto {
    descriptor(&[
        ("id", Type::String),
        ("n", Type::Int64),
        ("_CHANGE_TYPE", Type::String),
        ("_CHANGE_SEQUENCE_NUMBER", Type::String),
    ])
}

fn changed(id: &str, n: Option<u64>, change: &str, sequence: &str) -> Vec<u8> {
    let mut bytes = row(id);
    if let Some(n) = n {
        uint64::encode(2, &n, &mut bytes);
    }
    for (field, text) in [(3, change), (4, sequence)] {
        if !text.is_empty() {
            string::encode(field, &text.to_owned(), &mut bytes);
        }
    }
    bytes
}

/// Sends rows to a stream in one request, on a call of their own.
fn send(fake: &Fake, stream: &str, schema: DescriptorProto, offset: Option<i64>, rows: &[Vec<u8>]) -> Answered {
    let writer = Writer::to(fake);
    let mut line = writer.open_as(stream, Some(schema), Some(&format!("write_stream={stream}")));
    let request = line.request(offset, rows);
    line.send_as(request);
    line.answer()
}

fn default_stream(table: &str) -> String {
    format!("{}/streams/_default", path(table))
}

fn change(fake: &Fake, rows: &[Vec<u8>]) -> Answered {
    send(fake, &default_stream(TABLE), schema(), None, rows)
}

fn shown(fake: &Fake) -> Vec<String> {
    fake.content(|content| content.rows(TABLE)).iter().map(|row| serde_json::to_string(row).unwrap()).collect()
}

#[test]
fn the_highest_sequence_of_a_key_is_kept_and_a_delete_is_remembered() {
    let fake = fake();
    let rows = [
        changed("a", Some(2), "UPSERT", "1/0A"),
        changed("a", Some(1), "UPSERT", "1/9"),
        changed("b", Some(9), "DELETE", "2"),
        changed("b", Some(1), "UPSERT", "1"),
        changed("c", None, "UPSERT", "0"),
    ];
    for _ in 0..2 {
        assert_eq!(change(&fake, &rows).error_or_ok(), Code::Ok);
        assert_eq!(shown(&fake), [r#"{"id":"a","n":2}"#, r#"{"id":"c"}"#]);
    }
    assert_eq!(change(&fake, &[changed("b", Some(3), "UPSERT", "3")]).error_or_ok(), Code::Ok);
    assert_eq!(fake.count(TABLE), 3);
}

#[test]
fn changes_go_to_the_default_stream_of_a_table_with_a_key_only() {
    let fake = fake();
    let rows = [changed("a", Some(1), "UPSERT", "1")];
    let plain = send(&fake, &default_stream("d.plain"), schema(), None, &rows);
    assert!(plain.text().contains("primary key"), "{plain:?}");
    let stream = Writer::to(&fake).create(TABLE).unwrap();
    let committed = send(&fake, &stream, schema(), Some(0), &rows);
    assert!(committed.text().contains("default stream"), "{committed:?}");
    let numbers = descriptor(&[("id", Type::String), ("n", Type::Int64), ("_CHANGE_TYPE", Type::Int64)]);
    assert!(send(&fake, &default_stream(TABLE), numbers, None, &rows).text().contains("STRING"));
    let mut lone = schema();
    lone.field.remove(2);
    assert!(send(&fake, &default_stream(TABLE), lone, None, &rows).text().contains("goes with"));
    assert_eq!(fake.count(TABLE) + fake.count("d.plain"), 0);
}

#[test]
fn a_change_that_cannot_be_told_is_a_refused_row() {
    let fake = fake();
    for (bad, why) in [
        (changed("a", None, "INSERT", "1"), "neither UPSERT nor DELETE"),
        (changed("a", None, "", "1"), "_CHANGE_TYPE is missing"),
        (changed("a", None, "UPSERT", ""), "_CHANGE_SEQUENCE_NUMBER is missing"),
        (changed("a", None, "UPSERT", "1/2/3/4/5"), "one to four sections"),
        (changed("a", None, "UPSERT", "xyz"), "hexadecimal"),
    ] {
        let Answered::Refused(_, rows) = change(&fake, &[changed("ok", None, "UPSERT", "1"), bad]) else { panic!() };
        assert_eq!(rows.len(), 1);
        assert!(rows[0].0 == 1 && rows[0].1.contains(why), "{rows:?}");
    }
    assert_eq!(fake.count(TABLE), 0);
}

//! Rows for BigQuery, as the ledger keeps them and as they are sent: protocol buffer messages.
//!
//! Which wire type a column has depends on the table alone (docs.cloud.google.com/bigquery/docs/supported-data-types):
//! NUMERIC is its canonical text, TIMESTAMP int64 microseconds, DATE int32 days, JSON text. A null is left out.

use super::super::Change;
use crate::row::{ColumnType, ValueRef};
use prost::encoding::{WireType, bool, double, encode_key, encode_varint, int32, int64};

/// Appends a row. `kinds` are the types of the table's columns; field numbers count them from 1.
pub fn encode<'a>(kinds: &[ColumnType], bytes: &mut Vec<u8>, values: impl IntoIterator<Item = ValueRef<'a>>) {
    for ((number, kind), value) in (1..).zip(kinds).zip(values) {
        match value {
            ValueRef::Null => {}
            ValueRef::Boolean(value) => bool::encode(number, &value, bytes),
            // A NUMERIC column takes integers, as text like every number of its own.
            ValueRef::Int64(value) if *kind == ColumnType::Numeric => {
                delimited(number, value.to_string().as_bytes(), bytes);
            }
            ValueRef::Int64(value) | ValueRef::Timestamp(value) => int64::encode(number, &value, bytes),
            ValueRef::Float64(value) => double::encode(number, &value, bytes),
            ValueRef::Numeric(value) | ValueRef::Text(value) | ValueRef::Json(value) => {
                delimited(number, value.as_bytes(), bytes);
            }
            ValueRef::Bytes(value) => delimited(number, value, bytes),
            ValueRef::Date(value) => int32::encode(number, &value, bytes),
        }
    }
}

/// Appends what a row does to the one with its key: two fields behind those of the columns.
pub fn encode_change(kinds: &[ColumnType], bytes: &mut Vec<u8>, change: Change, sequence: &str) {
    let number = u32::try_from(kinds.len()).expect("a table has at most 10,000 columns");
    delimited(number + 1, change.as_str().as_bytes(), bytes);
    delimited(number + 2, sequence.as_bytes(), bytes);
}

fn delimited(number: u32, value: &[u8], bytes: &mut Vec<u8>) {
    encode_key(number, WireType::LengthDelimited, bytes);
    encode_varint(value.len() as u64, bytes);
    bytes.extend_from_slice(value);
}

//! Rows for SQLite, as the ledger keeps them: cells in the order of the layout's columns.
//!
//! NUMERIC is its canonical text, TIMESTAMP is RFC 3339 text with microseconds and Z, DATE is `YYYY-MM-DD`, BYTES is a
//! blob, BOOL is 0 or 1.

use crate::row::ValueRef;
use crate::time::{format_date, format_micros};
use rusqlite::types::ToSqlOutput;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// One cell as SQLite stores it.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Cell<'a> {
    Null,
    Integer(i64),
    Real(f64),
    #[serde(borrow)]
    Text(Cow<'a, str>),
    #[serde(borrow, with = "serde_bytes")]
    Blob(&'a [u8]),
}

impl<'a> Cell<'a> {
    pub(super) fn of(value: ValueRef<'a>) -> Self {
        match value {
            ValueRef::Null => Self::Null,
            ValueRef::Boolean(b) => Self::Integer(i64::from(b)),
            ValueRef::Int64(n) => Self::Integer(n),
            ValueRef::Float64(x) => Self::Real(x),
            ValueRef::Numeric(text) | ValueRef::Text(text) | ValueRef::Json(text) => Self::Text(Cow::Borrowed(text)),
            ValueRef::Bytes(bytes) => Self::Blob(bytes),
            ValueRef::Timestamp(micros) => Self::Text(Cow::Owned(format_micros(micros))),
            ValueRef::Date(days) => Self::Text(Cow::Owned(format_date(days))),
        }
    }

    /// The cell as a parameter, borrowed.
    pub(super) fn bind(&'a self) -> ToSqlOutput<'a> {
        use rusqlite::types::ValueRef as Sql;
        ToSqlOutput::Borrowed(match self {
            Self::Null => Sql::Null,
            Self::Integer(n) => Sql::Integer(*n),
            Self::Real(x) => Sql::Real(*x),
            Self::Text(text) => Sql::Text(text.as_bytes()),
            Self::Blob(bytes) => Sql::Blob(bytes),
        })
    }
}

/// Appends a row's cells to `bytes`.
pub fn encode<'a>(bytes: &mut Vec<u8>, values: impl IntoIterator<Item = ValueRef<'a>>) {
    for value in values {
        postcard::to_io(&Cell::of(value), &mut *bytes).expect("writing cells to memory cannot fail");
    }
}

/// Calls `each` with every cell of a row, in order.
pub(super) fn decode<E>(
    mut bytes: &[u8],
    mut each: impl FnMut(usize, &Cell<'_>) -> Result<(), E>,
) -> Result<Result<(), E>, postcard::Error> {
    let mut index = 0;
    while !bytes.is_empty() {
        let (cell, rest) = postcard::take_from_bytes::<Cell<'_>>(bytes)?;
        if let Err(error) = each(index, &cell) {
            return Ok(Err(error));
        }
        bytes = rest;
        index += 1;
    }
    Ok(Ok(()))
}

/// All cells of a row.
pub(super) fn cells(mut bytes: &[u8]) -> Result<Vec<Cell<'_>>, postcard::Error> {
    let mut cells = Vec::new();
    while !bytes.is_empty() {
        let (cell, rest) = postcard::take_from_bytes(bytes)?;
        cells.push(cell);
        bytes = rest;
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_come_back_as_they_went_in() {
        let mut bytes = Vec::new();
        let values = [
            ValueRef::Null,
            ValueRef::Boolean(true),
            ValueRef::Int64(i64::MIN),
            ValueRef::Float64(0.1),
            ValueRef::Numeric("749.5"),
            ValueRef::Text("é\0"),
            ValueRef::Bytes(b"\xff\x00"),
            ValueRef::Timestamp(0),
            ValueRef::Date(-1),
            ValueRef::Json("{}"),
        ];
        encode(&mut bytes, values);
        let mut cells = Vec::new();
        decode(&bytes, |index, cell| {
            cells.push(format!("{index} {cell:?}"));
            Ok::<_, ()>(())
        })
        .unwrap()
        .unwrap();
        assert_eq!(
            cells,
            [
                "0 Null",
                "1 Integer(1)",
                "2 Integer(-9223372036854775808)",
                "3 Real(0.1)",
                "4 Text(\"749.5\")",
                "5 Text(\"é\\0\")",
                "6 Blob([255, 0])",
                "7 Text(\"1970-01-01T00:00:00.000000Z\")",
                "8 Text(\"1969-12-31\")",
                "9 Text(\"{}\")",
            ]
        );
    }
}

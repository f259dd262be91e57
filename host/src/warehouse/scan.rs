//! Rows of a table, read back as the values they were written as.

use super::{TableColumn, WarehouseError};
use crate::row::{ColumnType, Row, Value};
use crate::time::Micros;
use base64::Engine as _;
use futures::stream::BoxStream;
use preflight_sdk::decimal::is_canonical;
use preflight_sdk::time::parse_date;

/// Which rows of a table are read, and which of their columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// The table, by its name in the pipeline file.
    pub table: String,
    /// The columns, in the order of the values, and the types that were written to them.
    pub columns: Vec<(String, ColumnType)>,
    /// A TIMESTAMP column.
    pub time: String,
    /// Rows of this time or later.
    pub from: Micros,
    /// Rows before this time.
    pub to: Micros,
}

/// Chunks of rows, in no order. It ends with the first error.
pub type Chunks<'a> = BoxStream<'a, Result<Vec<Row>, WarehouseError>>;

/// A chunk ends with the row that makes it this long,
pub(super) const CHUNK_ROWS: usize = 2_000;
/// or that makes it have so many bytes.
pub(super) const CHUNK_BYTES: usize = 1 << 20;

impl Scan {
    /// The columns as the table has them, the time last.
    pub(super) fn live<'t>(&self, table: &'t [TableColumn]) -> Result<Vec<&'t TableColumn>, WarehouseError> {
        let wanted = self.columns.iter().map(|(name, kind)| (name, *kind));
        let wanted = wanted.chain([(&self.time, ColumnType::Timestamp)]);
        let find = |(name, kind): (&String, ColumnType)| {
            let column = table.iter().find(|column| column.name.eq_ignore_ascii_case(name));
            let column = column.ok_or_else(|| self.unreadable(&format!("it has no column `{name}`")))?;
            if !column.holds.contains(&kind) {
                let what = format!("column `{name}` is declared {}, which does not hold {kind}", column.declared);
                return Err(self.unreadable(&what));
            }
            Ok(column)
        };
        wanted.map(find).collect()
    }

    /// A row of values that could be read; the error names the first that could not.
    pub(super) fn row(&self, values: impl IntoIterator<Item = Option<Value>>) -> Result<Row, WarehouseError> {
        let read = |((name, kind), value): (&(String, ColumnType), Option<Value>)| {
            value.ok_or_else(|| self.unreadable(&format!("a row has what is no {kind} in column `{name}`")))
        };
        self.columns.iter().zip(values).map(read).collect()
    }

    /// That the table cannot be read as it is wanted.
    pub(super) fn unreadable(&self, what: &str) -> WarehouseError {
        WarehouseError { text: format!("cannot read table {}: {what}", self.table), retryable: false }
    }
}

/// About how many bytes a row takes.
pub(super) fn size(row: &Row) -> usize {
    let of = |value: &Value| match value {
        Value::Numeric(text) | Value::Text(text) | Value::Json(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    row.iter().map(|value| size_of::<Value>() + of(value)).sum()
}

/// Reads a value that is not null from text: TIMESTAMP as microseconds, BYTES as base64, the rest as people write them.
pub(super) fn from_text(kind: ColumnType, text: &str) -> Option<Value> {
    match kind {
        ColumnType::Boolean => text.parse().ok().map(Value::Boolean),
        // An integer may stand in a NUMERIC column.
        ColumnType::Int64 => trimmed(text).parse().ok().map(Value::Int64),
        ColumnType::Float64 => text.parse().ok().map(Value::Float64),
        ColumnType::Numeric => numeric(text),
        ColumnType::Text => Some(Value::Text(text.to_owned())),
        ColumnType::Bytes => base64::engine::general_purpose::STANDARD.decode(text).ok().map(Value::Bytes),
        ColumnType::Timestamp => text.parse().ok().map(Value::Timestamp),
        ColumnType::Date => parse_date(text).ok().map(Value::Date),
        ColumnType::Json => Some(Value::Json(text.to_owned())),
    }
}

/// A number in its canonical form, whatever zeros it was shown with.
pub(super) fn numeric(text: &str) -> Option<Value> {
    let text = trimmed(text);
    is_canonical(text).then(|| Value::Numeric(text.to_owned()))
}

/// Without zeros behind the point that say nothing.
fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_from_its_text_or_not_at_all() {
        use ColumnType::{Boolean, Bytes, Date, Float64, Int64, Json, Numeric, Text, Timestamp};
        for (kind, text, value) in [
            (Boolean, "true", Value::Boolean(true)),
            (Int64, "-9223372036854775808", Value::Int64(i64::MIN)),
            (Int64, "5.000000000", Value::Int64(5)),
            (Float64, "0.1", Value::Float64(0.1)),
            (Float64, "1e+300", Value::Float64(1e300)),
            (Numeric, "1.500000000", Value::Numeric("1.5".into())),
            (Numeric, "100", Value::Numeric("100".into())),
            (Numeric, "0.000000000", Value::Numeric("0".into())),
            (Text, "1.50", Value::Text("1.50".into())),
            (Bytes, "/wA=", Value::Bytes(vec![255, 0])),
            (Timestamp, "-1", Value::Timestamp(-1)),
            (Date, "1969-12-31", Value::Date(-1)),
            (Json, "{}", Value::Json("{}".into())),
        ] {
            assert_eq!(from_text(kind, text), Some(value), "{kind} {text}");
        }
        for (kind, text) in [
            (Boolean, "1"),
            (Int64, "1.5"),
            (Int64, "9223372036854775808"),
            (Float64, "x"),
            (Numeric, "1e5"),
            (Bytes, "%"),
            (Timestamp, "2024-01-01"),
            (Date, "today"),
        ] {
            assert_eq!(from_text(kind, text), None, "{kind} {text}");
        }
    }
}

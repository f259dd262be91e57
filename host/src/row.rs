//! Typed values, columns and rows: what a rule produces and a warehouse stores.
//!
//! The types are those of the rule contract (`wit/rules.wit`) and map one to one on BigQuery's.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnType {
    /// `BOOL`
    Boolean,
    /// `INT64`
    Int64,
    /// `FLOAT64`, never NaN or infinite
    Float64,
    /// `NUMERIC`: 29 digits before and 9 after the point
    Numeric,
    /// `STRING`
    Text,
    /// `BYTES`
    Bytes,
    /// `TIMESTAMP`: microseconds, UTC, years 1 to 9999
    Timestamp,
    /// `DATE`: days since 1970-01-01
    Date,
    /// `JSON`
    Json,
}

impl ColumnType {
    /// Every type, in the order of the contract.
    pub const ALL: [Self; 9] = [
        Self::Boolean,
        Self::Int64,
        Self::Float64,
        Self::Numeric,
        Self::Text,
        Self::Bytes,
        Self::Timestamp,
        Self::Date,
        Self::Json,
    ];
}

impl fmt::Display for ColumnType {
    /// The name BigQuery uses, which is what users of the tables know.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Boolean => "BOOL",
            Self::Int64 => "INT64",
            Self::Float64 => "FLOAT64",
            Self::Numeric => "NUMERIC",
            Self::Text => "STRING",
            Self::Bytes => "BYTES",
            Self::Timestamp => "TIMESTAMP",
            Self::Date => "DATE",
            Self::Json => "JSON",
        })
    }
}

/// A named, typed column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Column {
    /// Unique in its table, compared without regard to case as BigQuery and SQLite do.
    pub name: String,
    /// What it holds.
    #[serde(rename = "type")]
    pub kind: ColumnType,
    /// Whether it may be null.
    pub nullable: bool,
}

impl Column {
    /// A column.
    pub fn new(name: impl Into<String>, kind: ColumnType, nullable: bool) -> Self {
        Self { name: name.into(), kind, nullable }
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.name, self.kind, if self.nullable { "" } else { " NOT NULL" })
    }
}

/// One cell. A value that came from a guest exists only after `rules::convert` checked it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Value {
    /// Absent.
    Null,
    /// A truth value.
    Boolean(bool),
    /// A 64-bit integer.
    Int64(i64),
    /// A finite float.
    Float64(f64),
    /// Canonical decimal text.
    Numeric(String),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Microseconds since 1970-01-01T00:00:00Z.
    Timestamp(i64),
    /// Days since 1970-01-01.
    Date(i32),
    /// One JSON value, as text.
    Json(String),
}

impl Value {
    /// The type of the value; none for null.
    pub fn kind(&self) -> Option<ColumnType> {
        Some(match self {
            Self::Null => return None,
            Self::Boolean(_) => ColumnType::Boolean,
            Self::Int64(_) => ColumnType::Int64,
            Self::Float64(_) => ColumnType::Float64,
            Self::Numeric(_) => ColumnType::Numeric,
            Self::Text(_) => ColumnType::Text,
            Self::Bytes(_) => ColumnType::Bytes,
            Self::Timestamp(_) => ColumnType::Timestamp,
            Self::Date(_) => ColumnType::Date,
            Self::Json(_) => ColumnType::Json,
        })
    }

    /// As JSON, the way fixtures and `--json` show it: NUMERIC, TIMESTAMP and DATE as text, BYTES as base64.
    pub fn to_json(&self) -> serde_json::Value {
        use base64::Engine as _;
        use serde_json::Value as Json;
        match self {
            Self::Null => Json::Null,
            Self::Boolean(b) => Json::Bool(*b),
            Self::Int64(n) => Json::from(*n),
            Self::Float64(x) => Json::from(*x),
            Self::Numeric(text) | Self::Text(text) => Json::String(text.clone()),
            Self::Bytes(bytes) => Json::String(base64::engine::general_purpose::STANDARD.encode(bytes)),
            Self::Timestamp(micros) => Json::String(crate::time::format_micros(*micros)),
            Self::Date(days) => Json::String(crate::time::format_date(*days)),
            Self::Json(text) => serde_json::from_str(text).unwrap_or_else(|_| Json::String(text.clone())),
        }
    }
}

/// Values in the order of the columns that the manifest declares.
pub type Row = Vec<Value>;

/// A value on its way into a table, borrowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueRef<'a> {
    /// Absent.
    Null,
    /// A truth value.
    Boolean(bool),
    /// A 64-bit integer.
    Int64(i64),
    /// A finite float.
    Float64(f64),
    /// Canonical decimal text.
    Numeric(&'a str),
    /// Text.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
    /// Microseconds since 1970-01-01T00:00:00Z.
    Timestamp(i64),
    /// Days since 1970-01-01.
    Date(i32),
    /// One JSON value, as text.
    Json(&'a str),
}

impl<'a> From<&'a Value> for ValueRef<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Boolean(b) => Self::Boolean(*b),
            Value::Int64(n) => Self::Int64(*n),
            Value::Float64(x) => Self::Float64(*x),
            Value::Numeric(text) => Self::Numeric(text),
            Value::Text(text) => Self::Text(text),
            Value::Bytes(bytes) => Self::Bytes(bytes),
            Value::Timestamp(micros) => Self::Timestamp(*micros),
            Value::Date(days) => Self::Date(*days),
            Value::Json(text) => Self::Json(text),
        }
    }
}

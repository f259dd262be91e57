//! Column types, values, and the Rust types that a row's fields are declared with.

mod cell;

use std::fmt;

pub use cell::Cell;

use crate::time;

/// The type of a column, as in the contract's `column-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// `true` or `false`.
    Boolean,
    /// A 64-bit signed integer.
    Int64,
    /// A finite double.
    Float64,
    /// An exact decimal; see [`crate::decimal`].
    Numeric,
    /// UTF-8 text.
    Text,
    /// Any bytes.
    Bytes,
    /// An instant, in microseconds; see [`crate::time`].
    Timestamp,
    /// A day of the calendar.
    Date,
    /// One JSON value, as text.
    Json,
}

/// A column of a row: what the manifest says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name, as the warehouse knows it.
    pub name: &'static str,
    /// The type of its values.
    pub kind: ColumnType,
    /// Whether it may be null.
    pub nullable: bool,
}

/// One cell of a row, as in the contract's `value`.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// No value; allowed in a nullable column only.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// A 64-bit signed integer.
    Int64(i64),
    /// A double; the host refuses NaN and the infinities.
    Float64(f64),
    /// Canonical decimal text; see [`crate::decimal::is_canonical`].
    Numeric(String),
    /// UTF-8 text.
    Text(String),
    /// Any bytes.
    Bytes(Vec<u8>),
    /// Microseconds since 1970-01-01T00:00:00Z.
    Timestamp(i64),
    /// Days since 1970-01-01.
    Date(i32),
    /// One JSON value, as text.
    Json(String),
}

/// A text column.
pub type Text = String;
/// An exact decimal column: up to nine decimals, see [`crate::decimal`].
pub type Numeric = rust_decimal::Decimal;
/// A bytes column.
pub type Bytes = Vec<u8>;

/// An instant of years 1 to 9999, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The instant that many microseconds after 1970-01-01T00:00:00Z, unless it is outside years 1 to 9999.
    pub fn from_micros(micros: i64) -> Option<Self> {
        (time::MIN_MICROS..=time::MAX_MICROS).contains(&micros).then_some(Self(micros))
    }

    /// Microseconds since 1970-01-01T00:00:00Z.
    pub fn micros(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&time::format_micros(self.0))
    }
}

/// The one timestamp column of a row that says when the event happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventTime(pub Timestamp);

impl From<Timestamp> for EventTime {
    fn from(time: Timestamp) -> Self {
        Self(time)
    }
}

/// A day of years 1 to 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(i32);

impl Date {
    /// The day that many days after 1970-01-01, unless it is outside years 1 to 9999.
    pub fn from_days(days: i32) -> Option<Self> {
        (time::MIN_DAYS..=time::MAX_DAYS).contains(&days).then_some(Self(days))
    }

    /// Days since 1970-01-01.
    pub fn days(self) -> i32 {
        self.0
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&time::format_date(self.0))
    }
}

/// A JSON column: one value, its text as the event wrote it. Made by [`Field::json`](crate::json::Field::json).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Json(pub(crate) String);

impl Json {
    /// The JSON text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

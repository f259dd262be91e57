//! How a Rust type becomes a column and a value.

use super::{Bytes, ColumnType, Date, EventTime, Json, Numeric, Text, Timestamp, Value};
use crate::decimal::{self, DecimalError};

/// A Rust type that a row's field can have.
pub trait Cell: Sized {
    /// The type of the column.
    const KIND: ColumnType;
    /// Whether the column may be null.
    const NULLABLE: bool = false;
    /// Whether the column is the row's event time.
    const EVENT_TIME: bool = false;

    /// The value for the host, or how it fails to be one, as a predicate such as `must be finite`.
    fn into_value(self) -> Result<Value, Unfit>;

    /// The Rust value of one from the host, if it is of this type.
    fn from_value(value: Value) -> Option<Self>;
}

/// A value computed by a rule that its column cannot hold. Its `Display` completes a sentence that starts with the column's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// A decimal outside `NUMERIC`.
    Decimal(DecimalError),
    /// NaN or an infinity.
    NotFinite,
}

impl std::fmt::Display for Unfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Decimal(error) => error.fmt(f),
            Self::NotFinite => DecimalError::NotFinite.fmt(f),
        }
    }
}

/// A type that is never null, so that `Option` of it is a nullable column and `Option<Option<_>>` does not compile.
pub trait NeverNull: Cell {}

impl<T: NeverNull> Cell for Option<T> {
    const KIND: ColumnType = T::KIND;
    const NULLABLE: bool = true;
    const EVENT_TIME: bool = T::EVENT_TIME;

    fn into_value(self) -> Result<Value, Unfit> {
        self.map_or(Ok(Value::Null), T::into_value)
    }

    fn from_value(value: Value) -> Option<Self> {
        if value == Value::Null { Some(None) } else { T::from_value(value).map(Some) }
    }
}

macro_rules! cell {
    ($type:ty, $kind:ident, $into:expr, $from:expr $(, event_time: $event_time:literal)?) => {
        impl NeverNull for $type {}

        impl Cell for $type {
            const KIND: ColumnType = ColumnType::$kind;
            $(const EVENT_TIME: bool = $event_time;)?

            fn into_value(self) -> Result<Value, Unfit> {
                let into: fn(Self) -> Result<_, Unfit> = $into;
                into(self).map(Value::$kind)
            }

            fn from_value(value: Value) -> Option<Self> {
                match value {
                    Value::$kind(value) => $from(value),
                    _ => None,
                }
            }
        }
    };
}

cell!(bool, Boolean, Ok, Some);
cell!(i64, Int64, Ok, Some);
cell!(f64, Float64, |value| if value.is_finite() { Ok(value) } else { Err(Unfit::NotFinite) }, Some);
cell!(Numeric, Numeric, |value| decimal::to_canonical(value).map_err(Unfit::Decimal), |text: String| decimal::parse(
    &text
)
.ok());
cell!(Text, Text, Ok, Some);
cell!(Bytes, Bytes, Ok, Some);
cell!(Timestamp, Timestamp, |time| Ok(time.micros()), Timestamp::from_micros);
cell!(EventTime, Timestamp, |time| Ok(time.0.micros()), |micros| Timestamp::from_micros(micros).map(EventTime), event_time: true);
cell!(Date, Date, |date| Ok(date.days()), Date::from_days);
cell!(Json, Json, |json| Ok(json.0), |text| Some(Json(text)));

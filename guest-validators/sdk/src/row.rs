//! Rows: [`row!`](crate::row!) declares the struct, the manifest's columns and the order of the values in one place.

use crate::error::FieldError;
use crate::value::{Cell, Column, Value};

#[cfg(test)]
mod tests;

/// A row that a rule produces, or one that it reads from a table. Implemented by [`row!`](crate::row!).
pub trait Row: Sized {
    /// The columns, in the order of the fields.
    const COLUMNS: &'static [Column];
    /// The column of type [`EventTime`](crate::value::EventTime), if there is one.
    const EVENT_TIME: Option<&'static str>;

    /// The values, in the order of [`COLUMNS`](Self::COLUMNS). Fails when the rule computed one that its column cannot hold.
    fn into_values(self) -> Result<Vec<Value>, FieldError>;

    /// The row of values that came from the host, if they fit the columns.
    fn from_values(values: Vec<Value>) -> Option<Self>;
}

/// Declares a row.
///
/// Each field is a column of the same name. A field of type `Option<…>` is a nullable column; at most one is an `EventTime`. The types are
/// [`Text`](crate::value::Text), [`Numeric`](crate::value::Numeric), [`Timestamp`](crate::value::Timestamp),
/// [`EventTime`](crate::value::EventTime), [`Date`](crate::value::Date), [`Json`](crate::value::Json),
/// [`Bytes`](crate::value::Bytes), `i64`, `f64` and `bool`.
///
/// ```
/// use preflight_sdk::prelude::*;
///
/// row!(
///     /// A sale.
///     pub struct Sale {
///         pub id: Text,
///         /// Null until it is paid.
///         pub amount: Option<Numeric>,
///         pub sold_at: EventTime,
///     }
/// );
///
/// assert_eq!(Sale::COLUMNS[1].name, "amount");
/// assert!(Sale::COLUMNS[1].nullable);
/// assert_eq!(Sale::EVENT_TIME, Some("sold_at"));
/// ```
///
/// Two event times do not compile:
///
/// ```compile_fail
/// use preflight_sdk::prelude::*;
/// row!(pub struct Sale { pub sold_at: EventTime, pub paid_at: EventTime });
/// ```
///
/// Nor do names that a warehouse would take for the same:
///
/// ```compile_fail
/// use preflight_sdk::prelude::*;
/// row!(#[expect(non_snake_case)] pub struct Sale { pub id: Text, pub ID: Text });
/// ```
#[macro_export]
macro_rules! row {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $type:ty),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $name {
            $(
                #[doc = ::core::concat!("The column `", ::core::stringify!($field), "`.\n")]
                $(#[$field_meta])*
                $field_vis $field: $type,
            )+
        }

        impl $crate::row::Row for $name {
            const COLUMNS: &'static [$crate::value::Column] =
                &[$($crate::row::column::<$type>(::core::stringify!($field))),+];
            const EVENT_TIME: ::core::option::Option<&'static str> =
                $crate::row::event_time(Self::COLUMNS, &[$(<$type as $crate::value::Cell>::EVENT_TIME),+]);

            fn into_values(self) -> ::core::result::Result<::std::vec::Vec<$crate::value::Value>, $crate::error::FieldError> {
                ::core::result::Result::Ok(::std::vec![
                    $($crate::row::value(::core::stringify!($field), self.$field)?),+
                ])
            }

            fn from_values(values: ::std::vec::Vec<$crate::value::Value>) -> ::core::option::Option<Self> {
                let mut values = ::core::iter::IntoIterator::into_iter(values);
                let row = Self {
                    $($field: $crate::value::Cell::from_value(::core::iter::Iterator::next(&mut values)?)?),+
                };
                ::core::option::Option::is_none(&::core::iter::Iterator::next(&mut values)).then_some(row)
            }
        }

        // At module level, so that `cargo check` sees a mistake too.
        const _: () = $crate::row::check(<$name as $crate::row::Row>::COLUMNS);
        const _: ::core::option::Option<&'static str> = <$name as $crate::row::Row>::EVENT_TIME;
    };
}

/// The column of a field. For [`row!`](crate::row!).
#[doc(hidden)]
pub const fn column<T: Cell>(name: &'static str) -> Column {
    Column { name: without_raw_prefix(name), kind: T::KIND, nullable: T::NULLABLE }
}

/// The value of a field. For [`row!`](crate::row!).
#[doc(hidden)]
#[inline]
pub fn value<T: Cell>(name: &'static str, cell: T) -> Result<Value, FieldError> {
    cell.into_value().map_err(|error| FieldError::new(without_raw_prefix(name), error))
}

/// The name of the one event time column. For [`row!`](crate::row!).
#[doc(hidden)]
pub const fn event_time(columns: &'static [Column], is_event_time: &[bool]) -> Option<&'static str> {
    let mut found = None;
    let mut at = 0;
    while at < columns.len() {
        if is_event_time[at] {
            assert!(found.is_none(), "a row has at most one EventTime column");
            found = Some(columns[at].name);
        }
        at += 1;
    }
    found
}

/// Refuses columns that no warehouse could tell apart. For [`row!`](crate::row!).
#[doc(hidden)]
pub const fn check(columns: &[Column]) {
    let mut at = 0;
    while at < columns.len() {
        let name = columns[at].name;
        assert!(name.is_ascii(), "a column's name is of ASCII letters, digits and _");
        let mut other = at + 1;
        while other < columns.len() {
            assert!(
                !name.eq_ignore_ascii_case(columns[other].name),
                "two columns have the same name (upper and lower case are the same)"
            );
            other += 1;
        }
        at += 1;
    }
}

/// `stringify!(r#type)` keeps the `r#`.
const fn without_raw_prefix(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}

//! Rows of silver by the value of one column, counted.

use crate::row::ValueRef;
use crate::time::{format_date, format_micros};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use preflight_sdk::error::clip;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Values that are counted one by one; further ones are counted together.
const VALUES: usize = 100;
/// Characters by which values are told apart.
const CHARS: usize = 100;

/// Rows by value. Values are as many as events say: in what is [counted for long](Self::add_bounded) the first hundred have a count of
/// their own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueCounts {
    values: BTreeMap<Box<str>, u64>,
    others: u64,
}

impl ValueCounts {
    /// Counts a row. Returns the name that its value is counted under.
    pub fn count(&mut self, value: ValueRef<'_>) -> Box<str> {
        let name = name(value);
        self.add_to(&name, 1, usize::MAX);
        name.into()
    }

    /// Takes one row out that was counted.
    pub fn take_one(&mut self, name: &str) {
        match self.values.get_mut(name) {
            Some(1) => drop(self.values.remove(name)),
            Some(rows) => *rows -= 1,
            // What has no count of its own was counted with others.
            None => self.others -= 1,
        }
    }

    /// Adds the counts of another part of a micro-batch.
    pub fn add(&mut self, later: &Self) {
        self.add_up_to(later, usize::MAX);
    }

    /// Adds the counts of a micro-batch to those of all. What has no count of its own there is counted with others, always.
    pub fn add_bounded(&mut self, later: &Self) {
        self.add_up_to(later, VALUES);
    }

    fn add_up_to(&mut self, later: &Self, most: usize) {
        for (name, rows) in &later.values {
            self.add_to(name, *rows, most);
        }
        self.others += later.others;
    }

    /// The values that have a count of their own, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.values.iter().map(|(name, rows)| (name.as_ref(), *rows))
    }

    /// Rows of all other values.
    pub fn others(&self) -> u64 {
        self.others
    }

    fn add_to(&mut self, name: &str, rows: u64, most: usize) {
        // Looked up by itself, so that the usual case does not allocate.
        if let Some(known) = self.values.get_mut(name) {
            *known += rows;
        } else if self.values.len() < most {
            self.values.insert(name.into(), rows);
        } else {
            self.others += rows;
        }
    }
}

/// A value as text: NULL is `NULL`, a long text its beginning.
fn name(value: ValueRef<'_>) -> Cow<'_, str> {
    match value {
        ValueRef::Null => "NULL".into(),
        ValueRef::Boolean(value) => value.to_string().into(),
        ValueRef::Int64(value) => value.to_string().into(),
        ValueRef::Float64(value) => value.to_string().into(),
        // No text of so many bytes has more characters.
        ValueRef::Numeric(text) | ValueRef::Text(text) | ValueRef::Json(text) if text.len() <= CHARS => text.into(),
        ValueRef::Numeric(text) | ValueRef::Text(text) | ValueRef::Json(text) => clip(text, CHARS).into(),
        ValueRef::Bytes(bytes) => clip(&STANDARD.encode(&bytes[..bytes.len().min(CHARS)]), CHARS).into(),
        ValueRef::Timestamp(micros) => format_micros(micros).into(),
        ValueRef::Date(days) => format_date(days).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_and_taken_out_again() {
        let mut counts = ValueCounts::default();
        for status in ["placed", "shipped", "shipped"] {
            assert_eq!(counts.count(ValueRef::Text(status)).as_ref(), status);
        }
        let mut later = counts.clone();
        later.take_one("placed");
        assert!(later.iter().eq([("shipped", 2)]));
        counts.add(&later);
        assert!(counts.iter().eq([("placed", 1), ("shipped", 4)]) && counts.others() == 0, "{counts:?}");
    }

    /// Each part had a hundred of its own: a value was then named in one part, and among the others in the next.
    #[test]
    fn a_value_is_counted_by_itself_or_not_at_all() {
        let rows = i64::try_from(VALUES).unwrap() + 50;
        let mut batch = ValueCounts::default();
        for part in [0..rows, 20..rows] {
            let mut counts = ValueCounts::default();
            part.for_each(|number| drop(counts.count(ValueRef::Int64(number))));
            counts.take_one("20");
            batch.add(&counts);
        }
        assert_eq!((batch.iter().count(), batch.others()), (VALUES + 49, 0));
        let mut all = ValueCounts::default();
        all.add_bounded(&batch);
        all.add_bounded(&batch);
        assert_eq!(all.iter().count(), VALUES);
        for (name, count) in all.iter() {
            let in_batch = batch.iter().find(|(other, _)| *other == name).unwrap().1;
            assert_eq!(count, 2 * in_batch, "{name}");
        }
        let named: u64 = all.iter().map(|(_, rows)| rows).sum();
        assert_eq!(named + all.others(), 2 * batch.iter().map(|(_, rows)| rows).sum::<u64>());
    }

    #[test]
    fn every_type_has_a_text_and_none_a_long_one() {
        let long = "é".repeat(CHARS + 1);
        for (value, text) in [
            (ValueRef::Null, "NULL"),
            (ValueRef::Boolean(true), "true"),
            (ValueRef::Float64(0.5), "0.5"),
            (ValueRef::Numeric("749.5"), "749.5"),
            (ValueRef::Bytes(b"\xff"), "/w=="),
            (ValueRef::Timestamp(0), "1970-01-01T00:00:00.000000Z"),
            (ValueRef::Date(0), "1970-01-01"),
            (ValueRef::Json("[1]"), "[1]"),
        ] {
            assert_eq!(name(value), text);
        }
        assert_eq!(name(ValueRef::Text(&long)).chars().count(), CHARS + 1, "with an ellipsis");
        assert_eq!(name(ValueRef::Bytes(&[0; 1_000])).chars().count(), CHARS + 1);
    }
}

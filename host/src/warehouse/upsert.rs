//! Rows that replace others: of each key the newest is kept, in whatever order and however often they come.

use crate::row::ValueRef;
use serde::{Deserialize, Serialize};

/// By what the rows of a table replace each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upsert {
    /// The column that is the table's primary key.
    pub key: String,
    /// INT64 columns, the most significant first, whose values say which row of a key is newer. At most four; never null nor
    /// negative.
    pub sequence: Vec<String>,
}

/// What a row does to the one with its key, if that is older.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Takes its place, or is the first.
    Upsert,
    /// Removes it. Of the row only key and sequence count; the columns that are NOT NULL must have values.
    Delete,
}

impl Change {
    /// What BigQuery calls it.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Upsert => "UPSERT",
            Self::Delete => "DELETE",
        }
    }
}

/// Where columns stand in a layout. None where one is not in it.
pub(super) fn places<'a>(columns: &[String], names: impl IntoIterator<Item = &'a String>) -> Option<Vec<usize>> {
    let place = |name: &String| columns.iter().position(|column| column.eq_ignore_ascii_case(name));
    names.into_iter().map(place).collect()
}

/// A sequence as BigQuery takes it, of which the greater text is the newer: a section of 16 hexadecimal digits for each value.
/// None where a value is no counter.
pub(super) fn sequence_number<'a>(values: impl IntoIterator<Item = ValueRef<'a>>) -> Option<String> {
    let section = |value| match value {
        ValueRef::Int64(number) => u64::try_from(number).ok().map(|number| format!("{number:016X}")),
        _ => None,
    };
    values.into_iter().map(section).collect::<Option<Vec<_>>>().map(|sections| sections.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_sequence_is_the_greater_text() {
        let number = |values: [i64; 2]| sequence_number(values.map(ValueRef::Int64)).unwrap();
        assert_eq!(number([1, 255]), "0000000000000001/00000000000000FF");
        let ordered = [[0, 0], [0, 9], [0, 10], [0, i64::MAX], [1, 0], [10, 0], [i64::MAX, 1]].map(number);
        assert!(ordered.is_sorted_by(|a, b| a < b), "{ordered:?}");
    }

    #[test]
    fn what_is_no_counter_is_no_sequence() {
        for value in [ValueRef::Null, ValueRef::Int64(-1), ValueRef::Text("1")] {
            assert_eq!(sequence_number([ValueRef::Int64(1), value]), None, "{value:?}");
        }
        let columns = ["id".to_owned(), "Epoch".to_owned()];
        assert_eq!(places(&columns, [&"epoch".to_owned()]), Some(vec![1]));
        assert_eq!(places(&columns, [&"epoch".to_owned(), &"other".to_owned()]), None);
    }
}

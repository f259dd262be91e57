//! What got in: every row, how often and in which order, and every request for one.

use super::faults::RuleId;
use super::state::{Append, State};
use super::{PROJECT, path_in};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The fake's content at one moment.
pub struct Content<'a>(pub(super) &'a State);

/// Where a row stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The stream.
    pub stream: String,
    /// The offset; none in a default stream.
    pub offset: Option<u64>,
}

impl Content<'_> {
    /// The rows of a table in the order they got in, those that replace others by their key. A row that another writer wrote is empty.
    pub fn rows(&self, table: &str) -> Vec<Map<String, Value>> {
        let path = path_in(PROJECT, table);
        self.0.rows(&path).map(super::state::Written::content).collect()
    }

    /// How many rows a table has.
    pub fn count(&self, table: &str) -> usize {
        let path = path_in(PROJECT, table);
        self.0.rows(&path).count()
    }

    /// Where the rows of a table stand, by the value of a column: one place for each time the row got in.
    pub fn places(&self, table: &str, column: &str) -> BTreeMap<String, Vec<Place>> {
        let path = path_in(PROJECT, table);
        let mut places: BTreeMap<String, Vec<Place>> = BTreeMap::new();
        for row in self.0.rows(&path) {
            let content = row.content();
            let value = content
                .get(column)
                .map_or("(none)".to_owned(), |value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            let place = Place { stream: row.stream.to_string(), offset: row.offset };
            places.entry(value).or_default().push(place);
        }
        places
    }

    /// Fails unless a column has each of these values exactly once, and no others.
    #[track_caller]
    pub fn expect_each_once<S: AsRef<str>>(&self, table: &str, column: &str, values: impl IntoIterator<Item = S>) {
        let mut places = self.places(table, column);
        let mut missing = Vec::new();
        for value in values {
            match places.remove(value.as_ref()) {
                None => missing.push(value.as_ref().to_owned()),
                Some(places) => {
                    assert_eq!(places.len(), 1, "{table}: {column} {} is there at {places:?}", value.as_ref());
                }
            }
        }
        assert!(
            missing.is_empty(),
            "{table}: {column} lacks {} values: {:?}",
            missing.len(),
            &missing[..missing.len().min(20)]
        );
        let more: Vec<_> = places.iter().take(20).collect();
        assert!(more.is_empty(), "{table}: {column} has {} values too many: {more:?}", places.len());
    }

    /// The requests to append rows to a table, in the order they came.
    pub fn appends(&self, table: &str) -> Vec<Append> {
        let path = path_in(PROJECT, table);
        self.0.appends.iter().filter(|append| super::table_of(&append.stream) == path).cloned().collect()
    }

    /// The streams of a table: name, rows, and whether each is finalized.
    pub fn streams(&self, table: &str) -> Vec<(String, u64, bool)> {
        let path = path_in(PROJECT, table);
        let of_table = self.0.streams.iter().filter(|(_, stream)| stream.table == path);
        of_table.map(|(name, stream)| (name.clone(), stream.rows, stream.finalized)).collect()
    }

    /// How often a rule was used.
    pub fn hits(&self, rule: RuleId) -> u64 {
        self.0.faults.hits(rule)
    }
}

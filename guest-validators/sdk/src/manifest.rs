//! Manifests: what a component says of itself. Made by [`validator!`](crate::validator!) and [`enricher!`](crate::enricher!).

use crate::event::Event;
use crate::lookup::Lookup;
use crate::row::Row;
use crate::value::{Column, ColumnType};
use crate::verdict::Verdict;

/// What a component says of itself, as in the contract's `manifest`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The rule's name.
    pub name: &'static str,
    /// Its semantic version.
    pub version: &'static str,
    /// The event versions that it can judge.
    pub event_versions: &'static [&'static str],
    /// The attributes that it reads; no other is passed to it.
    pub attributes: &'static [&'static str],
    /// The columns that an enricher reads. Empty for a validator.
    pub inputs: &'static [Column],
    /// The columns that it produces.
    pub columns: &'static [Column],
    /// Which of `columns` is the event time.
    pub event_time: Option<&'static str>,
    /// The tables that it looks things up in.
    pub tables: Vec<TableDescription>,
}

/// A table that a rule reads, as in the contract's `table`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableDescription {
    /// The table's name.
    pub name: &'static str,
    /// The type of its key.
    pub key: ColumnType,
    /// The columns that the rule wants, in its order.
    pub columns: &'static [Column],
}

impl Manifest {
    /// With the columns of the row that `_rule` returns.
    #[doc(hidden)]
    #[must_use]
    pub fn with_output<R: Row>(mut self, _rule: fn(&Event) -> Verdict<R>) -> Self {
        self.columns = R::COLUMNS;
        self.event_time = R::EVENT_TIME;
        self
    }

    /// As [`with_output`](Self::with_output), for a rule with look-ups.
    #[doc(hidden)]
    #[must_use]
    pub fn with_output_of_lookup<R: Row>(mut self, _rule: fn(&Event, &dyn Lookup) -> Verdict<R>) -> Self {
        self.columns = R::COLUMNS;
        self.event_time = R::EVENT_TIME;
        self
    }

    /// With the columns that the enricher `_rule` reads and adds.
    #[doc(hidden)]
    #[must_use]
    pub fn with_input_and_output<I: Row, R: Row>(mut self, _rule: fn(I, &dyn Lookup) -> Verdict<R>) -> Self {
        self.inputs = I::COLUMNS;
        self.columns = R::COLUMNS;
        self
    }
}

/// Refuses a list of names that is empty where it must not be, or that repeats one. For the macros.
#[doc(hidden)]
pub const fn check_names(names: &[&str], may_be_empty: bool) {
    assert!(may_be_empty || !names.is_empty(), "a validator judges at least one event version");
    let mut at = 0;
    while at < names.len() {
        assert!(!names[at].is_empty(), "a name must not be empty");
        let mut other = at + 1;
        while other < names.len() {
            assert!(!same(names[at], names[other]), "the same name twice");
            other += 1;
        }
        at += 1;
    }
}

/// `==` for const contexts.
const fn same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}

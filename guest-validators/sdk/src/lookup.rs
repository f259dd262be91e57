//! Reference tables: what a rule may know besides the event.

use std::marker::PhantomData;

use crate::error::FieldError;
use crate::manifest::TableDescription;
use crate::row::{self, Row};
use crate::value::{Cell, Value};

/// Where look-ups go: to the host inside a component, to a fake in a test.
///
/// A look-up that fails does not return: the host ends the call and judges the event again later, so no rule has to handle it.
pub trait Lookup {
    /// The values of the row with that key, or none. A table that the manifest does not name ends the call.
    fn get(&self, table: &str, key: Value) -> Option<Vec<Value>>;
}

/// Tables of rows for tests, as `(table, key, row)`.
impl Lookup for &[(&str, Value, Vec<Value>)] {
    fn get(&self, table: &str, key: Value) -> Option<Vec<Value>> {
        self.iter().find(|(name, known, _)| *name == table && *known == key).map(|(_, _, row)| row.clone())
    }
}

/// A table with a key of type `K` and the columns of the row `R`, to be named in [`validator!`](crate::validator!) or
/// [`enricher!`](crate::enricher!).
///
/// ```
/// use preflight_sdk::prelude::*;
///
/// row!(pub struct Airport { pub city: Text, pub country: Option<Text> });
/// const AIRPORTS: Table<Text, Airport> = Table::new("airports");
///
/// let fake: &[_] = &[("airports", Value::Text("JFK".into()), vec![Value::Text("New York".into()), Value::Null])];
/// let airport = AIRPORTS.get(&fake, "JFK".to_owned()).unwrap().unwrap();
/// assert_eq!(airport.city, "New York");
/// ```
pub struct Table<K, R> {
    name: &'static str,
    types: PhantomData<fn(K) -> R>,
}

impl<K: Cell, R: Row> Table<K, R> {
    /// The table of that name.
    pub const fn new(name: &'static str) -> Self {
        Self { name, types: PhantomData }
    }

    /// The row with that key, or none. Fails if the key is a computed value that its type cannot hold.
    ///
    /// # Panics
    ///
    /// If the row is not of the columns that the manifest asks for, which the host rules out.
    pub fn get(&self, lookup: &dyn Lookup, key: K) -> Result<Option<R>, FieldError> {
        let Some(values) = lookup.get(self.name, row::value(self.name, key)?) else {
            return Ok(None);
        };
        let row = R::from_values(values);
        assert!(row.is_some(), "a row of table {} is not of its columns", self.name);
        Ok(row)
    }

    /// What the manifest says of the table.
    pub const fn describe(&self) -> TableDescription {
        TableDescription { name: self.name, key: K::KIND, columns: R::COLUMNS }
    }
}

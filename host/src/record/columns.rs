//! The columns of a file: what a record needs to become a JSON object, and what a row keeps of them.

use super::Dialect;
use crate::digest::Digest;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The name under which the attributes of a row have the columns. Its value is an object, which no producer's attribute is.
pub const ATTRIBUTE: &str = "csv";

/// As many columns as a BigQuery table has at most.
const MOST: usize = 10_000;

/// Names of columns in the order they have in a file, and how its fields are divided.
#[derive(Debug, Clone)]
pub struct Columns {
    names: Vec<String>,
    dialect: Dialect,
    /// What stands before each value in the JSON object: `{"a":`, then `,"b":`.
    pub(super) before: Vec<String>,
    attributes: String,
    digest: Digest,
}

impl Columns {
    /// Columns of these names. There are at least one and at most 10,000, none is empty, none stands twice; the error says what
    /// is wrong.
    pub fn new(names: Vec<String>, dialect: Dialect) -> Result<Self, String> {
        if names.is_empty() {
            return Err("there is no column".into());
        }
        if names.len() > MOST {
            return Err(format!("there are {} columns, at most {MOST} are taken", names.len()));
        }
        let mut known = BTreeSet::new();
        for (number, name) in (1..).zip(&names) {
            if name.is_empty() {
                return Err(format!("column {number} has no name"));
            }
            if !known.insert(name) {
                return Err(format!("column `{name}` stands twice"));
            }
        }
        let text = |name: &String| Value::String(name.clone()).to_string();
        let before = names.iter().enumerate().map(|(at, name)| {
            let opening = if at == 0 { '{' } else { ',' };
            format!("{opening}{}:", text(name))
        });
        let as_text = |byte: u8| char::from(byte).to_string();
        let (delimiter, quote) = (as_text(dialect.delimiter), dialect.quote.map(as_text).unwrap_or_default());
        let attributes = json!({ ATTRIBUTE: { "columns": names, "delimiter": delimiter, "quote": quote } }).to_string();
        let digest = Digest::of(attributes.as_bytes());
        Ok(Self { before: before.collect(), names, dialect, attributes, digest })
    }

    /// Reads what [`Columns::attributes`] has under its name.
    pub fn from_attribute(value: &Value) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Kept {
            columns: Vec<String>,
            delimiter: String,
            quote: String,
        }
        let kept = Kept::deserialize(value).map_err(|error| error.to_string())?;
        let [delimiter] = *kept.delimiter.as_bytes() else { return Err("the delimiter is not one byte".into()) };
        let quote = match *kept.quote.as_bytes() {
            [] => None,
            [quote] => Some(quote),
            _ => return Err("the quote is not one byte".into()),
        };
        Self::new(kept.columns, Dialect { delimiter, quote })
    }

    /// The names.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// How fields are divided.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// What the attributes of a row say, so that a replay can make the same event of its text: a JSON object.
    pub fn attributes(&self) -> &str {
        &self.attributes
    }

    /// What tells columns of one text from others of the same: sha256 of the [attributes](Self::attributes).
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Bytes that the names add to a JSON object.
    pub fn weight(&self) -> usize {
        self.before.iter().map(|before| before.len() + 2).sum()
    }
}

impl PartialEq for Columns {
    fn eq(&self, other: &Self) -> bool {
        self.names == other.names && self.dialect == other.dialect
    }
}

impl Eq for Columns {}

impl Serialize for Columns {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.attributes)
    }
}

impl<'de> Deserialize<'de> for Columns {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let text = String::deserialize(deserializer)?;
        let value: Value = serde_json::from_str(&text).map_err(D::Error::custom)?;
        Self::from_attribute(&value[ATTRIBUTE]).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn names_are_there_and_differ() {
        let why = |given: &[&str]| Columns::new(names(given), Dialect::default()).unwrap_err();
        assert_eq!(why(&[]), "there is no column");
        assert!(Columns::new((0..=MOST).map(|n| n.to_string()).collect(), Dialect::default()).is_err());
        assert_eq!(why(&["a", ""]), "column 2 has no name");
        assert_eq!(why(&["a", "b", "a"]), "column `a` stands twice");
    }

    #[test]
    fn what_a_row_keeps_gives_the_columns_again() {
        for dialect in [Dialect::default(), Dialect { delimiter: b'\t', quote: None }] {
            let columns = Columns::new(names(&["a\"", "é", "c"]), dialect).unwrap();
            let kept: Value = serde_json::from_str(columns.attributes()).unwrap();
            assert_eq!(Columns::from_attribute(&kept[ATTRIBUTE]).unwrap(), columns);
            let bytes = postcard::to_stdvec(&columns).unwrap();
            assert_eq!(postcard::from_bytes::<Columns>(&bytes).unwrap(), columns);
        }
        for broken in ["1", "{}", r#"{"columns":[],"delimiter":",","quote":""}"#] {
            assert!(Columns::from_attribute(&serde_json::from_str(broken).unwrap()).is_err(), "{broken}");
        }
        for (delimiter, quote) in [("", ""), (";;", ""), (";", "''")] {
            let kept = json!({ "columns": ["a"], "delimiter": delimiter, "quote": quote });
            assert!(Columns::from_attribute(&kept).unwrap_err().contains("not one byte"), "{kept}");
        }
    }
}

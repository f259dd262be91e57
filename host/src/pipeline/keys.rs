//! What the key of an event is, and the fingerprints that tell whether two events of one key are the same.

use crate::config::DedupBy;
use crate::event::Event;
use crate::ledger::{Fingerprint, Key, Parts};
use crate::row::{Row, Value};
use crate::rules::Manifest;

/// What of an event is compared with others that have its key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Compared {
    /// Nothing.
    #[default]
    Nothing,
    /// The payload: it is the key.
    Payload,
    /// The payload and the attributes.
    Whole,
}

/// The key of a message: what tells a redelivery.
pub fn message(event: &Event) -> Key {
    Key::of("message", event.message_id.as_bytes())
}

/// The key of an event before the rules, if it has one. What the source could make no whole event of has none, nor has
/// an event without the attribute or the field, or with an empty one.
pub fn before_rules(by: &DedupBy, event: &Event) -> Option<Key> {
    if event.refused().is_some() {
        return None;
    }
    match by {
        DedupBy::Payload => {
            let mut parts = Parts::of("payload");
            payload(&mut parts, event);
            Some(parts.key())
        }
        DedupBy::MessageId => Some(Key::of("message_id", event.message_id.as_bytes())),
        DedupBy::Attribute(name) => named("attribute", name, event.attribute(name)?),
        // A field that is unclear is for the rule to judge.
        DedupBy::Field(pointer) => named("field", pointer.as_str(), &pointer.find(event.document().ok()?).ok()??),
        DedupBy::Columns(_) => None,
    }
}

fn named(what: &str, name: &str, value: &str) -> Option<Key> {
    if value.is_empty() {
        return None;
    }
    let mut parts = Parts::of(what);
    parts.add(name.as_bytes());
    parts.add(value.as_bytes());
    Some(parts.key())
}

/// The payload; of a record with its columns: without them its text may mean something else.
fn payload(parts: &mut Parts, event: &Event) {
    parts.add(&event.payload);
    if let Some(columns) = event.columns() {
        parts.add(columns.digest().bytes());
    }
}

/// What the producer sent, as far as it is compared: the payload, and the attributes in whatever order they came.
pub fn content(event: &Event, compared: Compared) -> Fingerprint {
    let mut parts = Parts::of("content");
    payload(&mut parts, event);
    if compared == Compared::Whole {
        let mut attributes: Vec<&(String, String)> = event.attributes.iter().collect();
        attributes.sort_unstable();
        for (name, value) in attributes {
            parts.add(name.as_bytes());
            parts.add(value.as_bytes());
        }
    }
    parts.fingerprint()
}

/// The key under which an event that got no row is known: the same content, not accepted in the same way by the same
/// rule. `digest` is none where no rule serves the event.
pub fn repeat(key: &Key, content: Fingerprint, digest: Option<&[u8]>, ignored: bool) -> Key {
    let mut parts = Parts::of(if ignored { "ignored" } else { "rejected" });
    parts.add(key.bytes());
    parts.add(content.bytes());
    parts.add(digest.unwrap_or_default());
    parts.key()
}

/// Where a rule's row has what is compared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowKeys {
    /// The columns that are the key, in the order of the pipeline file; none if it is by something else.
    key: Vec<usize>,
    names: Vec<String>,
    /// All columns by name: two rules may have them in another order.
    all: Vec<(String, usize)>,
}

impl RowKeys {
    /// Of the rows of a rule. The error is a column that it does not produce.
    pub fn new<'a>(by: &'a DedupBy, manifest: &Manifest) -> Result<Self, &'a str> {
        let mut all: Vec<(String, usize)> =
            manifest.columns.iter().map(|column| column.name.to_ascii_lowercase()).zip(0..).collect();
        all.sort_unstable();
        let mut keys = Self { all, ..Self::default() };
        if let DedupBy::Columns(columns) = by {
            for column in columns {
                keys.key.push(manifest.column(column).ok_or(column.as_str())?);
                keys.names.push(column.to_ascii_lowercase());
            }
        }
        Ok(keys)
    }

    /// The key of an accepted row, if it is by columns and none of them is null.
    pub fn key(&self, row: &Row) -> Option<Key> {
        if self.key.is_empty() || self.key.iter().any(|index| row[*index] == Value::Null) {
            return None;
        }
        let mut parts = Parts::of("columns");
        for (name, index) in self.names.iter().zip(&self.key) {
            parts.add(name.as_bytes());
            add(&mut parts, &row[*index]);
        }
        Some(parts.key())
    }

    /// What tells whether two rows are the same; a null column is as good as none.
    pub fn fingerprint(&self, row: &Row) -> Fingerprint {
        let mut parts = Parts::of("row");
        for (name, index) in &self.all {
            if row[*index] != Value::Null {
                parts.add(name.as_bytes());
                add(&mut parts, &row[*index]);
            }
        }
        parts.fingerprint()
    }
}

/// Adds a value, its type before it.
fn add(parts: &mut Parts, value: &Value) {
    let (kind, bytes): (&[u8], &[u8]) = match value {
        Value::Null => (b"-", b""),
        Value::Boolean(value) => (b"b", &[u8::from(*value)]),
        Value::Int64(value) => (b"i", &value.to_le_bytes()),
        Value::Float64(value) => (b"f", &value.to_le_bytes()),
        Value::Numeric(text) => (b"n", text.as_bytes()),
        Value::Text(text) => (b"t", text.as_bytes()),
        Value::Bytes(bytes) => (b"x", bytes),
        Value::Timestamp(micros) => (b"s", &micros.to_le_bytes()),
        Value::Date(days) => (b"d", &days.to_le_bytes()),
        Value::Json(text) => (b"j", text.as_bytes()),
    };
    parts.add(kind);
    parts.add(bytes);
}

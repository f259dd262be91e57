//! Rows of a quarantine or bronze table on their way back to events: which columns are read, what a row lacks to be replayed,
//! and what a table lacks. The same for every warehouse.

use super::events::{Lack, Meta, NotReplayable, RowId, StoredEvent};
use super::{TableColumn, quarantine_columns, resolution_columns};
use crate::event::{Event, Form};
use crate::record::{Columns, Record, columns::ATTRIBUTE};
use crate::row::ColumnType;
use crate::time::{Micros, parse_rfc3339};
use crate::verdict::stage;
use bytes::Bytes;
use serde_json::Value;
use std::collections::{BTreeMap, btree_map::Entry};

/// What is read of a row, in this order; of each the column of a quarantine and of a bronze table.
pub(super) const FIELDS: [(&str, &str); 18] = [
    ("raw_bytes", "raw_bytes"),
    ("raw_payload", "data"),
    ("attributes", "attributes"),
    ("source_message_id", "message_id"),
    ("publish_timestamp", "publish_time"),
    ("ordering_key", ""),
    ("delivery_attempt", ""),
    ("received_timestamp", ""),
    ("error_stage", ""),
    ("error_code", ""),
    ("error_reason", ""),
    ("event_version", ""),
    ("rule", ""),
    ("rule_digest", ""),
    ("raw_size", ""),
    ("resolved_at", ""),
    ("resolved_by", ""),
    ("pipeline", ""),
];

/// Columns that a replay needs: the whole event, whose it is, and where to say that it is done.
const REPLAY: [&str; 9] = [
    "raw_bytes",
    "raw_size",
    "attributes",
    "source_message_id",
    "publish_timestamp",
    "ordering_key",
    "pipeline",
    "resolved_at",
    "resolved_by",
];

/// What is known of the table that rows are read from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    /// Whether it is a quarantine table, else a bronze one.
    pub quarantine: bool,
    /// Whether it has a column `raw_bytes`.
    pub has_bytes: bool,
    /// Whether the rows of one pipeline are wanted.
    pub of_pipeline: bool,
}

/// The fields of a row as they were read. A time is RFC 3339 text.
#[derive(Debug, Default)]
pub(super) struct Fields {
    /// The original bytes.
    pub original: Option<Vec<u8>>,
    /// The payload as text, needed only where the bytes are not there.
    pub shown: Option<Vec<u8>>,
    /// A JSON object of texts.
    pub attributes: Option<String>,
    /// The message id.
    pub message_id: Option<String>,
    /// When it was published.
    pub publish_time: Option<String>,
    /// Its ordering key.
    pub ordering_key: Option<String>,
    /// How often it had been delivered.
    pub delivery_attempt: Option<i64>,
    /// The rest.
    pub meta: Meta,
}

impl Fields {
    /// The event, and what it lacks.
    pub(super) fn stored(self, id: RowId, origin: Origin) -> StoredEvent {
        let Self { original, shown, attributes, message_id, publish_time, ordering_key, delivery_attempt, meta } = self;
        let kept = attributes.and_then(|text| parse_attributes(&text));
        let publish_time = time(publish_time.as_deref());
        let lack = [
            payload_lacks(origin, &meta, original.as_deref(), shown.as_deref()),
            kept.is_none().then_some(Lack::Attributes),
            message_id.is_none().then_some(Lack::MessageId),
            publish_time.is_none().then_some(Lack::PublishTime),
            (origin.of_pipeline && meta.pipeline.is_none()).then_some(Lack::Pipeline),
        ];
        let Kept { attributes, columns } = kept.unwrap_or_default();
        let event = Event {
            payload: Bytes::from(original.or(shown).unwrap_or_default()),
            attributes,
            message_id: message_id.unwrap_or_default(),
            publish_time: publish_time.unwrap_or_default(),
            received_time: time(meta.received.as_deref()).unwrap_or_default(),
            ordering_key,
            delivery_attempt: delivery_attempt.and_then(|attempt| u32::try_from(attempt).ok()),
            form: columns.map_or(Form::Whole, |columns| Form::Record(Record::of(columns.into()))),
        };
        StoredEvent { id, event, lacks: lack.into_iter().flatten().next(), meta }
    }
}

fn payload_lacks(origin: Origin, meta: &Meta, original: Option<&[u8]>, shown: Option<&[u8]>) -> Option<Lack> {
    if !origin.quarantine {
        // Bronze has the bytes only where its text is not exact.
        let inexact = shown.is_some_and(|text| text.windows(3).any(|window| window == "\u{fffd}".as_bytes()));
        let doubtful = shown.is_none() || inexact && !origin.has_bytes;
        return (original.is_none() && doubtful).then_some(Lack::Bytes);
    }
    if [stage::PARSE_ENVELOPE, stage::PAYLOAD_TOO_LARGE].map(Some).contains(&meta.stage.as_deref()) {
        return Some(Lack::NoPayload);
    }
    let Some(original) = original else { return Some(Lack::Bytes) };
    match meta.raw_size {
        None => Some(Lack::Size),
        Some(size) if usize::try_from(size) != Ok(original.len()) => Some(Lack::Cut),
        Some(_) => None,
    }
}

/// What a row has in the place of attributes.
#[derive(Default)]
struct Kept {
    attributes: Vec<(String, String)>,
    /// Of the record that the payload is. They are an object, which no attribute is.
    columns: Option<Columns>,
}

fn parse_attributes(text: &str) -> Option<Kept> {
    let mut map: BTreeMap<String, Value> = serde_json::from_str(text).ok()?;
    let columns = match map.entry(ATTRIBUTE.to_owned()) {
        Entry::Occupied(entry) if entry.get().is_object() => Some(Columns::from_attribute(&entry.remove()).ok()?),
        _ => None,
    };
    let text = |(name, value)| match value {
        Value::String(text) => Some((name, text)),
        _ => None,
    };
    Some(Kept { attributes: map.into_iter().map(text).collect::<Option<_>>()?, columns })
}

fn time(text: Option<&str>) -> Option<Micros> {
    text.and_then(|text| parse_rfc3339(text).ok())
}

/// Why events of a quarantine table cannot be replayed, if they cannot. `add` makes the statement that adds a column.
pub(super) fn not_replayable(
    table: &str,
    columns: &[TableColumn],
    add: impl Fn(&str, ColumnType) -> String,
) -> Option<NotReplayable> {
    let (mut why, mut statements) = (Vec::new(), Vec::new());
    let mut missing = Vec::new();
    for name in REPLAY {
        let kind = kind(name);
        match columns.iter().find(|column| column.name.eq_ignore_ascii_case(name)) {
            None => {
                missing.push(format!("`{name}`"));
                statements.push(add(name, kind));
            }
            Some(column) if !column.holds.contains(&kind) => {
                why.push(format!("column `{name}` is declared {}, which cannot hold {kind}", column.declared));
            }
            Some(column) if !column.nullable && name.starts_with("resolved_") => {
                why.push(format!("column `{name}` is NOT NULL, but is null until an event is replayed"));
            }
            Some(_) => {}
        }
    }
    if !missing.is_empty() {
        why.push(format!("it lacks {}", missing.join(", ")));
    }
    (!why.is_empty()).then(|| NotReplayable { table: table.to_owned(), why, statements })
}

/// The type of a column that a replay needs.
fn kind(name: &str) -> ColumnType {
    let host = quarantine_columns().iter().find(|column| column.name == name).map(|column| column.host.kind());
    let ours = resolution_columns().iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
    host.or(ours).expect("a replay needs columns of a quarantine table")
}

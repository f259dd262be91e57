//! One unit of data with its metadata, as a source hands it over.

use crate::time::Micros;
use crate::verdict::Rejection;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// What is kept of a payload that is above a limit, bytes: enough to see what it was.
pub const KEPT: usize = 64 * 1024;

/// An event. The payload is never re-encoded: quarantine and bronze keep it byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The bytes the producer sent.
    pub payload: Bytes,
    /// Attributes in the order they came; names are unique.
    pub attributes: Vec<(String, String)>,
    /// Unique within the source, and the same when the event is delivered again.
    pub message_id: String,
    /// When the source took it from its producer. For a file: the time the file was last changed.
    pub publish_time: Micros,
    /// When this worker received it (processing time).
    pub received_time: Micros,
    /// Pub/Sub's ordering key, where there is one.
    pub ordering_key: Option<String>,
    /// How often it was delivered, where the source counts.
    pub delivery_attempt: Option<u32>,
    /// Set when the source could not make a whole event of what it read (a broken envelope, a payload above
    /// the limit). Such an event goes to quarantine without being judged; `payload` holds what was read.
    pub refused: Option<Rejection>,
}

impl Event {
    /// The value of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The attributes as a JSON object, sorted by name.
    pub fn attributes_json(&self) -> String {
        let map: serde_json::Map<String, serde_json::Value> = self
            .attributes
            .iter()
            .map(|(name, value)| (name.clone(), serde_json::Value::String(value.clone())))
            .collect();
        serde_json::Value::Object(map).to_string()
    }

    /// Roughly what it holds in memory, for the limits of a micro-batch.
    pub fn weight(&self) -> usize {
        let attributes: usize = self.attributes.iter().map(|(n, v)| n.len() + v.len() + 48).sum();
        self.payload.len() + self.message_id.len() + attributes + size_of::<Self>()
    }
}

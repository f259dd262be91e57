//! Records of a file with columns, such as CSV: the text as it came, and the JSON object that rules see.
//!
//! The text is never changed: bronze, quarantine and dedup have it as it stood in the file. The object is made when it is
//! first asked for, on the thread that judges, by the columns of the file that the record is of.

pub mod columns;
mod document;
mod header;
mod quotes;

pub use columns::Columns;
pub use document::fields;
pub use header::header;
pub use quotes::{Dialect, Scan, Seen};

use crate::verdict::Rejection;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::{Arc, OnceLock};

/// What makes a record of a text: the columns it has, and the JSON object once it was asked for.
#[derive(Debug, Clone)]
pub struct Record {
    columns: Arc<Columns>,
    document: OnceLock<Result<Box<[u8]>, Box<Rejection>>>,
}

impl Record {
    /// A record with these columns.
    pub fn of(columns: Arc<Columns>) -> Self {
        Self { columns, document: OnceLock::new() }
    }

    /// Its columns.
    pub fn columns(&self) -> &Arc<Columns> {
        &self.columns
    }

    /// The JSON object of `text`, names in the order of the columns, all values texts; or why it is none. `message_id` is
    /// what the reason begins with: it names file and line.
    pub(crate) fn document(&self, text: &[u8], message_id: &str) -> Result<&[u8], &Rejection> {
        let document = self.document.get_or_init(|| document::of(&self.columns, text, message_id).map_err(Box::new));
        document.as_deref().map_err(AsRef::as_ref)
    }
}

impl PartialEq for Record {
    fn eq(&self, other: &Self) -> bool {
        self.columns == other.columns
    }
}

impl Eq for Record {}

/// As its columns: the text is the payload, and the object is made again.
impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.columns.as_ref().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Record {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Columns::deserialize(deserializer).map(|columns| Self::of(columns.into()))
    }
}

//! What the pipeline file says of events that a producer sent twice.

use crate::rules::set::Pointer;
use std::fmt;
use std::time::Duration;

/// What is done about events that a producer sent twice.
#[derive(Debug, Clone, PartialEq)]
pub struct DedupConfig {
    /// What makes two events the same.
    pub by: DedupBy,
    /// How long a key is kept, in running time of the worker.
    pub horizon: Duration,
    /// What becomes of an event whose key is taken and whose row differs.
    pub on_conflict: OnConflict,
    /// Events per second that are expected, for what `check` says of sizes.
    pub expected_rate: Option<f64>,
}

/// What makes two events the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DedupBy {
    /// The payload, byte for byte. Before the rules.
    Payload,
    /// The source's message id. Before the rules.
    MessageId,
    /// An attribute. Before the rules; events without it are not compared.
    Attribute(String),
    /// A field of the payload. Before the rules; events without it are not compared.
    Field(Pointer),
    /// Columns of the accepted row. After the rules; rows with a null in one are not compared.
    Columns(Vec<String>),
}

impl fmt::Display for DedupBy {
    /// As a reason names it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Payload => f.write_str("payload"),
            Self::MessageId => f.write_str("message id"),
            Self::Attribute(name) => write!(f, "attribute `{name}`"),
            Self::Field(pointer) => write!(f, "field {}", pointer.as_str()),
            Self::Columns(columns) => write!(f, "value of {}", columns.join(", ")),
        }
    }
}

/// What becomes of an event whose key is taken and whose row differs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnConflict {
    /// It goes to quarantine, stage `DUPLICATE_CONFLICT`.
    #[default]
    Quarantine,
    /// It counts as a duplicate.
    Drop,
}

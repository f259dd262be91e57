//! Events that were written to a table, read back: what they are called by, and what is left of them.

use super::WarehouseError;
use crate::event::Event;
use crate::time::Micros;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The number of a row in its table.
pub type RowId = i64;

/// An event as a table kept it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEvent {
    /// The row.
    pub id: RowId,
    /// The event, as far as the row holds it. Its received time is that of the row; none that can be read is 0.
    pub event: Event,
    /// Why the row does not hold the whole event, if it does not.
    pub lacks: Option<Lack>,
    /// What else the row says.
    pub meta: Meta,
}

/// What a quarantine row says beside its event. Of a bronze row everything is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Meta {
    /// Where it failed.
    pub stage: Option<String>,
    /// The machine-readable kind of failure.
    pub code: Option<String>,
    /// Why it failed.
    pub reason: Option<String>,
    /// The event version it was routed by.
    pub event_version: Option<String>,
    /// `name@version` of the rule that judged it.
    pub rule: Option<String>,
    /// Digest of the component that judged it.
    pub rule_digest: Option<String>,
    /// When the worker received it, as the table has it.
    pub received: Option<String>,
    /// Size of the payload as it came, bytes.
    pub raw_size: Option<i64>,
    /// When a replay took the event out of quarantine, as the table has it.
    pub resolved_at: Option<String>,
    /// Which replay that was.
    pub resolved_by: Option<String>,
    /// The pipeline that it is of.
    pub pipeline: Option<String>,
}

/// Why a row does not hold the whole event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lack {
    /// The source could not make a whole event of what it read.
    NoPayload,
    /// Without the original bytes.
    Bytes,
    /// Nothing says how long the payload was.
    Size,
    /// The payload was cut.
    Cut,
    /// Without attributes that can be read.
    Attributes,
    /// Without a message id.
    MessageId,
    /// Without a publish time that can be read.
    PublishTime,
    /// Nothing says which pipeline's it is.
    Pipeline,
}

impl Lack {
    /// In words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoPayload => "the source kept no whole payload",
            Self::Bytes => "the original bytes are not there",
            Self::Size => "nothing says that the event is whole: raw_size is null",
            Self::Cut => "the payload was cut",
            Self::Attributes => "its attributes cannot be read",
            Self::MessageId => "it has no message id",
            Self::PublishTime => "its publish time cannot be read",
            Self::Pipeline => "nothing says which pipeline's it is: pipeline is null",
        }
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Which rows are meant. Everything that is given must fit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Filter {
    /// The stage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// The code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// `name@version` of the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Digest of the component.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Received at this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Micros>,
    /// Received before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Micros>,
    /// These rows; all, if none is named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<RowId>,
    /// Rows too whose event a replay took out of quarantine.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub resolved: bool,
}

impl Filter {
    /// Whether it lets every unresolved row through.
    pub fn is_open(&self) -> bool {
        *self == Self { resolved: self.resolved, ..Self::default() }
    }
}

/// How much of a table is read at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// Rows behind this one.
    pub after: RowId,
    /// Rows up to this one.
    pub until: RowId,
    /// At most so many rows.
    pub rows: usize,
    /// About so many bytes of events at most, but always one event.
    pub bytes: usize,
}

/// Rows that failed the same way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Group {
    /// Where.
    pub stage: Option<String>,
    /// The machine-readable kind.
    pub code: Option<String>,
    /// `name@version` of the rule.
    pub rule: Option<String>,
    /// How many.
    pub rows: u64,
}

/// A table whose events cannot be replayed: why, and the statements that would help.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotReplayable {
    /// The table.
    pub table: String,
    /// What keeps it from that.
    pub why: Vec<String>,
    /// Statements that add the columns it lacks.
    pub statements: Vec<String>,
}

impl fmt::Display for NotReplayable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "events in table {} cannot be replayed: {}", self.table, self.why.join("; "))?;
        if !self.statements.is_empty() {
            f.write_str(". These statements add what it lacks, for the events that come after:")?;
        }
        self.statements.iter().try_for_each(|statement| write!(f, "\n  {statement};"))
    }
}

/// Quarantine rows whose events a replay took out of quarantine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolution {
    /// The table, as the warehouse has it.
    pub table: String,
    /// The pipeline that the rows are of.
    pub pipeline: String,
    /// When they were judged.
    pub at: Micros,
    /// Who asked for it.
    pub by: String,
    /// The rows.
    pub rows: Vec<Resolved>,
}

/// A row whose event a replay took out of quarantine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolved {
    /// Index of the event among those that were judged together.
    pub event: u32,
    /// The row.
    pub id: RowId,
    /// The event's message id: the number alone may be another row's after a VACUUM.
    pub message_id: String,
    /// Digest of the component that judged it.
    pub digest: String,
    /// The event version it was routed by.
    pub version: Option<String>,
}

/// The rows of a table as the events they were made of. Calls wait for the warehouse.
pub trait StoredEvents: Send {
    /// Why events of this quarantine table cannot be replayed, if they cannot.
    fn not_replayable(&self) -> Option<NotReplayable>;

    /// Refuses a filter that asks for a column which is not there.
    fn takes(&self, filter: &Filter) -> Result<(), EventsError>;

    /// Where the table ends now: rows that come later have a higher number, or are not read. [`RowId::MIN`] if there is none.
    fn newest(&self) -> Result<RowId, EventsError>;

    /// The next rows that fit, in the order of their numbers. None are left when it is empty.
    fn page(&self, filter: &Filter, page: Page) -> Result<Vec<StoredEvent>, EventsError>;

    /// The newest rows that fit, newest first.
    fn newest_rows(&self, filter: &Filter, rows: usize) -> Result<Vec<StoredEvent>, EventsError>;

    /// How the rows that fit failed, most first.
    fn groups(&self, filter: &Filter) -> Result<Vec<Group>, EventsError>;
}

/// Why events cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventsError {
    /// The pipeline has no such table.
    #[error(
        "quarantine.table: the pipeline has none, its rejects go to files: they can be read there, and not be replayed"
    )]
    NoQuarantine,
    /// There is no such table.
    #[error("there is no table {table} in {path}: the pipeline has not run yet, or writes elsewhere")]
    NoTable {
        /// The table.
        table: String,
        /// The database.
        path: String,
    },
    /// Its rows have no numbers, nor what one could be made of.
    #[error(
        "rows of table {0} have nothing to call them by: in SQLite it is a view or WITHOUT ROWID, in BigQuery it lacks \
         source_message_id or received_timestamp"
    )]
    NoRowIds(String),
    /// A filter asks for a column that is not there.
    #[error("table {table} has no column `{column}`, so rows cannot be chosen by it")]
    NoColumn {
        /// The table.
        table: String,
        /// The column.
        column: &'static str,
    },
    /// The database fails.
    #[error(transparent)]
    Warehouse(#[from] WarehouseError),
}

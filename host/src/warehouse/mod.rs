//! Where rows go: the contract of a [`Warehouse`], and the two that keep it, BigQuery and SQLite.
//!
//! An append names a stream and an offset. A repeat of an offset is refused as already there, a gap as out of range,
//! a finalized stream refuses everything: BigQuery's committed streams work so, and SQLite does the same with a
//! `preflight_streams` table in the rows' transaction.
//!
//! Rows of a layout with [`Upsert`] go to no stream: each has a key and a sequence, of a key the highest is kept, and sent again
//! or in another order they come to the same. BigQuery does so by change data capture, SQLite by `ON CONFLICT DO UPDATE`.

pub mod bigquery;
mod columns;
mod contract;
pub mod events;
mod latest;
mod layout;
mod limit;
mod open;
mod publish;
mod rows;
mod scan;
pub mod sqlite;
mod stored;
mod tier;
mod upsert;

pub use bigquery::BigQuery;
pub use columns::{HostColumn, HostTableColumn, PLAIN, Source, bronze_columns, quarantine_columns, resolution_columns};
pub use contract::{StreamRows, Warehouse};
pub use latest::NewView;
pub use layout::{Encoding, Layout};
pub use limit::Limit;
pub use open::{LiveTables, create_statement, create_view_statement, inspect, open, quarantine, table_name};
pub use publish::{Publication, Replaced, STAGED, staging_name};
pub use rows::RowSet;
pub use scan::{Chunks, Scan};
pub use sqlite::Sqlite;
pub use tier::{AggregateName, NoTier, Tier};
pub use upsert::{Change, Upsert};

use crate::row::Column;
use std::sync::Arc;

/// A column of a live table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableColumn {
    /// Name as the table has it.
    pub name: String,
    /// The type as the table declares it, for messages.
    pub declared: String,
    /// The types of values it can hold without loss, its own first.
    pub holds: Vec<crate::row::ColumnType>,
    /// What it takes of those values, if it does not take all.
    pub limit: Option<Limit>,
    /// Whether it may be null.
    pub nullable: bool,
    /// Whether the table fills it by itself when it is left out.
    pub has_default: bool,
    /// Whether it alone is a key of the table: rows can be upserted by it.
    pub is_key: bool,
}

/// A live table: its name and its columns.
pub type LiveTable = (String, Vec<TableColumn>);

/// A table to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTable {
    /// Name as in the pipeline file.
    pub name: String,
    /// Its columns, in order.
    pub columns: Vec<Column>,
    /// The TIMESTAMP or DATE column whose days are its partitions, where the warehouse has partitions.
    pub partition_by: Option<String>,
    /// The columns its rows are sorted by, where the warehouse sorts them.
    pub cluster_by: Vec<String>,
    /// The column that is its primary key. It is NOT NULL, however it is declared.
    pub primary_key: Option<String>,
    /// What it is, for people.
    pub description: Option<String>,
}

impl NewTable {
    /// A table that is neither partitioned nor clustered, nor has a key.
    pub fn plain(name: impl Into<String>, columns: Vec<Column>) -> Self {
        let (name, cluster_by) = (name.into(), Vec::new());
        Self { name, columns, partition_by: None, cluster_by, primary_key: None, description: None }
    }

    /// Whether a column may be null.
    fn is_nullable(&self, column: &Column) -> bool {
        let is_key = self.primary_key.as_ref().is_some_and(|key| key.eq_ignore_ascii_case(&column.name));
        column.nullable && !is_key
    }
}

/// Rows bound to a place in a stream, or to be upserted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The target.
    pub tier: Tier,
    /// The stream of that target. Empty where rows are upserted.
    pub stream: String,
    /// Offset of the first row in the stream.
    pub first_offset: u64,
    /// The rows, encoded for the columns of `layout`.
    pub rows: Arc<RowSet>,
    /// The table and columns the rows were encoded for.
    pub layout: Arc<Layout>,
}

/// How an append that left its rows in the table ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    /// Written by this call.
    Written,
    /// There before this call, all of it or a part: an earlier send of this entry got through. If there was none, somebody
    /// else has written at its offset.
    AlreadyThere,
}

/// Why an append did not write. Of a large entry, which BigQuery takes in several requests, the first rows may be in the table:
/// they are recognised when the entry, or what is left of it, is sent again. Else none of its rows is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The table refuses these rows (index in the entry, why).
    #[error("the table refused {} of the rows, the first because: {}", .0.len(), .0.first().map_or("", |(_, why)| why))]
    Rows(Vec<(usize, String)>),
    /// Rows before this offset are missing: ledger and table have diverged.
    #[error(
        "offset {offset} is beyond the end of the stream{}: the table lacks rows that the ledger counts as written",
        .end.map(|end| format!(" ({end})")).unwrap_or_default()
    )]
    OutOfRange {
        /// The entry's offset.
        offset: u64,
        /// The stream's end, if the warehouse says it.
        end: Option<u64>,
    },
    /// The stream was finalized, by a worker that took over, or is not there.
    #[error("the stream {0} is finalized or gone: another worker has taken over, or the table was replaced")]
    StreamGone(String),
    /// Somebody else wrote at the entry's offset before it was sent.
    #[error(
        "offset {offset} of the stream {stream} was taken by another: another worker writes to this pipeline's tables"
    )]
    Taken {
        /// The stream.
        stream: String,
        /// The entry's offset.
        offset: u64,
    },
    /// The table was missing meanwhile: what is there by the stream's count may have been in the table before it.
    #[error("the table of stream {0} was missing, and may be another by now")]
    Replaced(String),
    /// Trying again may help.
    #[error("{0}")]
    Retryable(String),
    /// Trying again cannot help.
    #[error("{0}")]
    Fatal(String),
}

/// Failure of anything but an append.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct WarehouseError {
    /// What failed and why.
    pub text: String,
    /// Whether it may pass: another program holds the database, or its disk is full.
    pub retryable: bool,
}

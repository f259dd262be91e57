//! What a pipeline asks of a warehouse.

use super::events::Resolution;
use super::{AppendError, Appended, Chunks, Entry, NewTable, NewView, Publication, Scan, TableColumn, WarehouseError};
use crate::row::Row;
use futures::future::BoxFuture;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// What is known of the rows of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamRows {
    /// There is no such stream.
    Missing,
    /// It has so many.
    Rows(u64),
    /// It is there, and the warehouse does not say how many it has.
    Unknown,
}

/// Where rows go. Names of tables are those of the pipeline file, except in a [`super::Layout`] and in what comes from one.
///
/// Every call may be repeated: what has happened already is no error.
pub trait Warehouse: Send + Sync {
    /// What tells it from others, so that a ledger knows its warehouse.
    fn identity(&self) -> &str;

    /// The columns of a table, or none if there is no such table.
    fn columns<'a>(&'a self, table: &'a str) -> BoxFuture<'a, Result<Option<Vec<TableColumn>>, WarehouseError>>;

    /// Makes a table, unless it is there.
    fn create_table(&self, table: NewTable) -> BoxFuture<'_, Result<(), WarehouseError>>;

    /// Makes a view, unless it is there. One that is there under its name and is another is an error.
    fn create_view(&self, view: NewView) -> BoxFuture<'_, Result<(), WarehouseError>>;

    /// Whether a table has rows.
    fn has_rows<'a>(&'a self, table: &'a str) -> BoxFuture<'a, Result<bool, WarehouseError>>;

    /// Writes rows outside of any stream, to a table that is made if it is missing: for diagnoses, not for results. What
    /// fails is not written again.
    fn add(&self, table: NewTable, rows: Vec<Row>) -> BoxFuture<'_, Result<(), WarehouseError>>;

    /// Makes a stream for the table of a layout, and returns its name: `wanted`, where the warehouse lets us choose.
    fn create_stream<'a>(&'a self, wanted: &'a str, table: &'a str) -> BoxFuture<'a, Result<String, WarehouseError>>;

    /// Finalizes a stream: it takes no more rows. Says how many it has; unknown where it was finalized before and the
    /// warehouse does not say it again.
    fn finalize_stream<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<StreamRows, WarehouseError>>;

    /// How many rows a stream has.
    fn stream_rows<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<StreamRows, WarehouseError>>;

    /// How long a stream may be left alone before the warehouse may forget it. None where it does not.
    fn stream_lifetime(&self) -> Option<Duration>;

    /// Names of the streams of which a part between hyphens is `part`, as far as the warehouse can list them.
    fn streams_with<'a>(&'a self, part: &'a str) -> BoxFuture<'a, Result<Vec<String>, WarehouseError>>;

    /// Forgets finalized streams of which a part between hyphens is `part`, but not those to `keep`.
    fn forget_streams<'a>(&'a self, part: &'a str, keep: Vec<String>) -> BoxFuture<'a, Result<(), WarehouseError>>;

    /// Appends entries; those of one stream in order. An entry that fails leaves the others as they are. Gives a result
    /// for each.
    fn append(&self, entries: Arc<Vec<Entry>>) -> BoxFuture<'_, Vec<Result<Appended, AppendError>>>;

    /// Which of these values a text column of a layout's table has.
    fn present<'a>(
        &'a self,
        table: &'a str,
        column: &'a str,
        values: Vec<String>,
    ) -> BoxFuture<'a, Result<BTreeSet<String>, WarehouseError>>;

    /// Reads rows of a table back, as it is when the first chunk is asked for.
    fn scan(&self, scan: Scan) -> Chunks<'_>;

    /// Counts up when a table was seen to be another than it was. A warehouse that does not notice never does.
    fn schema_changes(&self) -> watch::Receiver<u64>;

    /// Marks quarantine rows as resolved. Those that are marked stay as they are.
    fn resolve(&self, resolution: Arc<Resolution>) -> BoxFuture<'_, Result<(), WarehouseError>>;

    /// Makes an empty table like another, whose names are those of the warehouse: it takes what the other takes.
    fn create_staging<'a>(&'a self, staging: &'a str, like: &'a str) -> BoxFuture<'a, Result<(), WarehouseError>>;

    /// Replaces the rows of tables by those of their staging tables, of all of them or of none, and remembers that it has.
    fn publish(&self, publication: Arc<Publication>) -> BoxFuture<'_, Result<(), WarehouseError>>;

    /// Drops tables, by their names in the warehouse.
    fn drop_tables(&self, tables: Vec<String>) -> BoxFuture<'_, Result<(), WarehouseError>>;

    /// The staging tables that there are for a table, of whatever run; all by their names in the warehouse.
    fn staging_tables<'a>(&'a self, table: &'a str) -> BoxFuture<'a, Result<Vec<String>, WarehouseError>>;
}

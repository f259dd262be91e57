//! SQLite as a warehouse: the embedded default, with the contract of BigQuery's committed streams.
//!
//! Calls run on tokio's blocking threads, one at a time, on one connection (WAL, `synchronous = FULL`: what an append
//! reported as written survives a power cut). A table's name in SQLite is the part after the last dot of its name in
//! the pipeline file.

mod add;
mod append;
mod encode;
mod events;
mod publish;
mod resolve;
mod scan;
mod schema;
mod staging;
mod streams;
mod upsert;
mod views;

pub use encode::encode;
pub use events::EventTable;
pub(super) use schema::quote;
pub use schema::{create_statement, table_name};
pub use views::create_view_statement;

use super::events::Resolution;
use super::{
    AppendError, Appended, Chunks, Entry, LiveTable, NewTable, NewView, Publication, Scan, StreamRows, TableColumn,
    Warehouse, WarehouseError,
};
use crate::row::Row;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use rusqlite::Connection;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;

/// How long SQLite itself waits for another process's lock before a call counts as failed (and is retried).
const BUSY: Duration = Duration::from_secs(2);

/// An open SQLite warehouse.
#[derive(Clone)]
pub struct Sqlite {
    connection: Arc<Mutex<Connection>>,
    path: PathBuf,
    identity: String,
}

impl Sqlite {
    /// Opens the file, making it and our bookkeeping tables if they are missing.
    pub fn open(path: &Path) -> Result<Self, WarehouseError> {
        if let Some(directory) = path.parent().filter(|d| !d.as_os_str().is_empty()) {
            std::fs::create_dir_all(directory).map_err(|error| WarehouseError {
                text: format!("cannot make the directory of SQLite database {}: {error}", path.display()),
                retryable: false,
            })?;
        }
        let connection = Connection::open(plain(path)).map_err(|error| not_opened("cannot open ", path, &error))?;
        let identity = streams::prepare(&connection, BUSY).map_err(|error| not_opened("cannot use ", path, &error))?;
        Ok(Self { connection: Arc::new(Mutex::new(connection)), path: path.to_owned(), identity })
    }

    /// Opens the file only to look at its tables; none if there is no file.
    pub fn inspect(path: &Path) -> Result<Option<Vec<LiveTable>>, WarehouseError> {
        if !path.exists() {
            return Ok(None);
        }
        let failed = |error: rusqlite::Error| not_opened("cannot read ", path, &error);
        let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
        let connection = Connection::open_with_flags(plain(path), flags).map_err(failed)?;
        connection.busy_timeout(BUSY).map_err(failed)?;
        schema::tables(&connection).map(Some).map_err(failed)
    }

    async fn call<T: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, WarehouseError> {
        let connection = Arc::clone(&self.connection);
        let path = self.path.clone();
        let result = tokio::task::spawn_blocking(move || {
            // A panic in another call leaves SQLite's own state sound: its transaction was rolled back.
            f(&mut connection.lock().unwrap_or_else(PoisonError::into_inner))
        });
        match result.await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(failed("", &path, &error)),
            Err(error) => {
                let text = format!("SQLite database {}: {error}", path.display());
                Err(WarehouseError { text, retryable: false })
            }
        }
    }
}

impl Warehouse for Sqlite {
    /// An id that the database carries in itself: it stays the same wherever the file is moved.
    fn identity(&self) -> &str {
        &self.identity
    }

    fn columns<'a>(&'a self, table: &'a str) -> BoxFuture<'a, Result<Option<Vec<TableColumn>>, WarehouseError>> {
        let table = table_name(table).to_owned();
        Box::pin(self.call(move |connection| schema::columns(connection, &table)))
    }

    fn create_table(&self, table: NewTable) -> BoxFuture<'_, Result<(), WarehouseError>> {
        let (sql, name) = (create_statement(&table), table_name(&table.name).to_owned());
        Box::pin(async move {
            let there = self
                .call(move |connection| {
                    connection.execute_batch(&sql)?;
                    schema::columns(connection, &name)
                })
                .await?;
            let names = there.iter().flatten().map(|column| &column.name);
            if names.eq(table.columns.iter().map(|column| &column.name)) {
                return Ok(());
            }
            let text =
                format!("table {} was made by another program meanwhile, with other columns: run again", table.name);
            Err(WarehouseError { text, retryable: false })
        })
    }

    fn create_view(&self, view: NewView) -> BoxFuture<'_, Result<(), WarehouseError>> {
        Box::pin(async move {
            let statement = create_view_statement(&view).map_err(|text| WarehouseError { text, retryable: false })?;
            let wanted = view.clone();
            let is_there = self.call(move |connection| views::create(connection, &wanted, &statement)).await?;
            if is_there { Ok(()) } else { Err(view.is_another()) }
        })
    }

    fn has_rows<'a>(&'a self, table: &'a str) -> BoxFuture<'a, Result<bool, WarehouseError>> {
        let sql = format!("SELECT EXISTS (SELECT 1 FROM {})", schema::quote(table_name(table)));
        Box::pin(self.call(move |connection| connection.query_row(&sql, [], |row| row.get(0))))
    }

    fn add(&self, table: NewTable, rows: Vec<Row>) -> BoxFuture<'_, Result<(), WarehouseError>> {
        Box::pin(self.call(move |connection| add::add(connection, &table, &rows)))
    }

    fn create_stream<'a>(&'a self, wanted: &'a str, table: &'a str) -> BoxFuture<'a, Result<String, WarehouseError>> {
        let (name, table) = (wanted.to_owned(), table_name(table).to_owned());
        Box::pin(self.call(move |connection| streams::create(connection, &name, &table).map(|()| name)))
    }

    fn finalize_stream<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<StreamRows, WarehouseError>> {
        let name = name.to_owned();
        Box::pin(async move { Ok(rows_of(self.call(move |connection| streams::finalize(connection, &name)).await?)) })
    }

    fn stream_rows<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<StreamRows, WarehouseError>> {
        let name = name.to_owned();
        Box::pin(async move {
            let state = self.call(move |connection| streams::state(connection, &name)).await?;
            Ok(rows_of(state.map(|(rows, _)| rows)))
        })
    }

    fn stream_lifetime(&self) -> Option<Duration> {
        None
    }

    fn streams_with<'a>(&'a self, part: &'a str) -> BoxFuture<'a, Result<Vec<String>, WarehouseError>> {
        let part = part.to_owned();
        Box::pin(self.call(move |connection| streams::names_with(connection, &part)))
    }

    fn forget_streams<'a>(&'a self, part: &'a str, keep: Vec<String>) -> BoxFuture<'a, Result<(), WarehouseError>> {
        let part = part.to_owned();
        Box::pin(self.call(move |connection| streams::forget(connection, &part, &keep)))
    }

    /// In one transaction.
    fn append(&self, entries: Arc<Vec<Entry>>) -> BoxFuture<'_, Vec<Result<Appended, AppendError>>> {
        let count = entries.len();
        let connection = Arc::clone(&self.connection);
        let appended = tokio::task::spawn_blocking(move || {
            let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            append::append(&mut connection, &entries)
        });
        Box::pin(async move {
            appended
                .await
                .unwrap_or_else(|error| vec![Err(AppendError::Fatal(format!("the append failed: {error}"))); count])
        })
    }

    fn present<'a>(
        &'a self,
        table: &'a str,
        column: &'a str,
        values: Vec<String>,
    ) -> BoxFuture<'a, Result<BTreeSet<String>, WarehouseError>> {
        let sql =
            format!("SELECT 1 FROM {} WHERE {} = ?1 LIMIT 1", schema::quote(table_name(table)), schema::quote(column));
        Box::pin(self.call(move |connection| {
            let mut statement = connection.prepare(&sql)?;
            let mut found = BTreeSet::new();
            for value in values {
                if statement.exists([&value])? {
                    found.insert(value);
                }
            }
            Ok(found)
        }))
    }

    /// On a thread that waits for each chunk to be taken.
    fn scan(&self, scan: Scan) -> Chunks<'_> {
        let path = self.path.clone();
        let begin = async move {
            let (chunks, read) = mpsc::channel(1);
            tokio::task::spawn_blocking(move || scan::scan(&path, &scan, &chunks));
            ReceiverStream::new(read)
        };
        futures::stream::once(begin).flatten().boxed()
    }

    /// Never: what no longer fits fails when it is written.
    fn schema_changes(&self) -> watch::Receiver<u64> {
        watch::channel(0).1
    }

    fn resolve(&self, resolution: Arc<Resolution>) -> BoxFuture<'_, Result<(), WarehouseError>> {
        let table = resolution.table.clone();
        Box::pin(async move {
            let resolved = self.call(move |connection| resolve::resolve(connection, &resolution)).await;
            resolved.map_err(|error| WarehouseError {
                text: format!("cannot mark replayed rows of table {table} as resolved: {}", error.text),
                ..error
            })
        })
    }

    fn create_staging<'a>(&'a self, staging: &'a str, like: &'a str) -> BoxFuture<'a, Result<(), WarehouseError>> {
        let (name, table) = (staging.to_owned(), like.to_owned());
        Box::pin(async move {
            let made = self.call(move |connection| staging::create(connection, &name, &table)).await?;
            made.map_err(|why| WarehouseError {
                text: format!("table {like} cannot be replaced: {why}"),
                retryable: false,
            })
        })
    }

    fn publish(&self, publication: Arc<Publication>) -> BoxFuture<'_, Result<(), WarehouseError>> {
        Box::pin(async move {
            let published = self.call(move |connection| publish::publish(connection, &publication)).await;
            let cannot = |text| format!("the new rows cannot be published: {text}");
            match published {
                Ok(Ok(())) => Ok(()),
                Ok(Err(why)) => Err(WarehouseError { text: cannot(why), retryable: false }),
                Err(error) => Err(WarehouseError { text: cannot(error.text), ..error }),
            }
        })
    }

    fn drop_tables(&self, tables: Vec<String>) -> BoxFuture<'_, Result<(), WarehouseError>> {
        Box::pin(self.call(move |connection| staging::drop(connection, &tables)))
    }

    fn staging_tables<'a>(&'a self, table: &'a str) -> BoxFuture<'a, Result<Vec<String>, WarehouseError>> {
        let table = table.to_owned();
        Box::pin(self.call(move |connection| staging::tables(connection, &table)))
    }
}

fn rows_of(rows: Option<u64>) -> StreamRows {
    rows.map_or(StreamRows::Missing, StreamRows::Rows)
}

fn failed(what: &str, path: &Path, error: &rusqlite::Error) -> WarehouseError {
    WarehouseError { text: format!("{what}SQLite database {}: {error}", path.display()), retryable: may_pass(error) }
}

fn not_opened(what: &str, path: &Path, error: &rusqlite::Error) -> WarehouseError {
    WarehouseError { retryable: may_open_later(error), ..failed(what, path, error) }
}

/// Whether a failure may pass by itself: another program holds the database, its disk is full or fails, memory or file
/// handles are short.
pub(crate) fn may_pass(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode as Code;
    matches!(
        error.sqlite_error_code(),
        Some(
            Code::DatabaseBusy
                | Code::DatabaseLocked
                | Code::DiskFull
                | Code::SystemIoFailure
                | Code::OutOfMemory
                | Code::CannotOpen
                | Code::SchemaChanged
        )
    )
}

/// The same where a database is opened: a file that cannot be opened at all is a wrong path or a missing permission.
pub(crate) fn may_open_later(error: &rusqlite::Error) -> bool {
    may_pass(error) && error.sqlite_error_code() != Some(rusqlite::ErrorCode::CannotOpen)
}

/// The path as SQLite takes nothing but a path: `:memory:` and `file:…?mode=memory` would be databases that are gone at the
/// end of the run, while the ledger remembers that all was written.
pub(crate) fn plain(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

//! SQLite as a warehouse that forgets streams, as BigQuery does: everything else is SQLite's.

use futures::future::BoxFuture;
use preflight::row::Row;
use preflight::warehouse::events::Resolution;
use preflight::warehouse::{
    AppendError, Appended, Chunks, Entry, NewTable, NewView, Publication, Scan, StreamRows, TableColumn, Warehouse,
    WarehouseError,
};
use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// A warehouse whose streams may be forgotten after `lifetime`.
pub struct Forgetful {
    /// Where the rows go.
    pub inner: Arc<dyn Warehouse>,
    /// How long a stream lives that nobody writes to.
    pub lifetime: Duration,
    /// Appends whose answers are lost.
    pub lost: Arc<Lost>,
}

/// Answers to appends that are lost: the rows are written, and the answer never comes.
#[derive(Default)]
pub struct Lost {
    next: AtomicBool,
    written: Notify,
}

impl Lost {
    /// The next answer is lost.
    pub fn the_next(&self) {
        self.next.store(true, Ordering::SeqCst);
    }

    /// Returns when the rows are written whose answer is lost.
    pub async fn written(&self) {
        self.written.notified().await;
    }
}

type Result<T> = std::result::Result<T, WarehouseError>;

impl Warehouse for Forgetful {
    fn identity(&self) -> &str {
        self.inner.identity()
    }

    fn columns<'a>(&'a self, table: &'a str) -> BoxFuture<'a, Result<Option<Vec<TableColumn>>>> {
        self.inner.columns(table)
    }

    fn create_table(&self, table: NewTable) -> BoxFuture<'_, Result<()>> {
        self.inner.create_table(table)
    }

    fn create_view(&self, view: NewView) -> BoxFuture<'_, Result<()>> {
        self.inner.create_view(view)
    }

    fn has_rows<'a>(&'a self, table: &'a str) -> BoxFuture<'a, Result<bool>> {
        self.inner.has_rows(table)
    }

    fn add(&self, table: NewTable, rows: Vec<Row>) -> BoxFuture<'_, Result<()>> {
        self.inner.add(table, rows)
    }

    fn create_stream<'a>(&'a self, wanted: &'a str, table: &'a str) -> BoxFuture<'a, Result<String>> {
        self.inner.create_stream(wanted, table)
    }

    fn finalize_stream<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<StreamRows>> {
        self.inner.finalize_stream(name)
    }

    fn stream_rows<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<StreamRows>> {
        self.inner.stream_rows(name)
    }

    fn stream_lifetime(&self) -> Option<Duration> {
        Some(self.lifetime)
    }

    fn streams_with<'a>(&'a self, part: &'a str) -> BoxFuture<'a, Result<Vec<String>>> {
        self.inner.streams_with(part)
    }

    fn forget_streams<'a>(&'a self, part: &'a str, keep: Vec<String>) -> BoxFuture<'a, Result<()>> {
        self.inner.forget_streams(part, keep)
    }

    fn append(&self, entries: Arc<Vec<Entry>>) -> BoxFuture<'_, Vec<std::result::Result<Appended, AppendError>>> {
        Box::pin(async move {
            let answers = self.inner.append(entries).await;
            if self.lost.next.swap(false, Ordering::SeqCst) {
                self.lost.written.notify_one();
                return pending().await;
            }
            answers
        })
    }

    fn present<'a>(
        &'a self,
        table: &'a str,
        column: &'a str,
        values: Vec<String>,
    ) -> BoxFuture<'a, Result<BTreeSet<String>>> {
        self.inner.present(table, column, values)
    }

    fn scan(&self, scan: Scan) -> Chunks<'_> {
        self.inner.scan(scan)
    }

    fn schema_changes(&self) -> watch::Receiver<u64> {
        self.inner.schema_changes()
    }

    fn resolve(&self, resolution: Arc<Resolution>) -> BoxFuture<'_, Result<()>> {
        self.inner.resolve(resolution)
    }

    fn create_staging<'a>(&'a self, staging: &'a str, like: &'a str) -> BoxFuture<'a, Result<()>> {
        self.inner.create_staging(staging, like)
    }

    fn publish(&self, publication: Arc<Publication>) -> BoxFuture<'_, Result<()>> {
        self.inner.publish(publication)
    }

    fn drop_tables(&self, tables: Vec<String>) -> BoxFuture<'_, Result<()>> {
        self.inner.drop_tables(tables)
    }

    fn staging_tables<'a>(&'a self, table: &'a str) -> BoxFuture<'a, Result<Vec<String>>> {
        self.inner.staging_tables(table)
    }
}

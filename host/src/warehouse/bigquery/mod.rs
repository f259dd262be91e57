//! BigQuery as a warehouse: committed streams of the Storage Write API with offsets, and change data capture on the default
//! stream of a table whose rows are upserted.
//!
//! Two interfaces: REST for tables and SQL, Storage Write (gRPC) for rows. Each write stream has a connection of its own,
//! which is kept open between appends and given up with the first error on it; what is sent again begins at the entry's first
//! row, and BigQuery says by the offset what it has already.
//!
//! Which request has which rows depends on the rows alone: see [`MAX_ROW`] and the module `request`.

mod add;
mod appender;
mod catalog;
mod connection;
mod descriptor;
mod encode;
mod errors;
mod events;
mod jobs;
mod live;
mod name;
mod publish;
mod request;
mod resolve;
mod rest;
mod scan;
mod schema;
mod storage;
mod streams;
mod tables;
mod tokens;
mod views;

pub use catalog::{Shape, add_columns_statement};
pub use encode::{encode, encode_change};
pub use events::EventTable;
pub use name::TableName;
pub use request::MAX_ROW;
pub use tables::create_statement;
pub use views::{FoundView, create_view_statement, replace_view_statement};

use super::events::Resolution;
use super::{
    AppendError, Appended, Chunks, Entry, LiveTables, NewTable, NewView, Publication, Scan, StreamRows, TableColumn,
    Warehouse, WarehouseError,
};
use crate::config::BigqueryConfig;
use crate::row::Row;
use appender::Appender;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use rest::Rest;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use storage::Storage;
use streams::Asks;
use tokens::Tokens;
use tokio::sync::watch;

/// Streams without traffic are forgotten after three days (cloud.google.com/bigquery/docs/write-api-streaming). Some of
/// that is kept back: the clocks are not the same.
const STREAM_LIFETIME: Duration = Duration::from_hours(24);

/// A project's BigQuery.
pub struct BigQuery {
    identity: String,
    project: String,
    rest: Rest,
    storage: Storage,
    appender: Appender,
}

impl BigQuery {
    /// Gets ready. Nobody is connected to yet, and no token is asked for.
    pub async fn connect(config: &BigqueryConfig) -> Result<Self, WarehouseError> {
        let tokens = Tokens::new(config.identity)?;
        let rest = Rest::new(config, tokens.clone()).await?;
        let storage = Storage::new(config, tokens)?;
        let project = &config.project;
        let identity = match &config.endpoint {
            None => format!("bigquery:{project}"),
            // Where it is not Google's, another project of that name is elsewhere.
            Some(endpoint) => format!("bigquery:{project} at {}", endpoint.authority()),
        };
        Ok(Self { identity, project: project.clone(), rest, appender: Appender::new(storage.clone()), storage })
    }

    fn name(&self, table: &str) -> Result<TableName, WarehouseError> {
        TableName::parse(table, &self.project)
    }
}

impl Warehouse for BigQuery {
    fn identity(&self) -> &str {
        &self.identity
    }

    fn columns<'a>(&'a self, table: &'a str) -> BoxFuture<'a, Result<Option<Vec<TableColumn>>, WarehouseError>> {
        Box::pin(async move { schema::columns(&self.rest, &self.storage, &self.name(table)?, Asks::Writer).await })
    }

    fn create_table(&self, table: NewTable) -> BoxFuture<'_, Result<(), WarehouseError>> {
        Box::pin(async move { tables::create(&self.rest, &table, &self.project).await })
    }

    fn create_view(&self, view: NewView) -> BoxFuture<'_, Result<(), WarehouseError>> {
        Box::pin(async move {
            let is_there = views::create(&self.rest, &view, &self.project).await?;
            if is_there { Ok(()) } else { Err(view.is_another()) }
        })
    }

    fn has_rows<'a>(&'a self, table: &'a str) -> BoxFuture<'a, Result<bool, WarehouseError>> {
        Box::pin(async move { tables::has_rows(&self.rest, &self.name(table)?).await })
    }

    fn add(&self, table: NewTable, rows: Vec<Row>) -> BoxFuture<'_, Result<(), WarehouseError>> {
        Box::pin(async move {
            let name = self.name(&table.name)?;
            if self.rest.table(&name).await?.is_none() {
                tables::create(&self.rest, &table, &self.project).await?;
            }
            add::add(&self.storage, &table, &name, &rows).await
        })
    }

    fn create_stream<'a>(&'a self, _wanted: &'a str, table: &'a str) -> BoxFuture<'a, Result<String, WarehouseError>> {
        Box::pin(async move { streams::create(&self.storage, &self.name(table)?).await })
    }

    fn finalize_stream<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<StreamRows, WarehouseError>> {
        self.appender.forget(name);
        Box::pin(streams::finalize(&self.storage, name))
    }

    fn stream_rows<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<StreamRows, WarehouseError>> {
        Box::pin(streams::rows(&self.storage, name))
    }

    fn stream_lifetime(&self) -> Option<Duration> {
        Some(STREAM_LIFETIME)
    }

    /// None: BigQuery cannot list streams.
    fn streams_with<'a>(&'a self, _part: &'a str) -> BoxFuture<'a, Result<Vec<String>, WarehouseError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Nothing: BigQuery forgets them by itself.
    fn forget_streams<'a>(&'a self, _part: &'a str, _keep: Vec<String>) -> BoxFuture<'a, Result<(), WarehouseError>> {
        Box::pin(async { Ok(()) })
    }

    fn append(&self, entries: Arc<Vec<Entry>>) -> BoxFuture<'_, Vec<Result<Appended, AppendError>>> {
        Box::pin(async move { self.appender.append(&entries).await })
    }

    fn present<'a>(
        &'a self,
        table: &'a str,
        column: &'a str,
        values: Vec<String>,
    ) -> BoxFuture<'a, Result<BTreeSet<String>, WarehouseError>> {
        Box::pin(async move { tables::present(&self.rest, &self.name(table)?, column, &values).await })
    }

    fn scan(&self, scan: Scan) -> Chunks<'_> {
        let scan = Arc::new(scan);
        let wanted = Arc::clone(&scan);
        let begun = async move {
            let name = self.name(&wanted.table)?;
            scan::begin(&self.rest, &self.storage, &name, &wanted).await
        };
        let chunks = move |pages| {
            let scan = Arc::clone(&scan);
            stream::try_unfold((pages, scan), async |(mut pages, scan)| {
                Ok(scan::next(&mut pages, &scan).await?.map(|chunk| (chunk, (pages, scan))))
            })
        };
        stream::once(begun).map_ok(chunks).try_flatten().boxed()
    }

    fn resolve(&self, resolution: Arc<Resolution>) -> BoxFuture<'_, Result<(), WarehouseError>> {
        Box::pin(async move { resolve::resolve(&self.rest, &self.name(&resolution.table)?, &resolution).await })
    }

    fn schema_changes(&self) -> watch::Receiver<u64> {
        self.appender.schema_changes()
    }

    fn create_staging<'a>(&'a self, staging: &'a str, like: &'a str) -> BoxFuture<'a, Result<(), WarehouseError>> {
        Box::pin(async move { publish::create_staging(&self.rest, &self.name(staging)?, &self.name(like)?).await })
    }

    fn publish(&self, publication: Arc<Publication>) -> BoxFuture<'_, Result<(), WarehouseError>> {
        Box::pin(async move { publish::publish(&self.rest, &publication).await })
    }

    fn drop_tables(&self, tables: Vec<String>) -> BoxFuture<'_, Result<(), WarehouseError>> {
        Box::pin(async move {
            for table in tables {
                publish::drop_table(&self.rest, &self.name(&table)?).await?;
            }
            Ok(())
        })
    }

    fn staging_tables<'a>(&'a self, table: &'a str) -> BoxFuture<'a, Result<Vec<String>, WarehouseError>> {
        Box::pin(async move { publish::staging_tables(&self.rest, &self.name(table)?).await })
    }
}

/// Looks at tables and changes nothing. Waits for BigQuery.
pub fn inspect(config: &BigqueryConfig, tables: &[&str]) -> Result<LiveTables, WarehouseError> {
    let look = async || {
        let bigquery = BigQuery::connect(config).await?;
        let mut live = LiveTables::new();
        for table in tables {
            if let Some(columns) = bigquery.columns(table).await? {
                live.insert((*table).to_owned(), columns);
            }
        }
        Ok(live)
    };
    waiting(look)
}

/// Waits for a look at BigQuery, on a thread of its own: the caller may be in a runtime or not.
fn waiting<T: Send>(look: impl AsyncFnOnce() -> Result<T, WarehouseError> + Send) -> Result<T, WarehouseError> {
    let looked = thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| not_started(&error.to_string()))?;
            runtime.block_on(look())
        });
        waiting.join()
    });
    looked.unwrap_or_else(|_| Err(not_started("it panicked")))
}

fn not_started(why: &str) -> WarehouseError {
    WarehouseError { text: format!("the tables cannot be looked at: {why}"), retryable: false }
}

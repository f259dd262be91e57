//! The warehouse that a pipeline file names.

use super::events::{EventsError, StoredEvents};
use super::{BigQuery, NewTable, NewView, Sqlite, TableColumn, Warehouse, WarehouseError, bigquery, sqlite};
use crate::config::WarehouseConfig;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Live tables, by their names in the pipeline file. A table that is missing there is missing here.
pub type LiveTables = BTreeMap<String, Vec<TableColumn>>;

/// Opens a warehouse. A SQLite file is made if it is missing.
pub async fn open(config: &WarehouseConfig) -> Result<Arc<dyn Warehouse>, WarehouseError> {
    Ok(match config {
        WarehouseConfig::Sqlite { path, .. } => Arc::new(Sqlite::open(path)?),
        WarehouseConfig::Bigquery(config) => Arc::new(BigQuery::connect(config).await?),
    })
}

/// Opens the quarantine table of a pipeline for reading. Rows that are another pipeline's are left out; those of which
/// nothing says whose they are stay, but lack that.
pub fn quarantine(config: &WarehouseConfig, table: &str, pipeline: &str) -> Result<Box<dyn StoredEvents>, EventsError> {
    match config {
        WarehouseConfig::Sqlite { path, .. } => Ok(Box::new(sqlite::EventTable::quarantine(path, table)?.of(pipeline))),
        WarehouseConfig::Bigquery(config) => Ok(Box::new(bigquery::EventTable::quarantine(config, table, pipeline)?)),
    }
}

/// Looks at tables of a warehouse and changes nothing.
pub fn inspect(config: &WarehouseConfig, tables: &[&str]) -> Result<LiveTables, WarehouseError> {
    match config {
        WarehouseConfig::Sqlite { path, .. } => {
            let live = Sqlite::inspect(path)?.unwrap_or_default();
            let of = |name: &str| {
                let short = sqlite::table_name(name);
                live.iter().find(|(table, _)| table.eq_ignore_ascii_case(short)).map(|(_, columns)| columns.clone())
            };
            Ok(tables.iter().filter_map(|name| Some(((*name).to_owned(), of(name)?))).collect())
        }
        WarehouseConfig::Bigquery(config) => bigquery::inspect(config, tables),
    }
}

/// A table's name as the warehouse has it: the last part in SQLite, all three in BigQuery.
pub fn table_name(config: &WarehouseConfig, table: &str) -> String {
    match config {
        WarehouseConfig::Sqlite { .. } => sqlite::table_name(table).to_owned(),
        WarehouseConfig::Bigquery(config) if table.split('.').count() < 3 => format!("{}.{table}", config.project),
        WarehouseConfig::Bigquery(_) => table.to_owned(),
    }
}

/// The statement that makes a table, or why there is none.
pub fn create_statement(config: &WarehouseConfig, table: &NewTable) -> Result<String, String> {
    match config {
        WarehouseConfig::Sqlite { .. } => Ok(sqlite::create_statement(table)),
        WarehouseConfig::Bigquery(config) => {
            bigquery::create_statement(table, &config.project).map_err(|error| error.text)
        }
    }
}

/// The statement that makes a view, or why there is none.
pub fn create_view_statement(config: &WarehouseConfig, view: &NewView) -> Result<String, String> {
    match config {
        WarehouseConfig::Sqlite { .. } => sqlite::create_view_statement(view),
        WarehouseConfig::Bigquery(config) => {
            bigquery::create_view_statement(view, &config.project).map_err(|error| error.text)
        }
    }
}

//! Datasets and tables: looked at, and made.

use super::model::{Dataset, FoundTable, FoundView, Table, TableName, View};
use crate::config::BigqueryConfig;
use crate::row::Column;
use crate::warehouse::bigquery::Shape;
use crate::warehouse::{BigQuery, Warehouse as _, WarehouseError};

/// BigQuery, as who makes things in it.
pub(super) struct Admin {
    bigquery: BigQuery,
    is_emulator: bool,
}

impl Admin {
    /// Prepares to connect; nothing is sent yet.
    pub(super) async fn new(config: &BigqueryConfig) -> Result<Self, String> {
        let bigquery = BigQuery::connect(config).await.map_err(text)?;
        Ok(Self { bigquery, is_emulator: config.endpoint.is_some() })
    }

    /// The location of a dataset, if it is there.
    pub(super) async fn dataset(&self, dataset: &Dataset) -> Result<Option<Option<String>>, String> {
        self.bigquery.dataset(&dataset.project, &dataset.name).await.map_err(text)
    }

    /// A table as it is, if it is there.
    pub(super) async fn table(&self, name: &TableName) -> Result<Option<FoundTable>, String> {
        let full = name.to_string();
        let Some(Shape { kind, partition_by, cluster_by, description }) =
            self.bigquery.shape(&full).await.map_err(text)?
        else {
            return Ok(None);
        };
        let other_kind = (kind != "TABLE").then_some(kind);
        // Of a view the columns are not asked for: rows cannot be written to it in any case.
        let columns = match other_kind {
            None => self.bigquery.columns_as_they_are(&full).await.map_err(text)?.unwrap_or_default(),
            Some(_) => Vec::new(),
        };
        Ok(Some(FoundTable { other_kind, columns, partition_by, cluster_by, description }))
    }

    /// What is there under the name of a view, if anything is.
    pub(super) async fn view(&self, view: &View) -> Result<Option<FoundView>, String> {
        self.bigquery.view(&view.view).await.map_err(text)
    }

    /// Makes a dataset, unless it is there.
    pub(super) async fn create_dataset(&self, dataset: &Dataset) -> Result<(), String> {
        self.bigquery.create_dataset(&dataset.project, &dataset.name, dataset.location.as_deref()).await.map_err(text)
    }

    /// Makes a table, unless it is there.
    pub(super) async fn create_table(&self, table: &Table) -> Result<(), String> {
        self.bigquery.create_table(table.new_table()).await.map_err(text)
    }

    /// Makes a view, unless it is there.
    pub(super) async fn create_view(&self, view: &View) -> Result<(), String> {
        self.bigquery.create_view(view.view.clone()).await.map_err(text)
    }

    /// Adds nullable columns to a table, unless they are there.
    pub(super) async fn add_columns(&self, table: &Table, columns: &[Column]) -> Result<(), String> {
        let missing = self.bigquery.add_columns(&table.name.to_string(), columns).await.map_err(text)?;
        if missing.is_empty() || self.is_emulator {
            return Ok(());
        }
        Err(format!("BigQuery has taken the statement, and table {} still lacks {}", table.name, missing.join(", ")))
    }
}

fn text(error: WarehouseError) -> String {
    error.text
}

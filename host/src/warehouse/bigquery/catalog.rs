//! For who makes datasets and tables and looks how they are made. A pipeline that runs needs none of it.

use super::super::{NewView, TableColumn, WarehouseError};
use super::live::LiveTable;
use super::name::TableName;
use super::streams::Asks;
use super::views::{self, FoundView};
use super::{BigQuery, rest::Failure, schema};
use crate::row::Column;

/// How a table is made, its columns aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// What it is: `TABLE`, `VIEW`, `EXTERNAL`, ….
    pub kind: String,
    /// What stands behind `PARTITION BY`, if it has partitions.
    pub partition_by: Option<String>,
    /// The columns its rows are sorted by.
    pub cluster_by: Vec<String>,
    /// What it is, for people.
    pub description: Option<String>,
}

impl BigQuery {
    /// The location of a dataset; none if there is no such dataset, or it does not say it.
    pub async fn dataset(&self, project: &str, dataset: &str) -> Result<Option<Option<String>>, WarehouseError> {
        match self.rest.dataset(project, dataset).await {
            Ok(dataset) => Ok(Some(dataset.location)),
            Err(Failure { status: Some(404), .. }) => Ok(None),
            Err(failure) => Err(at(&format!("cannot look for dataset {project}.{dataset}"), failure)),
        }
    }

    /// Makes a dataset, unless it is there.
    pub async fn create_dataset(
        &self,
        project: &str,
        dataset: &str,
        location: Option<&str>,
    ) -> Result<(), WarehouseError> {
        match self.rest.create_dataset(project, dataset, location).await {
            Ok(()) | Err(Failure { status: Some(409), .. }) => Ok(()),
            Err(failure) => Err(at(&format!("cannot make dataset {project}.{dataset}"), failure)),
        }
    }

    /// How a table is made; none if there is no such table.
    pub async fn shape(&self, table: &str) -> Result<Option<Shape>, WarehouseError> {
        Ok(self.rest.table(&self.name(table)?).await?.map(shape))
    }

    /// The columns of a table, for one who need not be able to write to it; none if there is no such table.
    pub async fn columns_as_they_are(&self, table: &str) -> Result<Option<Vec<TableColumn>>, WarehouseError> {
        schema::columns(&self.rest, &self.storage, &self.name(table)?, Asks::Looker).await
    }

    /// What is there under the name of a view; none if nothing is.
    pub async fn view(&self, view: &NewView) -> Result<Option<FoundView>, WarehouseError> {
        views::find(&self.rest, view, &self.project).await
    }

    /// Adds nullable columns to a table, unless they are there. Returns the names of those that are not there after all: an
    /// emulator may not tell of them.
    pub async fn add_columns(&self, table: &str, columns: &[Column]) -> Result<Vec<String>, WarehouseError> {
        let name = self.name(table)?;
        // All at once: BigQuery takes five changes of a table in ten seconds.
        let statement = add_columns_statement(&name, columns);
        let at_once = self.rest.query(&statement, Vec::new()).await;
        let missing = self.missing(&name, columns).await?;
        if let (Err(failure), false) = (at_once, missing.is_empty()) {
            return Err(at(&format!("cannot add columns to table {name}"), failure));
        }
        // An emulator may take one column in a statement.
        for column in &missing {
            let statement = add_columns_statement(&name, std::slice::from_ref(*column));
            let added = self.rest.query(&statement, Vec::new()).await;
            added.map_err(|failure| at(&format!("cannot add columns to table {name}"), failure))?;
        }
        let missing = if missing.is_empty() { missing } else { self.missing(&name, columns).await? };
        Ok(missing.into_iter().map(|column| column.name.clone()).collect())
    }

    /// Those that a table does not have.
    async fn missing<'c>(&self, name: &TableName, columns: &'c [Column]) -> Result<Vec<&'c Column>, WarehouseError> {
        let table = self.rest.table(name).await?;
        let has = |name: &str| table.as_ref().is_some_and(|table| table.field(name).is_some());
        Ok(columns.iter().filter(|column| !has(&column.name)).collect())
    }
}

/// `ALTER TABLE` that adds nullable columns which are not there.
pub fn add_columns_statement(table: &TableName, columns: &[Column]) -> String {
    let adds: Vec<String> =
        columns.iter().map(|column| format!("ADD COLUMN IF NOT EXISTS `{}` {}", column.name, column.kind)).collect();
    format!("ALTER TABLE {}\n  {}", table.sql(), adds.join(",\n  "))
}

#[expect(clippy::needless_pass_by_value, reason = "it becomes another error")]
fn at(what: &str, failure: Failure) -> WarehouseError {
    WarehouseError { text: format!("{what}: {}", failure.text), retryable: failure.retryable }
}

fn shape(table: LiveTable) -> Shape {
    let by_time = table.time_partitioning.as_ref().map(|time| {
        let unit = time.unit.as_str();
        let Some(field) = &time.field else {
            let pseudo = if unit == "DAY" {
                "_PARTITIONDATE".to_owned()
            } else {
                format!("TIMESTAMP_TRUNC(_PARTITIONTIME, {unit})")
            };
            return pseudo;
        };
        match (table.field(field).map(|known| known.kind.as_str()), unit) {
            (Some("DATE"), "DAY") => field.clone(),
            (Some("DATE"), unit) => format!("DATE_TRUNC({field}, {unit})"),
            (_, "DAY") => format!("DATE({field})"),
            (_, unit) => format!("TIMESTAMP_TRUNC({field}, {unit})"),
        }
    });
    let by_range = table
        .range_partitioning
        .as_ref()
        .map(|range| format!("RANGE_BUCKET({}, …)", range.field.as_deref().unwrap_or_default()));
    Shape {
        cluster_by: table.cluster_by(),
        kind: table.kind.unwrap_or_else(|| "TABLE".to_owned()),
        partition_by: by_time.or(by_range),
        description: table.description.filter(|description| !description.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::ColumnType;
    use serde_json::{Value, json};

    #[expect(clippy::needless_pass_by_value, reason = "it is made for the call")]
    fn of(more: Value) -> Shape {
        let mut table = json!({
            "tableReference": { "projectId": "p", "datasetId": "d", "tableId": "t" },
            "schema": { "fields": [{ "name": "at", "type": "TIMESTAMP" }, { "name": "day", "type": "DATE" }] },
        });
        for (key, value) in more.as_object().expect("it is an object") {
            table[key] = value.clone();
        }
        shape(serde_json::from_value(table).unwrap())
    }

    #[test]
    fn partitions_are_told_as_they_are_declared() {
        for (kind, field, declared) in [
            ("DAY", Some("at"), "DATE(at)"),
            ("HOUR", Some("at"), "TIMESTAMP_TRUNC(at, HOUR)"),
            ("DAY", Some("day"), "day"),
            ("MONTH", Some("day"), "DATE_TRUNC(day, MONTH)"),
            ("DAY", None, "_PARTITIONDATE"),
            ("HOUR", None, "TIMESTAMP_TRUNC(_PARTITIONTIME, HOUR)"),
        ] {
            let partitions = json!({ "timePartitioning": { "type": kind, "field": field } });
            assert_eq!(of(partitions).partition_by.as_deref(), Some(declared));
        }
        let range =
            json!({ "rangePartitioning": { "field": "n", "range": { "start": "0", "end": "9", "interval": "1" } } });
        assert_eq!(of(range).partition_by.as_deref(), Some("RANGE_BUCKET(n, …)"));
    }

    #[test]
    fn a_table_that_says_nothing_of_itself_is_a_plain_one() {
        let plain = Shape { kind: "TABLE".into(), partition_by: None, cluster_by: vec![], description: None };
        assert_eq!(of(json!({})), plain);
        let view = of(json!({ "type": "VIEW", "description": "d", "clustering": { "fields": ["day"] } }));
        assert_eq!((view.kind.as_str(), view.description.as_deref(), view.cluster_by.len()), ("VIEW", Some("d"), 1));
    }

    #[test]
    fn columns_are_added_only_where_they_are_missing() {
        let columns = [Column::new("a", ColumnType::Text, true), Column::new("b", ColumnType::Json, true)];
        assert_eq!(
            add_columns_statement(&TableName::parse("d.t", "p").unwrap(), &columns),
            "ALTER TABLE `p.d.t`\n  ADD COLUMN IF NOT EXISTS `a` STRING,\n  ADD COLUMN IF NOT EXISTS `b` JSON"
        );
    }
}

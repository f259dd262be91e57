//! Rows of a quarantine table as the events they were made of.
//!
//! BigQuery numbers no rows: a row is called by a fingerprint of what tells it from others, its message id, its stage and
//! when it was received. Every call connects anew and waits for the answer: between two pages of a replay minutes may pass.

use super::super::events::{EventsError, Filter, Group, Meta, NotReplayable, Page, RowId, StoredEvent, StoredEvents};
use super::super::stored::{FIELDS, Fields, Origin, not_replayable};
use super::super::{TableColumn, WarehouseError};
use super::name::TableName;
use super::rest::{Rest, cell, parameter};
use super::tables::any_partition;
use super::tokens::Tokens;
use super::{BigQuery, waiting};
use crate::config::BigqueryConfig;
use crate::row::ColumnType;
use crate::time::{Micros, format_micros};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gcp_bigquery_client::model::query_parameter::QueryParameter;
use gcp_bigquery_client::model::table_row::TableRow;

/// A quarantine table, open for reading.
pub struct EventTable {
    config: BigqueryConfig,
    name: TableName,
    columns: Vec<TableColumn>,
    /// A condition that every row fits.
    any: String,
    pipeline: String,
}

/// The conditions of a filter, and the values in them.
#[derive(Default)]
struct Conditions {
    fits: Vec<String>,
    values: Vec<QueryParameter>,
}

impl EventTable {
    /// Opens the quarantine table of a pipeline. Rows that are another pipeline's are left out; those of which nothing says
    /// whose they are stay, but lack that.
    pub fn quarantine(config: &BigqueryConfig, table: &str, pipeline: &str) -> Result<Self, EventsError> {
        let name = TableName::parse(table, &config.project)?;
        let look = async || {
            let bigquery = BigQuery::connect(config).await?;
            let Some(columns) = super::Warehouse::columns(&bigquery, table).await? else { return Ok(None) };
            let live = bigquery.rest.table(&name).await?;
            Ok::<_, WarehouseError>(live.map(|live| (columns, any_partition(&live))))
        };
        let found = waiting(look)?;
        let Some((columns, any)) = found else {
            let path = format!("project {}", name.project);
            return Err(EventsError::NoTable { table: format!("{}.{}", name.dataset, name.table), path });
        };
        let table = Self { config: config.clone(), name, columns, any, pipeline: pipeline.to_owned() };
        if row_id(|name| table.column(name).is_some()).is_none() {
            return Err(EventsError::NoRowIds(table.name.to_string()));
        }
        Ok(table)
    }

    fn column(&self, name: &str) -> Option<&TableColumn> {
        self.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name))
    }

    fn required(&self, column: &'static str) -> Result<String, EventsError> {
        match self.column(column) {
            Some(column) => Ok(format!("`{}`", column.name)),
            None => Err(EventsError::NoColumn { table: self.name.to_string(), column }),
        }
    }

    /// A field as text; none where the table has no such column.
    fn field(&self, name: &str) -> String {
        let Some(column) = self.column(name) else { return "CAST(NULL AS STRING)".to_owned() };
        let quoted = format!("`{}`", column.name);
        match column.holds.first() {
            Some(ColumnType::Bytes) => format!("TO_BASE64({quoted})"),
            Some(ColumnType::Json) => format!("TO_JSON_STRING({quoted})"),
            Some(ColumnType::Timestamp) => format!("FORMAT_TIMESTAMP('%Y-%m-%dT%H:%M:%E6SZ', {quoted})"),
            Some(ColumnType::Text) => quoted,
            _ => format!("CAST({quoted} AS STRING)"),
        }
    }

    /// What a row is called by.
    fn row_id(&self) -> String {
        row_id(|name| self.column(name).is_some()).expect("a table without is not opened")
    }

    fn conditions(&self, filter: &Filter) -> Result<Conditions, EventsError> {
        let mut conditions = Conditions { fits: vec![self.any.clone()], values: Vec::new() };
        let is = [
            ("error_stage", &filter.stage),
            ("error_code", &filter.code),
            ("rule", &filter.rule),
            ("rule_digest", &filter.digest),
        ];
        for (column, wanted) in is {
            let Some(wanted) = wanted else { continue };
            conditions.fits.push(format!("{} = @{column}", self.required(column)?));
            conditions.values.push(parameter(column, "STRING", wanted));
        }
        for (name, time, order) in [("from", filter.from, ">="), ("to", filter.to, "<")] {
            let Some(time) = time else { continue };
            conditions.fits.push(format!("{} {order} @{name}_time", self.required("received_timestamp")?));
            conditions.values.push(parameter(&format!("{name}_time"), "TIMESTAMP", &format_micros(time)));
        }
        if !filter.ids.is_empty() {
            let ids: Vec<String> = filter.ids.iter().map(ToString::to_string).collect();
            conditions.fits.push(format!("{} IN ({})", self.row_id(), ids.join(", ")));
        }
        if let Some(column) = self.column("pipeline") {
            conditions.fits.push(format!("IFNULL(`{}` = @pipeline, TRUE)", column.name));
            conditions.values.push(parameter("pipeline", "STRING", &self.pipeline));
        }
        if let Some(column) = self.column("resolved_at").filter(|_| !filter.resolved) {
            conditions.fits.push(format!("`{}` IS NULL", column.name));
        }
        Ok(conditions)
    }

    fn query(&self, sql: &str, values: &[QueryParameter]) -> Result<Vec<TableRow>, EventsError> {
        let rows = waiting(async || {
            let rest = Rest::new(&self.config, Tokens::new(self.config.identity)?).await?;
            Ok::<_, WarehouseError>(rest.query(sql, values.to_vec()).await?)
        });
        rows.map_err(|error| {
            let text = format!("cannot read table {}: {}", self.name, error.text);
            WarehouseError { text, ..error }.into()
        })
    }

    /// `more` comes behind the conditions, and may use the columns `id` and `weight`.
    fn select(&self, conditions: &Conditions, more: &str) -> Result<Vec<StoredEvent>, EventsError> {
        let fields = FIELDS.map(|(name, _)| format!("{} AS f_{name}", self.field(name)));
        let weight = self.column("raw_bytes").map_or("0", |_| "IFNULL(BYTE_LENGTH(`raw_bytes`), 0) + 1000");
        let names = FIELDS.map(|(name, _)| format!("f_{name}")).join(", ");
        let sql = format!(
            "SELECT id, {names} FROM (SELECT {} AS id, UNIX_MICROS(`received_timestamp`) AS received, {weight} AS weight, {} \
             FROM {} WHERE {}) {more}",
            self.row_id(),
            fields.join(", "),
            self.name.sql(),
            conditions.fits.join(" AND "),
        );
        self.query(&sql, &conditions.values)?.iter().map(|row| self.stored(row)).collect()
    }

    fn stored(&self, row: &TableRow) -> Result<StoredEvent, EventsError> {
        let text = |name: &str| {
            let at = 1 + FIELDS.iter().position(|(known, _)| *known == name).expect("it is a field");
            cell(row, at).map(str::to_owned)
        };
        let id = cell(row, 0).and_then(|id| id.parse().ok()).ok_or_else(|| self.unreadable("a row has no number"))?;
        let original = text("raw_bytes").map(|bytes| STANDARD.decode(bytes)).transpose();
        let original = original.map_err(|error| self.unreadable(&format!("raw_bytes: {error}")))?;
        let number = |name: &str| text(name).and_then(|number| number.parse().ok());
        let meta = Meta {
            stage: text("error_stage"),
            code: text("error_code"),
            reason: text("error_reason"),
            event_version: text("event_version"),
            rule: text("rule"),
            rule_digest: text("rule_digest"),
            received: text("received_timestamp"),
            raw_size: number("raw_size"),
            resolved_at: text("resolved_at"),
            resolved_by: text("resolved_by"),
            pipeline: text("pipeline"),
        };
        let fields = Fields {
            shown: if original.is_none() { text("raw_payload").map(String::into_bytes) } else { None },
            original,
            attributes: text("attributes"),
            message_id: text("source_message_id"),
            publish_time: text("publish_timestamp"),
            ordering_key: text("ordering_key"),
            delivery_attempt: number("delivery_attempt"),
            meta,
        };
        let has_bytes = self.column("raw_bytes").is_some();
        Ok(fields.stored(id, Origin { quarantine: true, has_bytes, of_pipeline: true }))
    }

    fn unreadable(&self, what: &str) -> EventsError {
        let text = format!("cannot read table {}: {what}", self.name);
        WarehouseError { text, retryable: false }.into()
    }
}

/// What a row is called by, in SQL: never null. None where the table has nothing to tell its rows apart by.
pub(super) fn row_id(has: impl Fn(&str) -> bool) -> Option<String> {
    let stage = if has("error_stage") { "IFNULL(`error_stage`, '')" } else { "''" };
    (has("source_message_id") && has("received_timestamp")).then(|| {
        format!(
            "FARM_FINGERPRINT(CONCAT(IFNULL(`source_message_id`, ''), '|', {stage}, '|', \
             IFNULL(CAST(UNIX_MICROS(`received_timestamp`) AS STRING), '')))"
        )
    })
}

impl StoredEvents for EventTable {
    fn not_replayable(&self) -> Option<NotReplayable> {
        let table = self.name.to_string();
        let add = |name: &str, kind: ColumnType| format!("ALTER TABLE {} ADD COLUMN `{name}` {kind}", self.name.sql());
        not_replayable(&table, &self.columns, add)
    }

    fn takes(&self, filter: &Filter) -> Result<(), EventsError> {
        self.conditions(filter).map(drop)
    }

    /// The time at which the newest row was received, in microseconds: fingerprints have no order in time.
    fn newest(&self) -> Result<RowId, EventsError> {
        let sql = format!(
            "SELECT CAST(UNIX_MICROS(MAX(`received_timestamp`)) AS STRING) FROM {} WHERE {}",
            self.name.sql(),
            self.any
        );
        let rows = self.query(&sql, &[])?;
        let newest = rows.first().and_then(|row| cell(row, 0)).and_then(|micros| micros.parse::<Micros>().ok());
        Ok(newest.unwrap_or(RowId::MIN))
    }

    fn page(&self, filter: &Filter, page: Page) -> Result<Vec<StoredEvent>, EventsError> {
        let conditions = self.conditions(filter)?;
        let more = format!(
            "WHERE id > {} AND received <= {} \
             QUALIFY ROW_NUMBER() OVER (ORDER BY id) = 1 OR (ROW_NUMBER() OVER (ORDER BY id) <= {} \
             AND SUM(weight) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) <= {}) ORDER BY id",
            page.after, page.until, page.rows, page.bytes
        );
        self.select(&conditions, &more)
    }

    fn newest_rows(&self, filter: &Filter, rows: usize) -> Result<Vec<StoredEvent>, EventsError> {
        let conditions = self.conditions(filter)?;
        self.select(&conditions, &format!("ORDER BY received DESC, id LIMIT {rows}"))
    }

    fn groups(&self, filter: &Filter) -> Result<Vec<Group>, EventsError> {
        let conditions = self.conditions(filter)?;
        let fields = ["error_stage", "error_code", "rule"].map(|name| self.field(name)).join(", ");
        let sql = format!(
            "SELECT {fields}, CAST(COUNT(*) AS STRING) AS rejected FROM {} WHERE {} GROUP BY 1, 2, 3 \
             ORDER BY COUNT(*) DESC, 1, 2, 3",
            self.name.sql(),
            conditions.fits.join(" AND ")
        );
        let group = |row: &TableRow| {
            let text = |index| cell(row, index).map(str::to_owned);
            let rows = text(3).and_then(|rows| rows.parse().ok()).unwrap_or_default();
            Group { stage: text(0), code: text(1), rule: text(2), rows }
        };
        Ok(self.query(&sql, &conditions.values)?.iter().map(group).collect())
    }
}

//! Rows of a quarantine or bronze table as the events they were made of, page by page, in the order of their numbers.
//!
//! The connection is its own and reads only: a worker that writes to the database is not held up.

use super::super::events::{EventsError, Filter, Group, Meta, NotReplayable, Page, RowId, StoredEvent, StoredEvents};
use super::super::stored::{FIELDS, Fields, Origin, not_replayable};
use super::super::{TableColumn, WarehouseError};
use super::{BUSY, not_opened, plain, schema};
use crate::time::format_micros;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OpenFlags, Row, params_from_iter};
use std::path::{Path, PathBuf};

/// A table of events, open for reading.
pub struct EventTable {
    connection: Connection,
    path: PathBuf,
    table: String,
    columns: Vec<TableColumn>,
    row_id: &'static str,
    quarantine: bool,
    pipeline: Option<String>,
}

impl StoredEvents for EventTable {
    fn not_replayable(&self) -> Option<NotReplayable> {
        not_replayable(&self.table, &self.columns, |name, kind| schema::add_column(&self.table, name, kind))
    }

    fn takes(&self, filter: &Filter) -> Result<(), EventsError> {
        self.condition(filter).map(drop)
    }

    fn newest(&self) -> Result<RowId, EventsError> {
        let sql = format!("SELECT coalesce(max({}), 0) FROM {}", self.row_id, schema::quote(&self.table));
        self.connection.query_row(&sql, [], |row| row.get(0)).map_err(|error| self.failed(&error))
    }

    fn page(&self, filter: &Filter, page: Page) -> Result<Vec<StoredEvent>, EventsError> {
        let (mut fits, mut values) = self.condition(filter)?;
        fits.push(format!("{id} > ? AND {id} <= ?", id = self.row_id));
        values.extend([page.after.into(), page.until.into()]);
        self.select(&fits, values, "ASC", page.rows, page.bytes)
    }

    fn newest_rows(&self, filter: &Filter, rows: usize) -> Result<Vec<StoredEvent>, EventsError> {
        let (fits, values) = self.condition(filter)?;
        self.select(&fits, values, "DESC", rows, usize::MAX)
    }

    fn groups(&self, filter: &Filter) -> Result<Vec<Group>, EventsError> {
        let (fits, values) = self.condition(filter)?;
        let fields = ["error_stage", "error_code", "rule"].map(|name| self.field(name)).join(", ");
        let sql = format!(
            "SELECT {fields}, count(*) FROM {} WHERE {} GROUP BY 1, 2, 3 ORDER BY 4 DESC, 1, 2, 3",
            schema::quote(&self.table),
            all(&fits)
        );
        let group = |row: &Row<'_>| {
            let rows: i64 = row.get(3)?;
            let [stage, code, rule] = [0, 1, 2].map(|index| text(row, index));
            Ok(Group { stage: stage?, code: code?, rule: rule?, rows: rows.unsigned_abs() })
        };
        let read = || -> rusqlite::Result<Vec<Group>> {
            self.connection.prepare(&sql)?.query_map(params_from_iter(values), group)?.collect()
        };
        read().map_err(|error| self.failed(&error))
    }
}

impl EventTable {
    /// Opens a quarantine table, with the rows of all pipelines that share it.
    pub fn quarantine(path: &Path, table: &str) -> Result<Self, EventsError> {
        Self::open(path, table, true)
    }

    /// Leaves out rows that are another pipeline's. Those of which nothing says whose they are stay, but lack that.
    #[must_use]
    pub fn of(self, pipeline: &str) -> Self {
        Self { pipeline: Some(pipeline.to_owned()), ..self }
    }

    /// Opens a bronze table. What its events were rejected for, if they were, it does not say.
    pub fn bronze(path: &Path, table: &str) -> Result<Self, EventsError> {
        Self::open(path, table, false)
    }

    fn open(path: &Path, table: &str, quarantine: bool) -> Result<Self, EventsError> {
        let table = schema::table_name(table).to_owned();
        let missing = || EventsError::NoTable { table: table.clone(), path: path.display().to_string() };
        if !path.exists() {
            return Err(missing());
        }
        let failed = |error: rusqlite::Error| not_opened("cannot read ", path, &error);
        let connection = Connection::open_with_flags(plain(path), OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(failed)?;
        connection.busy_timeout(BUSY).map_err(failed)?;
        let columns = schema::columns(&connection, &table).map_err(failed)?.ok_or_else(missing)?;
        let row_id = schema::row_id(&connection, &table).map_err(failed)?;
        let row_id = row_id.ok_or_else(|| EventsError::NoRowIds(table.clone()))?;
        Ok(Self { connection, path: path.to_owned(), table, columns, row_id, quarantine, pipeline: None })
    }

    fn select(
        &self,
        fits: &[String],
        mut values: Vec<Value>,
        order: &str,
        rows: usize,
        bytes: usize,
    ) -> Result<Vec<StoredEvent>, EventsError> {
        let fields = FIELDS.map(|(quarantine, bronze)| self.field(if self.quarantine { quarantine } else { bronze }));
        let sql = format!(
            "SELECT {id}, {} FROM {} WHERE {} ORDER BY {id} {order} LIMIT ?",
            fields.join(", "),
            schema::quote(&self.table),
            all(fits),
            id = self.row_id,
        );
        values.push(i64::try_from(rows).unwrap_or(i64::MAX).into());
        let read = || -> rusqlite::Result<Vec<StoredEvent>> {
            let mut statement = self.connection.prepare_cached(&sql)?;
            let mut found = statement.query(params_from_iter(values))?;
            let (mut events, mut weight) = (Vec::new(), 0);
            while let Some(row) = found.next()? {
                let stored = self.stored(row)?;
                weight += stored.event.weight();
                events.push(stored);
                if weight >= bytes {
                    break;
                }
            }
            Ok(events)
        };
        read().map_err(|error| self.failed(&error))
    }

    fn stored(&self, row: &Row<'_>) -> rusqlite::Result<StoredEvent> {
        let at = |column: &str| 1 + FIELDS.iter().position(|(name, _)| *name == column).expect("it is a field");
        let original = bytes(row, at("raw_bytes"))?;
        let shown = if original.is_none() { bytes(row, at("raw_payload"))? } else { None };
        let meta = Meta {
            stage: text(row, at("error_stage"))?,
            code: text(row, at("error_code"))?,
            reason: text(row, at("error_reason"))?,
            event_version: text(row, at("event_version"))?,
            rule: text(row, at("rule"))?,
            rule_digest: text(row, at("rule_digest"))?,
            received: text(row, at("received_timestamp"))?,
            raw_size: integer(row, at("raw_size"))?,
            resolved_at: text(row, at("resolved_at"))?,
            resolved_by: text(row, at("resolved_by"))?,
            pipeline: text(row, at("pipeline"))?,
        };
        let fields = Fields {
            original,
            shown,
            attributes: text(row, at("attributes"))?,
            message_id: text(row, at("source_message_id"))?,
            publish_time: text(row, at("publish_timestamp"))?,
            ordering_key: text(row, at("ordering_key"))?,
            delivery_attempt: integer(row, at("delivery_attempt"))?,
            meta,
        };
        let origin = Origin {
            quarantine: self.quarantine,
            has_bytes: self.column("raw_bytes").is_some(),
            of_pipeline: self.pipeline.is_some(),
        };
        Ok(fields.stored(row.get(0)?, origin))
    }

    /// The conditions of a filter, and the values in them.
    fn condition(&self, filter: &Filter) -> Result<(Vec<String>, Vec<Value>), EventsError> {
        let (mut fits, mut values) = (Vec::new(), Vec::new());
        let is = [
            ("error_stage", &filter.stage),
            ("error_code", &filter.code),
            ("rule", &filter.rule),
            ("rule_digest", &filter.digest),
        ];
        for (column, wanted) in is {
            let Some(wanted) = wanted else { continue };
            fits.push(format!("{} = ?", self.required(column)?));
            values.push(wanted.clone().into());
        }
        // Times are texts of one length, so their order is that of their letters.
        for (time, order) in [(filter.from, ">="), (filter.to, "<")] {
            let Some(time) = time else { continue };
            fits.push(format!("{} {order} ?", self.required("received_timestamp")?));
            values.push(format_micros(time).into());
        }
        if !filter.ids.is_empty() {
            fits.push(format!("{} IN (SELECT value FROM json_each(?))", self.row_id));
            values.push(serde_json::to_string(&filter.ids).expect("numbers are JSON").into());
        }
        if let (Some(pipeline), Some(column)) = (&self.pipeline, self.column("pipeline")) {
            fits.push(format!("coalesce({column} = ?, TRUE)", column = schema::quote(&column.name)));
            values.push(pipeline.clone().into());
        }
        if !filter.resolved && self.column("resolved_at").is_some() {
            fits.push(format!("{} IS NULL", self.field("resolved_at")));
        }
        Ok((fits, values))
    }

    fn required(&self, column: &'static str) -> Result<String, EventsError> {
        match self.column(column) {
            Some(column) => Ok(schema::quote(&column.name)),
            None => Err(EventsError::NoColumn { table: self.table.clone(), column }),
        }
    }

    fn field(&self, name: &str) -> String {
        self.column(name).map_or_else(|| "NULL".into(), |column| schema::quote(&column.name))
    }

    fn column(&self, name: &str) -> Option<&TableColumn> {
        self.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name))
    }

    fn failed(&self, error: &rusqlite::Error) -> EventsError {
        let error: WarehouseError = super::failed("cannot read ", &self.path, error);
        error.into()
    }
}

fn all(conditions: &[String]) -> String {
    if conditions.is_empty() { "TRUE".into() } else { conditions.join(" AND ") }
}

fn text(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<String>> {
    Ok(bytes(row, index)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// Bytes, whatever the column made of them.
fn bytes(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<Vec<u8>>> {
    Ok(match row.get_ref(index)? {
        ValueRef::Null => None,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(bytes.to_vec()),
        ValueRef::Integer(number) => Some(number.to_string().into_bytes()),
        ValueRef::Real(number) => Some(number.to_string().into_bytes()),
    })
}

fn integer(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<i64>> {
    Ok(match row.get_ref(index)? {
        ValueRef::Integer(number) => Some(number),
        _ => None,
    })
}

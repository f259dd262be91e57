//! Rows that replace others. A row that was deleted leaves its sequence behind for two days, as in BigQuery
//! (docs.cloud.google.com/bigquery/docs/change-data-capture): an older one that comes late does not bring it back.

use super::super::upsert::{places, sequence_number};
use super::super::{AppendError, Entry, Upsert};
use super::append::{failure, refusal, unfit};
use super::encode::{Cell, cells};
use super::schema::quote;
use crate::row::ValueRef;
use rusqlite::types::ToSql;
use rusqlite::{CachedStatement, Connection, params};

/// How long it is remembered that a row was deleted, seconds.
const REMEMBERED: u32 = 2 * 24 * 60 * 60;

/// Writes the rows of an entry. All that the table refuses are found, not only the first.
pub(super) fn write(connection: &Connection, entry: &Entry, by: &Upsert) -> Result<(), AppendError> {
    let writer = Writer::new(connection, entry, by)?;
    let mut refused = Vec::new();
    let mut deleted = false;
    for (index, row) in entry.rows.iter().enumerate() {
        let unreadable = |why: &str| AppendError::Fatal(format!("a row of the ledger cannot be read: {why}"));
        let cells = cells(row).map_err(|error| unreadable(&error.to_string()))?;
        let Some((Cell::Integer(is_delete), cells)) = cells.split_first() else {
            return Err(unreadable("it does not say what it changes"));
        };
        let sequence = sequence_number(writer.sequence.iter().filter_map(|place| cells.get(*place)).map(integer));
        let sequence = sequence.ok_or_else(|| unreadable("it has no sequence"))?;
        let written = if *is_delete == 0 {
            writer.upsert(connection, cells, &sequence)
        } else {
            deleted = true;
            writer.delete(connection, cells, &sequence)
        };
        if let Err(error) = written {
            refused.push((index, refusal(connection, error)?));
        }
    }
    if !refused.is_empty() {
        return Err(AppendError::Rows(refused));
    }
    if deleted {
        forget_deleted(connection).map_err(failure)?;
    }
    Ok(())
}

fn integer(cell: &Cell<'_>) -> ValueRef<'static> {
    if let Cell::Integer(number) = cell { ValueRef::Int64(*number) } else { ValueRef::Null }
}

/// The statements for the rows of an entry.
struct Writer<'a> {
    table: &'a str,
    key: usize,
    sequence: Vec<usize>,
    upsert: String,
    delete: String,
}

impl<'a> Writer<'a> {
    fn new(connection: &Connection, entry: &'a Entry, by: &Upsert) -> Result<Self, AppendError> {
        let names = &entry.layout.columns;
        let (Some(sequence), Some(key)) = (places(names, &by.sequence), places(names, [&by.key])) else {
            let table = &entry.layout.table;
            return Err(AppendError::Fatal(format!("the rows for table {table} lack its key or their sequence")));
        };
        let (table, key) = (entry.layout.table.as_str(), key[0]);
        let (name, key_name) = (quote(table), quote(&names[key]));
        let columns: Vec<String> = names.iter().map(|name| quote(name)).collect();
        let places: Vec<String> = (1..=names.len()).map(|number| format!("?{number}")).collect();
        let sets: Vec<String> = columns.iter().map(|column| format!("{column} = excluded.{column}")).collect();
        let of = |whose: &str| {
            let columns: Vec<String> = sequence.iter().map(|place| format!("{whose}{}", columns[*place])).collect();
            format!("({})", columns.join(", "))
        };
        let theirs: Vec<String> = (2..).take(sequence.len()).map(|number| format!("?{number}")).collect();
        let written = Self {
            table,
            key,
            upsert: format!(
                "INSERT OR ABORT INTO {name} ({}) SELECT {} WHERE NOT EXISTS (
                   SELECT 1 FROM preflight_deleted WHERE table_name = ?{} AND key = ?{} AND sequence >= ?{}
                 ) ON CONFLICT ({key_name}) DO UPDATE SET {} WHERE {} > {}",
                columns.join(", "),
                places.join(", "),
                names.len() + 1,
                key + 1,
                names.len() + 2,
                sets.join(", "),
                of("excluded."),
                of(&format!("{name}.")),
            ),
            delete: format!("DELETE FROM {name} WHERE {key_name} = ?1 AND {} <= ({})", of(""), theirs.join(", ")),
            sequence,
        };
        for sql in [&written.upsert, &written.delete] {
            connection.prepare_cached(sql).map_err(|error| unfit(entry, error))?;
        }
        Ok(written)
    }

    fn upsert(&self, connection: &Connection, cells: &[Cell<'_>], sequence: &str) -> rusqlite::Result<()> {
        let statement = connection.prepare_cached(&self.upsert)?;
        let table: [&dyn ToSql; 2] = [&self.table, &sequence];
        run(statement, cells.iter(), &table)
    }

    fn delete(&self, connection: &Connection, cells: &[Cell<'_>], sequence: &str) -> rusqlite::Result<()> {
        let statement = connection.prepare_cached(&self.delete)?;
        let places = std::iter::once(&self.key).chain(&self.sequence);
        run(statement, places.map(|place| &cells[*place]), &[])?;
        connection
            .prepare_cached(
                "INSERT INTO preflight_deleted VALUES (?1, ?2, ?3, unixepoch())
                 ON CONFLICT (table_name, key) DO UPDATE SET sequence = excluded.sequence, deleted_at = excluded.deleted_at
                 WHERE excluded.sequence > preflight_deleted.sequence",
            )?
            .execute(params![self.table, cells[self.key].bind(), sequence])?;
        Ok(())
    }
}

/// Runs a statement with cells, and what comes behind them, as its parameters.
fn run<'c>(
    mut statement: CachedStatement<'_>,
    cells: impl Iterator<Item = &'c Cell<'c>>,
    behind: &[&dyn ToSql],
) -> rusqlite::Result<()> {
    let mut number = 0;
    for cell in cells {
        number += 1;
        statement.raw_bind_parameter(number, cell.bind())?;
    }
    for value in behind {
        number += 1;
        statement.raw_bind_parameter(number, value)?;
    }
    statement.raw_execute()?;
    Ok(())
}

/// What was deleted long ago is no longer remembered: nothing that is older is on its way.
fn forget_deleted(connection: &Connection) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM preflight_deleted WHERE deleted_at < unixepoch() - ?1")?
        .execute([REMEMBERED])?;
    Ok(())
}

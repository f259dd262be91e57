//! Rows read back. The connection is its own and reads only: a worker that writes to the database is not held up, and what it
//! writes meanwhile is not seen.

use super::super::WarehouseError;
use super::super::scan::{CHUNK_BYTES, CHUNK_ROWS, Scan, numeric, size};
use super::{BUSY, failed, not_opened, plain, schema};
use crate::row::{ColumnType, Row, Value};
use crate::time::{format_micros, parse_rfc3339};
use preflight_sdk::time::parse_date;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use tokio::sync::mpsc;

/// Reads the rows of a scan until all are read, or nobody takes them.
pub(super) fn scan(path: &Path, scan: &Scan, chunks: &mpsc::Sender<Result<Vec<Row>, WarehouseError>>) {
    if let Err(error) = read(path, scan, |chunk| chunks.blocking_send(Ok(chunk)).is_ok()) {
        // Nobody may be there any more to be told.
        chunks.blocking_send(Err(error)).ok();
    }
}

/// Gives each chunk to `take`, until that says that no more are wanted.
fn read(path: &Path, scan: &Scan, mut take: impl FnMut(Vec<Row>) -> bool) -> Result<(), WarehouseError> {
    let not_opened = |error: rusqlite::Error| not_opened("cannot read ", path, &error);
    let failed = |error: rusqlite::Error| failed("", path, &error);
    let connection = Connection::open_with_flags(plain(path), OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(not_opened)?;
    connection.busy_timeout(BUSY).map_err(failed)?;
    let table = schema::table_name(&scan.table);
    let live = schema::columns(&connection, table).map_err(failed)?;
    let live = live.ok_or_else(|| scan.unreadable(&format!("there is no such table in {}", path.display())))?;
    let mut columns: Vec<String> = scan.live(&live)?.into_iter().map(|column| schema::quote(&column.name)).collect();
    let time = columns.pop().expect("the time is the last of them");
    // A count of columns is none where only the number of rows is wanted.
    columns.push("1".into());
    let sql = format!("SELECT {} FROM {} WHERE {time} >= ?1 AND {time} < ?2", columns.join(", "), schema::quote(table));
    let mut statement = connection.prepare(&sql).map_err(failed)?;
    let mut rows = statement.query([format_micros(scan.from), format_micros(scan.to)]).map_err(failed)?;
    let (mut chunk, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next().map_err(failed)? {
        let value = |(index, (_, kind)): (usize, &(String, ColumnType))| value(*kind, row.get_ref(index).ok()?);
        let row = scan.row(scan.columns.iter().enumerate().map(value))?;
        bytes += size(&row);
        chunk.push(row);
        if chunk.len() >= CHUNK_ROWS || bytes >= CHUNK_BYTES {
            bytes = 0;
            if !take(std::mem::take(&mut chunk)) {
                return Ok(());
            }
        }
    }
    if !chunk.is_empty() {
        take(chunk);
    }
    Ok(())
}

/// The value that was written as this cell.
fn value(kind: ColumnType, cell: ValueRef<'_>) -> Option<Value> {
    let text = || cell.as_str().ok();
    match (kind, cell) {
        (_, ValueRef::Null) => Some(Value::Null),
        (ColumnType::Boolean, ValueRef::Integer(n @ 0..=1)) => Some(Value::Boolean(n == 1)),
        (ColumnType::Int64, ValueRef::Integer(n)) => Some(Value::Int64(n)),
        (ColumnType::Float64, ValueRef::Real(x)) => Some(Value::Float64(x)),
        (ColumnType::Numeric, ValueRef::Text(_)) => numeric(text()?),
        (ColumnType::Text, ValueRef::Text(_)) => text().map(|text| Value::Text(text.to_owned())),
        (ColumnType::Json, ValueRef::Text(_)) => text().map(|text| Value::Json(text.to_owned())),
        (ColumnType::Bytes, ValueRef::Blob(bytes)) => Some(Value::Bytes(bytes.to_owned())),
        (ColumnType::Timestamp, ValueRef::Text(_)) => parse_rfc3339(text()?).ok().map(Value::Timestamp),
        (ColumnType::Date, ValueRef::Text(_)) => parse_date(text()?).ok().map(Value::Date),
        _ => None,
    }
}

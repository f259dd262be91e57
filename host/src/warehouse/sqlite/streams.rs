//! Our bookkeeping in the warehouse: its identity and its streams.

use rusqlite::{Connection, OptionalExtension as _, params};
use std::time::Duration;

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS preflight_warehouse (identity TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS preflight_streams (
  name TEXT PRIMARY KEY NOT NULL,
  table_name TEXT NOT NULL,
  row_count INTEGER NOT NULL,
  finalized INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS preflight_deleted (
  table_name TEXT NOT NULL,
  key NOT NULL,
  sequence TEXT NOT NULL,
  deleted_at INTEGER NOT NULL,
  PRIMARY KEY (table_name, key)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS preflight_deleted_at ON preflight_deleted (deleted_at);
CREATE TABLE IF NOT EXISTS preflight_published (run TEXT PRIMARY KEY NOT NULL) WITHOUT ROWID;
";

/// Sets the connection up, makes our tables, and returns the warehouse's identity.
pub(super) fn prepare(connection: &Connection, busy: Duration) -> rusqlite::Result<String> {
    connection.busy_timeout(busy)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "cache_size", -32_768)?;
    connection.set_prepared_statement_cache_capacity(64);
    connection.execute_batch(TABLES)?;
    connection.execute(
        "INSERT INTO preflight_warehouse (identity) SELECT lower(hex(randomblob(16)))
         WHERE NOT EXISTS (SELECT 1 FROM preflight_warehouse)",
        [],
    )?;
    connection.query_row("SELECT identity FROM preflight_warehouse", [], |row| row.get(0))
}

pub(super) fn create(connection: &Connection, name: &str, table: &str) -> rusqlite::Result<()> {
    connection.execute("INSERT INTO preflight_streams VALUES (?1, ?2, 0, 0)", params![name, table])?;
    Ok(())
}

/// In a transaction of its own: `query_row` ends after the first row and would not tell that the commit failed.
pub(super) fn finalize(connection: &mut Connection, name: &str) -> rusqlite::Result<Option<u64>> {
    let transaction = connection.transaction()?;
    let rows = transaction
        .query_row("UPDATE preflight_streams SET finalized = 1 WHERE name = ?1 RETURNING row_count", [name], |row| {
            row_count(row, 0)
        })
        .optional()?;
    transaction.commit()?;
    Ok(rows)
}

/// Rows of a stream, and whether it is finalized; none if there is no such stream.
pub(super) fn state(connection: &Connection, name: &str) -> rusqlite::Result<Option<(u64, bool)>> {
    connection
        .prepare_cached("SELECT row_count, finalized FROM preflight_streams WHERE name = ?1")?
        .query_row([name], |row| Ok((row_count(row, 0)?, row.get(1)?)))
        .optional()
}

/// Names of streams of which a part between hyphens is `part`.
pub(super) fn names_with(connection: &Connection, part: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement =
        connection.prepare("SELECT name FROM preflight_streams WHERE instr(name, '-' || ?1 || '-') > 0")?;
    statement.query_map([part], |row| row.get(0))?.collect()
}

/// Deletes finalized streams whose name has a part between hyphens, except those that are still compared at a start.
pub(super) fn forget(connection: &Connection, part: &str, keep: &[String]) -> rusqlite::Result<()> {
    let keep = serde_json::to_string(keep).expect("names are text");
    connection.execute(
        "DELETE FROM preflight_streams WHERE finalized AND instr(name, '-' || ?1 || '-') > 0
         AND name NOT IN (SELECT value FROM json_each(?2))",
        params![part, keep],
    )?;
    Ok(())
}

pub(super) fn advance(connection: &Connection, name: &str, row_count: u64) -> rusqlite::Result<()> {
    let row_count = i64::try_from(row_count).expect("SQLite cannot hold 2^63 rows");
    connection
        .prepare_cached("UPDATE preflight_streams SET row_count = ?2 WHERE name = ?1")?
        .execute(params![name, row_count])?;
    Ok(())
}

/// SQLite's integers are signed; a count is never negative.
fn row_count(row: &rusqlite::Row<'_>, index: usize) -> rusqlite::Result<u64> {
    let count: i64 = row.get(index)?;
    u64::try_from(count).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(index, count))
}

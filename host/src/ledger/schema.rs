//! The ledger's tables, and whose it is.

use super::LedgerError;
use super::{keys, runs, windows};
use rusqlite::{Connection, OptionalExtension as _, params};
use std::path::Path;
use std::time::Duration;

/// Format of the tables below. A change that an older version cannot read counts it up.
pub(super) const FORMAT: &str = "5";
/// Formats that lack only tables and columns: they are added.
const FORMER: [&str; 4] = ["1", "2", "3", "4"];

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY NOT NULL, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sources (key TEXT PRIMARY KEY NOT NULL, position TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS streams (
  name TEXT PRIMARY KEY NOT NULL,
  tier TEXT NOT NULL UNIQUE,
  layout TEXT NOT NULL,
  next_offset INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS closed_streams (
  tier TEXT PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  row_count INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS commits (seq INTEGER PRIMARY KEY NOT NULL, originals BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS outbox (
  id INTEGER PRIMARY KEY NOT NULL,
  seq INTEGER NOT NULL,
  tier TEXT NOT NULL,
  stream TEXT NOT NULL,
  first_offset INTEGER NOT NULL,
  row_count INTEGER NOT NULL,
  layout TEXT NOT NULL,
  rows BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS resolutions (seq INTEGER PRIMARY KEY NOT NULL, resolution BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS outbox_seq ON outbox (seq);
INSERT OR IGNORE INTO counters VALUES ('next_seq', 1), ('next_stream', 1);
";

/// Sets the connection up, makes missing tables, and refuses a ledger of another pipeline, warehouse or format.
pub(super) fn prepare(
    connection: &Connection,
    directory: &Path,
    pipeline: &str,
    warehouse: &str,
) -> Result<(), LedgerError> {
    connection.busy_timeout(Duration::from_secs(2))?;
    // Before anything is made: tables of another format are not ours to add to.
    if connection.table_exists(None, "meta")? {
        match meta(connection, "format")? {
            Some(found) if found != FORMAT && !FORMER.contains(&found.as_str()) => {
                return Err(LedgerError::Format { path: directory.to_owned(), found });
            }
            _ => {}
        }
    }
    // Before the first table: blobs of entries are large, and pages that hold them should be too.
    connection.pragma_update(None, "page_size", 16_384)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // The outbox is written and deleted all the time; its pages need not reach the main file in between.
    connection.pragma_update(None, "wal_autocheckpoint", 2_048)?;
    connection.execute_batch(TABLES)?;
    connection.execute_batch(keys::TABLES)?;
    connection.execute_batch(windows::TABLES)?;
    connection.execute_batch(runs::TABLES)?;
    let belongs = |what: &'static str, ours: &str, advice: &'static str| match meta(connection, what)? {
        Some(theirs) if theirs != ours => {
            let (path, ours) = (directory.to_owned(), ours.to_owned());
            Err(LedgerError::Foreign { path, what, theirs, ours, advice })
        }
        _ => Ok(()),
    };
    belongs("pipeline", pipeline, ": give this pipeline its own [ledger] path")?;
    belongs(
        "warehouse",
        warehouse,
        ": the database was replaced; put it back, or delete the ledger too if the rows in it are no longer wanted",
    )?;
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('format', ?1)", [FORMAT])?;
    let mut insert = connection.prepare("INSERT OR IGNORE INTO meta VALUES (?1, ?2)")?;
    insert.execute(params!["pipeline", pipeline])?;
    insert.execute(params!["warehouse", warehouse])?;
    connection.execute("INSERT OR IGNORE INTO meta VALUES ('id', lower(hex(randomblob(8))))", [])?;
    Ok(())
}

pub(super) fn meta(connection: &Connection, key: &str) -> Result<Option<String>, LedgerError> {
    Ok(connection.query_row("SELECT value FROM meta WHERE key = ?1", [key], |row| row.get(0)).optional()?)
}

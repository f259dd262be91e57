//! Open windows: a log of what changed of them, commit by commit, and how far the watermark is.
//!
//! Invariants: a record is written in the transaction of its commit. The records that are there, in their order, give what was
//! open after the last commit: what is deleted is said again behind it.

use super::{Ledger, LedgerError};
use crate::time::Micros;
use crate::window::Record;
use rusqlite::{Connection, OptionalExtension as _, params};
use std::collections::BTreeMap;

pub(super) const TABLES: &str = "
CREATE TABLE IF NOT EXISTS window_records (number INTEGER PRIMARY KEY NOT NULL, record BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS aggregates (name TEXT PRIMARY KEY NOT NULL, shape TEXT NOT NULL) WITHOUT ROWID;
";

/// Counters: how far the watermark is, when the run epoch began, and the epoch of the last rebuild.
const WATERMARK: &str = "watermark";
const EPOCH: &str = "epoch";
const REBUILD_EPOCH: &str = "rebuild_epoch";
/// What the names of counters begin with that say up to which time windows of an aggregate are closed.
const CLOSED: &str = "closed:";

/// Writes what changed, in the transaction of its commit.
pub(super) fn write(connection: &Connection, record: &Record) -> Result<(), LedgerError> {
    if !record.bytes.is_empty() {
        let bytes = lz4_flex::compress_prepend_size(&record.bytes);
        connection
            .prepare_cached("INSERT INTO window_records VALUES (?1, ?2)")?
            .execute(params![signed(record.number), bytes])?;
        connection
            .prepare_cached("DELETE FROM window_records WHERE number < ?1")?
            .execute([signed(record.first_needed)])?;
    }
    for (aggregate, closed) in &record.closed {
        set(connection, &closed_of(aggregate), *closed)?;
    }
    set(connection, WATERMARK, record.watermark)
}

/// Under this name is kept up to which time windows of an aggregate are closed.
fn closed_of(aggregate: &str) -> String {
    format!("{CLOSED}{aggregate}")
}

fn get(connection: &Connection, name: &str) -> Result<Option<i64>, LedgerError> {
    let mut statement = connection.prepare_cached("SELECT value FROM counters WHERE name = ?1")?;
    Ok(statement.query_row([name], |row| row.get(0)).optional()?)
}

/// How far the watermark was at the last commit; none if there was none.
pub(super) fn watermark(connection: &Connection) -> Result<Option<Micros>, LedgerError> {
    get(connection, WATERMARK)
}

/// Up to which time windows of each aggregate are closed.
pub(super) fn closed(connection: &Connection) -> Result<BTreeMap<String, Micros>, LedgerError> {
    let mut statement = connection
        .prepare("SELECT substr(name, length(?1) + 1), value FROM counters WHERE substr(name, 1, length(?1)) = ?1")?;
    let closed = statement.query_map([CLOSED], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(closed.collect::<Result<_, _>>()?)
}

fn set(connection: &Connection, name: &str, value: i64) -> Result<(), LedgerError> {
    connection.prepare_cached("INSERT OR REPLACE INTO counters VALUES (?1, ?2)")?.execute(params![name, value])?;
    Ok(())
}

impl Ledger {
    /// How far the watermark was at the last commit; none if there was none.
    pub fn watermark(&self) -> Result<Option<Micros>, LedgerError> {
        watermark(&self.connection)
    }

    /// Up to which time windows of an aggregate are closed.
    pub fn closed(&self, aggregate: &str) -> Result<Option<Micros>, LedgerError> {
        get(&self.connection, &closed_of(aggregate))
    }

    /// Closes windows of an aggregate up to a time, where none are open: what comes for them is late.
    pub fn close_windows(&mut self, aggregate: &str, up_to: Micros) -> Result<(), LedgerError> {
        let closed = self.closed(aggregate)?.unwrap_or(Micros::MIN);
        set(&self.connection, &closed_of(aggregate), closed.max(up_to))
    }

    /// The run epoch of what is counted: when it began. `now` for a ledger that has none.
    pub fn epoch(&mut self, now: Micros) -> Result<i64, LedgerError> {
        self.connection.execute("INSERT OR IGNORE INTO counters VALUES (?1, ?2)", params![EPOCH, now])?;
        get(&self.connection, EPOCH)?.ok_or_else(|| LedgerError::Damaged("it has no epoch".into()))
    }

    /// Begins a run epoch, which is later than any before it and than that of any rebuild.
    pub fn begin_epoch(&mut self, now: Micros) -> Result<i64, LedgerError> {
        let rebuilt = get(&self.connection, REBUILD_EPOCH)?.unwrap_or(i64::MIN);
        let epoch = now.max(self.epoch(now)? + 1).max(rebuilt.saturating_add(1));
        set(&self.connection, EPOCH, epoch)?;
        Ok(epoch)
    }

    /// An epoch for a rebuild: later than the run epoch and than that of any rebuild before. The run epoch stays what it is, so
    /// open windows go on under theirs.
    pub fn rebuild_epoch(&mut self, now: Micros) -> Result<i64, LedgerError> {
        let rebuilt = get(&self.connection, REBUILD_EPOCH)?.unwrap_or(i64::MIN);
        let epoch = now.max(self.epoch(now)? + 1).max(rebuilt.saturating_add(1));
        set(&self.connection, REBUILD_EPOCH, epoch)?;
        Ok(epoch)
    }

    /// What changed of windows, in its order.
    pub fn window_records(
        &self,
        mut each: impl FnMut(u64, &[u8]) -> Result<(), LedgerError>,
    ) -> Result<(), LedgerError> {
        let mut statement = self.connection.prepare("SELECT number, record FROM window_records ORDER BY number")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let number: i64 = row.get(0)?;
            let number = u64::try_from(number).map_err(|_| LedgerError::Damaged("a record has no number".into()))?;
            let bytes = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
            let bytes = lz4_flex::decompress_size_prepended(bytes)
                .map_err(|error| LedgerError::Damaged(format!("a record of windows: {error}")))?;
            each(number, &bytes)?;
        }
        Ok(())
    }

    /// The shapes of the aggregates whose windows the records have.
    pub fn shapes(&self) -> Result<BTreeMap<String, String>, LedgerError> {
        let mut statement = self.connection.prepare("SELECT name, shape FROM aggregates")?;
        let shapes = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(shapes.collect::<Result<_, _>>()?)
    }

    /// Remembers the shapes of the aggregates, in place of those before. With `forget` all records are deleted.
    pub fn keep_shapes(&mut self, shapes: &BTreeMap<String, String>, forget: bool) -> Result<(), LedgerError> {
        let transaction = self.connection.transaction()?;
        transaction.execute("DELETE FROM aggregates", [])?;
        for (name, shape) in shapes {
            transaction.execute("INSERT INTO aggregates VALUES (?1, ?2)", params![name, shape])?;
        }
        if forget {
            transaction.execute("DELETE FROM window_records", [])?;
        }
        transaction.commit()?;
        Ok(())
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).expect("nobody commits 2^63 times")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_epoch_is_later_than_those_before_and_a_rebuild_leaves_the_runs_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::open(directory.path(), "p", "w").unwrap();
        assert_eq!(ledger.epoch(100).unwrap(), 100);
        assert_eq!(ledger.rebuild_epoch(50).unwrap(), 101, "the clock may go back");
        assert_eq!(ledger.rebuild_epoch(50).unwrap(), 102);
        assert_eq!(ledger.epoch(500).unwrap(), 100);
        assert_eq!(ledger.begin_epoch(60).unwrap(), 103, "what is read anew supersedes what was rebuilt");
        assert_eq!(ledger.rebuild_epoch(60).unwrap(), 104);
        assert_eq!(ledger.rebuild_epoch(900).unwrap(), 900);
        assert_eq!(ledger.begin_epoch(1_000).unwrap(), 1_000);
    }
}

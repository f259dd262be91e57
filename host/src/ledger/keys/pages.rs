//! The tables that keys stand in: buckets, and pages of entries that are as wide as one leaf of the database holds.
//!
//! Entries are only appended, in the order of the commits, so a commit of thousands of keys writes a few pages. A tree
//! ordered by key would be written all over: about a page for each key.

use crate::ledger::LedgerError;
use rusqlite::{Connection, OptionalExtension as _, params};

pub(in crate::ledger) const TABLES: &str = "
CREATE TABLE IF NOT EXISTS key_buckets (
  id INTEGER PRIMARY KEY NOT NULL,
  kind TEXT NOT NULL,
  opened INTEGER NOT NULL,
  newest INTEGER NOT NULL,
  newest_seq INTEGER NOT NULL,
  dropped INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS key_pages (id INTEGER PRIMARY KEY NOT NULL, entries BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS commit_claims (seq INTEGER PRIMARY KEY NOT NULL, claims BLOB NOT NULL);
";

/// What a leaf of the ledger's database holds without an overflow page, less what the record itself takes.
const PAGE: usize = 16_384 - 64;
/// Bits of a page's number within its bucket.
const NUMBER: u32 = 20;
/// Pages that a commit deletes of buckets that were dropped: all at once would be a stall.
const DELETED: u32 = 256;

/// A bucket as its row has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bucket {
    pub id: i64,
    /// Running time at its first key.
    pub opened: i64,
    /// Running time at its last key.
    pub newest: i64,
    /// The last commit with a key in it.
    pub newest_seq: i64,
    /// Whether it is forgotten already, and its pages are on their way out.
    pub dropped: bool,
}

/// Entries that one page holds.
#[expect(clippy::cast_possible_truncation, reason = "a page is small")]
pub(super) const fn per_page(width: usize) -> u32 {
    (PAGE / width) as u32
}

fn page_id(bucket: i64, page: u32) -> i64 {
    bucket << NUMBER | i64::from(page)
}

/// The buckets of a kind, oldest first.
pub(super) fn buckets(connection: &Connection, kind: &str) -> Result<Vec<Bucket>, LedgerError> {
    let mut statement = connection
        .prepare("SELECT id, opened, newest, newest_seq, dropped FROM key_buckets WHERE kind = ?1 ORDER BY id")?;
    let rows = statement.query_map([kind], |row| {
        Ok(Bucket {
            id: row.get(0)?,
            opened: row.get(1)?,
            newest: row.get(2)?,
            newest_seq: row.get(3)?,
            dropped: row.get(4)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Makes a bucket and returns its number, which is above all others.
pub(super) fn make(connection: &Connection, kind: &str, now: i64) -> Result<i64, LedgerError> {
    connection.execute("INSERT INTO key_buckets VALUES (NULL, ?1, ?2, ?2, 0, 0)", params![kind, now])?;
    Ok(connection.last_insert_rowid())
}

/// Notes that keys were added to a bucket.
pub(super) fn touch(connection: &Connection, bucket: &Bucket) -> Result<(), LedgerError> {
    connection.prepare_cached("UPDATE key_buckets SET newest = ?2, newest_seq = ?3 WHERE id = ?1")?.execute([
        bucket.id,
        bucket.newest,
        bucket.newest_seq,
    ])?;
    Ok(())
}

/// Adds entries behind the first `count` of a bucket.
pub(super) fn append(
    connection: &Connection,
    (bucket, count): (i64, u32),
    entries: &[u8],
    width: usize,
) -> Result<(), LedgerError> {
    let per_page = per_page(width);
    let (mut page, filled) = (count / per_page, (count % per_page) as usize * width);
    let mut write = |entries: &[u8]| {
        let written = connection
            .prepare_cached("INSERT OR REPLACE INTO key_pages VALUES (?1, ?2)")?
            .execute(params![page_id(bucket, page), entries]);
        page += 1;
        written.map(drop)
    };
    let mut rest = entries;
    if filled > 0 && !rest.is_empty() {
        let mut last = read(connection, bucket, count / per_page)?;
        if last.len() != filled {
            return Err(damaged(bucket));
        }
        let (fits, behind) = rest.split_at(rest.len().min(per_page as usize * width - filled));
        last.extend_from_slice(fits);
        write(&last)?;
        rest = behind;
    }
    for entries in rest.chunks(per_page as usize * width) {
        write(entries)?;
    }
    Ok(())
}

fn read(connection: &Connection, bucket: i64, page: u32) -> Result<Vec<u8>, LedgerError> {
    let mut statement = connection.prepare_cached("SELECT entries FROM key_pages WHERE id = ?1")?;
    let entries = statement.query_row([page_id(bucket, page)], |row| row.get(0)).optional()?;
    entries.ok_or_else(|| damaged(bucket))
}

/// Reads one entry.
pub(super) fn entry<const WIDTH: usize>(
    connection: &Connection,
    bucket: i64,
    slot: u32,
) -> Result<[u8; WIDTH], LedgerError> {
    let (page, at) = (slot / per_page(WIDTH), (slot % per_page(WIDTH)) as usize * WIDTH);
    let mut statement = connection.prepare_cached("SELECT entries FROM key_pages WHERE id = ?1")?;
    let mut rows = statement.query([page_id(bucket, page)])?;
    let row = rows.next()?.ok_or_else(|| damaged(bucket))?;
    let entries = row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?;
    entries.get(at..).and_then(|rest| rest.first_chunk()).copied().ok_or_else(|| damaged(bucket))
}

/// Overwrites one entry.
pub(super) fn overwrite(connection: &Connection, bucket: i64, slot: u32, entry: &[u8]) -> Result<(), LedgerError> {
    let (page, at) = (slot / per_page(entry.len()), (slot % per_page(entry.len())) as usize * entry.len());
    let mut entries = read(connection, bucket, page)?;
    entries.get_mut(at..at + entry.len()).ok_or_else(|| damaged(bucket))?.copy_from_slice(entry);
    connection.execute("UPDATE key_pages SET entries = ?2 WHERE id = ?1", params![page_id(bucket, page), entries])?;
    Ok(())
}

/// Gives every entry of a bucket, in the order they were added. Returns how many there are.
pub(super) fn each(
    connection: &Connection,
    bucket: i64,
    width: usize,
    mut take: impl FnMut(u32, &[u8]),
) -> Result<u32, LedgerError> {
    let mut statement =
        connection.prepare_cached("SELECT id, entries FROM key_pages WHERE id BETWEEN ?1 AND ?2 ORDER BY id")?;
    let mut rows = statement.query([page_id(bucket, 0), page_id(bucket + 1, 0) - 1])?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        let entries = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
        // Each page but the last is full: a slot's number says where it is.
        let next = page_id(bucket, count / per_page(width));
        let whole = !entries.is_empty() && entries.len() % width == 0 && entries.len() <= PAGE;
        if row.get::<_, i64>(0)? != next || count % per_page(width) != 0 || !whole {
            return Err(damaged(bucket));
        }
        for entry in entries.chunks_exact(width) {
            take(count, entry);
            count += 1;
        }
    }
    Ok(count)
}

/// Marks a bucket as forgotten.
pub(super) fn forget(connection: &Connection, bucket: i64) -> Result<(), LedgerError> {
    connection.execute("UPDATE key_buckets SET dropped = 1 WHERE id = ?1", [bucket])?;
    Ok(())
}

/// Deletes some pages of a forgotten bucket; with the last of them the bucket. True if it is gone.
pub(super) fn delete_some(connection: &Connection, bucket: i64) -> Result<bool, LedgerError> {
    let deleted = connection
        .prepare_cached(
            "DELETE FROM key_pages WHERE id IN (SELECT id FROM key_pages WHERE id BETWEEN ?1 AND ?2 ORDER BY id LIMIT ?3)",
        )?
        .execute(params![page_id(bucket, 0), page_id(bucket + 1, 0) - 1, DELETED])?;
    let gone = deleted < DELETED as usize;
    if gone {
        connection.execute("DELETE FROM key_buckets WHERE id = ?1", [bucket])?;
    }
    Ok(gone)
}

/// Deletes everything of a kind.
pub(super) fn delete_all(connection: &Connection, kind: &str) -> Result<(), LedgerError> {
    for bucket in buckets(connection, kind)? {
        connection.execute(
            "DELETE FROM key_pages WHERE id BETWEEN ?1 AND ?2",
            [page_id(bucket.id, 0), page_id(bucket.id + 1, 0) - 1],
        )?;
    }
    connection.execute("DELETE FROM key_buckets WHERE kind = ?1", [kind])?;
    Ok(())
}

fn damaged(bucket: i64) -> LedgerError {
    LedgerError::Damaged(format!("bucket {bucket} of its keys lacks pages or has broken ones"))
}

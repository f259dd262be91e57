//! The outbox's rows: binding to offsets, reading back, taking refused rows out.

use super::codec::{self, Frames, Original};
use super::{LedgerError, Seq, Stream};
use crate::telemetry::tally::Tally;
use crate::warehouse::events::Resolution;
use crate::warehouse::{Encoding, Entry, Layout, RowSet, Tier};
use rusqlite::{Connection, Row, params};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The rows of a micro-batch for one target.
#[derive(Debug)]
pub struct Part {
    /// The target.
    pub tier: Tier,
    /// The table and columns the rows are encoded for. Those of a stream may change with the rules.
    pub layout: Arc<Layout>,
    /// The rows.
    pub rows: Arc<RowSet>,
    /// The same rows as frames, in order.
    pub frames: Frames,
}

/// Rows that a table refused, and what becomes of them.
pub struct Refused<'a> {
    /// The commit.
    pub seq: Seq,
    /// The target that refused.
    pub tier: Tier,
    /// The rows of the entry that remain.
    pub kept: &'a RowSet,
    /// What takes the refused events instead: quarantine, files of rejects.
    pub instead: &'a [Part],
    /// What the refusal changes in the counts.
    pub counts: &'a Tally,
    /// The refused events' indexes in the micro-batch.
    pub events: &'a [u32],
    /// The refused events.
    pub originals: &'a Frames,
}

/// The streams that are open.
pub(super) fn open_streams(connection: &Connection) -> Result<BTreeMap<Tier, Stream>, LedgerError> {
    let mut statement = connection.prepare("SELECT tier, name, next_offset, layout FROM streams")?;
    let mut rows = statement.query([])?;
    let mut streams = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let stream = Stream { name: row.get(1)?, next_offset: unsigned(row, 2)?, layout: layout(row, 3)? };
        streams.insert(tier(row, 0)?, stream);
    }
    Ok(streams)
}

/// The commits that are undone.
pub(super) fn undone(connection: &Connection) -> Result<BTreeSet<Seq>, LedgerError> {
    let mut statement = connection.prepare("SELECT seq FROM commits")?;
    Ok(statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
}

/// Offset of the first row of a stream that is not known to be in the warehouse.
pub(super) fn lowest_undone(connection: &Connection, stream: &str) -> Result<Option<u64>, LedgerError> {
    let mut statement =
        connection.prepare("SELECT first_offset FROM outbox WHERE stream = ?1 ORDER BY first_offset LIMIT 1")?;
    let mut rows = statement.query([stream])?;
    rows.next()?.map(|row| unsigned(row, 0)).transpose()
}

pub(super) fn insert_stream(
    connection: &Connection,
    tier: Tier,
    name: &str,
    layout: &Layout,
) -> Result<(), LedgerError> {
    connection.execute("INSERT INTO streams VALUES (?1, ?2, ?3, 0)", params![name, tier.as_str(), text(layout)])?;
    Ok(())
}

/// Moves a stream to the closed ones. One without rows says nothing of the table and is only deleted.
pub(super) fn close_stream(connection: &Connection, tier: Tier, stream: &Stream) -> Result<(), LedgerError> {
    connection.execute("DELETE FROM streams WHERE name = ?1", [&stream.name])?;
    // A file is another by the next start.
    if stream.next_offset > 0 && stream.layout.encoding != Encoding::Lines {
        connection.execute(
            "INSERT OR REPLACE INTO closed_streams VALUES (?1, ?2, ?3)",
            params![tier.as_str(), stream.name, signed(stream.next_offset)],
        )?;
    }
    Ok(())
}

/// The streams that were closed last, with their row counts.
pub(super) fn closed_streams(connection: &Connection) -> Result<Vec<(String, u64)>, LedgerError> {
    let mut statement = connection.prepare("SELECT name, row_count FROM closed_streams")?;
    let mut rows = statement.query([])?;
    let mut streams = Vec::new();
    while let Some(row) = rows.next()? {
        streams.push((row.get(0)?, unsigned(row, 1)?));
    }
    Ok(streams)
}

/// Binds parts to the next offsets of their streams, those that are upserted to none, and writes them, with the original events and what they resolve, as
/// commit `seq`.
pub(super) fn bind(
    connection: &Connection,
    streams: &BTreeMap<Tier, Stream>,
    seq: Seq,
    parts: &[Part],
    originals: &Frames,
    resolution: Option<&Resolution>,
) -> Result<Vec<Entry>, LedgerError> {
    let mut entries = Vec::with_capacity(parts.len());
    for part in parts.iter().filter(|part| !part.rows.is_empty()) {
        let count = part.layout.extent(&part.rows);
        let (name, first_offset) = if part.layout.upsert.is_some() {
            // By their key and sequence it is told what becomes of them, wherever and however often they are sent.
            (String::new(), 0)
        } else {
            let stream = streams.get(&part.tier).expect("a stream is opened before rows are bound to it");
            (stream.name.clone(), stream.next_offset)
        };
        connection
            .prepare_cached(
                "INSERT INTO outbox (seq, tier, stream, first_offset, row_count, layout, rows)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute(params![
                seq,
                part.tier.as_str(),
                name,
                signed(first_offset),
                signed(count),
                text(&part.layout),
                part.frames.bytes()
            ])?;
        if part.layout.upsert.is_none() {
            connection
                .prepare_cached("UPDATE streams SET next_offset = ?2 WHERE name = ?1")?
                .execute(params![name, signed(first_offset + count)])?;
        }
        entries.push(Entry {
            tier: part.tier,
            stream: name,
            first_offset,
            rows: Arc::clone(&part.rows),
            layout: Arc::clone(&part.layout),
        });
    }
    if let Some(resolution) = resolution {
        write_resolution(connection, seq, resolution)?;
    }
    if !entries.is_empty() || resolution.is_some() {
        connection
            .prepare_cached("INSERT INTO commits (seq, originals) VALUES (?1, ?2)")?
            .execute(params![seq, originals.bytes()])?;
    }
    Ok(entries)
}

/// The entries of a commit, in the order they were bound.
pub(super) fn entries(connection: &Connection, seq: Seq) -> Result<Vec<Entry>, LedgerError> {
    let mut statement = connection
        .prepare_cached("SELECT tier, stream, first_offset, layout, rows FROM outbox WHERE seq = ?1 ORDER BY id")?;
    let mut rows = statement.query([seq])?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        let mut set = RowSet::default();
        for part in codec::read::<RowSet>(row.get_ref(4)?.as_blob().map_err(rusqlite::Error::from)?)? {
            set.extend(&part);
        }
        entries.push(Entry {
            tier: tier(row, 0)?,
            stream: row.get(1)?,
            first_offset: unsigned(row, 2)?,
            rows: Arc::new(set),
            layout: layout(row, 3)?,
        });
    }
    Ok(entries)
}

/// The original events of a commit.
pub(super) fn originals(connection: &Connection, seq: Seq) -> Result<Vec<Original<'static>>, LedgerError> {
    let blob: Vec<u8> =
        connection.query_row("SELECT originals FROM commits WHERE seq = ?1", [seq], |row| row.get(0))?;
    Ok(codec::read::<Vec<Original<'static>>>(&blob)?.into_iter().flatten().collect())
}

/// Writes what a commit resolves, in place of what it was to resolve before.
pub(super) fn write_resolution(connection: &Connection, seq: Seq, resolution: &Resolution) -> Result<(), LedgerError> {
    let mut frames = Frames::default();
    frames.push(resolution);
    connection
        .prepare_cached("INSERT OR REPLACE INTO resolutions (seq, resolution) VALUES (?1, ?2)")?
        .execute(params![seq, frames.bytes()])?;
    Ok(())
}

/// What undone commits resolve.
pub(super) fn resolutions(connection: &Connection) -> Result<BTreeMap<Seq, Arc<Resolution>>, LedgerError> {
    let mut statement = connection.prepare("SELECT seq, resolution FROM resolutions")?;
    let mut rows = statement.query([])?;
    let mut resolutions = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let seq = row.get(0)?;
        let parts = codec::read(row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?)?;
        resolutions.extend(parts.into_iter().map(|resolution| (seq, Arc::new(resolution))));
    }
    Ok(resolutions)
}

/// Replaces an entry by what is kept of it and moves later undone entries of its stream forward. Returns by how many
/// rows.
pub(super) fn remove_rows(connection: &Connection, seq: Seq, tier: Tier, kept: &RowSet) -> Result<u64, LedgerError> {
    let (id, stream, before): (i64, String, i64) = connection.query_row(
        "SELECT id, stream, row_count FROM outbox WHERE seq = ?1 AND tier = ?2",
        params![seq, tier.as_str()],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    let after = signed(kept.len() as u64);
    if kept.is_empty() {
        connection.execute("DELETE FROM outbox WHERE id = ?1", [id])?;
    } else {
        let mut frames = Frames::default();
        frames.push(kept);
        connection
            .execute("UPDATE outbox SET row_count = ?2, rows = ?3 WHERE id = ?1", params![id, after, frames.bytes()])?;
    }
    if stream.is_empty() {
        return Ok(0);
    }
    let shift = before - after;
    connection.execute(
        "UPDATE outbox SET first_offset = first_offset - ?3 WHERE stream = ?1 AND id > ?2",
        params![stream, id, shift],
    )?;
    connection.execute("UPDATE streams SET next_offset = next_offset - ?2 WHERE name = ?1", params![stream, shift])?;
    u64::try_from(shift).map_err(|_| LedgerError::Damaged("an entry grew by losing rows".into()))
}

/// Binds what is left of an entry to the next rows of another stream; deletes it if nothing is left. `rest` are the rows if
/// some of them are gone.
pub(super) fn rebind(
    connection: &Connection,
    (seq, tier): (Seq, Tier),
    stream: &Stream,
    rows: usize,
    rest: Option<&RowSet>,
) -> Result<(), LedgerError> {
    let entry = params![seq, tier.as_str()];
    if rows == 0 {
        connection.execute("DELETE FROM outbox WHERE seq = ?1 AND tier = ?2", entry)?;
        return Ok(());
    }
    connection.execute(
        "UPDATE outbox SET stream = ?3, first_offset = ?4 WHERE seq = ?1 AND tier = ?2",
        params![seq, tier.as_str(), stream.name, signed(stream.next_offset)],
    )?;
    if let Some(rest) = rest {
        let mut frames = Frames::default();
        frames.push(rest);
        connection.execute(
            "UPDATE outbox SET row_count = ?3, rows = ?4 WHERE seq = ?1 AND tier = ?2",
            params![seq, tier.as_str(), signed(rows as u64), frames.bytes()],
        )?;
    }
    connection.execute(
        "UPDATE streams SET next_offset = ?2 WHERE name = ?1",
        params![stream.name, signed(stream.next_offset + rows as u64)],
    )?;
    Ok(())
}

fn text(layout: &Layout) -> String {
    serde_json::to_string(layout).expect("names are text")
}

fn layout(row: &Row<'_>, index: usize) -> Result<Arc<Layout>, LedgerError> {
    let text: String = row.get(index)?;
    serde_json::from_str(&text).map(Arc::new).map_err(|error| LedgerError::Damaged(format!("a layout: {error}")))
}

fn tier(row: &Row<'_>, index: usize) -> Result<Tier, LedgerError> {
    let name: String = row.get(index)?;
    name.parse().map_err(|_| LedgerError::Damaged(format!("it names a target {name:?}")))
}

fn unsigned(row: &Row<'_>, index: usize) -> Result<u64, LedgerError> {
    u64::try_from(row.get::<_, i64>(index)?).map_err(|_| LedgerError::Damaged("an offset is negative".into()))
}

fn signed(n: u64) -> i64 {
    i64::try_from(n).expect("no table has 2^63 rows")
}

//! The keys of one kind: a log of entries in buckets, with an index of each in memory.

use super::Key;
use super::index::{self, Filling, Sealed, cell};
use super::pages::{self, Bucket};
use crate::ledger::{LedgerError, Seq};
use crate::time::Micros;
use rusqlite::Connection;
use std::collections::VecDeque;

/// Keys after which a bucket is full.
pub(super) const FULL: u32 = 1 << 20;
/// Slices of the horizon: a bucket is filled for one.
pub(super) const SLICES: u32 = 8;

/// What a kind of keys is, and how long it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    /// Its name in the tables.
    pub name: &'static str,
    /// How long a key is kept at least; without it for ever.
    pub horizon: Option<Micros>,
    /// Whether the horizon of a bucket begins only when all commits with keys in it are acknowledged.
    pub until_acked: bool,
}

/// The running time of a commit, and what is acknowledged by then.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub now: Micros,
    pub acked: Seq,
}

/// The keys of one kind, each in an entry of `WIDTH` bytes that begins with it.
#[derive(Debug)]
pub(super) struct KeyLog<const WIDTH: usize> {
    kind: Kind,
    sealed: VecDeque<SealedBucket>,
    filling: Option<FillingBucket>,
    /// Buckets that are forgotten and still have pages.
    leaving: VecDeque<i64>,
}

#[derive(Debug)]
struct SealedBucket {
    bucket: Bucket,
    index: Sealed,
    /// Since when all its commits are acknowledged.
    acked: Option<Micros>,
}

#[derive(Debug)]
struct FillingBucket {
    bucket: Bucket,
    count: u32,
    index: Filling,
}

/// Where an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    bucket: i64,
    slot: u32,
}

/// An entry that was looked for, and where it is.
type Entry<const WIDTH: usize> = Option<(Place, [u8; WIDTH])>;

/// What a transaction has written, to be taken over once it is committed.
#[derive(Debug)]
pub(super) struct Written {
    at: Moment,
    seal: bool,
    forgotten: usize,
    gone: bool,
    /// The bucket that was added to, from which slot on, and the keys.
    added: Option<(Bucket, u32, Vec<Key>)>,
}

impl<const WIDTH: usize> KeyLog<WIDTH> {
    /// Reads a log. Its last bucket is filled further.
    pub(super) fn read(connection: &Connection, kind: Kind) -> Result<Self, LedgerError> {
        let mut log = Self { kind, sealed: VecDeque::new(), filling: None, leaving: VecDeque::new() };
        let mut buckets: Vec<Bucket> = Vec::new();
        for bucket in pages::buckets(connection, kind.name)? {
            if bucket.dropped { log.leaving.push_back(bucket.id) } else { buckets.push(bucket) }
        }
        let last = buckets.pop();
        for bucket in buckets {
            let mut cells = Vec::new();
            pages::each(connection, bucket.id, WIDTH, |slot, entry| {
                cells.extend(key(entry).map(|key| cell(&key, slot)));
            })?;
            log.sealed.push_back(SealedBucket { bucket, index: Sealed::new(cells), acked: None });
        }
        if let Some(bucket) = last {
            let mut index = Filling::default();
            let count = pages::each(connection, bucket.id, WIDTH, |slot, entry| {
                if let Some(key) = key(entry) {
                    index.insert(key, slot);
                }
            })?;
            log.filling = Some(FillingBucket { bucket, count, index });
        }
        Ok(log)
    }

    /// The entries of those keys that are there and within their horizon.
    pub(super) fn find(
        &self,
        connection: &Connection,
        keys: &[Key],
        now: Micros,
    ) -> Result<Vec<Entry<WIDTH>>, LedgerError> {
        let mut found = vec![None; keys.len()];
        if let Some(FillingBucket { bucket, index, .. }) = &self.filling
            // Of a bucket that is filled nobody looks whether all is acknowledged.
            && (self.kind.until_acked || !self.has_expired(Some(bucket.newest), now))
        {
            for (key, found) in keys.iter().zip(&mut found) {
                if let Some(slot) = index.slot(key) {
                    *found = look(connection, bucket, slot, key)?;
                }
            }
        }
        // A bucket after the other, each with all keys: the look-ups of one do not wait for each other.
        for SealedBucket { bucket, index, acked } in self.sealed.iter().rev() {
            if self.has_expired(self.begins(bucket, *acked), now) {
                continue;
            }
            for (key, found) in keys.iter().zip(&mut found).filter(|(_, found)| found.is_none()) {
                for slot in index.slots(key) {
                    *found = look(connection, bucket, slot, key)?;
                    if found.is_some() {
                        break;
                    }
                }
            }
        }
        Ok(found)
    }

    /// When the horizon of a bucket begins, if it has.
    fn begins(&self, bucket: &Bucket, acked: Option<Micros>) -> Option<Micros> {
        if self.kind.until_acked { acked } else { Some(bucket.newest) }
    }

    fn has_expired(&self, begins: Option<Micros>, now: Micros) -> bool {
        let ends = self.kind.horizon.zip(begins).map(|(horizon, begins)| begins.saturating_add(horizon));
        ends.is_some_and(|ends| ends < now)
    }

    /// Writes what a commit adds, in its transaction, and moves on what is old. Nothing changes here before it is
    /// [`taken over`](Self::take_over).
    pub(super) fn write(
        &self,
        connection: &Connection,
        entries: &[[u8; WIDTH]],
        seq: Seq,
        at: Moment,
    ) -> Result<Written, LedgerError> {
        let now = at.now;
        let mut written = Written { at, seal: false, forgotten: 0, gone: false, added: None };
        if let Some(FillingBucket { bucket, count, .. }) = &self.filling {
            let slice = self.kind.horizon.map(|horizon| horizon / i64::from(SLICES));
            let has_had_its_time = slice.is_some_and(|slice| bucket.opened.saturating_add(slice) <= now);
            written.seal = *count >= FULL || has_had_its_time;
        }
        let expired = |sealed: &&SealedBucket| self.has_expired(self.begins(&sealed.bucket, sealed.acked), now);
        for SealedBucket { bucket, .. } in self.sealed.iter().take_while(expired) {
            pages::forget(connection, bucket.id)?;
            written.forgotten += 1;
        }
        if let Some(bucket) = self.leaving.front() {
            written.gone = pages::delete_some(connection, *bucket)?;
        }
        if entries.is_empty() {
            return Ok(written);
        }
        let (bucket, count) = match &self.filling {
            Some(filling) if !written.seal => (filling.bucket, filling.count),
            _ => {
                let id = pages::make(connection, self.kind.name, now)?;
                (Bucket { id, opened: now, newest: now, newest_seq: seq, dropped: false }, 0)
            }
        };
        let bucket = Bucket { newest: now, newest_seq: seq, ..bucket };
        assert!(entries.len() < (index::SLOTS - FULL) as usize, "a micro-batch is bounded far below 2^23 events");
        pages::append(connection, (bucket.id, count), entries.as_flattened(), WIDTH)?;
        pages::touch(connection, &bucket)?;
        let keys = entries.iter().map(|entry| raw_key(entry)).collect();
        written.added = Some((bucket, count, keys));
        Ok(written)
    }

    /// Takes over what a transaction has written that is committed now.
    pub(super) fn take_over(&mut self, written: Written) {
        if written.gone {
            self.leaving.pop_front();
        }
        self.leaving.extend(self.sealed.drain(..written.forgotten).map(|sealed| sealed.bucket.id));
        if written.seal
            && let Some(FillingBucket { bucket, index, .. }) = self.filling.take()
        {
            self.sealed.push_back(SealedBucket { bucket, index: index.seal(), acked: None });
        }
        for SealedBucket { bucket, acked, .. } in &mut self.sealed {
            if bucket.newest_seq <= written.at.acked {
                acked.get_or_insert(written.at.now);
            }
        }
        if let Some((bucket, first, keys)) = written.added {
            let filling =
                self.filling.get_or_insert_with(|| FillingBucket { bucket, count: 0, index: Filling::default() });
            filling.bucket = bucket;
            filling.count = first;
            for key in keys {
                filling.index.insert(key, filling.count);
                filling.count += 1;
            }
        }
    }

    /// Overwrites an entry.
    pub(super) fn overwrite(
        connection: &Connection,
        Place { bucket, slot }: Place,
        entry: &[u8; WIDTH],
    ) -> Result<(), LedgerError> {
        pages::overwrite(connection, bucket, slot, entry)
    }

    /// Forgets every key, in a transaction; it is then to be read again.
    pub(super) fn delete_all(connection: &Connection, kind: Kind) -> Result<(), LedgerError> {
        pages::delete_all(connection, kind.name)
    }
}

fn look<const WIDTH: usize>(
    connection: &Connection,
    bucket: &Bucket,
    slot: u32,
    wanted: &Key,
) -> Result<Option<(Place, [u8; WIDTH])>, LedgerError> {
    let entry = pages::entry::<WIDTH>(connection, bucket.id, slot)?;
    let is_it = key(&entry).as_ref() == Some(wanted);
    Ok(is_it.then_some((Place { bucket: bucket.id, slot }, entry)))
}

fn raw_key(entry: &[u8]) -> Key {
    Key(*entry.first_chunk().expect("an entry begins with a key"))
}

/// The key of an entry, unless it was released.
fn key(entry: &[u8]) -> Option<Key> {
    Some(raw_key(entry)).filter(|key| *key != Key::NONE)
}

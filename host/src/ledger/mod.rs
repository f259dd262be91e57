//! The durable state of one worker: source positions, what was seen before and the outbox, one commit per micro-batch.
//!
//! The outbox holds what was promised to the warehouse and not yet seen confirmed: for each target the stream, the
//! offset and the encoded rows, and once per commit the original events. What is in it is sent again, byte for byte,
//! until it is confirmed; only then is it deleted.
//!
//! Invariants: a commit and the source position behind it are one transaction. Offsets of a stream are handed out
//! once, in order, without gaps. The lowest undone commit is always safe to send: everything before it is done.

mod codec;
mod error;
pub mod inbox;
mod keys;
mod lock;
pub mod look;
mod moved;
mod outbox;
mod runs;
mod schema;
mod windows;

pub use codec::{Frames, Original};
pub use error::LedgerError;
pub use keys::{Additions, Claim, Fingerprint, Horizon, Key, KeyNeed, Parts, Retention};
pub use outbox::{Part, Refused};
pub use runs::{Run, RunState, Staged};

use crate::telemetry::tally::Tally;
use crate::warehouse::events::Resolution;
use crate::warehouse::sqlite::{may_open_later, plain};
use crate::warehouse::{Entry, Layout, RowSet, Tier};
use keys::Keys;
use lock::Lock;
use rusqlite::{Connection, OptionalExtension as _, params};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Number of a commit: they count up from 1 for the life of the ledger.
pub type Seq = i64;

/// An open ledger. Only one process can hold it.
pub struct Ledger {
    connection: Connection,
    directory: PathBuf,
    id: String,
    is_new: bool,
    /// The first commit of this process.
    first_own: Seq,
    next_seq: Seq,
    streams: BTreeMap<Tier, Stream>,
    undone: BTreeSet<Seq>,
    /// Entries of undone commits that were made in this process, so that they need not be read back.
    recent: BTreeMap<Seq, Arc<Vec<Entry>>>,
    /// What undone commits resolve.
    resolutions: BTreeMap<Seq, Arc<Resolution>>,
    /// The run that replaces tables, if there is one.
    run: Option<Run>,
    keys: Keys,
    _lock: Lock,
}

/// The entry of `meta` that a run leaves which has begun.
const BEGUN: &str = "begun";

/// The stream rows of a target are bound to.
#[derive(Debug, Clone)]
pub struct Stream {
    /// Its name in the warehouse.
    pub name: String,
    /// Offset of the next row to bind.
    pub next_offset: u64,
    /// The table it belongs to, and the columns rows are encoded for.
    pub layout: Arc<Layout>,
}

impl Ledger {
    /// Opens the ledger in a directory, making it if it is missing, and takes its lock.
    pub fn open(directory: &Path, pipeline: &str, warehouse: &str) -> Result<Self, LedgerError> {
        Self::open_unnamed(directory, pipeline, warehouse).map_err(|error| {
            let error = match error {
                LedgerError::Retryable { path, error } if !may_open_later(&error) => {
                    LedgerError::Database { path, error }
                }
                error => error,
            };
            error.at(directory)
        })
    }

    fn open_unnamed(directory: &Path, pipeline: &str, warehouse: &str) -> Result<Self, LedgerError> {
        let io = |error| LedgerError::Io { path: directory.to_owned(), error };
        std::fs::create_dir_all(directory).map_err(io)?;
        let lock = Lock::take(directory)?;
        let connection = Connection::open(plain(&directory.join("ledger.db")))?;
        schema::prepare(&connection, directory, pipeline, warehouse)?;
        let meta = |key: &str| schema::meta(&connection, key);
        let id = meta("id")?.ok_or_else(|| LedgerError::Damaged("it has no id".into()))?;
        let next_seq =
            connection.query_row("SELECT value FROM counters WHERE name = 'next_seq'", [], |row| row.get(0))?;
        let streams = outbox::open_streams(&connection)?;
        let undone = outbox::undone(&connection)?;
        let run = runs::read(&connection)?;
        let resolutions = outbox::resolutions(&connection)?;
        let is_new = next_seq == 1 && streams.is_empty() && schema::meta(&connection, BEGUN)?.is_none();
        Ok(Self {
            connection,
            directory: directory.to_owned(),
            id,
            is_new,
            first_own: next_seq,
            next_seq,
            streams,
            undone,
            recent: BTreeMap::new(),
            resolutions,
            run,
            keys: Keys::default(),
            _lock: lock,
        })
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Whether no run ever began with it.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// A run begins: what is in the tables by now is known not to be of this ledger. Later starts need not be told.
    pub fn begin(&mut self) -> Result<(), LedgerError> {
        if self.is_new {
            self.connection.execute("INSERT OR REPLACE INTO meta VALUES (?1, 'yes')", [BEGUN])?;
            self.is_new = false;
        }
        Ok(())
    }

    /// A name for a new stream: unique, since it carries the ledger's random id and a number that counts up.
    pub fn new_stream_name(&mut self, tier: Tier) -> Result<String, LedgerError> {
        // `query_row` ends after the first row and would not tell that a commit of its own failed.
        let transaction = self.connection.transaction()?;
        let number: i64 = transaction.query_row(
            "UPDATE counters SET value = value + 1 WHERE name = 'next_stream' RETURNING value - 1",
            [],
            |row| row.get(0),
        )?;
        transaction.commit()?;
        Ok(format!("{tier}-{}-{number}", self.id))
    }

    /// The stream that rows of a target are bound to, if one is open.
    pub fn stream(&self, tier: Tier) -> Option<&Stream> {
        self.streams.get(&tier)
    }

    /// The targets that have an open stream.
    pub fn tiers(&self) -> Vec<Tier> {
        self.streams.keys().copied().collect()
    }

    /// Records a stream that was made in the warehouse, before anything is bound to it.
    pub fn open_stream(&mut self, tier: Tier, name: &str, layout: Arc<Layout>) -> Result<(), LedgerError> {
        outbox::insert_stream(&self.connection, tier, name, &layout)?;
        self.streams.insert(tier, Stream { name: name.to_owned(), next_offset: 0, layout });
        Ok(())
    }

    /// The open streams, each with how many rows it has in the warehouse at least: all before its lowest undone entry.
    pub fn open_streams(&self) -> Result<Vec<(Stream, u64)>, LedgerError> {
        let sent = |stream: &Stream| outbox::lowest_undone(&self.connection, &stream.name);
        self.streams.values().map(|stream| Ok((stream.clone(), sent(stream)?.unwrap_or(stream.next_offset)))).collect()
    }

    /// Closes a stream that was finalized in the warehouse and has nothing undone. Its row count is kept: the next
    /// start compares it.
    pub fn close_stream(&mut self, tier: Tier) -> Result<(), LedgerError> {
        let Some(stream) = self.streams.get(&tier) else { return Ok(()) };
        let transaction = self.connection.transaction()?;
        outbox::close_stream(&transaction, tier, stream)?;
        transaction.commit()?;
        self.streams.remove(&tier);
        Ok(())
    }

    /// Of each target the last stream with rows that was closed, and how many rows it had.
    pub fn closed_streams(&self) -> Result<Vec<(String, u64)>, LedgerError> {
        outbox::closed_streams(&self.connection)
    }

    /// The random id that names of its streams carry.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether a stream that carries our id was made later than anything we know of: by a younger copy of this ledger.
    pub fn is_younger(&self, stream: &str) -> Result<bool, LedgerError> {
        let next: i64 =
            self.connection.query_row("SELECT value FROM counters WHERE name = 'next_stream'", [], |row| row.get(0))?;
        let number = stream.rsplit('-').next().and_then(|number| number.parse::<i64>().ok());
        Ok(number.is_some_and(|number| number >= next))
    }

    /// Where a source had got to.
    pub fn position(&self, source: &str) -> Result<Option<String>, LedgerError> {
        Ok(self
            .connection
            .query_row("SELECT position FROM sources WHERE key = ?1", [source], |row| row.get(0))
            .optional()?)
    }

    /// Keeps message ids and dedup keys from now on, those of earlier runs included: they are read into memory. Before
    /// this, or without, none is known. Dedup keys that are no longer to be kept are deleted.
    pub fn keep_keys(&mut self, retention: Retention) -> Result<(), LedgerError> {
        self.keys = Keys::read(&mut self.connection, retention).map_err(|error| error.at(&self.directory))?;
        Ok(())
    }

    /// Which of these message ids were committed before. `ran` is how long this process has run.
    pub fn known(&self, ids: &[Key], ran: Duration) -> Result<Vec<bool>, LedgerError> {
        self.keys.known(&self.connection, ids, ran)
    }

    /// What claimed these dedup keys, where something has.
    pub fn claims(&self, keys: &[Key], ran: Duration) -> Result<Vec<Option<Claim>>, LedgerError> {
        self.keys.claims(&self.connection, keys, ran)
    }

    /// Forgets all dedup keys: the source they belong to was read to its end.
    pub fn forget_claims(&mut self) -> Result<(), LedgerError> {
        let transaction = self.connection.transaction()?;
        keys::forget_claims(&transaction)?;
        transaction.commit()?;
        self.keys.read_claims_again(&self.connection)
    }

    /// Commits a micro-batch: binds the rows of every part to its target's stream, records the source position and what
    /// was seen, in one transaction. When this returns, the rows will reach the warehouse whatever happens to this process.
    pub fn commit(
        &mut self,
        parts: &[Part],
        originals: &Frames,
        position: Option<(&str, &str)>,
        seen: &Additions,
    ) -> Result<Seq, LedgerError> {
        self.commit_all(parts, originals, position, None, seen)
    }

    /// Commits what a replay came to: the silver rows of what was accepted, and the quarantine rows that are resolved once
    /// those are in the warehouse. In one transaction, so that no event is taken without being marked, nor twice.
    pub fn commit_replay(
        &mut self,
        silver: &[Part],
        resolution: &Resolution,
        seen: &Additions,
    ) -> Result<Seq, LedgerError> {
        self.commit_all(silver, &Frames::default(), None, Some(resolution), seen)
    }

    fn commit_all(
        &mut self,
        parts: &[Part],
        originals: &Frames,
        position: Option<(&str, &str)>,
        resolution: Option<&Resolution>,
        seen: &Additions,
    ) -> Result<Seq, LedgerError> {
        let seq = self.next_seq;
        let transaction = self.connection.transaction()?;
        let entries = outbox::bind(&transaction, &self.streams, seq, parts, originals, resolution)?;
        let changes = self.keys.write(&transaction, seen, seq)?;
        if let Some(record) = &seen.windows {
            windows::write(&transaction, record)?;
        }
        if let Some((key, position)) = position {
            transaction
                .prepare_cached("INSERT OR REPLACE INTO sources (key, position) VALUES (?1, ?2)")?
                .execute(params![key, position])?;
        }
        let counts = runs::count(&transaction, self.run.as_ref(), |counts| counts.add_batch(&seen.counts))?;
        transaction.prepare_cached("UPDATE counters SET value = ?1 WHERE name = 'next_seq'")?.execute([seq + 1])?;
        transaction.commit()?;
        self.count(counts);
        self.keys.take_over(changes);
        if let Some(resolution) = resolution {
            self.resolutions.insert(seq, Arc::new(resolution.clone()));
        }
        self.bound(seq, entries);
        Ok(seq)
    }

    /// Takes over counts of the run that are committed now.
    fn count(&mut self, counts: Option<Tally>) {
        if let (Some(run), Some(counts)) = (&mut self.run, counts) {
            run.counts = counts;
        }
    }

    fn bound(&mut self, seq: Seq, entries: Vec<Entry>) {
        self.next_seq = seq + 1;
        self.is_new = false;
        for entry in entries.iter().filter(|entry| entry.layout.upsert.is_none()) {
            if let Some(stream) = self.streams.get_mut(&entry.tier) {
                stream.next_offset = entry.first_offset + entry.layout.extent(&entry.rows);
            }
        }
        if !entries.is_empty() || self.resolutions.contains_key(&seq) {
            self.undone.insert(seq);
            self.recent.insert(seq, Arc::new(entries));
        }
    }

    /// Whether a commit was made by an earlier process, which may have sent it.
    pub const fn is_of_earlier_run(&self, seq: Seq) -> bool {
        seq < self.first_own
    }

    /// The lowest undone commit.
    pub fn first_undone(&self) -> Option<Seq> {
        self.undone.first().copied()
    }

    /// How many commits are undone.
    pub fn undone(&self) -> usize {
        self.undone.len()
    }

    /// The entries of an undone commit.
    pub fn entries(&self, seq: Seq) -> Result<Arc<Vec<Entry>>, LedgerError> {
        match self.recent.get(&seq) {
            Some(entries) => Ok(Arc::clone(entries)),
            None => Ok(Arc::new(outbox::entries(&self.connection, seq)?)),
        }
    }

    /// The original events of an undone commit, in the order of the micro-batch.
    pub fn originals(&self, seq: Seq) -> Result<Vec<Original<'static>>, LedgerError> {
        outbox::originals(&self.connection, seq)
    }

    /// What an undone commit resolves, if it is a replay's.
    pub fn resolution(&self, seq: Seq) -> Option<Arc<Resolution>> {
        self.resolutions.get(&seq).cloned()
    }

    /// Forgets a commit whose every entry is confirmed, and whose quarantine rows are marked.
    pub fn done(&mut self, seq: Seq) -> Result<(), LedgerError> {
        let transaction = self.connection.transaction()?;
        transaction.prepare_cached("DELETE FROM outbox WHERE seq = ?1")?.execute([seq])?;
        transaction.prepare_cached("DELETE FROM commits WHERE seq = ?1")?.execute([seq])?;
        keys::done(&transaction, seq)?;
        if self.resolutions.contains_key(&seq) {
            transaction.execute("DELETE FROM resolutions WHERE seq = ?1", [seq])?;
        }
        transaction.commit()?;
        self.undone.remove(&seq);
        self.resolutions.remove(&seq);
        self.recent.remove(&seq);
        Ok(())
    }

    /// Takes refused rows out of an entry, in one transaction: the entry is replaced, later undone entries of its
    /// stream move forward, and the refused events become a commit of their own for quarantine, whose number is
    /// returned. Their dedup keys are released.
    pub fn replace(&mut self, refused: &Refused<'_>) -> Result<Seq, LedgerError> {
        let seq = self.next_seq;
        let transaction = self.connection.transaction()?;
        let shifted = outbox::remove_rows(&transaction, refused.seq, refused.tier, refused.kept)?;
        self.keys.release(&transaction, refused.seq, refused.events)?;
        let entries = outbox::bind(&transaction, &self.streams, seq, refused.instead, refused.originals, None)?;
        let counts = runs::count(&transaction, self.run.as_ref(), |counts| counts.refuse(refused.counts))?;
        transaction.prepare_cached("UPDATE counters SET value = ?1 WHERE name = 'next_seq'")?.execute([seq + 1])?;
        transaction.commit()?;
        self.count(counts);
        self.shifted(refused.tier, shifted);
        self.bound(seq, entries);
        Ok(seq)
    }

    /// Takes refused rows out of the silver entry of a replay, in one transaction: the entry is replaced, later undone
    /// entries of its stream move forward, and the quarantine rows of the refused `events` stay as they are. Their dedup
    /// keys are released.
    pub fn withdraw(
        &mut self,
        seq: Seq,
        kept: &RowSet,
        events: &[u32],
        resolution: Resolution,
    ) -> Result<(), LedgerError> {
        let transaction = self.connection.transaction()?;
        self.keys.release(&transaction, seq, events)?;
        let shifted = outbox::remove_rows(&transaction, seq, Tier::Silver, kept)?;
        outbox::write_resolution(&transaction, seq, &resolution)?;
        transaction.commit()?;
        self.resolutions.insert(seq, Arc::new(resolution));
        self.shifted(Tier::Silver, shifted);
        Ok(())
    }

    fn shifted(&mut self, tier: Tier, by: u64) {
        if let Some(stream) = self.streams.get_mut(&tier) {
            stream.next_offset = stream.next_offset.saturating_sub(by);
        }
        // What is in memory is bound to offsets that are no longer true.
        self.recent.clear();
    }
}

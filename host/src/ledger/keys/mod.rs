//! What was seen before: message ids of what was committed, and the dedup keys that events have claimed.
//!
//! Keys are kept in buckets of a slice of their horizon, or of a million keys, and dropped bucket by bucket. Their age is
//! **running time**: it stands still while no worker runs, and is written with every commit.
//!
//! Invariants: what a commit adds is written in its transaction. The indexes in memory hold exactly what the tables hold.
//! A key is found at least for its horizon and at most an eighth longer.

mod index;
mod key;
mod log;
mod need;
mod pages;

pub use key::{Fingerprint, Key, Parts};
pub use need::KeyNeed;
pub(super) use pages::TABLES;

use super::{LedgerError, Seq};
use crate::telemetry::tally::Tally;
use crate::time::Micros;
use crate::window::Record;
use log::{KeyLog, Kind, Moment, Written};
use rusqlite::{Connection, OptionalExtension as _, params};
use std::time::Duration;

/// Bytes of an entry of a message id, and of a claim.
const ID: usize = Key::BYTES;
const CLAIM: usize = Key::BYTES + 2 * Fingerprint::BYTES + 4;

const IDS: Kind = Kind { name: "ids", horizon: None, until_acked: true };
const CLAIMS: Kind = Kind { name: "claims", horizon: None, until_acked: false };

/// What is kept, and for how long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// Message ids: so long after the last of their bucket was acknowledged. None of a source whose position tells.
    pub ids: Option<Duration>,
    /// Dedup keys.
    pub claims: Option<Horizon>,
}

/// How long dedup keys are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Horizon {
    /// For this running time.
    For(Duration),
    /// Until they are [forgotten](super::Ledger::forget_claims): a bounded source is read to its end.
    Run,
}

/// What the event that has a dedup key was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Claim {
    /// What the rules saw of it.
    pub content: Fingerprint,
    /// The row that its rule made of it.
    pub row: Fingerprint,
}

/// What a commit adds.
#[derive(Debug, Clone, Default)]
pub struct Additions {
    /// Ids of the messages in it, also of those that were known.
    pub ids: Vec<Key>,
    /// Keys that accepted events claim, with the index of the event.
    pub claims: Vec<(u32, Key, Claim)>,
    /// Keys of events that were rejected or ignored: nothing else is known of them.
    pub repeats: Vec<Key>,
    /// What changed of windows.
    pub windows: Option<Record>,
    /// What became of the events.
    pub counts: Tally,
    /// How long the process has run.
    pub ran: Duration,
    /// The last commit whose messages are acknowledged, with all before it.
    pub acked: Seq,
}

/// The keys of a ledger. Without [`keep`](Self::keep) there are none.
#[derive(Debug, Default)]
pub(super) struct Keys {
    ids: Option<KeyLog<ID>>,
    claims: Option<KeyLog<CLAIM>>,
    /// Running time when the ledger was opened.
    base: Micros,
}

/// What was written of them in a transaction.
#[derive(Debug)]
pub(super) struct Changes {
    ids: Option<Written>,
    claims: Option<Written>,
}

impl Keys {
    /// The keys that a ledger holds of earlier runs, read into memory. Claims that are no longer kept are deleted; ids are
    /// left: a run over a file may come between two over the subscription.
    pub(super) fn read(connection: &mut Connection, retention: Retention) -> Result<Self, LedgerError> {
        let transaction = connection.transaction()?;
        let base = transaction
            .query_row("SELECT value FROM counters WHERE name = 'running_time'", [], |row| row.get(0))
            .optional()?
            .unwrap_or_default();
        let ids = match retention.ids {
            Some(horizon) => Some(KeyLog::read(&transaction, Kind { horizon: Some(micros(horizon)), ..IDS })?),
            None => None,
        };
        let claims = match retention.claims {
            Some(Horizon::For(horizon)) => {
                Some(KeyLog::read(&transaction, Kind { horizon: Some(micros(horizon)), ..CLAIMS })?)
            }
            Some(Horizon::Run) => Some(KeyLog::read(&transaction, CLAIMS)?),
            None => KeyLog::<CLAIM>::delete_all(&transaction, CLAIMS).map(|()| None)?,
        };
        transaction.commit()?;
        Ok(Self { ids, claims, base })
    }

    fn now(&self, ran: Duration) -> Micros {
        self.base.saturating_add(micros(ran))
    }

    /// Which of these message ids are known.
    pub(super) fn known(&self, connection: &Connection, ids: &[Key], ran: Duration) -> Result<Vec<bool>, LedgerError> {
        let Some(log) = &self.ids else { return Ok(vec![false; ids.len()]) };
        Ok(log.find(connection, ids, self.now(ran))?.iter().map(Option::is_some).collect())
    }

    /// What claimed these keys.
    pub(super) fn claims(
        &self,
        connection: &Connection,
        keys: &[Key],
        ran: Duration,
    ) -> Result<Vec<Option<Claim>>, LedgerError> {
        let Some(log) = &self.claims else { return Ok(vec![None; keys.len()]) };
        let found = log.find(connection, keys, self.now(ran))?;
        Ok(found.into_iter().map(|found| found.map(|(_, entry)| decode(&entry).0)).collect())
    }

    /// Writes what commit `seq` adds, in its transaction.
    pub(super) fn write(
        &self,
        connection: &Connection,
        additions: &Additions,
        seq: Seq,
    ) -> Result<Changes, LedgerError> {
        let at = Moment { now: self.now(additions.ran), acked: additions.acked };
        let ids = self.ids.as_ref().map(|log| {
            let entries: Vec<[u8; ID]> = additions.ids.iter().map(|key| key.0).collect();
            log.write(connection, &entries, seq, at)
        });
        let claims = self.claims.as_ref().map(|log| {
            let repeat = Claim::default();
            let repeats = additions.repeats.iter().map(|key| (key, &repeat));
            let claims = additions.claims.iter().map(|(_, key, claim)| (key, claim));
            let entries: Vec<[u8; CLAIM]> = claims.chain(repeats).map(|(key, claim)| encode(key, claim, seq)).collect();
            log.write(connection, &entries, seq, at)
        });
        if self.claims.is_some() && !additions.claims.is_empty() {
            let claims: Vec<u8> = additions.claims.iter().flat_map(|(event, key, _)| claimed(*event, key)).collect();
            connection
                .prepare_cached("INSERT INTO commit_claims (seq, claims) VALUES (?1, ?2)")?
                .execute(params![seq, claims])?;
        }
        let changes = Changes { ids: ids.transpose()?, claims: claims.transpose()? };
        if self.ids.is_some() || self.claims.is_some() {
            connection
                .prepare_cached(
                    "INSERT INTO counters VALUES ('running_time', ?1)
                     ON CONFLICT DO UPDATE SET value = max(value, excluded.value)",
                )?
                .execute([at.now])?;
        }
        Ok(changes)
    }

    /// Takes over what was written in a transaction that is committed now.
    pub(super) fn take_over(&mut self, changes: Changes) {
        if let (Some(log), Some(written)) = (&mut self.ids, changes.ids) {
            log.take_over(written);
        }
        if let (Some(log), Some(written)) = (&mut self.claims, changes.claims) {
            log.take_over(written);
        }
    }

    /// Releases the keys that these events of commit `seq` claimed, in a transaction: they are not accepted after all.
    pub(super) fn release(&self, connection: &Connection, seq: Seq, events: &[u32]) -> Result<(), LedgerError> {
        let Some(log) = &self.claims else { return Ok(()) };
        let claims: Option<Vec<u8>> = connection
            .query_row("SELECT claims FROM commit_claims WHERE seq = ?1", [seq], |row| row.get(0))
            .optional()?;
        let claims = claims.unwrap_or_default();
        let (claims, _) = claims.as_chunks::<CLAIMED>();
        let keys: Vec<Key> =
            claims.iter().map(event_and_key).filter(|(event, _)| events.contains(event)).map(|(_, key)| key).collect();
        // Whatever their horizon says.
        for (place, entry) in log.find(connection, &keys, Micros::MIN)?.into_iter().flatten() {
            // Beyond its horizon another may have claimed it since.
            if decode(&entry).1 == short(seq) {
                KeyLog::overwrite(connection, place, &[0; CLAIM])?;
            }
        }
        Ok(())
    }

    /// Reads claims into memory again: others are there.
    pub(super) fn read_claims_again(&mut self, connection: &Connection) -> Result<(), LedgerError> {
        if self.claims.is_some() {
            self.claims = Some(KeyLog::read(connection, CLAIMS)?);
        }
        Ok(())
    }
}

/// Forgets all claims, in a transaction; they are then to be read again.
pub(super) fn forget_claims(connection: &Connection) -> Result<(), LedgerError> {
    KeyLog::<CLAIM>::delete_all(connection, CLAIMS)
}

/// Bytes of a claim as its commit notes it, to find it by the event.
const CLAIMED: usize = 4 + Key::BYTES;

fn claimed(event: u32, key: &Key) -> [u8; CLAIMED] {
    let mut bytes = [0; CLAIMED];
    let (first, rest) = bytes.split_at_mut(4);
    first.copy_from_slice(&event.to_le_bytes());
    rest.copy_from_slice(&key.0);
    bytes
}

fn event_and_key(bytes: &[u8; CLAIMED]) -> (u32, Key) {
    let (event, rest) = bytes.split_first_chunk::<4>().expect("it has its width");
    (u32::from_le_bytes(*event), Key(*rest.first_chunk().expect("it has its width")))
}

/// Forgets what a commit that is done has claimed: none of its rows can be refused any more.
pub(super) fn done(connection: &Connection, seq: Seq) -> Result<(), LedgerError> {
    connection.prepare_cached("DELETE FROM commit_claims WHERE seq = ?1")?.execute([seq])?;
    Ok(())
}

/// The low half of a commit's number tells claims of one key apart.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the low half is wanted")]
fn short(seq: Seq) -> [u8; 4] {
    (seq as u32).to_le_bytes()
}

fn encode(key: &Key, claim: &Claim, seq: Seq) -> [u8; CLAIM] {
    let mut entry = [0; CLAIM];
    let parts: [&[u8]; 4] = [&key.0, &claim.content.0, &claim.row.0, &short(seq)];
    let mut rest = entry.as_mut_slice();
    for part in parts {
        let (here, behind) = rest.split_at_mut(part.len());
        here.copy_from_slice(part);
        rest = behind;
    }
    entry
}

fn decode(entry: &[u8; CLAIM]) -> (Claim, [u8; 4]) {
    let (_, rest) = entry.split_first_chunk::<{ Key::BYTES }>().expect("an entry has its width");
    let (content, rest) = rest.split_first_chunk().expect("an entry has its width");
    let (row, rest) = rest.split_first_chunk().expect("an entry has its width");
    let seq = rest.first_chunk().expect("an entry has its width");
    (Claim { content: Fingerprint(*content), row: Fingerprint(*row) }, *seq)
}

fn micros(duration: Duration) -> Micros {
    Micros::try_from(duration.as_micros()).unwrap_or(Micros::MAX)
}

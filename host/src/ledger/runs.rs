//! Runs that replace tables: which one is under way, and how far it is.
//!
//! Invariants: there is one at most. It begins in the transaction that forgets positions and dedup keys of the one before, and
//! is dropped in the transaction that forgets its own with what it has promised to staging tables. Its counts are those of what
//! is committed.

use super::{Ledger, LedgerError, outbox};
use crate::reject_files::RejectFiles;
use crate::telemetry::tally::Tally;
use crate::warehouse::{Publication, Tier};
use rusqlite::{Connection, OptionalExtension as _, params};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;

pub(super) const TABLES: &str = "
CREATE TABLE IF NOT EXISTS replacing (
  id TEXT PRIMARY KEY NOT NULL,
  job TEXT NOT NULL,
  state TEXT NOT NULL,
  staged TEXT NOT NULL,
  counts TEXT NOT NULL
) WITHOUT ROWID;
";

/// A run that replaces tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Its id.
    pub id: String,
    /// What decides which rows it writes: of another job it is not gone on with.
    pub job: String,
    /// How far it is.
    pub state: RunState,
    /// What it has staged.
    pub staged: Staged,
    /// What became of the events so far.
    pub counts: Tally,
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// Its source is read.
    Reading,
    /// Too many events were rejected: it is kept to be looked at, and not gone on with.
    Failed,
    /// All is staged, and it is being published.
    Publishing,
    /// It is published, and what was staged may still be there.
    Published,
}

/// Where the rows of a run are until it is published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Staged {
    /// The tables.
    pub publication: Publication,
    /// The files of rejects, if it writes one.
    pub files: Option<RejectFiles>,
    /// The targets that are staged, by their names.
    tiers: BTreeSet<String>,
}

impl Staged {
    /// Nothing yet.
    pub fn new(run: &str) -> Self {
        let publication = Publication { run: run.to_owned(), tables: Vec::new() };
        Self { publication, files: None, tiers: BTreeSet::new() }
    }

    /// Adds a target.
    pub fn add(&mut self, tier: Tier) {
        self.tiers.insert(tier.as_str().to_owned());
    }

    /// The staging tables.
    pub fn tables(&self) -> Vec<String> {
        self.publication.tables.iter().map(|table| table.staging.clone()).collect()
    }

    /// The file of rejects until it is published.
    pub fn file(&self) -> Option<PathBuf> {
        self.files.as_ref().map(|files| files.staged(&self.publication.run))
    }
}

impl Ledger {
    /// The run that replaces tables, if one has begun and is not over.
    pub fn run(&self) -> Option<&Run> {
        self.run.as_ref()
    }

    /// Whether it is known of any source where it was read to.
    pub fn has_positions(&self) -> Result<bool, LedgerError> {
        Ok(self.connection.query_row("SELECT EXISTS (SELECT 1 FROM sources)", [], |row| row.get(0))?)
    }

    /// Begins a run: the source is read from its start, and nothing is known of its events.
    pub fn begin_run(&mut self, run: &Run) -> Result<(), LedgerError> {
        let transaction = self.connection.transaction()?;
        forget_source(&transaction)?;
        transaction.execute("DELETE FROM replacing", [])?;
        transaction.execute(
            "INSERT INTO replacing VALUES (?1, ?2, ?3, ?4, ?5)",
            params![run.id, run.job, text(&run.state), text(&run.staged), text(&run.counts)],
        )?;
        transaction.commit()?;
        self.run = Some(run.clone());
        self.keys.read_claims_again(&self.connection)
    }

    /// Says how far the run is.
    pub fn run_is(&mut self, state: RunState) -> Result<(), LedgerError> {
        let transaction = self.connection.transaction()?;
        transaction.execute("UPDATE replacing SET state = ?1", [text(&state)])?;
        if state == RunState::Published {
            super::keys::forget_claims(&transaction)?;
        }
        transaction.commit()?;
        if let Some(run) = &mut self.run {
            run.state = state;
        }
        if state == RunState::Published { self.keys.read_claims_again(&self.connection) } else { Ok(()) }
    }

    /// Forgets a run of which nothing is staged any more. Where its source was read to stays known.
    pub fn end_run(&mut self) -> Result<(), LedgerError> {
        let Some(run) = self.run.take() else { return Ok(()) };
        let transaction = self.connection.transaction()?;
        forget_streams(&transaction, &run)?;
        transaction.execute("DELETE FROM replacing", [])?;
        transaction.commit()?;
        Ok(())
    }

    /// Drops a run: what it has promised to staging tables, where its source was read to and what it has seen are forgotten.
    /// What it has promised to other tables stays promised.
    pub fn drop_run(&mut self) -> Result<(), LedgerError> {
        let Some(run) = &self.run else { return Ok(()) };
        let transaction = self.connection.transaction()?;
        for tier in &run.staged.tiers {
            transaction.execute("DELETE FROM outbox WHERE tier = ?1", [tier])?;
            transaction.execute("DELETE FROM streams WHERE tier = ?1", [tier])?;
        }
        forget_streams(&transaction, run)?;
        transaction.execute_batch(
            "DELETE FROM commits WHERE seq NOT IN (SELECT seq FROM outbox) AND seq NOT IN (SELECT seq FROM resolutions);
             DELETE FROM commit_claims WHERE seq NOT IN (SELECT seq FROM commits);
             DELETE FROM replacing;",
        )?;
        forget_source(&transaction)?;
        transaction.commit()?;
        self.run = None;
        self.recent.clear();
        self.streams = outbox::open_streams(&self.connection)?;
        self.undone = outbox::undone(&self.connection)?;
        self.keys.read_claims_again(&self.connection)
    }
}

/// Forgets the closed streams of tables that are gone: a warehouse need not know them any more, or say so.
fn forget_streams(connection: &Connection, run: &Run) -> Result<(), LedgerError> {
    for tier in &run.staged.tiers {
        connection.execute("DELETE FROM closed_streams WHERE tier = ?1", [tier])?;
    }
    Ok(())
}

fn forget_source(connection: &Connection) -> Result<(), LedgerError> {
    connection.execute("DELETE FROM sources", [])?;
    super::keys::forget_claims(connection)
}

/// The run that the ledger holds.
pub(super) fn read(connection: &Connection) -> Result<Option<Run>, LedgerError> {
    let row = connection
        .query_row("SELECT id, job, state, staged, counts FROM replacing", [], |row| {
            let text = |index| row.get::<_, String>(index);
            Ok((text(0)?, text(1)?, text(2)?, text(3)?, text(4)?))
        })
        .optional()?;
    let Some((id, job, state, staged, counts)) = row else { return Ok(None) };
    Ok(Some(Run { id, job, state: parse(&state)?, staged: parse(&staged)?, counts: parse(&counts)? }))
}

/// Writes the changed counts of the run, if there is one, in a transaction: they are to be taken over once it is committed.
pub(super) fn count(
    connection: &Connection,
    run: Option<&Run>,
    change: impl FnOnce(&mut Tally),
) -> Result<Option<Tally>, LedgerError> {
    let Some(run) = run else { return Ok(None) };
    let mut counts = run.counts.clone();
    change(&mut counts);
    connection.prepare_cached("UPDATE replacing SET counts = ?1")?.execute([text(&counts)])?;
    Ok(Some(counts))
}

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("it is plain data")
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, LedgerError> {
    serde_json::from_str(text).map_err(|error| LedgerError::Damaged(format!("the run that replaces tables: {error}")))
}

#[cfg(test)]
mod tests {
    use super::super::{Additions, Frames, Horizon, Part, Retention};
    use super::*;
    use crate::ledger::Key;
    use crate::telemetry::tally::CountedVersion;
    use crate::verdict::Rejection;
    use crate::warehouse::{Encoding, Layout, RowSet};
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    fn open(directory: &Path) -> Ledger {
        let mut ledger = Ledger::open(directory, "p", "w").unwrap();
        ledger.keep_keys(Retention { ids: None, claims: Some(Horizon::Run) }).unwrap();
        ledger
    }

    fn run(id: &str) -> Run {
        let mut staged = Staged::new(id);
        staged.add(Tier::Silver);
        Run { id: id.into(), job: "j".into(), state: RunState::Reading, staged, counts: Tally::default() }
    }

    fn part(tier: Tier) -> Part {
        let layout = Layout { table: "t".into(), columns: vec![], encoding: Encoding::Cells, upsert: None };
        let (mut rows, mut frames) = (RowSet::default(), Frames::default());
        rows.push(0, usize::MAX, |bytes| bytes.push(1)).unwrap();
        frames.push(&rows);
        Part { tier, layout: Arc::new(layout), rows: Arc::new(rows), frames }
    }

    /// Commits an event that was rejected, with rows for these targets.
    fn commit(ledger: &mut Ledger, tiers: &[Tier], key: u8) {
        for tier in tiers {
            if ledger.stream(*tier).is_none() {
                ledger.open_stream(*tier, tier.as_str(), part(*tier).layout).unwrap();
            }
        }
        let mut counts = Tally::default();
        counts.read(0);
        let rejection = Rejection { stage: "S".into(), code: None, reason: String::new() };
        counts.of(CountedVersion::new(Some("1"), true)).reject(&rejection);
        let seen = Additions { repeats: vec![Key::of("k", &[key])], counts, ..Additions::default() };
        let parts: Vec<Part> = tiers.iter().map(|tier| part(*tier)).collect();
        ledger.commit(&parts, &Frames::default(), Some(("file:f", "5")), &seen).unwrap();
    }

    fn knows(ledger: &Ledger, key: u8) -> bool {
        ledger.claims(&[Key::of("k", &[key])], Duration::ZERO).unwrap()[0].is_some()
    }

    #[test]
    fn a_run_begins_without_what_came_before_and_counts_over_all_its_starts() {
        let directory = tempfile::tempdir().unwrap();
        let mut ledger = open(directory.path());
        commit(&mut ledger, &[], 1);
        assert!(ledger.has_positions().unwrap() && knows(&ledger, 1) && ledger.run().is_none());
        ledger.begin_run(&run("1")).unwrap();
        assert!(!ledger.has_positions().unwrap() && !knows(&ledger, 1));
        commit(&mut ledger, &[Tier::Silver], 2);
        drop(ledger);
        let mut ledger = open(directory.path());
        commit(&mut ledger, &[Tier::Silver], 3);
        for _ in 0..2 {
            let counts = &ledger.run().unwrap().counts;
            assert_eq!((counts.read, counts.quarantined()), (2, 2));
            assert!(knows(&ledger, 2) && knows(&ledger, 3));
            ledger = open_again(ledger, directory.path());
        }
        ledger.run_is(RunState::Published).unwrap();
        assert!(!knows(&ledger, 2) && ledger.has_positions().unwrap());
        ledger = open_again(ledger, directory.path());
        assert_eq!(ledger.run().unwrap().state, RunState::Published);
        ledger.end_run().unwrap();
        assert!(open_again(ledger, directory.path()).run().is_none());
    }

    fn open_again(ledger: Ledger, directory: &Path) -> Ledger {
        drop(ledger);
        open(directory)
    }

    #[test]
    fn a_run_is_dropped_with_what_it_promised_to_staging_tables_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let mut ledger = open(directory.path());
        ledger.begin_run(&run("1")).unwrap();
        commit(&mut ledger, &[Tier::Silver], 1);
        commit(&mut ledger, &[Tier::Silver, Tier::Quarantine], 2);
        ledger.drop_run().unwrap();
        for _ in 0..2 {
            assert!(ledger.run().is_none() && !ledger.has_positions().unwrap() && !knows(&ledger, 2));
            assert_eq!((ledger.tiers(), ledger.undone()), (vec![Tier::Quarantine], 1));
            assert_eq!(ledger.entries(ledger.first_undone().unwrap()).unwrap()[0].tier, Tier::Quarantine);
            ledger = open_again(ledger, directory.path());
        }
        ledger.drop_run().unwrap();
    }

    #[test]
    fn a_ledger_of_the_format_before_has_no_run_and_gets_one() {
        let directory = tempfile::tempdir().unwrap();
        let ledger = open(directory.path());
        ledger
            .connection
            .execute_batch("DROP TABLE replacing; UPDATE meta SET value = '4' WHERE key = 'format'")
            .unwrap();
        let mut ledger = open_again(ledger, directory.path());
        assert!(ledger.run().is_none());
        ledger.begin_run(&run("1")).unwrap();
        ledger.connection.execute("UPDATE replacing SET staged = 'x'", []).unwrap();
        drop(ledger);
        let error = Ledger::open(directory.path(), "p", "w").err().unwrap().to_string();
        assert!(error.contains("damaged: the run that replaces tables"), "{error}");
    }
}

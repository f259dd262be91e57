//! `history.ndjson`: every change of a rule store and every component staged, one JSON object a line.
//!
//! `releases.toml` is what counts. A process that is killed after it has replaced that file has not written its
//! line, or only half of it: the next writer first cuts the half and writes the line from the releases themselves.

use super::lock::Lock;
use super::model::{Changed, Releases, Roles};
use super::store::{RuleStore, StoreError};
use crate::digest::Digest;
use crate::files;
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

/// A line of the history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The revision that the change made; for `stage` the one it met.
    pub revision: u64,
    /// When, RFC 3339.
    pub at: String,
    /// Who.
    pub by: String,
    /// What: `stage`, or a change as [`Changed::action`] names it.
    pub action: String,
    /// The event version; none for `stage`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<String>,
    /// The component that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// For `stage`: the component's rule, `name@version`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The roles of the event version after the change; none once it is retired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roles: Option<Roles>,
}

impl Record {
    /// The line of the change that made these releases; none for a store in which nothing was changed yet.
    pub(super) fn of(releases: &Releases) -> Option<Self> {
        let Changed { at, by, action, events, digest, why } = releases.change.clone()?;
        let roles = releases.release.get(&events).map(|release| release.validator.clone());
        let (events, revision) = (Some(events), releases.revision);
        Some(Self { revision, at, by, action, events, digest, rule: None, why, roles })
    }

    /// Every component that it names.
    pub fn digests(&self) -> impl Iterator<Item = Digest> {
        self.digest.into_iter().chain(self.roles.iter().flat_map(Roles::digests))
    }
}

impl RuleStore {
    /// The history, oldest first. A last line that is cut off is left out: the next change repairs it.
    pub fn history(&self) -> Result<Vec<Record>, StoreError> {
        let path = self.history_path();
        let content = self.if_there(&path)?.unwrap_or_default();
        let whole = &content[..whole_lines(&content)];
        let lines = whole.split_inclusive(|byte| *byte == b'\n').enumerate();
        lines
            .map(|(index, line)| {
                serde_json::from_slice(line).map_err(|error| StoreError::Damaged {
                    path: path.clone(),
                    what: format!("line {}: {error}", index + 1),
                })
            })
            .collect()
    }

    /// Cuts half a last line, and adds the line of the last change if it is missing.
    pub(super) fn complete_history(&self, lock: &Lock, now: &Releases) -> Result<(), StoreError> {
        let path = self.history_path();
        let content = self.if_there(&path)?.unwrap_or_default();
        let whole = whole_lines(&content);
        if whole < content.len() {
            tracing::warn!(path = %path.display(), "the last line of the history was cut off; it is written anew");
            let cut = || {
                let file = OpenOptions::new().write(true).open(&path)?;
                file.set_len(whole as u64)?;
                file.sync_all()
            };
            cut().map_err(StoreError::io(&path))?;
        }
        // A line that is damaged does not keep anybody, least of all a guard, from changing the releases.
        let mut lines = content[..whole].rsplit(|byte| *byte == b'\n');
        let newest = lines.find_map(|line| serde_json::from_slice::<Record>(line).ok());
        match Record::of(now) {
            Some(missing) if newest.is_none_or(|newest| newest.revision < missing.revision) => {
                self.record(lock, &missing)
            }
            _ => Ok(()),
        }
    }

    /// Adds the line of the change that made these releases.
    pub(super) fn record_change(&self, lock: &Lock, releases: &Releases) -> Result<(), StoreError> {
        Record::of(releases).map_or(Ok(()), |record| self.record(lock, &record))
    }

    /// Adds a line, durably. The lock is held by whoever adds one.
    pub(super) fn record(&self, _lock: &Lock, record: &Record) -> Result<(), StoreError> {
        let mut line = serde_json::to_vec(record).expect("a record is plain data");
        line.push(b'\n');
        let path = self.history_path();
        let append = || {
            let mut file = OpenOptions::new().append(true).create(true).open(&path)?;
            let is_new = file.metadata()?.len() == 0;
            file.write_all(&line)?;
            file.sync_all()?;
            if is_new { files::sync_directory(self.directory()) } else { Ok(()) }
        };
        append().map_err(StoreError::io(&path))
    }

    pub(super) fn history_path(&self) -> PathBuf {
        self.directory().join("history.ndjson")
    }
}

/// The length of the lines that are whole.
fn whole_lines(content: &[u8]) -> usize {
    content.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1)
}

//! Finding and removing what nobody needs.

use super::history::Record;
use super::lock::Lock;
use super::model::Releases;
use super::store::{RuleStore, StoreError, entries, is_temporary};
use super::worker::Worker;
use crate::digest::Digest;
use crate::time::{DAY, Micros, from_system};
use serde::Serialize;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// A worker's temporary file that is older than this is nobody's. (All others are written under the lock.)
const WRITING: Micros = 60_000_000;

/// Something that nobody needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Garbage {
    /// Where it lies.
    pub path: PathBuf,
    /// The component that it is or belongs to; none for what a killed process or a worker left behind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Its size, bytes.
    pub bytes: u64,
}

impl RuleStore {
    /// What neither the releases need, nor the last `keep` revisions of the history (what was staged meanwhile
    /// included), nor a worker that wrote within a day: components with their fixtures, files of workers, temporary
    /// files.
    pub fn garbage(&self, keep: u64, now: Micros) -> Result<Vec<Garbage>, StoreError> {
        let workers = self.workers()?;
        // It may need a component, and does not say which.
        let alive = |path: &Path| written(path).is_some_and(|written| now.saturating_sub(written) < DAY);
        if let Some((_, error)) = workers.unreadable.into_iter().find(|(path, _)| alive(path)) {
            return Err(error);
        }
        let (releases, history) = (self.releases()?, self.history()?);
        self.knows(&history, &releases, keep)?;
        let needed = needed(&releases, &history, &workers.known, keep, now);
        let mut garbage = Vec::new();
        let root = self.directory();
        // A component before its fixtures: one that is there always has them.
        for (directory, ending) in [("components", ".wasm"), ("fixtures", "")] {
            for path in entries(&root.join(directory))? {
                let digest = name(&path).strip_suffix(ending).and_then(|hex| hex.parse::<Digest>().ok());
                if digest.is_some_and(|digest| !needed.contains(&digest)) {
                    garbage.push(Garbage { bytes: size(&path)?, path, digest });
                }
            }
        }
        let mut directories = entries(&root.join("fixtures"))?;
        directories.retain(|path| path.is_dir());
        directories.extend([root.to_owned(), root.join("components")]);
        for directory in directories {
            garbage.extend(left_behind(&directory, is_temporary)?);
        }
        let old = |path: &Path| {
            let age = if is_temporary(path) { WRITING } else { DAY };
            written(path).is_some_and(|written| now.saturating_sub(written) > age)
        };
        garbage.extend(left_behind(&self.workers_path(), old)?);
        Ok(garbage)
    }

    /// Whether the history has every revision of the window: what was staged meanwhile stands beside them. Only the newest
    /// may be missing, which the next change adds.
    fn knows(&self, history: &[Record], releases: &Releases, keep: u64) -> Result<(), StoreError> {
        let first = releases.revision.saturating_sub(keep).saturating_add(1);
        let known: BTreeSet<u64> = history.iter().map(|record| record.revision).collect();
        let missing = (first..releases.revision).take(history.len() + 1).find(|revision| !known.contains(revision));
        let none = history.is_empty() && releases.revision > 0;
        match missing.or(none.then_some(releases.revision)) {
            None => Ok(()),
            Some(revision) => Err(StoreError::Damaged {
                path: self.history_path(),
                what: format!("it lacks revision {revision}, so what is needed cannot be told: put it back first"),
            }),
        }
    }

    /// Removes what nobody needs, and says what that was.
    pub fn collect(&self, keep: u64, now: Micros) -> Result<Vec<Garbage>, StoreError> {
        // Nothing is staged or promoted meanwhile, and what was staged before is in the history.
        let lock = Lock::take(self)?;
        let garbage = self.garbage(keep, now)?;
        self.complete_history(&lock, &self.releases()?)?;
        for Garbage { path, .. } in &garbage {
            let removed = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
            match removed {
                // A worker replaces and removes its own files.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => other.map_err(StoreError::io(path))?,
            }
        }
        Ok(garbage)
    }
}

/// Every component that somebody needs.
fn needed(
    releases: &Releases,
    history: &[Record],
    workers: &[(String, Worker)],
    keep: u64,
    now: Micros,
) -> BTreeSet<Digest> {
    let serving = releases.release.values().flat_map(|release| release.validator.digests());
    let recent = history.iter().filter(|record| record.revision.saturating_add(keep) > releases.revision);
    let alive = workers.iter().filter(|(_, worker)| worker.age(now).is_some_and(|age| age < DAY));
    serving.chain(recent.flat_map(Record::digests)).chain(alive.flat_map(|(_, worker)| worker.digests())).collect()
}

/// Files of a directory that are garbage although they are no component's.
fn left_behind(directory: &Path, is_garbage: impl Fn(&Path) -> bool) -> Result<Vec<Garbage>, StoreError> {
    let paths = entries(directory)?.into_iter().filter(|path| is_garbage(path));
    paths.map(|path| Ok(Garbage { bytes: size(&path)?, path, digest: None })).collect()
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// When a file was last written; none if it has gone.
fn written(path: &Path) -> Option<Micros> {
    path.metadata().and_then(|metadata| metadata.modified()).ok().map(from_system)
}

/// The size of a file, or of all files of a directory. What has gone meanwhile has none.
fn size(path: &Path) -> Result<u64, StoreError> {
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => entries(path)?.iter().map(|path| size(path)).sum(),
        Ok(metadata) => Ok(metadata.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(StoreError::Io { path: path.to_owned(), error }),
    }
}

#[cfg(test)]
mod tests;

//! `workers/*.json`: what the workers that read a store say of themselves.

use super::store::{RuleStore, StoreError, entries};
use super::worker::Worker;
use crate::files::{self, Prepared};
use std::path::{Path, PathBuf};

/// The workers of a store.
#[derive(Debug, Default)]
pub struct Workers {
    /// What they say, by id.
    pub known: Vec<(String, Worker)>,
    /// Files that cannot be read, and why: those of another version of the program, or somebody's own.
    pub unreadable: Vec<(PathBuf, StoreError)>,
}

impl RuleStore {
    /// Writes what a worker says of itself. `id` is the name of its file, without a path and `.json`.
    pub fn write_worker(&self, id: &str, worker: &Worker) -> Result<(), StoreError> {
        let directory = self.workers_path();
        files::ensure_directory(&directory).map_err(StoreError::io(&directory))?;
        worker.write(&directory.join(format!("{id}.json")))
    }

    /// What every worker last said.
    pub fn workers(&self) -> Result<Workers, StoreError> {
        let mut workers = Workers::default();
        for path in entries(&self.workers_path())? {
            let Some(id) = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".json")) else { continue };
            match Worker::read(&path) {
                Ok(worker) => workers.known.push((id.to_owned(), worker)),
                Err(error) => workers.unreadable.push((path, error)),
            }
        }
        Ok(workers)
    }

    pub(super) fn workers_path(&self) -> PathBuf {
        self.directory().join("workers")
    }
}

impl Worker {
    /// Replaces a file. What a worker said is not worth waiting for a disk: after a crash it says it again.
    pub fn write(&self, path: &Path) -> Result<(), StoreError> {
        let text = serde_json::to_vec(self).expect("what a worker says is plain data");
        Prepared::new(path, &text).and_then(Prepared::put).map_err(StoreError::io(path))
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, StoreError> {
        let text = files::read(path).map_err(StoreError::io(path))?;
        serde_json::from_slice(&text)
            .map_err(|error| StoreError::Damaged { path: path.to_owned(), what: error.to_string() })
    }
}

//! The directory of a rule store, read.

use super::lock;
use super::model::Releases;
use crate::digest::{Digest, Running};
use crate::files;
use crate::fixtures::{self, Fixture};
use crate::rules::load::{LoadError, read_bounded};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A rule store. Opening one reads nothing: what is there is read anew each time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleStore {
    directory: PathBuf,
    patience: Duration,
}

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file or directory of it cannot be read or written.
    #[error("{}: {error}", .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file of it does not hold what it must.
    #[error("{}: {what}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// There is no such directory.
    #[error("{}: there is no rule store here; `preflight rules stage` makes one", .path.display())]
    Missing {
        /// The directory.
        path: PathBuf,
    },
    /// Another process holds its lock.
    #[error("{}: another process is changing the store, and has not ended within {} s: try again", .path.display(), .waited.as_secs())]
    Busy {
        /// The lock.
        path: PathBuf,
        /// How long it was waited for.
        waited: Duration,
    },
}

impl StoreError {
    /// For `map_err`: the path that an I/O error is about.
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::Io { path, error }
    }

    /// Whether we may read the store and not write it.
    pub fn is_read_only(&self) -> bool {
        let Self::Io { error, .. } = self else { return false };
        matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
    }
}

impl RuleStore {
    /// The store in a directory.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), patience: lock::PATIENCE }
    }

    /// The same for a worker, which has no time to wait for whoever else is changing the store: it tries again later.
    #[must_use]
    pub fn for_worker(self) -> Self {
        Self { patience: Duration::ZERO, ..self }
    }

    /// How long another's change is waited for.
    pub(super) fn patience(&self) -> Duration {
        self.patience
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The releases of now. A directory without `releases.toml` has none, at revision 0.
    pub fn releases(&self) -> Result<Releases, StoreError> {
        let path = self.releases_path();
        let damaged = |what| StoreError::Damaged { path: path.clone(), what };
        let text = match self.if_there(&path)? {
            Some(text) => text,
            // Not so where the history cannot be read either: then this is told by whoever needs the history.
            None => match self.history().unwrap_or_default().into_iter().map(|record| record.revision).max() {
                None | Some(0) => return Ok(Releases::default()),
                // The first change may have been made since it was looked for.
                Some(newest) => self.if_there(&path)?.ok_or_else(|| {
                    damaged(format!(
                        "it is gone, and the history has revision {newest}: put the file back; to begin anew, move the history away too"
                    ))
                })?,
            },
        };
        let text = String::from_utf8(text).map_err(|error| damaged(error.to_string()))?;
        let releases: Releases = toml::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        let end = end_mark(releases.revision);
        // What is cut off at the end of a table is TOML too, and would serve fewer event versions.
        if text.lines().next_back() != Some(&end) {
            return Err(damaged(format!("it is half written: its last line is not {end:?}")));
        }
        match releases.problem() {
            None => Ok(releases),
            Some(problem) => Err(damaged(problem)),
        }
    }

    /// The bytes of a component, which have its digest.
    pub fn component(&self, digest: &Digest, limit: u64) -> Result<Vec<u8>, StoreError> {
        let path = self.component_path(digest);
        files::must_be_regular(&path).map_err(StoreError::io(&path))?;
        let bytes = match read_bounded(&path, limit) {
            Ok(bytes) => bytes,
            Err(LoadError::Read(error)) => return Err(StoreError::Io { path, error }),
            Err(error) => return Err(StoreError::Damaged { path, what: error.to_string() }),
        };
        same(path, digest, &Digest::of(&bytes))?;
        Ok(bytes)
    }

    /// Whether a component is there, with its digest.
    pub(super) fn verify(&self, digest: &Digest) -> Result<(), StoreError> {
        let path = self.component_path(digest);
        let found = content_digest(&path).map_err(StoreError::io(&path))?;
        same(path, digest, &found)
    }

    /// The fixtures of a component, of all its files in order of name. There is at least one.
    pub fn fixtures(&self, digest: &Digest) -> Result<Vec<Fixture>, StoreError> {
        let directory = self.fixtures_path(digest);
        let entries = std::fs::read_dir(&directory).map_err(StoreError::io(&directory))?;
        let mut files = Vec::new();
        for entry in entries {
            let path = entry.map_err(StoreError::io(&directory))?.path();
            if path.extension().is_some_and(|extension| extension == "ndjson") {
                files.push(path);
            }
        }
        files.sort();
        let mut all = Vec::new();
        for path in files {
            files::must_be_regular(&path).map_err(StoreError::io(&path))?;
            let text = std::fs::read_to_string(&path).map_err(StoreError::io(&path))?;
            let parsed = fixtures::parse(&text).map_err(|what| StoreError::Damaged { path, what })?;
            all.extend(parsed);
        }
        if all.is_empty() {
            let what = "it holds no fixtures (*.ndjson): stage the component again".to_owned();
            return Err(StoreError::Damaged { path: directory, what });
        }
        Ok(all)
    }

    /// Every component that is staged, in order of digest. Their content is not looked at.
    pub fn staged(&self) -> Result<Vec<Digest>, StoreError> {
        self.must_be_there()?;
        let mut staged: Vec<Digest> = entries(&self.directory.join("components"))?
            .iter()
            .filter_map(|path| path.file_name()?.to_str()?.strip_suffix(".wasm")?.parse().ok())
            .collect();
        staged.sort_unstable();
        Ok(staged)
    }

    /// The content of a file of the store; none if the store has no such file.
    pub(super) fn if_there(&self, path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
        match files::read(path) {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.must_be_there().map(|()| None),
            Err(error) => Err(StoreError::Io { path: path.to_owned(), error }),
        }
    }

    /// Whether there is such a directory.
    pub(super) fn must_be_there(&self) -> Result<(), StoreError> {
        match self.directory.metadata() {
            Ok(metadata) if metadata.is_dir() => Ok(()),
            Ok(_) => Err(StoreError::Missing { path: self.directory.clone() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(StoreError::Missing { path: self.directory.clone() })
            }
            Err(error) => Err(StoreError::Io { path: self.directory.clone(), error }),
        }
    }

    pub(super) fn releases_path(&self) -> PathBuf {
        self.directory.join("releases.toml")
    }

    pub(super) fn component_path(&self, digest: &Digest) -> PathBuf {
        self.directory.join("components").join(format!("{}.wasm", digest.hex()))
    }

    pub(super) fn fixtures_path(&self, digest: &Digest) -> PathBuf {
        self.directory.join("fixtures").join(digest.hex())
    }
}

/// The last line of `releases.toml`.
pub(super) fn end_mark(revision: u64) -> String {
    format!("# end: revision = {revision}")
}

/// What a directory holds, in order of name. One that is not there holds nothing.
pub(super) fn entries(directory: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StoreError::Io { path: directory.to_owned(), error }),
    };
    let paths: io::Result<Vec<PathBuf>> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.map_err(StoreError::io(directory))?;
    paths.sort_unstable();
    Ok(paths)
}

/// Whether a file is not in its place yet.
pub(super) fn is_temporary(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(crate::files::TEMPORARY))
}

fn content_digest(path: &Path) -> io::Result<Digest> {
    let mut file = File::open(path)?;
    let (mut running, mut buffer) = (Running::default(), vec![0; 64 << 10]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(running.digest()),
            read => running.update(&buffer[..read]),
        }
    }
}

fn same(path: PathBuf, digest: &Digest, found: &Digest) -> Result<(), StoreError> {
    if found == digest {
        return Ok(());
    }
    Err(StoreError::Damaged { path, what: format!("its content has another digest, {found}: stage it again") })
}

//! The directory of a rule store.

use super::model::Releases;
use crate::digest::Digest;
use crate::fixtures::{self, Fixture};
use crate::rules::load::{LoadError, read_bounded};
use std::io;
use std::path::{Path, PathBuf};

/// A rule store. Opening one reads nothing: what is there is read anew each time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleStore {
    directory: PathBuf,
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
}

impl RuleStore {
    /// The store in a directory.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The releases of now. A directory without `releases.toml` has none, at revision 0.
    pub fn releases(&self) -> Result<Releases, StoreError> {
        let path = self.directory.join("releases.toml");
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.directory.is_dir() => {
                return Ok(Releases::default());
            }
            Err(error) => return Err(StoreError::Io { path, error }),
        };
        toml::from_str(&text).map_err(|error| StoreError::Damaged { path, what: error.to_string() })
    }

    /// The bytes of a component, which have its digest.
    pub fn component(&self, digest: &Digest, limit: u64) -> Result<Vec<u8>, StoreError> {
        let path = self.directory.join("components").join(format!("{}.wasm", digest.hex()));
        let bytes = match read_bounded(&path, limit) {
            Ok(bytes) => bytes,
            Err(LoadError::Read(error)) => return Err(StoreError::Io { path, error }),
            Err(error) => return Err(StoreError::Damaged { path, what: error.to_string() }),
        };
        let found = Digest::of(&bytes);
        if found == *digest {
            return Ok(bytes);
        }
        Err(StoreError::Damaged { path, what: format!("its content has another digest, {found}: copy it again") })
    }

    /// The fixtures of a component, of all its files in order of name.
    pub fn fixtures(&self, digest: &Digest) -> Result<Vec<Fixture>, StoreError> {
        let directory = self.directory.join("fixtures").join(digest.hex());
        let io = |path: &Path, error| StoreError::Io { path: path.to_owned(), error };
        let entries = std::fs::read_dir(&directory).map_err(|error| io(&directory, error))?;
        let mut files = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| io(&directory, error))?.path();
            if path.extension().is_some_and(|extension| extension == "ndjson") {
                files.push(path);
            }
        }
        files.sort();
        let mut all = Vec::new();
        for path in files {
            let text = std::fs::read_to_string(&path).map_err(|error| io(&path, error))?;
            let parsed = fixtures::parse(&text).map_err(|what| StoreError::Damaged { path, what })?;
            all.extend(parsed);
        }
        Ok(all)
    }
}

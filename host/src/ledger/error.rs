//! What is wrong with a ledger.

use super::schema;
use crate::warehouse::sqlite::may_pass;
use std::path::{Path, PathBuf};

/// What is wrong with a ledger.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// Another process holds it.
    #[error("the ledger {} is held by another worker{}: stop it first, or give this one its own [ledger] path", .path.display(), .holder)]
    Locked {
        /// The ledger.
        path: PathBuf,
        /// ` (process 123)` where the lock says so.
        holder: String,
    },
    /// It belongs to something else.
    #[error("the ledger {} belongs to {what} {theirs:?}, not to {ours:?}{advice}", .path.display())]
    Foreign {
        /// The ledger.
        path: PathBuf,
        /// `pipeline` or `warehouse`.
        what: &'static str,
        /// Whose it is.
        theirs: String,
        /// Who asked.
        ours: String,
        /// What to do.
        advice: &'static str,
    },
    /// Made by a version that this one cannot read.
    #[error(
        "the ledger {} has format {found}; this version reads format {}. Run it with the version of preflight that made \
         it, or delete it and run with --new-ledger: the source is then read from its start, on top of the rows there are",
        .path.display(), schema::FORMAT
    )]
    Format {
        /// The ledger.
        path: PathBuf,
        /// Its format.
        found: String,
    },
    /// Its directory cannot be used.
    #[error("cannot use the ledger {}: {error}", .path.display())]
    Io {
        /// The ledger.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The disk is full, or fails, or another program holds the database: may pass.
    #[error("the ledger{} cannot be written: {error}", shown(.path.as_deref()))]
    Retryable {
        /// The ledger, where it is known.
        path: Option<PathBuf>,
        /// Why.
        error: rusqlite::Error,
    },
    /// Its database fails.
    #[error("the ledger{} cannot be used: {error}", shown(.path.as_deref()))]
    Database {
        /// The ledger, where it is known.
        path: Option<PathBuf>,
        /// Why.
        error: rusqlite::Error,
    },
    /// What it holds cannot be read.
    #[error(
        "the ledger is damaged: {0}. Restore it and the database from backups of the same time, or delete it and run with \
         --new-ledger: the source is then read from its start, on top of the rows there are"
    )]
    Damaged(String),
}

impl From<rusqlite::Error> for LedgerError {
    fn from(error: rusqlite::Error) -> Self {
        let path = None;
        if may_pass(&error) { Self::Retryable { path, error } } else { Self::Database { path, error } }
    }
}

impl LedgerError {
    /// The error with the ledger it is about.
    #[must_use]
    pub fn at(mut self, directory: &Path) -> Self {
        if let Self::Retryable { path, .. } | Self::Database { path, .. } = &mut self {
            path.get_or_insert_with(|| directory.to_owned());
        }
        self
    }
}

fn shown(path: Option<&Path>) -> String {
    path.map_or_else(String::new, |path| format!(" {}", path.display()))
}

//! Why a run, a replay or a rebuild failed.

use super::bound::TooManyRejects;
use super::deliver::DeliverError;
use super::evaluate::EvaluateError;
use super::rebuild::RebuildError;
use super::replay::ReplayError;
use super::windows::{Ahead, RestoreError};
use crate::config::ConfigError;
use crate::ledger::LedgerError;
use crate::reject_files::RejectFileError;
use crate::source::{OpenError, SourceError};
use crate::warehouse::WarehouseError;
use std::io;
use std::time::Duration;

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Something in the pipeline file, its rules or tables.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The tables have rows that a new ledger knows nothing of.
    #[error(
        "the ledger {ledger} is new, but table {table} has rows already: rows of this run would come on top of them. \
         If that is wanted, say --new-ledger; if the ledger was moved, set [ledger] path"
    )]
    NewLedger {
        /// The ledger's directory.
        ledger: String,
        /// The first table with rows.
        table: String,
    },
    /// A run is not over that replaced tables, and the pipeline appends by now.
    #[error(
        "silver.write is \"append\", but run {run}, which replaces tables, is not over or has failed. Write \"replace\" again and let \
         one end, or drop it with --restart: the source is then read from its start, on top of the rows there are"
    )]
    Unfinished {
        /// Its id.
        run: String,
    },
    /// More events were rejected than may be.
    #[error(transparent)]
    TooManyRejects(#[from] TooManyRejects),
    /// A file of rejects cannot be written.
    #[error(transparent)]
    RejectFile(#[from] RejectFileError),
    /// Nothing was ever committed to the ledger, so nothing can be replayed or rebuilt with it.
    #[error(
        "the ledger {ledger} is new: run the pipeline first (with --new-ledger if its ledger was lost), or, if the ledger was \
         moved, set [ledger] path"
    )]
    NothingRun {
        /// The ledger's directory.
        ledger: String,
    },
    /// A replay failed.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// A rebuild failed.
    #[error(transparent)]
    Rebuild(#[from] RebuildError),
    /// The worker was asked, and failed.
    #[error("the worker says: {0}")]
    Worker(String),
    /// A request to a worker cannot be made.
    #[error("the inbox of the ledger cannot be used: {0}")]
    Inbox(io::Error),
    /// Who holds the ledger does not look at its requests.
    #[error(
        "the ledger is held{holder}, but the request in {inbox} was not taken within {seconds} s: that is a worker which still \
         starts, is stopped or may not read its inbox, or another command. Try again later, or as the worker's user"
    )]
    NotTaken {
        /// The inbox.
        inbox: String,
        /// Who holds it, where that is known.
        holder: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// The open windows of the ledger cannot be gone on with.
    #[error(transparent)]
    Windows(#[from] RestoreError),
    /// A commit of windows failed before.
    #[error(transparent)]
    Ahead(#[from] Ahead),
    /// A source with an end has more windows open than may be, and none closes before that.
    #[error(
        "{limit} windows are open (limits.open_windows), and those of this source close at its end: raise the limit if there is \
         memory for more, or read less at once. What was read is in the ledger, the next run goes on from there"
    )]
    TooManyWindows {
        /// How many may be.
        limit: u64,
    },
    /// The ledger cannot be used.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The warehouse cannot be used.
    #[error(transparent)]
    Warehouse(#[from] WarehouseError),
    /// The source failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Judging failed.
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
    /// Delivery failed.
    #[error(transparent)]
    Deliver(#[from] DeliverError),
    /// It was asked to stop, and what it had taken was not finished in time.
    #[error(
        "asked to stop, and what was taken was not finished within {0:?}: messages were given back, and what the ledger \
         holds is sent by the next run"
    )]
    NotDrained(Duration),
    /// It was asked to stop at once.
    #[error("stopped at once: messages were given back, and what the ledger holds is sent by the next run")]
    Hurried,
    /// A thread cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

impl From<OpenError> for RunError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Source(error) => error.into(),
            OpenError::Ledger(error) => error.into(),
        }
    }
}

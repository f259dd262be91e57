//! The events to compare on.

use crate::config::{BatchConfig, SourceConfig};
use crate::event::Event;
use crate::source::{self, Batch, OpenError, SourceError};
use crate::time::SystemClock;
use std::borrow::Cow;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What a SQLite database begins with (sqlite.org/fileformat.html, 1.3).
const SQLITE: &[u8; 16] = b"SQLite format 3\0";

/// Where events come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A file or standard input, as a pipeline reads it.
    Source(SourceConfig),
}

/// Why events cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The file cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The file breaks off.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The thread that reads cannot be started.
    #[error("cannot start reading: {0}")]
    Thread(std::io::Error),
    /// A database where a file of events is wanted.
    #[error("{} is a SQLite database: say which table to read with --table", .0.display())]
    Database(PathBuf),
}

/// Micro-batches.
pub type Batches = Box<dyn Iterator<Item = Result<Read, InputError>>>;

/// What was read for a micro-batch.
#[derive(Debug, Default)]
pub struct Read {
    /// Events to judge.
    pub events: Vec<Event>,
    /// For each event of which there is not the whole, why.
    pub not_whole: Vec<Cow<'static, str>>,
}

impl Input {
    /// Opens it. Payloads above `max_payload` bytes are refused as in a pipeline.
    pub fn open(&self, batch: BatchConfig, max_payload: usize) -> Result<Batches, InputError> {
        match self {
            Self::Source(source) => read(source, batch, max_payload),
        }
    }
}

fn read(source: &SourceConfig, batch: BatchConfig, max_payload: usize) -> Result<Batches, InputError> {
    if let SourceConfig::File { path, .. } = source
        && is_database(path)
    {
        return Err(InputError::Database(path.clone()));
    }
    let settings = source::Settings { source: source.clone(), batch, max_payload, clock: Arc::new(SystemClock) };
    let opened = source::open(settings, |_| Ok(None))?;
    let mut running = opened.start(Arc::new(AtomicBool::new(false))).map_err(InputError::Thread)?;
    Ok(Box::new(std::iter::from_fn(move || running.batches.blocking_recv().map(|batch| Ok(whole(batch?))))))
}

/// What a pipeline would quarantine unjudged is not judged here either.
fn whole(batch: Batch) -> Read {
    let mut read = Read::default();
    for event in batch.events {
        match event.refused {
            None => read.events.push(event),
            Some(rejection) => read.not_whole.push(rejection.stage),
        }
    }
    read
}

/// Whether a file is a database. What cannot be read is left to the reader of events; a pipe is not touched.
fn is_database(path: &Path) -> bool {
    let begins = || {
        let mut beginning = [0; SQLITE.len()];
        File::open(path)?.read_exact(&mut beginning)?;
        Ok::<_, std::io::Error>(beginning == *SQLITE)
    };
    path.is_file() && begins().unwrap_or(false)
}

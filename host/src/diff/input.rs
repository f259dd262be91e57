//! The events to compare on.

use crate::config::{BatchConfig, SourceConfig};
use crate::event::Event;
use crate::running_time::RunningTime;
use crate::source::{self, Batch, OpenError, SourceError};
use crate::stop::Stop;
use crate::time::SystemClock;
use crate::warehouse::events::{EventsError, Filter, Page, RowId, StoredEvents as _};
use crate::warehouse::sqlite::{EventTable, table_name};
use crate::warehouse::{Sqlite, WarehouseError};
use std::borrow::Cow;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a SQLite database begins with (sqlite.org/fileformat.html, 1.3).
const SQLITE: &[u8; 16] = b"SQLite format 3\0";

/// Where events come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A file or standard input, as a pipeline reads it.
    Source(SourceConfig),
    /// A quarantine or bronze table.
    Table {
        /// The SQLite database.
        path: PathBuf,
        /// The table.
        table: String,
    },
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
    /// The database cannot be read.
    #[error(transparent)]
    Warehouse(#[from] WarehouseError),
    /// The table cannot be read.
    #[error(transparent)]
    Table(#[from] EventsError),
    /// A table without events.
    #[error(
        "table {0} holds no events: it is neither quarantine (no column `raw_payload`) nor bronze (no column `data`)"
    )]
    NotEvents(String),
}

impl InputError {
    /// Whether the input was named well and something else fails, which may pass: a locked database, a failing disk.
    pub fn is_of_run_time(&self) -> bool {
        match self {
            Self::Thread(_) => true,
            Self::Warehouse(error) | Self::Table(EventsError::Warehouse(error)) => error.retryable,
            Self::Open(_) | Self::Source(_) | Self::Database(_) | Self::Table(_) | Self::NotEvents(_) => false,
        }
    }
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

impl Read {
    /// What a pipeline would quarantine unjudged is not judged here either.
    fn note(&mut self, event: Event) {
        let unjudged = event.document().err().map(|rejection| rejection.stage.clone());
        match unjudged {
            None => self.events.push(event),
            Some(stage) => self.not_whole.push(stage),
        }
    }
}

impl Input {
    /// Opens it. Payloads above `max_payload` bytes are refused as in a pipeline.
    pub fn open(&self, batch: BatchConfig, max_payload: usize) -> Result<Batches, InputError> {
        match self {
            Self::Source(source) => read(source, batch, max_payload),
            Self::Table { path, table } => {
                let table = open_table(path, table)?;
                Ok(Box::new(Rows { after: RowId::MIN, until: table.newest()?, table, batch }))
            }
        }
    }
}

fn read(source: &SourceConfig, batch: BatchConfig, max_payload: usize) -> Result<Batches, InputError> {
    if let SourceConfig::File { path, .. } = source
        && is_database(path)
    {
        return Err(InputError::Database(path.clone()));
    }
    let settings = source::Settings {
        is_recorded: false,
        is_replacing: false,
        source: source.clone(),
        batch,
        max_payload,
        clock: Arc::new(SystemClock),
        running_time: RunningTime::start(),
    };
    // A file or standard input, whose opening waits for nothing.
    let opened = futures::executor::block_on(source::open(settings, |_| Ok(None)))?;
    let mut running = opened.start(Stop::default()).map_err(InputError::Thread)?;
    Ok(Box::new(std::iter::from_fn(move || running.batches.blocking_recv().map(|batch| Ok(whole(batch?))))))
}

fn whole(batch: Batch) -> Read {
    let mut read = Read::default();
    for event in batch.events {
        read.note(event);
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

/// A quarantine table is told from a bronze one by the column of its payload.
fn open_table(path: &Path, name: &str) -> Result<EventTable, InputError> {
    let tables = Sqlite::inspect(path)?.unwrap_or_default();
    let columns = tables.into_iter().find(|(table, _)| table.eq_ignore_ascii_case(table_name(name)));
    let Some((_, columns)) = columns else {
        // It says why: there is no such table, or it is a view.
        return Ok(EventTable::bronze(path, name)?);
    };
    let has = |column: &str| columns.iter().any(|known| known.name.eq_ignore_ascii_case(column));
    if has("raw_payload") {
        Ok(EventTable::quarantine(path, name)?)
    } else if has("data") {
        Ok(EventTable::bronze(path, name)?)
    } else {
        Err(InputError::NotEvents(name.to_owned()))
    }
}

/// The rows that a table has when it is opened, those of replayed events too.
struct Rows {
    table: EventTable,
    after: RowId,
    until: RowId,
    batch: BatchConfig,
}

impl Iterator for Rows {
    type Item = Result<Read, InputError>;

    fn next(&mut self) -> Option<Self::Item> {
        let all = Filter { resolved: true, ..Filter::default() };
        let page =
            Page { after: self.after, until: self.until, rows: self.batch.max_events, bytes: self.batch.max_bytes };
        let rows = match self.table.page(&all, page) {
            Ok(rows) => rows,
            Err(error) => return Some(Err(error.into())),
        };
        self.after = rows.last()?.id;
        let mut read = Read::default();
        for row in rows {
            match row.lacks {
                None => read.note(row.event),
                Some(lack) => read.not_whole.push(lack.as_str().into()),
            }
        }
        Some(Ok(read))
    }
}

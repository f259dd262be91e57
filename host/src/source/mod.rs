//! Where events come from. A source runs on its own and sends micro-batches through a bounded channel, so a slow warehouse
//! stops the reading and memory stays bounded.

mod buffer;
mod csv;
mod current;
mod decode;
mod envelope;
mod file;
mod files;
mod json_array;
mod leases;
mod lines;
mod look;
mod oversize;
mod position;
pub mod pubsub;
mod stream;

pub use leases::Leases;
pub use pubsub::Messages;

use crate::config::{BatchConfig, Format, SourceConfig};
use crate::event::Event;
use crate::running_time::RunningTime;
use crate::stop::Stop;
use crate::time::Clock;
use futures::future::BoxFuture;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Events that are judged and committed together.
#[derive(Debug)]
pub struct Batch {
    /// The events, in the order of the source.
    pub events: Vec<Event>,
    /// Where the source stands behind them: a key and the position, for the ledger.
    pub position: Option<(String, String)>,
    /// Our hold on the messages they came in, until all that becomes of them is durable.
    pub leases: Leases,
}

/// Why a source ended early.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// It cannot be opened or read.
    #[error("cannot read {}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// There are no files that could be read.
    #[error("{0}")]
    Files(String),
    /// What the ledger says of it cannot be read.
    #[error("the ledger's position of {} cannot be read: {error}", .path.display())]
    Position {
        /// The file.
        path: PathBuf,
        /// Why.
        error: String,
    },
    /// The subscription cannot be pulled from.
    #[error("subscription {subscription}: {error}")]
    Pubsub {
        /// Its full name.
        subscription: String,
        /// Why.
        error: String,
        /// Whether it may pass by itself.
        retryable: bool,
    },
}

/// How far a source is, for progress.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes read, those passed over because the ledger has them included.
    pub bytes: AtomicU64,
    /// Bytes there are, 0 if that is not known.
    pub total: AtomicU64,
    /// What is counted of messages, where events come in messages.
    pub messages: Option<Arc<Messages>>,
}

/// What a source needs to know.
#[derive(Clone)]
pub struct Settings {
    /// Where it reads.
    pub source: SourceConfig,
    /// When a micro-batch is full.
    pub batch: BatchConfig,
    /// Payloads above this are not read whole, bytes.
    pub max_payload: usize,
    /// Whether events must say when they were published: the watermark follows that.
    pub is_recorded: bool,
    /// Whether a file that is read on must be the one that was begun: what was read of another was not written for good yet.
    pub is_replacing: bool,
    /// Processing time.
    pub clock: Arc<dyn Clock>,
    /// Stands still while the source cannot be reached.
    pub running_time: RunningTime,
}

/// Opens a source where the ledger says it stands. `position` is asked with the source's key.
pub async fn open(
    settings: Settings,
    position: impl Fn(&str) -> Result<Option<String>, crate::ledger::LedgerError>,
) -> Result<Opened, OpenError> {
    let kind = match &settings.source {
        SourceConfig::File { path, .. } => Kind::Reader(file::Reader::files(path, &settings, position)?),
        SourceConfig::Stdin { .. } => Kind::Reader(file::Reader::stdin(&settings)?),
        SourceConfig::Pubsub(config) => Kind::Subscription(pubsub::Subscription::open(config).await?),
    };
    Ok(Opened { kind, settings })
}

/// The files that a path means, in the order in which they are read.
pub fn files(path: &Path) -> Result<Vec<PathBuf>, SourceError> {
    look::paths(path)
}

/// Whether there is something at `path` that can be read, and whether the headers of CSV files are what they should be.
pub fn look_for(path: &Path, format: &Format, max_payload: usize) -> Result<(), SourceError> {
    look::look_for(path, format, max_payload)
}

/// Why a source cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The source's own failure.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The ledger could not be asked.
    #[error(transparent)]
    Ledger(#[from] crate::ledger::LedgerError),
}

/// A source that was opened and has not started.
pub struct Opened {
    kind: Kind,
    settings: Settings,
}

#[expect(clippy::large_enum_variant, reason = "there is one of them")]
enum Kind {
    /// A file or a stream of bytes, read on a thread.
    Reader(file::Reader),
    /// A subscription.
    Subscription(pubsub::Subscription),
}

/// A source that runs. Dropping `batches` ends it.
pub struct Running {
    /// Its micro-batches; after an error nothing more comes.
    pub batches: mpsc::Receiver<Result<Batch, SourceError>>,
    /// How far it is.
    pub progress: Arc<Progress>,
    /// How long it may take until what a process that died has held comes again.
    pub comes_again_within: Duration,
    /// Why it gets nothing at present, none while it is well.
    pub trouble: Option<watch::Receiver<Option<String>>>,
    /// What it still has to do when nothing is held any more, such as giving messages back.
    pub ending: Option<BoxFuture<'static, ()>>,
}

impl Opened {
    /// Starts reading. When it is asked to stop the source ends with what it has read.
    pub fn start(self, stop: Stop) -> std::io::Result<Running> {
        let Self { kind, settings } = self;
        let mut reader = match kind {
            Kind::Reader(reader) => reader,
            Kind::Subscription(subscription) => return subscription.start(settings, stop),
        };
        // Two: one is judged while the next is read.
        let (sender, batches) = mpsc::channel(2);
        let progress = Arc::new(Progress::default());
        let shown = Arc::clone(&progress);
        thread::Builder::new().name("source".into()).spawn(move || {
            loop {
                let batch = reader.next_batch(&settings, &shown, &stop).transpose();
                let Some(batch) = batch else { return };
                let failed = batch.is_err();
                if sender.blocking_send(batch).is_err() || failed {
                    return;
                }
            }
        })?;
        Ok(Running { batches, progress, comes_again_within: Duration::ZERO, trouble: None, ending: None })
    }
}

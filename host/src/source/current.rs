//! The input that is read, in micro-batches.

use super::csv::Header;
use super::decode::Input;
use super::files::Found;
use super::position::{self, FilePosition};
use super::stream::{Common, Start, Stream};
use super::{Batch, Leases, Settings, SourceError};
use crate::config::Format;
use crate::digest::Running;
use crate::event::Event;
use crate::record::Columns;
use crate::stop::Stop;
use crate::time::{Micros, from_system};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often a reader that waits for input looks whether it should stop.
const LOOK: Duration = Duration::from_millis(100);

/// A regular file whose turn has not come.
pub(super) struct Pending {
    pub found: Found,
    /// What the ledger knows it by, and where it was read to.
    pub key: String,
    pub known: Option<FilePosition>,
    pub columns: Option<Arc<Columns>>,
}

/// The input that is read.
pub(super) struct Current {
    input: Input,
    path: PathBuf,
    stream: Stream,
    ids: String,
    publish_time: Micros,
    /// Known for regular files, which the ledger remembers.
    remembered: Option<Remembered>,
    /// Why no more can be read, until it is reported: what was read before comes first.
    failed: Option<io::Error>,
    /// Whether no more can be made of what was read either.
    is_broken: bool,
}

struct Remembered {
    key: String,
    generation: u32,
}

impl Current {
    /// Something that can be read once. Its message ids carry the time of the start, so that two runs differ.
    pub fn once(input: Input, path: &Path, settings: &Settings) -> Self {
        let now = settings.clock.now();
        let header = match settings.source.format() {
            Format::Csv(options) => Some(Header::of(options)),
            _ => None,
        };
        Self {
            input,
            path: path.to_owned(),
            stream: Stream::new(settings, header.as_ref(), Start::default()),
            ids: format!("{}-{now}", settings.source.name()),
            publish_time: now,
            remembered: None,
            failed: None,
            is_broken: false,
        }
    }

    /// Opens a file where the ledger says it was read to.
    pub fn open(pending: Pending, header: Option<&Header>, settings: &Settings, stop: &Stop) -> io::Result<Self> {
        let Pending { found, key, known, columns } = pending;
        let mut input = Input::open(&found.path)?;
        let mut generation = 1;
        let mut start = Start { digest: Some(Running::default()), ..Start::default() };
        if let Some(known) = known {
            generation = known.generation;
            if let Some(digest) = position::goes_on(&mut input, &known, stop)? {
                if columns.is_none() && header.is_some_and(|header| header.options().header) {
                    // It changes while it is looked at: what follows must not pass for a header.
                    return Err(io::Error::other("its header cannot be read"));
                }
                let FilePosition { offset, line, open_line, .. } = known;
                start = Start { offset, line, open_line, digest: Some(digest), columns };
            } else if settings.is_replacing {
                let what = "it was replaced since it was read for this run: --restart drops that and begins anew";
                return Err(io::Error::other(what));
            } else {
                tracing::info!(path = %found.path.display(), "the file was replaced since it was read; reading it as new");
                generation = generation.saturating_add(1);
                input.rewind()?;
            }
        }
        // Message ids stay unique when a path is used again for another file.
        let ids = if generation == 1 { found.name } else { format!("{}#{generation}", found.name) };
        Ok(Self {
            publish_time: input.metadata().modified().map_or(0, from_system),
            input,
            path: found.path,
            stream: Stream::new(settings, header, start),
            ids,
            remembered: Some(Remembered { key, generation }),
            failed: None,
            is_broken: false,
        })
    }

    /// The next micro-batch; none at its end, or when asked to stop. `shows` is told how far it is, and how much there is.
    pub fn next_batch(
        &mut self,
        settings: &Settings,
        stop: &Stop,
        shows: impl Fn(u64, u64),
    ) -> Result<Option<Batch>, SourceError> {
        if self.remembered.is_some() && stop.requested() {
            return Ok(None);
        }
        let mut events: Vec<Event> = Vec::new();
        let mut weight = 0;
        let mut oldest: Option<Instant> = None;
        let mut received_time = settings.clock.now();
        while events.len() < settings.batch.max_events && weight < settings.batch.max_bytes && !self.is_broken {
            let common = Common { ids: &self.ids, publish_time: self.publish_time, received_time };
            match self.stream.next(common) {
                Ok(Some(event)) => {
                    weight += event.weight();
                    events.push(event);
                    oldest.get_or_insert_with(Instant::now);
                    continue;
                }
                Ok(None) => {}
                Err(error) => {
                    self.failed.get_or_insert(error);
                    self.is_broken = true;
                }
            }
            if self.stream.has_ended() || self.failed.is_some() {
                break;
            }
            if stop.requested() {
                if self.remembered.is_some() {
                    break;
                }
                self.stream.end();
                continue;
            }
            let wait = oldest.map_or(LOOK, |since| settings.batch.max_age.saturating_sub(since.elapsed()));
            if oldest.is_some() && wait.is_zero() {
                break;
            }
            self.input.wait(wait.min(LOOK));
            match self.stream.fill(&mut self.input) {
                Ok(_) => {
                    self.show(&shows);
                    if events.is_empty() {
                        received_time = settings.clock.now();
                    }
                }
                // Nothing came; or somebody else reads from the same pipe, and was faster.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => {
                    self.failed = Some(error);
                    if self.remembered.is_none() {
                        self.stream.end();
                    }
                }
            }
        }
        if events.is_empty() {
            return match self.failed.take() {
                Some(error) => Err(SourceError::Io { path: self.path.clone(), error }),
                None => Ok(None),
            };
        }
        Ok(Some(Batch { events, position: self.position(), leases: Leases::default() }))
    }

    /// Whether all of it was read, and how many bytes those are in its file.
    pub fn ended(&mut self) -> Option<u64> {
        self.stream.has_ended().then(|| self.input.progress().0)
    }

    fn show(&mut self, shows: impl Fn(u64, u64)) {
        if self.remembered.is_none() {
            shows(self.stream.taken(), 0);
        } else {
            let (at, size) = self.input.progress();
            shows(at, size);
        }
    }

    /// The position behind the last event given out.
    fn position(&self) -> Option<(String, String)> {
        let Remembered { key, generation } = self.remembered.as_ref()?;
        let (offset, line, digest, open_line) = self.stream.stands()?;
        let (digest, generation) = (digest.to_string(), *generation);
        let position = FilePosition { offset, line, digest, generation, open_line };
        Some((key.clone(), serde_json::to_string(&position).expect("a position is plain data")))
    }
}

//! Reading files or standard input in micro-batches.

use super::csv::{Header, columns_of_all};
use super::decode::Input;
use super::files::{self, Found};
use super::position::{self, FilePosition};
use super::stream::{Common, Start, Stream};
use super::{Batch, Leases, OpenError, Progress, Settings, SourceError};
use crate::config::Format;
use crate::digest::Running;
use crate::event::Event;
use crate::ledger::LedgerError;
use crate::record::Columns;
use crate::stop::Stop;
use crate::time::{Micros, from_system};
use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often a reader that waits for input looks whether it should stop.
const LOOK: Duration = Duration::from_millis(100);

/// Reads events from one input after another.
pub(super) struct Reader {
    files: VecDeque<Pending>,
    current: Option<Current>,
    header: Option<Header>,
    /// Bytes of files that were read to their end, and of all there are.
    done: u64,
    total: u64,
}

/// A regular file whose turn has not come.
struct Pending {
    found: Found,
    /// What the ledger knows it by, and where it was read to.
    key: String,
    known: Option<FilePosition>,
    columns: Option<Arc<Columns>>,
}

/// The input that is read.
struct Current {
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

impl Reader {
    /// Finds the files that a path means, and where the ledger says they were read to. They are opened when it is their turn;
    /// but the headers of all of them are looked at now.
    pub fn files(
        path: &Path,
        settings: &Settings,
        position: impl Fn(&str) -> Result<Option<String>, LedgerError>,
    ) -> Result<Self, OpenError> {
        let found = find(path)?;
        if is_stream(&found) {
            let path = &found[0].path;
            let input = Input::open(path).map_err(io_error(path))?;
            return Ok(Self::stream(input, path, settings));
        }
        let Looked { header, columns } = look(&found, settings.source.format(), settings.max_payload)?;
        let mut pending = VecDeque::with_capacity(found.len());
        for (found, columns) in found.into_iter().zip(columns) {
            let path = &found.path;
            let key = format!("file:{}", path.canonicalize().map_err(io_error(path))?.display());
            let known = match position(&key)? {
                Some(text) => Some(
                    serde_json::from_str(&text)
                        .map_err(|error| SourceError::Position { path: path.clone(), error: error.to_string() })?,
                ),
                None => None,
            };
            pending.push_back(Pending { found, key, known, columns });
        }
        let total = pending.iter().map(|pending| pending.found.size).sum();
        Ok(Self { files: pending, current: None, header, done: 0, total })
    }

    /// Opens standard input.
    pub fn stdin(settings: &Settings) -> Result<Self, SourceError> {
        let path = Path::new("standard input");
        let input = io::stdin().as_fd().try_clone_to_owned().and_then(|input| Input::of(input.into()));
        Ok(Self::stream(input.map_err(io_error(path))?, path, settings))
    }

    /// Something that can be read once. Its message ids carry the time of the start, so that two runs differ.
    fn stream(input: Input, path: &Path, settings: &Settings) -> Self {
        let now = settings.clock.now();
        let header = match settings.source.format() {
            Format::Csv(options) => Some(Header::of(options)),
            _ => None,
        };
        let current = Current {
            input,
            path: path.to_owned(),
            stream: Stream::new(settings, header.as_ref(), Start::default()),
            ids: format!("{}-{now}", settings.source.name()),
            publish_time: now,
            remembered: None,
            failed: None,
            is_broken: false,
        };
        Self { files: VecDeque::new(), current: Some(current), header, done: 0, total: 0 }
    }

    /// The next micro-batch; none at the end of the last input, or when asked to stop. It has events of one input only. A
    /// file is read on from its position the next time; what was taken from a pipe is nowhere else, so all of it is given out
    /// first, also before an error.
    pub fn next_batch(
        &mut self,
        settings: &Settings,
        progress: &Progress,
        stop: &Stop,
    ) -> Result<Option<Batch>, SourceError> {
        loop {
            let Some(current) = &mut self.current else {
                let Some(pending) = self.files.pop_front().filter(|_| !stop.requested()) else { return Ok(None) };
                let path = pending.found.path.clone();
                let opened = Current::open(pending, self.header.as_ref(), settings);
                self.current = Some(opened.map_err(io_error(&path))?);
                continue;
            };
            let (done, total) = (self.done, self.total);
            let shows = |bytes: u64, size: u64| {
                progress.bytes.store(done + bytes, Ordering::Relaxed);
                // Files may grow while they are read.
                progress.total.store(if size == 0 { 0 } else { total.max(done + size) }, Ordering::Relaxed);
            };
            if let Some(batch) = current.next_batch(settings, stop, shows)? {
                return Ok(Some(batch));
            }
            if !current.stream.has_ended() {
                return Ok(None);
            }
            self.done += current.input.progress().0;
            self.current = None;
        }
    }
}

/// Finds the files that a path means, and refuses those whose headers differ from what they should be.
pub(super) fn look_for(path: &Path, format: &Format, max_payload: usize) -> Result<(), SourceError> {
    let found = find(path)?;
    if !is_stream(&found) {
        look(&found, format, max_payload)?;
    }
    Ok(())
}

pub(super) fn paths(path: &Path) -> Result<Vec<PathBuf>, SourceError> {
    Ok(find(path)?.into_iter().map(|found| found.path).collect())
}

fn find(path: &Path) -> Result<Vec<Found>, SourceError> {
    files::find(path).map_err(|error| SourceError::Files(error.to_string()))
}

/// Whether it is a pipe or a terminal: nothing to remember, and nothing to look at beforehand.
fn is_stream(found: &[Found]) -> bool {
    matches!(found, [Found { path, .. }] if !path.metadata().is_ok_and(|metadata| metadata.is_file()))
}

/// What headers have to say, and the columns of each file.
struct Looked {
    header: Option<Header>,
    columns: Vec<Option<Arc<Columns>>>,
}

/// Looks at the headers, if the format has them.
fn look(found: &[Found], format: &Format, max_payload: usize) -> Result<Looked, SourceError> {
    let Format::Csv(options) = format else { return Ok(Looked { header: None, columns: vec![None; found.len()] }) };
    let mut header = Header::of(options);
    let paths = found.iter().map(|found| found.path.as_path());
    let columns =
        columns_of_all(paths, &mut header, max_payload).map_err(|(path, error)| SourceError::Io { path, error })?;
    Ok(Looked { header: Some(header), columns })
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> SourceError {
    let path = path.to_owned();
    |error| SourceError::Io { path, error }
}

impl Current {
    /// Opens a file where the ledger says it was read to.
    fn open(pending: Pending, header: Option<&Header>, settings: &Settings) -> io::Result<Self> {
        let Pending { found, key, known, columns } = pending;
        let mut input = Input::open(&found.path)?;
        let mut generation = 1;
        let mut start = Start { digest: Some(Running::default()), ..Start::default() };
        if let Some(known) = known {
            generation = known.generation;
            if let Some(digest) = position::goes_on(&mut input, &known)? {
                let FilePosition { offset, line, open_line, .. } = known;
                start = Start { offset, line, open_line, digest: Some(digest), columns };
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
    fn next_batch(
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{BatchConfig, SourceConfig};
    use crate::rules::convert::REASON;
    use crate::running_time::RunningTime;
    use crate::time::SystemClock;
    use std::io::Write as _;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    fn settings(format: Format) -> Settings {
        Settings {
            source: SourceConfig::Stdin { format },
            batch: BatchConfig { max_events: 2, max_bytes: 1 << 20, max_age: Duration::from_secs(5) },
            max_payload: 1 << 20,
            is_recorded: false,
            clock: Arc::new(SystemClock),
            running_time: RunningTime::start(),
        }
    }

    /// A reader of what is written to the other end.
    fn reader(settings: &Settings) -> (Reader, UnixStream, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let input: OwnedFd = ours.try_clone().unwrap().into();
        let input = Input::of(input.into()).unwrap();
        (Reader::stream(input, Path::new("a socket"), settings), ours, theirs)
    }

    fn next(reader: &mut Reader, settings: &Settings) -> Result<Option<Vec<Event>>, SourceError> {
        let batch = reader.next_batch(settings, &Progress::default(), &Stop::default());
        batch.map(|batch| batch.map(|batch| batch.events))
    }

    /// What had been taken from the socket before the error is nowhere else, and was dropped.
    #[test]
    fn a_read_error_comes_after_the_events_that_were_read() {
        let settings = settings(Format::Lines);
        let (mut reader, mut ours, mut theirs) = reader(&settings);
        theirs.write_all(b"one\ntwo\nthree\nfo").unwrap();
        // Closed before it has read this, so the connection is reset.
        ours.write_all(b"unread").unwrap();
        drop(theirs);
        let mut payloads = Vec::new();
        let error = loop {
            match next(&mut reader, &settings) {
                Ok(events) => payloads.extend(events.expect("the error").into_iter().map(|event| event.payload)),
                Err(error) => break error,
            }
        };
        assert_eq!(payloads, ["one", "two", "three", "fo"]);
        assert!(error.to_string().contains("a socket"), "{error}");
    }

    #[test]
    fn the_reason_that_a_line_is_no_envelope_is_bounded() {
        let settings = settings(Format::Envelope);
        let (mut reader, _ours, mut theirs) = reader(&settings);
        let name = "n".repeat(50_000);
        writeln!(theirs, "{{\"{name}\":1}}\n{{\"attributes\":{{\"{name}\":\"\",\"{name}\":\"\"}}}}").unwrap();
        drop(theirs);
        let events = next(&mut reader, &settings).unwrap().unwrap();
        let reasons: Vec<String> = events.into_iter().map(|event| event.refused().unwrap().reason.clone()).collect();
        assert_eq!(reasons.len(), 2);
        for reason in reasons {
            assert!(reason.len() <= REASON && reason.contains("nnn"), "{} bytes", reason.len());
        }
    }
}

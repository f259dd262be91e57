//! Reading a file or standard input in micro-batches.

use super::lines::{Line, Splitter};
use super::oversize::{refuse_above, too_large};
use super::position::{self, FilePosition, Found};
use super::{Batch, Leases, OpenError, Progress, Settings, SourceError, envelope};
use crate::config::Format;
use crate::digest::Running;
use crate::event::Event;
use crate::ledger::LedgerError;
use crate::rules::convert::REASON;
use crate::stop::Stop;
use crate::time::{Micros, from_system};
use crate::verdict::{Rejection, clip, stage};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::OFlags;
use std::fs::File;
use std::io::{self, Seek};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often a reader that waits for input looks whether it should stop.
const LOOK: Duration = Duration::from_millis(100);

/// Reads events from a file descriptor.
pub(super) struct Reader {
    input: File,
    path: PathBuf,
    splitter: Splitter,
    publish_time: Micros,
    ids: String,
    line: u64,
    /// Known for regular files, which the ledger remembers.
    remembered: Option<Remembered>,
    ended: bool,
    /// Why no more can be read, until it is reported: what was read before comes first.
    failed: Option<io::Error>,
}

struct Remembered {
    key: String,
    offset: u64,
    generation: u32,
    open_line: bool,
}

impl Reader {
    /// Opens a file where the ledger says it was read to.
    pub fn file(
        path: &Path,
        settings: &Settings,
        position: impl FnOnce(&str) -> Result<Option<String>, LedgerError>,
    ) -> Result<Self, OpenError> {
        let io = |error| OpenError::Source(SourceError::Io { path: path.to_owned(), error });
        // Without blocking: a named pipe that nobody writes to yet would keep the run from being asked to stop.
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let mut input = File::options().read(true).custom_flags(flags).open(path).map_err(io)?;
        let metadata = input.metadata().map_err(io)?;
        if metadata.is_dir() {
            return Err(io(io::ErrorKind::IsADirectory.into()));
        }
        let file_name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        if !metadata.is_file() {
            // A pipe or a terminal: nothing to remember.
            return Ok(Self::stream(input, path, settings));
        }
        let canonical = path.canonicalize().map_err(io)?;
        let key = format!("file:{}", canonical.display());
        let (start, digest) = match position(&key)? {
            None => (None, Running::default()),
            Some(text) => {
                let known: FilePosition = serde_json::from_str(&text).map_err(|error| {
                    OpenError::Source(SourceError::Position { path: path.to_owned(), error: error.to_string() })
                })?;
                match position::compare(&mut input, known).map_err(io)? {
                    Found::Same(known, digest) => (Some(known), digest),
                    Found::Replaced { generation } => {
                        tracing::info!(path = %path.display(), "the file was replaced since it was read; reading it as new");
                        let start =
                            FilePosition { offset: 0, line: 0, digest: String::new(), generation, open_line: false };
                        (Some(start), Running::default())
                    }
                }
            }
        };
        let generation = start.as_ref().map_or(1, |start| start.generation);
        // Message ids stay unique when a path is used again for another file.
        let ids = if generation == 1 { file_name.clone() } else { format!("{file_name}#{generation}") };
        Ok(Self {
            input,
            path: path.to_owned(),
            splitter: Splitter::new(line_limit(settings), Some(digest)),
            publish_time: metadata.modified().map_or(0, from_system),
            ids,
            line: start.as_ref().map_or(0, |start| start.line),
            remembered: Some(Remembered {
                key,
                offset: start.as_ref().map_or(0, |start| start.offset),
                generation,
                open_line: start.is_some_and(|start| start.open_line),
            }),
            ended: false,
            failed: None,
        })
    }

    /// Opens standard input.
    pub fn stdin(settings: &Settings) -> Result<Self, SourceError> {
        let path = PathBuf::from("standard input");
        match io::stdin().as_fd().try_clone_to_owned() {
            Ok(input) => Ok(Self::stream(input.into(), &path, settings)),
            Err(error) => Err(SourceError::Io { path, error }),
        }
    }

    /// Something that can be read once. Its message ids carry the time of the start, so that two runs differ.
    fn stream(input: File, path: &Path, settings: &Settings) -> Self {
        let now = settings.clock.now();
        Self {
            input,
            path: path.to_owned(),
            ids: format!("{}-{now}", settings.source.name()),
            splitter: Splitter::new(line_limit(settings), None),
            publish_time: now,
            line: 0,
            remembered: None,
            ended: false,
            failed: None,
        }
    }

    /// The next micro-batch; none at the end of the input, or when asked to stop. A file is read on from its position the
    /// next time; what was taken from a pipe is nowhere else, so all of it is given out first, also before an error.
    pub fn next_batch(
        &mut self,
        settings: &Settings,
        progress: &Progress,
        stop: &Stop,
    ) -> Result<Option<Batch>, SourceError> {
        if self.remembered.is_some() && stop.requested() {
            return Ok(None);
        }
        let mut events: Vec<Event> = Vec::new();
        let mut weight = 0;
        let mut oldest: Option<Instant> = None;
        let mut received_time = settings.clock.now();
        while events.len() < settings.batch.max_events && weight < settings.batch.max_bytes {
            let line = match self.splitter.next() {
                Some(line) => line,
                None if self.ended => match self.splitter.last() {
                    Some(line) => line,
                    None => break,
                },
                None if self.failed.is_some() => break,
                None => {
                    if stop.requested() {
                        self.ended = self.remembered.is_none();
                        if self.ended {
                            continue;
                        }
                        break;
                    }
                    let wait = oldest.map_or(LOOK, |since| settings.batch.max_age.saturating_sub(since.elapsed()));
                    if oldest.is_some() && wait.is_zero() {
                        break;
                    }
                    match self.read(wait.min(LOOK)) {
                        Ok(false) => {}
                        Ok(true) => {
                            self.show(progress);
                            if events.is_empty() {
                                received_time = settings.clock.now();
                            }
                        }
                        Err(error) => {
                            self.ended = self.remembered.is_none();
                            self.failed = Some(error);
                        }
                    }
                    continue;
                }
            };
            if let Some(event) = self.event(settings, line, received_time) {
                weight += event.weight();
                events.push(event);
                oldest.get_or_insert_with(Instant::now);
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

    /// Waits for input and reads once, noting the end. False if nothing came.
    fn read(&mut self, wait: Duration) -> io::Result<bool> {
        if !self.ready(wait)? {
            return Ok(false);
        }
        self.ended = match self.splitter.fill(&mut self.input) {
            Ok(more) => !more,
            // Somebody else reads from the same pipe, and was faster.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            Err(error) => return Err(error),
        };
        Ok(true)
    }

    fn ready(&self, wait: Duration) -> io::Result<bool> {
        let mut fds = [PollFd::new(&self.input, PollFlags::IN)];
        let wait = rustix::event::Timespec::try_from(wait).map_err(io::Error::other)?;
        match poll(&mut fds, Some(&wait)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn show(&mut self, progress: &Progress) {
        if self.remembered.is_none() {
            progress.bytes.store(self.splitter.taken(), Ordering::Relaxed);
        } else {
            let at = self.input.stream_position().unwrap_or_default();
            let total = self.input.metadata().map_or(0, |metadata| metadata.len());
            progress.bytes.store(at, Ordering::Relaxed);
            progress.total.store(total.max(at), Ordering::Relaxed);
        }
    }

    /// The position behind the last line given out.
    fn position(&self) -> Option<(String, String)> {
        let remembered = self.remembered.as_ref()?;
        let position = FilePosition {
            offset: remembered.offset,
            line: self.line,
            digest: self.splitter.digest()?.to_string(),
            generation: remembered.generation,
            open_line: remembered.open_line,
        };
        Some((remembered.key.clone(), serde_json::to_string(&position).expect("a position is plain data")))
    }

    /// An event from a line. None for what ends a line judged before the file grew: a newline, perhaps with a carriage
    /// return before it, or as yet only that.
    fn event(&mut self, settings: &Settings, line: Line, received_time: Micros) -> Option<Event> {
        if let Some(remembered) = &mut self.remembered {
            remembered.offset += line.consumed;
            let was_open = std::mem::replace(&mut remembered.open_line, !line.terminated);
            if was_open && matches!(line.bytes.as_ref(), b"" | b"\r") {
                return None;
            }
        }
        self.line += 1;
        let message_id = format!("{}:{}", self.ids, self.line);
        let mut event = Event {
            payload: line.bytes,
            attributes: Vec::new(),
            message_id,
            publish_time: self.publish_time,
            received_time,
            ordering_key: None,
            delivery_attempt: None,
            refused: None,
        };
        if let Some((size, digest)) = line.too_long {
            event.refused = Some(too_large(size, line_limit(settings), &digest.to_string(), event.payload.len()));
            return Some(event);
        }
        if settings.source.format() == Format::Envelope {
            let publish_time = (!settings.is_recorded).then_some(event.publish_time);
            match envelope::parse(&event.payload, &event.message_id, publish_time, received_time) {
                Ok(parsed) => event = parsed,
                Err(reason) => {
                    // It may name a field of the line, which may be nearly all of the line.
                    let reason = clip(&reason, REASON);
                    event.refused = Some(Rejection::by_host(stage::PARSE_ENVELOPE, "envelope", reason));
                    return Some(event);
                }
            }
        }
        refuse_above(settings.max_payload, &mut event);
        Some(event)
    }
}

/// The longest line that is held whole. An envelope is longer than its payload: base64, escapes, attributes.
fn line_limit(settings: &Settings) -> usize {
    match settings.source.format() {
        Format::Lines => settings.max_payload,
        Format::Envelope => settings.max_payload.saturating_mul(2).saturating_add(1 << 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{BatchConfig, SourceConfig};
    use crate::running_time::RunningTime;
    use crate::time::SystemClock;
    use std::io::Write as _;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;

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
        (Reader::stream(input.into(), Path::new("a socket"), settings), ours, theirs)
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
        let reasons: Vec<String> = events.into_iter().map(|event| event.refused.unwrap().reason).collect();
        assert_eq!(reasons.len(), 2);
        for reason in reasons {
            assert!(reason.len() <= REASON && reason.contains("nnn"), "{} bytes", reason.len());
        }
    }
}

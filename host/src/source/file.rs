//! Reading files or standard input in micro-batches.

use super::csv::Header;
use super::current::{Current, Pending};
use super::decode::Input;
use super::look::{Looked, find, is_stream, look};
use super::{Batch, OpenError, Progress, Settings, SourceError};
use crate::ledger::LedgerError;
use crate::stop::Stop;
use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::Ordering;

/// Reads events from one input after another.
pub(super) struct Reader {
    files: VecDeque<Pending>,
    current: Option<Current>,
    header: Option<Header>,
    /// Bytes of files that were read to their end, and of all there are.
    done: u64,
    total: u64,
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

    fn stream(input: Input, path: &Path, settings: &Settings) -> Self {
        let current = Some(Current::once(input, path, settings));
        Self { files: VecDeque::new(), current, header: None, done: 0, total: 0 }
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
                let opened = match Current::open(pending, self.header.as_ref(), settings, stop) {
                    // What was read of it before was only gone through again.
                    Err(_) if stop.requested() => return Ok(None),
                    opened => opened,
                };
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
            let Some(bytes) = current.ended() else { return Ok(None) };
            self.done += bytes;
            self.current = None;
        }
    }
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> SourceError {
    let path = path.to_owned();
    |error| SourceError::Io { path, error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{BatchConfig, Format, SourceConfig};
    use crate::event::Event;
    use crate::rules::convert::REASON;
    use crate::running_time::RunningTime;
    use crate::time::SystemClock;
    use std::io::Write as _;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;
    use std::time::Duration;

    fn settings(format: Format) -> Settings {
        Settings {
            source: SourceConfig::Stdin { format },
            batch: BatchConfig { max_events: 2, max_bytes: 1 << 20, max_age: Duration::from_secs(5) },
            max_payload: 1 << 20,
            is_recorded: false,
            is_replacing: false,
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

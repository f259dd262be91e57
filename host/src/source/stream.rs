//! From the bytes of one input to its events.

use super::buffer::Buffer;
use super::csv::{Header, Records};
use super::json_array::Values;
use super::lines::{Line, Splitter};
use super::oversize::{refuse_above, too_large};
use super::{Settings, envelope};
use crate::config::Format;
use crate::digest::{Digest, Running};
use crate::event::{Event, Form};
use crate::record::{Columns, Record};
use crate::rules::convert::REASON;
use crate::time::Micros;
use crate::verdict::{Rejection, clip, stage};
use std::io::{self, Read};
use std::sync::Arc;

const UTF8: &[u8] = b"\xef\xbb\xbf";
const UTF16: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];

/// Splits an input and makes events of its pieces.
pub(super) struct Stream {
    pieces: Pieces,
    kind: Kind,
    limits: Limits,
    /// Whether the first bytes may be a byte order mark, and were not looked at yet.
    is_at_start: bool,
    /// Lines, or values, that were given out.
    line: u64,
    /// Whether the last line had no newline yet.
    open_line: bool,
    /// Whether nothing comes behind what is there.
    is_all: bool,
}

enum Pieces {
    Lines(Splitter),
    Values(Values),
}

enum Kind {
    Lines,
    Envelopes {
        is_recorded: bool,
    },
    /// The columns are known behind the header.
    Csv(Header, Option<Arc<Columns>>),
    Values,
}

/// Bytes.
#[derive(Debug, Clone, Copy)]
struct Limits {
    payload: usize,
    /// What is held whole.
    piece: usize,
}

/// Where a stream goes on.
#[derive(Debug, Clone, Default)]
pub(super) struct Start {
    /// Bytes that were given out.
    pub offset: u64,
    /// Lines, or values.
    pub line: u64,
    /// Whether the last of them had no newline yet.
    pub open_line: bool,
    /// Of the bytes that were given out, if positions are wanted.
    pub digest: Option<Running>,
    /// The columns, where the header is behind it.
    pub columns: Option<Arc<Columns>>,
}

/// What all events of an input have in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct Common<'a> {
    /// What message ids begin with.
    pub ids: &'a str,
    pub publish_time: Micros,
    pub received_time: Micros,
}

impl Stream {
    /// A stream of the format that the pipeline file says. `header` is what is known of the headers of CSV files.
    pub fn new(settings: &Settings, header: Option<&Header>, start: Start) -> Self {
        let kind = match (settings.source.format(), header) {
            (Format::Csv(_), Some(header)) => return Self::of_csv(header, settings.max_payload, start),
            (Format::Envelope, _) => Kind::Envelopes { is_recorded: settings.is_recorded },
            (Format::JsonArray, _) => Kind::Values,
            (Format::Lines | Format::Csv(_), _) => Kind::Lines,
        };
        Self::of(kind, settings.max_payload, start)
    }

    /// A stream of CSV records.
    pub fn of_csv(header: &Header, max_payload: usize, start: Start) -> Self {
        let columns = start.columns.clone().or_else(|| header.columns());
        Self::of(Kind::Csv(header.clone(), columns), max_payload, start)
    }

    fn of(kind: Kind, payload: usize, start: Start) -> Self {
        let Start { offset, line, open_line, digest, .. } = start;
        let buffer = Buffer::new(offset, digest);
        let (piece, records) = match &kind {
            // A carriage return at its end is not of the record.
            Kind::Csv(header, _) => (payload.saturating_add(1), Some(Records::new(header.options().dialect, payload))),
            // An envelope is longer than its payload: base64, escapes, attributes.
            Kind::Envelopes { .. } => (payload.saturating_mul(2).saturating_add(1 << 20), None),
            Kind::Lines | Kind::Values => (payload, None),
        };
        let pieces = match kind {
            Kind::Values => Pieces::Values(Values::new(buffer, piece, line)),
            _ => Pieces::Lines(Splitter::new(buffer, piece, records)),
        };
        let is_at_start = offset == 0 && matches!(kind, Kind::Csv(..) | Kind::Values);
        Self { pieces, kind, limits: Limits { payload, piece }, is_at_start, line, open_line, is_all: false }
    }

    /// Reads once. False at the end of the input.
    pub fn fill(&mut self, input: &mut impl Read) -> io::Result<bool> {
        let more = self.buffer_mut().fill(input)?;
        self.is_all |= !more;
        Ok(more)
    }

    /// Says that nothing more is read.
    pub fn end(&mut self) {
        self.is_all = true;
    }

    /// Whether nothing more is read.
    pub fn has_ended(&self) -> bool {
        self.is_all
    }

    /// Bytes that were read.
    pub fn taken(&self) -> u64 {
        self.buffer().taken()
    }

    /// Where it stands behind the last piece given out: bytes, lines or values, the digest of the bytes, and whether the
    /// last line had no newline yet. None if positions are not wanted.
    pub fn stands(&self) -> Option<(u64, u64, Digest, bool)> {
        let buffer = self.buffer();
        Some((buffer.given(), self.line, buffer.digest()?, self.open_line))
    }

    /// The columns, once the header was read.
    pub fn columns(&mut self) -> io::Result<Option<Arc<Columns>>> {
        loop {
            if let Kind::Csv(_, Some(columns)) = &self.kind {
                return Ok(Some(Arc::clone(columns)));
            }
            let Some(line) = self.piece()? else { return Ok(None) };
            self.header(line)?;
        }
    }

    /// The next event of what was read. `Ok(None)` if more has to be read, or at the end if it has ended.
    pub fn next(&mut self, common: Common<'_>) -> io::Result<Option<Event>> {
        if matches!(self.kind, Kind::Csv(_, None)) && self.columns()?.is_none() {
            return Ok(None);
        }
        loop {
            let Some(line) = self.piece()? else { return Ok(None) };
            let was_open = std::mem::replace(&mut self.open_line, !line.terminated);
            // What ends a line that was judged before the file grew: a newline, perhaps with a carriage return before it, or
            // as yet only that.
            if was_open && matches!(line.bytes.as_ref(), b"" | b"\r") {
                continue;
            }
            if let Some(event) = self.event(line, common) {
                return Ok(Some(event));
            }
        }
    }

    /// The next line, record or value.
    fn piece(&mut self) -> io::Result<Option<Line>> {
        if self.is_at_start && !self.mark()? {
            return Ok(None);
        }
        match &mut self.pieces {
            Pieces::Lines(lines) => Ok(lines.next(self.is_all)),
            Pieces::Values(values) => values.next(self.is_all).map_err(invalid),
        }
    }

    /// Passes over a byte order mark. False if more has to be read to tell.
    fn mark(&mut self) -> io::Result<bool> {
        let bytes = self.buffer().bytes();
        if UTF16.iter().any(|mark| bytes.starts_with(mark)) {
            return Err(invalid("it begins with a byte order mark of UTF-16: only UTF-8 is read".into()));
        }
        let may_be = UTF8.starts_with(bytes) || UTF16.iter().any(|mark| mark.starts_with(bytes));
        if bytes.len() < UTF8.len() && may_be && !self.is_all {
            return Ok(false);
        }
        if bytes.starts_with(UTF8) {
            self.buffer_mut().give(UTF8.len());
        }
        self.is_at_start = false;
        Ok(true)
    }

    /// Takes a record for the header, unless it is blank.
    fn header(&mut self, line: Line) -> io::Result<()> {
        let text = self.record(line.bytes);
        let Kind::Csv(header, columns) = &mut self.kind else { return Ok(()) };
        if line.too_long.is_some() {
            return Err(invalid(format!("its header is above limits.payload, {} bytes", self.limits.payload)));
        }
        if !text.is_empty() {
            *columns = Some(header.parse(&text).map_err(invalid)?);
        }
        Ok(())
    }

    /// A record without its end; its lines are counted.
    fn record(&mut self, mut text: bytes::Bytes) -> bytes::Bytes {
        self.line += 1 + memchr::memchr_iter(b'\n', &text).count() as u64;
        if text.last() == Some(&b'\r') {
            text.truncate(text.len() - 1);
        }
        text
    }

    /// None for a blank line where that is no record.
    fn event(&mut self, line: Line, common: Common<'_>) -> Option<Event> {
        let message_id = format!("{}:{}", common.ids, self.line + 1);
        let payload = if let Kind::Csv(..) = self.kind {
            let text = self.record(line.bytes);
            if text.is_empty() && line.too_long.is_none() {
                return None;
            }
            text
        } else {
            self.line += 1;
            line.bytes
        };
        let mut event = Event {
            payload,
            attributes: Vec::new(),
            message_id,
            publish_time: common.publish_time,
            received_time: common.received_time,
            ordering_key: None,
            delivery_attempt: None,
            form: Form::Whole,
        };
        if let Some((size, digest)) = line.too_long {
            let limit = if let Kind::Csv(..) = self.kind { self.limits.payload } else { self.limits.piece };
            event.form = Form::Refused(too_large(size, limit, &digest.to_string(), event.payload.len()));
            return Some(event);
        }
        match &self.kind {
            Kind::Csv(_, Some(columns)) => event.form = Form::Record(Record::of(Arc::clone(columns))),
            Kind::Envelopes { is_recorded } => {
                let publish_time = (!is_recorded).then_some(event.publish_time);
                match envelope::parse(&event.payload, &event.message_id, publish_time, common.received_time) {
                    Ok(parsed) => event = parsed,
                    Err(reason) => {
                        // It may name a field of the line, which may be nearly all of the line.
                        let reason = clip(&reason, REASON);
                        event.form = Form::Refused(Rejection::by_host(stage::PARSE_ENVELOPE, "envelope", reason));
                        return Some(event);
                    }
                }
            }
            Kind::Csv(_, None) | Kind::Lines | Kind::Values => {}
        }
        refuse_above(self.limits.payload, &mut event);
        Some(event)
    }

    fn buffer(&self) -> &Buffer {
        match &self.pieces {
            Pieces::Lines(lines) => &lines.buffer,
            Pieces::Values(values) => &values.buffer,
        }
    }

    fn buffer_mut(&mut self) -> &mut Buffer {
        match &mut self.pieces {
            Pieces::Lines(lines) => &mut lines.buffer,
            Pieces::Values(values) => &mut values.buffer,
        }
    }
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

//! Bytes into lines, or into records of one or more lines, without copying a payload and without holding one that is too
//! long.

use super::buffer::{Buffer, Long};
use super::csv::Records;
use crate::digest::Digest;
use bytes::Bytes;

/// A line, without its newline. A carriage return before it is part of the line.
#[derive(Debug, PartialEq)]
pub(super) struct Line {
    /// Its bytes; the first [`KEPT`](crate::event::KEPT) if it is too long. Those of a record may be several lines.
    pub bytes: Bytes,
    /// Size and digest of a line that is above the limit.
    pub too_long: Option<(u64, Digest)>,
    /// Whether a newline ended it.
    pub terminated: bool,
}

/// Splits what is in its buffer.
pub(super) struct Splitter {
    pub buffer: Buffer,
    /// Bytes of the buffer known to hold no newline.
    scanned: usize,
    limit: usize,
    /// Tells where records end; without it each line is one.
    records: Option<Records>,
    /// A line above the limit of which the end was not seen yet.
    long: Option<Long>,
}

impl Splitter {
    /// A splitter for lines of at most `limit` bytes.
    pub fn new(buffer: Buffer, limit: usize, records: Option<Records>) -> Self {
        Self { buffer, scanned: 0, limit, records, long: None }
    }

    /// The next whole line, or whole record, of what was read. With `is_all` nothing comes behind it.
    pub fn next(&mut self, is_all: bool) -> Option<Line> {
        let bytes = self.buffer.bytes();
        let newline = memchr::memchr(b'\n', &bytes[self.scanned..]).map(|at| self.scanned + at);
        let end = match newline {
            Some(at) => at,
            None if is_all && (!bytes.is_empty() || self.long.is_some()) => bytes.len(),
            None => {
                self.scanned = bytes.len();
                if self.long.is_some() || bytes.len() > self.limit {
                    self.swallow(self.scanned);
                }
                return None;
            }
        };
        let end = match &mut self.records {
            Some(records) if self.long.is_none() && end <= self.limit => {
                // It is looked for again when more is there.
                self.scanned = end;
                records.end(bytes, end, is_all)?
            }
            _ => end,
        };
        let terminated = end < bytes.len();
        Some(self.take(end, terminated))
    }

    fn take(&mut self, length: usize, terminated: bool) -> Line {
        self.scanned = 0;
        if self.long.is_some() || length > self.limit {
            self.swallow(length);
        }
        let (bytes, too_long) = if let Some(long) = self.long.take() {
            let (bytes, too_long) = long.end(&mut self.buffer);
            (bytes, Some(too_long))
        } else {
            self.shift(length);
            (self.buffer.give(length), None)
        };
        if terminated {
            self.shift(1);
            self.buffer.give(1);
        }
        Line { bytes, too_long, terminated }
    }

    /// Moves the first bytes of the buffer into the line that is too long.
    fn swallow(&mut self, length: usize) {
        self.long.get_or_insert_with(|| Long::new(&self.buffer)).take(&mut self.buffer, length);
        self.scanned = 0;
        self.shift(length);
    }

    fn shift(&mut self, bytes: usize) {
        if let Some(records) = &mut self.records {
            records.shift(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::buffer::CHUNK;
    use super::*;
    use crate::digest::Running;
    use crate::event::KEPT;
    use std::io::{self, Read};

    /// An input that gives a few bytes at a time.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let n = self.1.min(self.0.len()).min(into.len());
            into[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    fn split(text: &[u8], at_once: usize, limit: usize) -> (Vec<Line>, Digest) {
        let mut splitter = Splitter::new(Buffer::new(0, Some(Running::default())), limit, None);
        let mut input = Slow(text, at_once);
        let mut lines = Vec::new();
        loop {
            lines.extend(std::iter::from_fn(|| splitter.next(false)));
            if !splitter.buffer.fill(&mut input).unwrap() {
                lines.extend(std::iter::from_fn(|| splitter.next(true)));
                assert_eq!(splitter.buffer.given(), text.len() as u64);
                return (lines, splitter.buffer.digest().unwrap());
            }
        }
    }

    #[test]
    fn lines_are_the_same_however_the_input_is_cut() {
        let text = b"one\n\ntwo\r\n\xff\xfe\nlast without newline";
        for at_once in [1, 2, 3, 7, 1_000] {
            let (lines, digest) = split(text, at_once, 100);
            let bytes: Vec<&[u8]> = lines.iter().map(|line| line.bytes.as_ref()).collect();
            assert_eq!(bytes, [b"one" as &[u8], b"", b"two\r", b"\xff\xfe", b"last without newline"]);
            assert_eq!(lines.iter().map(|line| line.terminated).collect::<Vec<_>>(), [true, true, true, true, false]);
            assert_eq!(digest, Digest::of(text));
        }
    }

    #[test]
    fn a_line_at_the_limit_is_whole_and_one_above_it_is_not() {
        let text = [b"x".repeat(10), b"\n".to_vec(), b"y".repeat(11), b"\nz\n".to_vec()].concat();
        for at_once in [1, 4, 1_000] {
            let (lines, digest) = split(&text, at_once, 10);
            assert_eq!(lines.len(), 3);
            assert_eq!(lines[0].too_long, None);
            assert_eq!(lines[1].too_long, Some((11, Digest::of(&b"y".repeat(11)))));
            assert_eq!(lines[2].bytes.as_ref(), b"z");
            assert_eq!(digest, Digest::of(&text));
        }
    }

    #[test]
    fn only_the_first_part_of_a_long_line_is_kept() {
        let text = b"x".repeat(3 * CHUNK);
        for (at_once, limit) in [(CHUNK, CHUNK), (1_000, 10), (10, 1_000), (CHUNK, KEPT)] {
            let (lines, _) = split(&text, at_once, limit);
            assert_eq!(lines.len(), 1);
            // With a limit below that, as much was kept as one read had given: the rows of a file differed from run to run.
            assert_eq!((lines[0].bytes.len(), lines[0].terminated), (KEPT, false));
            assert_eq!(lines[0].too_long, Some((3 * CHUNK as u64, Digest::of(&text))));
        }
    }

    /// It ran ahead into a long line. A position stored then was of no file there is, and the next start read all anew.
    #[test]
    fn the_digest_is_of_the_lines_given_out_also_in_the_middle_of_a_long_one() {
        let text = [b"ab\n".to_vec(), b"x".repeat(50), b"\nz\n".to_vec()].concat();
        let mut splitter = Splitter::new(Buffer::new(0, Some(Running::default())), 10, None);
        let mut input = Slow(&text, 7);
        let mut ends = [3, 54, 56].into_iter();
        let mut given = 0;
        loop {
            while splitter.next(false).is_some() {
                given = ends.next().expect("there are three lines");
                assert_eq!(splitter.buffer.given(), given as u64);
                assert_eq!(splitter.buffer.digest(), Some(Digest::of(&text[..given])), "after a line");
            }
            assert_eq!(splitter.buffer.digest(), Some(Digest::of(&text[..given])), "behind a line");
            if !splitter.buffer.fill(&mut input).unwrap() {
                break;
            }
        }
        assert_eq!(given, text.len());
    }

    #[test]
    fn an_empty_input_has_no_lines() {
        assert_eq!(split(b"", 10, 10).0, []);
        assert_eq!(split(b"\n", 10, 10).0.len(), 1);
    }
}

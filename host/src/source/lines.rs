//! Bytes into lines, without copying a payload and without holding a line that is too long.

use crate::digest::{Digest, Running};
use crate::event::KEPT;
use bytes::{Bytes, BytesMut};
use std::io::{self, Read};

/// How much is read at once.
const CHUNK: usize = 256 * 1024;

/// A line, without its newline. A carriage return before it is part of the line.
#[derive(Debug, PartialEq)]
pub(super) struct Line {
    /// Its bytes; the first [`KEPT`] if it is too long.
    pub bytes: Bytes,
    /// Size and digest of a line that is above the limit.
    pub too_long: Option<(u64, Digest)>,
    /// Whether a newline ended it.
    pub terminated: bool,
    /// Bytes it took in the input, its newline included.
    pub consumed: u64,
}

/// Splits what is fed to it.
pub(super) struct Splitter {
    buffer: BytesMut,
    /// Bytes of `buffer` known to hold no newline.
    scanned: usize,
    limit: usize,
    /// Bytes that were read.
    taken: u64,
    /// A line above the limit of which the end was not seen yet.
    long: Option<Long>,
    /// Over every byte of the lines given out.
    digest: Option<Running>,
}

struct Long {
    kept: Vec<u8>,
    size: u64,
    digest: Running,
    /// The splitter's digest with what was seen of this line. It becomes the splitter's when the line is given out: a
    /// position that is stored before that ends in front of the line, and so must its digest.
    over_all: Option<Running>,
}

impl Splitter {
    /// A splitter for lines of at most `limit` bytes. With a digest, it goes on with that over all lines given out.
    pub fn new(limit: usize, digest: Option<Running>) -> Self {
        Self { buffer: BytesMut::new(), scanned: 0, limit, taken: 0, long: None, digest }
    }

    /// The digest of every byte given out so far.
    pub fn digest(&self) -> Option<Digest> {
        self.digest.as_ref().map(Running::digest)
    }

    /// Reads once. False at the end of the input.
    pub fn fill(&mut self, input: &mut impl Read) -> io::Result<bool> {
        let length = self.buffer.len();
        self.buffer.resize(length + CHUNK, 0);
        let got = loop {
            match input.read(&mut self.buffer[length..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.buffer.truncate(length + *got.as_ref().unwrap_or(&0));
        let got = got?;
        self.taken += got as u64;
        Ok(got > 0)
    }

    /// Bytes that were read.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// The next whole line of what was read.
    pub fn next(&mut self) -> Option<Line> {
        if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) {
            return Some(self.take(self.scanned + at, true));
        }
        self.scanned = self.buffer.len();
        if self.long.is_some() || self.buffer.len() > self.limit {
            self.swallow(self.buffer.len());
        }
        None
    }

    /// What stands after the last newline, at the end of the input.
    pub fn last(&mut self) -> Option<Line> {
        (!self.buffer.is_empty() || self.long.is_some()).then(|| self.take(self.buffer.len(), false))
    }

    fn take(&mut self, length: usize, terminated: bool) -> Line {
        self.scanned = 0;
        if self.long.is_some() || length > self.limit {
            self.swallow(length);
        }
        let (bytes, too_long, mut consumed) = if let Some(long) = self.long.take() {
            self.digest = long.over_all;
            (long.kept.into(), Some((long.size, long.digest.digest())), long.size)
        } else {
            let bytes = self.buffer.split_to(length).freeze();
            self.seen(&bytes);
            (bytes, None, length as u64)
        };
        if terminated {
            let newline = self.buffer.split_to(1);
            self.seen(&newline);
            consumed += 1;
        }
        Line { bytes, too_long, terminated, consumed }
    }

    /// Moves the first bytes of the buffer into the line that is too long.
    fn swallow(&mut self, length: usize) {
        let piece = self.buffer.split_to(length).freeze();
        self.scanned = 0;
        let long = self.long.get_or_insert_with(|| Long {
            kept: Vec::new(),
            size: 0,
            digest: Running::default(),
            over_all: self.digest.clone(),
        });
        // What is kept must not depend on how the input is cut: the same file gives the same rows, read anew or resumed.
        long.kept.extend_from_slice(&piece[..piece.len().min(KEPT - long.kept.len())]);
        long.size += piece.len() as u64;
        long.digest.update(&piece);
        if let Some(digest) = &mut long.over_all {
            digest.update(&piece);
        }
    }

    fn seen(&mut self, bytes: &[u8]) {
        if let Some(digest) = &mut self.digest {
            digest.update(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let mut splitter = Splitter::new(limit, Some(Running::default()));
        let mut input = Slow(text, at_once);
        let mut lines = Vec::new();
        loop {
            lines.extend(std::iter::from_fn(|| splitter.next()));
            if !splitter.fill(&mut input).unwrap() {
                lines.extend(splitter.last());
                let digest = splitter.digest().unwrap();
                return (lines, digest);
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
            assert_eq!(lines.iter().map(|line| line.consumed).sum::<u64>(), text.len() as u64);
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
            assert_eq!(lines[1].consumed, 12);
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
        let mut splitter = Splitter::new(10, Some(Running::default()));
        let mut input = Slow(&text, 7);
        let mut given_out = 0;
        let mut lines = 0;
        loop {
            while let Some(line) = splitter.next() {
                given_out += usize::try_from(line.consumed).unwrap();
                lines += 1;
                assert_eq!(splitter.digest(), Some(Digest::of(&text[..given_out])), "after line {lines}");
            }
            assert_eq!(splitter.digest(), Some(Digest::of(&text[..given_out])), "behind line {lines}");
            if !splitter.fill(&mut input).unwrap() {
                break;
            }
        }
        assert_eq!((lines, given_out), (3, text.len()));
    }

    #[test]
    fn an_empty_input_has_no_lines() {
        assert_eq!(split(b"", 10, 10).0, []);
        assert_eq!(split(b"\n", 10, 10).0.len(), 1);
    }
}

//! Where the records of a CSV file end.
//!
//! A line without a quote byte is a record. One that opens a quote and does not close it goes on in the next, as long as it
//! stays within the limit. Where it turns out that the quote is never closed, or not as it should be, the line alone is a
//! record (a broken one), and the next line is looked at by itself: a stray quote costs one line, not the rest of the file.
//!
//! However many lines open a quote, no byte is gone through more than twice: what follows the end of a line between quotes
//! is the same whichever line the quote was opened in.

use crate::record::{Dialect, Scan, Seen};

/// Tells where records end.
pub(in crate::source) struct Records {
    dialect: Dialect,
    /// The longest record, bytes.
    limit: usize,
    /// What was found out about the lines to come, were they between quotes.
    ahead: Option<Ahead>,
}

struct Ahead {
    scan: Scan,
    is_malformed: bool,
}

impl Records {
    /// For records of at most `limit` bytes.
    pub fn new(dialect: Dialect, limit: usize) -> Self {
        Self { dialect, limit, ahead: None }
    }

    /// Where the first record of `text` ends: at a newline or at the end. `line` is where its first line does. None if that
    /// is not told by what is there. With `is_all` nothing comes behind it.
    pub fn end(&mut self, text: &[u8], line: usize, is_all: bool) -> Option<usize> {
        let Some(quote) = self.dialect.quote else { return Some(line) };
        if memchr::memchr(quote, &text[..line]).is_none() {
            return Some(line);
        }
        let mut scan = Scan::default();
        if scan.go_on(self.dialect, &text[..line], true) != Seen::More {
            // Whole, or broken whatever follows.
            return Some(line);
        }
        // It was looked behind this line when an earlier one opened a quote.
        let known = self.ahead.take().filter(|ahead| ahead.scan.at() > line);
        let mut ahead = known.unwrap_or(Ahead { scan, is_malformed: false });
        if ahead.is_malformed {
            self.ahead = Some(ahead);
            return Some(line);
        }
        // A record at the limit may have two bytes of a line's end behind it.
        let bound = text.len().min(self.limit.saturating_add(2));
        let is_bounded = bound < text.len();
        match ahead.scan.go_on(self.dialect, &text[..bound], is_all && !is_bounded) {
            Seen::End(end) if length(&text[..end]) <= self.limit => return Some(end),
            Seen::End(_) => return Some(line),
            Seen::Malformed => ahead.is_malformed = true,
            Seen::More if is_bounded || is_all || bound > self.limit.saturating_add(1) => {}
            Seen::More => {
                self.ahead = Some(ahead);
                return None;
            }
        }
        self.ahead = Some(ahead);
        Some(line)
    }

    /// Says that so many bytes of the text are gone from its front.
    pub fn shift(&mut self, bytes: usize) {
        if let Some(ahead) = &mut self.ahead {
            ahead.scan.shift(bytes);
        }
    }
}

fn length(record: &[u8]) -> usize {
    record.strip_suffix(b"\r").unwrap_or(record).len()
}

#[cfg(test)]
mod tests {
    use super::super::super::buffer::Buffer;
    use super::super::super::lines::Splitter;
    use super::*;
    use std::io::Read;
    use std::time::Instant;

    /// The records of a text that comes in pieces.
    fn split(text: &[u8], at_once: usize, limit: usize) -> Vec<String> {
        struct Slow<'a>(&'a [u8], usize);
        impl Read for Slow<'_> {
            fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
                let at_once = self.1.min(into.len());
                self.0.read(&mut into[..at_once])
            }
        }
        let records = Records::new(Dialect::default(), limit);
        let mut splitter = Splitter::new(Buffer::new(0, None), limit, Some(records));
        let (mut input, mut is_all, mut split) = (Slow(text, at_once), false, Vec::new());
        loop {
            while let Some(line) = splitter.next(is_all) {
                split.push(String::from_utf8(line.bytes.into()).unwrap());
            }
            if is_all {
                assert_eq!(splitter.buffer.given(), text.len() as u64);
                return split;
            }
            is_all = !splitter.buffer.fill(&mut input).unwrap();
        }
    }

    #[track_caller]
    fn are(text: &str, records: &[&str]) {
        for at_once in [1, 2, 3, 1_000] {
            assert_eq!(split(text.as_bytes(), at_once, 100), records, "{at_once} at once");
        }
    }

    #[test]
    fn a_newline_between_quotes_is_of_the_record() {
        are("a,\"b\nc\"\n\"d\n\n\",e\r\nf", &["a,\"b\nc\"", "\"d\n\n\",e\r", "f"]);
        are("\"a\r\nb\"\r\n\n\"\"\n", &["\"a\r\nb\"\r", "", "\"\""]);
        are("\"a\n,\"\"\n\",\"\n\"\n", &["\"a\n,\"\"\n\",\"\n\""]);
    }

    #[test]
    fn a_quote_that_is_never_closed_costs_its_line() {
        are("1,\"x\n2,y\n3,z", &["1,\"x", "2,y", "3,z"]);
        are("\"\na\nb\n", &["\"", "a", "b"]);
        are("1,\"", &["1,\""]);
        // The next quote comes where no quote may end a field.
        are("1,\"x\n2,y\n3,\"z\"\n4,w\n", &["1,\"x", "2,y", "3,\"z\"", "4,w"]);
        are("1,\"x\n2,\"y\n3,\"z\"\n", &["1,\"x", "2,\"y", "3,\"z\""]);
    }

    #[test]
    fn a_line_with_text_behind_a_closing_quote_is_alone() {
        are("\"a\"b\nc\n", &["\"a\"b", "c"]);
        are("\"a\"b,\"c\nd\n", &["\"a\"b,\"c", "d"]);
    }

    #[test]
    fn a_record_at_the_limit_is_whole_and_one_above_it_is_its_lines() {
        let record = |length: usize| format!("\"{}\n{}\"", "x".repeat(10), "y".repeat(length - 13));
        for end in ["", "\n", "\r\n"] {
            are(&(record(100) + end), &[&(record(100) + end.trim_end_matches('\n'))]);
            let above = record(101) + end;
            let lines: Vec<&str> = above.split('\n').filter(|line| !line.is_empty()).collect();
            are(&above, &lines);
        }
    }

    /// Each line opens a quote, and leaves it open where an earlier one did: looked behind anew from each of them, this
    /// took hours.
    #[test]
    fn quotes_that_are_opened_in_every_line_are_gone_through_once() {
        let (lines, limit) = (400_000, 1 << 20);
        let text = "x\",\"y\n".repeat(lines);
        let began = Instant::now();
        assert_eq!(split(text.as_bytes(), 1 << 16, limit).len(), lines);
        let text = "\"x\n".repeat(lines);
        assert_eq!(split(text.as_bytes(), 1 << 16, limit).len(), lines);
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    }
}

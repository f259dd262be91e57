//! The `json-array` format: one array a file, each value of it a payload, bytes as they are.
//!
//! A value that is above the limit is passed over and refused. What is no array, or breaks off, cannot be read further: where
//! a value ends is not known then.

use super::buffer::{Buffer, CHUNK, Long};
use super::lines::Line;
use serde::de::IgnoredAny;
use serde_json::Deserializer;

/// Splits what is in its buffer.
pub(super) struct Values {
    pub buffer: Buffer,
    limit: usize,
    place: Place,
    /// Values given out.
    count: u64,
    /// A value that was not whole is looked at again when so many bytes are there.
    again_at: usize,
    long: Option<(Long, Skim)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    BeforeArray,
    BeforeFirst,
    BehindValue,
    BehindArray,
}

impl Values {
    /// For values of at most `limit` bytes, behind the first `count` of an array.
    pub fn new(buffer: Buffer, limit: usize, count: u64) -> Self {
        let place = if count == 0 { Place::BeforeArray } else { Place::BehindValue };
        Self { buffer, limit, place, count, again_at: 0, long: None }
    }

    /// The next whole value of what was read. With `is_all` nothing comes behind it. The error says what is wrong.
    pub fn next(&mut self, is_all: bool) -> Result<Option<Line>, String> {
        if self.long.is_some() {
            return self.pass_over(is_all);
        }
        loop {
            let bytes = self.buffer.bytes();
            let blank = blanks(bytes);
            if blank > CHUNK {
                // However many there are, they are not held.
                self.pass(blank);
                continue;
            }
            let before = match (self.place, bytes.get(blank)) {
                (_, None) if is_all => return self.end(),
                (_, None) => return Ok(None),
                (Place::BeforeArray, Some(b'[')) => {
                    self.buffer.give(blank + 1);
                    self.place = Place::BeforeFirst;
                    continue;
                }
                (Place::BeforeArray, _) => {
                    let what = "it is no JSON array: that begins with `[`. For a value a line use format = \"lines\"";
                    return Err(what.into());
                }
                (Place::BeforeFirst | Place::BehindValue, Some(b']')) => {
                    self.place = Place::BehindArray;
                    self.pass(blank + 1);
                    continue;
                }
                (Place::BeforeFirst, _) => blank,
                // They are given out together with the value: a position is right behind a value.
                (Place::BehindValue, Some(b',')) => {
                    let before = blank + 1 + blanks(&bytes[blank + 1..]);
                    if before > self.limit.saturating_add(CHUNK) {
                        return Err(self.broken("nothing but blanks stands where the value should"));
                    }
                    before
                }
                (Place::BehindValue, _) => {
                    return Err(self.broken("neither `,` nor `]` stands behind the value before it"));
                }
                (Place::BehindArray, _) => {
                    return Err(format!("something stands behind its array of {} values", self.count));
                }
            };
            return self.value(before, is_all);
        }
    }

    /// Passes over what is no value. What ends the array is not given out: the file is the same when its array has grown.
    fn pass(&mut self, length: usize) {
        if self.place == Place::BehindArray {
            self.buffer.drop(length);
        } else {
            self.buffer.give(length);
        }
    }

    fn end(&self) -> Result<Option<Line>, String> {
        match self.place {
            // Nothing at all: no value.
            Place::BeforeArray | Place::BehindArray => Ok(None),
            Place::BeforeFirst | Place::BehindValue => Err(self.broken("the file ends and the array does not")),
        }
    }

    /// The value that stands behind `before` bytes.
    fn value(&mut self, before: usize, is_all: bool) -> Result<Option<Line>, String> {
        let bytes = &self.buffer.bytes()[before..];
        if bytes.len() < self.again_at && !is_all {
            return Ok(None);
        }
        self.again_at = 0;
        let mut values = Deserializer::from_slice(bytes).into_iter::<IgnoredAny>();
        let whole = match values.next() {
            // What has an end of its own is whole; a number may go on.
            Some(Ok(_)) if values.byte_offset() < bytes.len() || matches!(bytes[0], b'{' | b'[' | b'"') => {
                Some(values.byte_offset())
            }
            Some(Err(error)) if !error.is_eof() && (is_all || !in_number(bytes)) => {
                return Err(self.broken(&format!("{error} of it")));
            }
            _ if is_all => return Err(self.broken("the file ends and the value does not")),
            _ => None,
        };
        match whole {
            Some(end) => {
                self.buffer.give(before);
                Ok(Some(self.gave(end)))
            }
            _ if bytes.len() > self.limit => {
                let mut long = Long::new(&self.buffer);
                long.pass(&mut self.buffer, before);
                self.long = Some((long, Skim::default()));
                self.pass_over(is_all)
            }
            _ => {
                if bytes.len() > CHUNK {
                    self.again_at = bytes.len() + bytes.len() / 2;
                }
                Ok(None)
            }
        }
    }

    fn gave(&mut self, length: usize) -> Line {
        let bytes = self.buffer.give(length);
        self.count += 1;
        self.place = Place::BehindValue;
        Line { bytes, too_long: None, terminated: true }
    }

    /// Goes on in a value that is too long.
    fn pass_over(&mut self, is_all: bool) -> Result<Option<Line>, String> {
        let Some((mut long, mut skim)) = self.long.take() else { return Ok(None) };
        let (length, ended) = skim.go_on(self.buffer.bytes());
        long.take(&mut self.buffer, length);
        if ended {
            let (bytes, too_long) = long.end(&mut self.buffer);
            self.count += 1;
            self.place = Place::BehindValue;
            return Ok(Some(Line { bytes, too_long: Some(too_long), terminated: true }));
        }
        if is_all {
            return Err(self.broken("the file ends and the value does not"));
        }
        self.long = Some((long, skim));
        Ok(None)
    }

    fn broken(&self, what: &str) -> String {
        format!("value {} of its array, at byte {}: {what}", self.count + 1, self.buffer.given())
    }
}

fn blanks(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count()
}

/// Whether the bytes break off where a number must have another digit: that is no error yet.
fn in_number(bytes: &[u8]) -> bool {
    matches!(bytes.last(), Some(b'-' | b'+' | b'.' | b'e' | b'E'))
}

/// Finds the end of a value that is not looked at otherwise.
#[derive(Debug, Default)]
struct Skim {
    depth: usize,
    in_text: bool,
    escaped: bool,
    begun: bool,
}

impl Skim {
    /// How many bytes are of the value, and whether it ends there.
    fn go_on(&mut self, bytes: &[u8]) -> (usize, bool) {
        for (at, &byte) in bytes.iter().enumerate() {
            if self.in_text {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_text = false,
                    _ => continue,
                }
                if !self.in_text && self.depth == 0 {
                    return (at + 1, true);
                }
                continue;
            }
            match byte {
                b'"' => self.in_text = true,
                b'[' | b'{' => self.depth += 1,
                // Of the array around it: the value is a number.
                b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r' if self.depth == 0 && self.begun => {
                    return (at, true);
                }
                b']' | b'}' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return (at + 1, true);
                    }
                }
                _ => {}
            }
            self.begun = true;
        }
        (bytes.len(), false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::{Digest, Running};
    use std::io::{self, Read};

    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let at_once = self.1.min(into.len());
            self.0.read(&mut into[..at_once])
        }
    }

    /// The values of a text that comes in pieces, and what is wrong behind them.
    fn split(text: &[u8], at_once: usize, limit: usize) -> (Vec<Line>, Option<String>) {
        let mut values = Values::new(Buffer::new(0, Some(Running::default())), limit, 0);
        let (mut input, mut is_all, mut lines) = (Slow(text, at_once), false, Vec::new());
        loop {
            match values.next(is_all) {
                Ok(Some(line)) => lines.push(line),
                Ok(None) if is_all => {
                    let given = usize::try_from(values.buffer.given()).unwrap();
                    assert_eq!(values.buffer.digest(), Some(Digest::of(&text[..given])));
                    return (lines, None);
                }
                Ok(None) => is_all = !values.buffer.fill(&mut input).unwrap(),
                Err(what) => return (lines, Some(what)),
            }
        }
    }

    fn texts(text: &str, limit: usize) -> (Vec<String>, Option<String>) {
        let of = |at_once| {
            let (lines, wrong) = split(text.as_bytes(), at_once, limit);
            let texts = lines.iter().map(|line| String::from_utf8(line.bytes.to_vec()).unwrap());
            (texts.collect::<Vec<_>>(), wrong)
        };
        let expected = of(text.len().max(1));
        for at_once in [1, 2, 5] {
            assert_eq!(of(at_once), expected, "{at_once} at once");
        }
        expected
    }

    #[test]
    fn values_keep_their_bytes() {
        let text = " [ {\"a\" : 1.50, \"b\":[1, 2]} ,\n\"x\\\"]\",12,null,[ ] , {} ]\n";
        let (values, wrong) = texts(text, 100);
        assert_eq!(values, ["{\"a\" : 1.50, \"b\":[1, 2]}", "\"x\\\"]\"", "12", "null", "[ ]", "{}"]);
        assert_eq!(wrong, None);
        for nothing in ["", " \n", "[]", " [ ] "] {
            assert_eq!(texts(nothing, 100), (vec![], None), "{nothing:?}");
        }
        // What is no text is for the rule to judge.
        assert_eq!(split(b"[\"\xff\"]", 100, 100).0[0].bytes.as_ref(), b"\"\xff\"");
    }

    #[test]
    fn what_stands_before_a_break_is_given_out_and_the_break_is_told() {
        let broken = |text: &str, values: usize, what: &str| {
            let (texts, wrong) = texts(text, 100);
            let wrong = wrong.unwrap();
            assert_eq!(texts.len(), values, "{text}");
            assert!(wrong.contains(what), "{text}: {wrong}");
        };
        broken("{\"a\":1}\n", 0, "format = \"lines\"");
        broken("[{}", 1, "value 2 of its array, at byte 3: the file ends and the array does not");
        broken("[1, 2", 1, "value 2 of its array, at byte 2: the file ends and the value does not");
        broken("[1, 2, ", 2, "value 3 of its array, at byte 5: the file ends and the value does not");
        broken("[1, -", 1, "value 2 of its array, at byte 2: invalid number");
        broken("[{\"a\":1}, {\"a\":", 1, "value 2 of its array");
        broken("[1 2]", 1, "neither `,` nor `]`");
        broken("[1,]", 1, "expected value");
        broken("[1,{a}]", 1, "key must be a string at line 1 column 2 of it");
        broken("[1x]", 0, "trailing characters");
        broken("[1] 2", 1, "something stands behind its array of 1 values");
        broken("[1][2]", 1, "something stands behind");
    }

    #[test]
    fn a_value_above_the_limit_is_passed_over() {
        let limit = 20;
        let texts_above = ["x".repeat(30), "a\\\"b]".repeat(10)].map(|text| format!("\"{text}\""));
        let nested = format!("{{\"a\":[{}],\"b\":\"]}}\\\\\"}}", "1,".repeat(20) + "1");
        for above in [&texts_above[0], &texts_above[1], &nested, &"1".repeat(30)] {
            let text = format!("[1, {above} ,2]");
            for at_once in [1, 3] {
                let (lines, wrong) = split(text.as_bytes(), at_once, limit);
                assert_eq!((lines.len(), wrong), (3, None), "{text}");
                assert_eq!(lines[1].too_long, Some((above.len() as u64, Digest::of(above.as_bytes()))), "{text}");
                assert_eq!(lines[2].bytes.as_ref(), b"2");
            }
        }
        let (_, wrong) = split(format!("[\"{}", "x".repeat(50)).as_bytes(), 1, limit);
        assert!(wrong.unwrap().contains("the file ends and the value does not"));
    }

    #[test]
    fn depth_is_no_recursion() {
        let deep = format!("[{}1{}]", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(texts_len(&deep), 1);
    }

    fn texts_len(text: &str) -> usize {
        let (lines, wrong) = split(text.as_bytes(), 1 << 16, 1 << 20);
        assert_eq!(wrong, None);
        lines.len()
    }

    #[test]
    fn blanks_are_not_held() {
        let blank = " ".repeat(3 * CHUNK);
        let text = format!("{blank}[{blank}1{blank},{blank}2{blank}]{blank}");
        let (lines, wrong) = split(text.as_bytes(), CHUNK, 10 * CHUNK);
        assert_eq!((lines.len(), wrong), (2, None));
        // Those in front of a value are, so there are not to be more than that may be held.
        let (lines, wrong) = split(text.as_bytes(), CHUNK, CHUNK);
        assert!(lines.len() == 1 && wrong.unwrap().contains("nothing but blanks"));
    }

    #[test]
    fn it_goes_on_behind_any_value() {
        let text = b"[1, {\"a\":2} ,3]";
        let mut values = Values::new(Buffer::new(0, None), 100, 0);
        values.buffer.fill(&mut &text[..]).unwrap();
        for (count, expected) in (1..).zip(["1", "{\"a\":2}", "3"]) {
            assert_eq!(values.next(true).unwrap().unwrap().bytes, expected);
            let at = values.buffer.given();
            let mut again = Values::new(Buffer::new(at, None), 100, count);
            again.buffer.fill(&mut &text[usize::try_from(at).unwrap()..]).unwrap();
            let rest = std::iter::from_fn(|| again.next(true).unwrap()).count() as u64;
            assert_eq!(rest, 3 - count);
        }
    }
}

//! The `json-array` format: one array a file, each value of it a payload, bytes as they are.
//!
//! A value that is above the limit is passed over and refused. What is no array, or breaks off, cannot be read further: where
//! a value ends is not known then.

mod skim;
#[cfg(test)]
mod tests;

use super::buffer::{Buffer, CHUNK, Long};
use super::lines::Line;
use serde::de::IgnoredAny;
use serde_json::Deserializer;
use skim::Skim;

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

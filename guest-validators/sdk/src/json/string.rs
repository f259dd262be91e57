//! JSON strings, as `serde_json` has found them to be well formed: where they end, what they say.

use std::borrow::Cow;

/// A string within a valid JSON text.
pub(super) struct Scanned<'a> {
    /// The string with its quotes.
    pub(super) raw: &'a str,
    /// Whether there is a backslash in it.
    pub(super) escaped: bool,
}

impl<'a> Scanned<'a> {
    /// The string whose opening quote is at `start` of `text`.
    pub(super) fn at(text: &'a str, start: usize) -> Self {
        let bytes = text.as_bytes();
        let mut at = start + 1;
        let mut escaped = false;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'"' => break,
                b'\\' => {
                    escaped = true;
                    at += 2;
                }
                _ => at += 1,
            }
        }
        Self {
            raw: &text[start..=at],
            escaped,
        }
    }

    /// Its text, or none if it holds half a surrogate pair.
    pub(super) fn decode(&self) -> Option<Cow<'a, str>> {
        if self.escaped {
            serde_json::from_str(self.raw).ok().map(Cow::Owned)
        } else {
            Some(Cow::Borrowed(unquote(self.raw)))
        }
    }

    /// Whether an escape in it is half a surrogate pair: a low one first, or a high one without a low one after it.
    pub(super) fn has_lone_surrogate(&self) -> bool {
        self.escaped && has_lone_surrogate(self.raw.as_bytes())
    }
}

/// A string's inside.
pub(super) fn unquote(raw: &str) -> &str {
    &raw[1..raw.len() - 1]
}

fn has_lone_surrogate(raw: &[u8]) -> bool {
    let mut rest = raw;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        rest = &rest[at..];
        rest = match code_unit(rest) {
            Some(0xDC00..=0xDFFF) => return true,
            Some(0xD800..=0xDBFF) => match code_unit(&rest[6..]) {
                Some(0xDC00..=0xDFFF) => &rest[12..],
                _ => return true,
            },
            Some(_) => &rest[6..],
            None => &rest[2..],
        };
    }
    false
}

/// The code unit of a `\uXXXX` that `text` starts with.
fn code_unit(text: &[u8]) -> Option<u32> {
    let [b'\\', b'u', digits @ ..] = text else {
        return None;
    };
    digits.get(..4)?.iter().try_fold(0, |unit, digit| {
        Some(unit * 16 + char::from(*digit).to_digit(16)?)
    })
}

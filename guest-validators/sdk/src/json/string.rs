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
    /// The string whose opening quote is the first byte of `text`.
    #[inline]
    pub(super) fn at_start(text: &'a str) -> Self {
        let bytes = text.as_bytes();
        let mut end = 1 + find_special(&bytes[1..]);
        let escaped = bytes.get(end) == Some(&b'\\');
        while bytes.get(end) == Some(&b'\\') {
            // Whatever is escaped cannot end the string.
            end += 2;
            end += find_special(&bytes[end..]);
        }
        Self { raw: &text[..=end], escaped }
    }

    /// Its text, or none if it holds half a surrogate pair.
    #[inline]
    pub(super) fn decode(&self) -> Option<Cow<'a, str>> {
        if self.escaped {
            serde_json::from_str(self.raw).ok().map(Cow::Owned)
        } else {
            Some(Cow::Borrowed(unquote(self.raw)))
        }
    }

    /// Whether an escape in it is half a surrogate pair: a low one first, or a high one without a low one after it.
    #[inline]
    pub(super) fn has_lone_surrogate(&self) -> bool {
        self.escaped && has_lone_surrogate(self.raw.as_bytes())
    }
}

/// A string's inside.
#[inline]
pub(super) fn unquote(raw: &str) -> &str {
    &raw[1..raw.len() - 1]
}

/// Where the first quote or backslash is, or the length.
///
/// Eight bytes at a time: inside wasm a loop over bytes takes some 25 instructions for each.
#[inline]
pub(super) fn find_special(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_le_bytes([0x01; 8]);
    const HIGH_BITS: u64 = ONES << 7;
    // The high bit of each byte that is `wanted`; above the first such byte also of some that are not.
    let found = |chunk: u64, wanted: u8| {
        let difference = chunk ^ (ONES * u64::from(wanted));
        difference.wrapping_sub(ONES) & !difference & HIGH_BITS
    };
    let mut at = 0;
    let mut rest = bytes;
    while let Some((chunk, after)) = rest.split_first_chunk::<8>() {
        let chunk = u64::from_le_bytes(*chunk);
        let found = found(chunk, b'"') | found(chunk, b'\\');
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
        rest = after;
    }
    at + rest.iter().take_while(|byte| !matches!(byte, b'"' | b'\\')).count()
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
    digits.get(..4)?.iter().try_fold(0, |unit, digit| Some(unit * 16 + char::from(*digit).to_digit(16)?))
}

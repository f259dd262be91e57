//! Strict JSON: a payload that could be read in two ways is not read at all.
//!
//! `serde_json` checks the grammar of [RFC 8259](https://www.rfc-editor.org/rfc/rfc8259) and cuts the object into fields, whose text stays
//! as it was written; what it lets pass is refused here, in fields that the rule never reads too:
//!
//! - a key that occurs twice in one object, at any depth, however it is escaped;
//! - a byte order mark;
//! - bytes that are not UTF-8, and escapes of half a surrogate pair, in values and in keys;
//! - more than [`MAX_DEPTH`] levels.
//!
//! All of this is a rejection of stage `PARSE_JSON`. A payload that is JSON but not an object is one of `SCHEMA_VALIDATION`.
//! Neither the depth nor the number of keys of a hostile payload costs stack or quadratic time.

mod field;
mod keys;
mod object;
mod strict;
mod string;
#[cfg(test)]
mod tests;

use serde_json::value::RawValue;

pub use field::{Field, MAX_TEXT_BYTES};
pub use object::{Fields, Object};

use crate::verdict::{Verdict, reject, stage};

/// Levels of objects and lists, the payload's own object being the first.
pub const MAX_DEPTH: usize = 64;

const BYTE_ORDER_MARK: char = '\u{feff}';

/// Reads a payload that must be one JSON object.
pub fn read(payload: &[u8]) -> Verdict<Object<'_>> {
    let text = match str::from_utf8(payload) {
        Ok(text) => text,
        Err(error) => {
            return not_json(format!("payload is not UTF-8: bad byte at offset {}", error.valid_up_to()));
        }
    };
    let start = text.trim_ascii_start();
    if start.starts_with('{') {
        return Object::read(text).or_else(not_json);
    }
    if text.is_empty() {
        return not_json("payload is empty");
    }
    if start.is_empty() {
        return not_json("payload is blank");
    }
    if start.starts_with(BYTE_ORDER_MARK) {
        return not_json("payload starts with a byte order mark");
    }
    let value: &RawValue = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => return not_json(error.to_string()),
    };
    match strict::check(value.get(), 0) {
        Ok(()) => {
            reject(stage::SCHEMA_VALIDATION, format!("payload must be a JSON object, found {}", kind(value.get())))
        }
        Err(error) => not_json(error),
    }
}

/// Checks that a text is one JSON value, of any type, as strictly as [`read`] checks a payload. The error says what is wrong.
pub fn check(text: &str) -> Result<(), String> {
    let value: &RawValue = serde_json::from_str(text).map_err(|error| error.to_string())?;
    strict::check(value.get(), 0)
}

fn not_json<R>(reason: impl Into<String>) -> Verdict<R> {
    reject(stage::PARSE_JSON, reason)
}

/// What a JSON value is, for a reason.
fn kind(value: &str) -> &'static str {
    match value.as_bytes().first() {
        Some(b'"') => "a string",
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

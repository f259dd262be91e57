//! What `serde_json` lets pass inside a value that it has found to be well formed.
//!
//! This is not a parser: it relies on the grammar having been checked.

use std::borrow::Cow;

use super::string::{self, Scanned};
use super::{MAX_DEPTH, keys};
use crate::error::quote;

/// Checks a value that is `depth` levels deep in its document, in one pass and without recursion.
#[inline]
pub(super) fn check(value: &str, depth: usize) -> Result<(), String> {
    match value.as_bytes().first() {
        // Most values are strings without a backslash.
        Some(b'"') if string::find_special(&value.as_bytes()[1..]) + 2 == value.len() => Ok(()),
        Some(b'"') => check_string(&Scanned::at_start(value)),
        Some(b'{' | b'[') => Walk { text: value, depth, keys: Vec::new(), open: Vec::new() }.run(),
        _ => Ok(()),
    }
}

struct Walk<'a> {
    text: &'a str,
    depth: usize,
    /// The keys of all open objects, outermost first.
    keys: Vec<Cow<'a, str>>,
    /// For every open object where its keys begin in `keys`; for a list none.
    open: Vec<Option<usize>>,
}

impl Walk<'_> {
    fn run(mut self) -> Result<(), String> {
        let bytes = self.text.as_bytes();
        let mut at = 0;
        let mut key_follows = false;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'{' | b'[' => {
                    key_follows = *byte == b'{';
                    self.open(key_follows)?;
                }
                b'}' | b']' => {
                    key_follows = false;
                    self.close()?;
                }
                b',' => key_follows = matches!(self.open.last(), Some(Some(_))),
                b'"' => {
                    let string = Scanned::at_start(&self.text[at..]);
                    at += string.raw.len() - 1;
                    if key_follows {
                        self.keys.push(key(&string)?);
                        key_follows = false;
                    } else {
                        check_string(&string)?;
                    }
                }
                _ => {}
            }
            at += 1;
        }
        Ok(())
    }

    fn open(&mut self, is_object: bool) -> Result<(), String> {
        if self.depth + self.open.len() >= MAX_DEPTH {
            return Err(format!("nested deeper than {MAX_DEPTH} levels"));
        }
        self.open.push(is_object.then_some(self.keys.len()));
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        if let Some(Some(start)) = self.open.pop() {
            check_unique(&self.keys[start..], AsRef::as_ref)?;
            self.keys.truncate(start);
        }
        Ok(())
    }
}

/// The text of a key.
pub(super) fn key<'a>(string: &Scanned<'a>) -> Result<Cow<'a, str>, String> {
    string.decode().ok_or_else(|| lone_surrogate(string))
}

/// Fails if two of `items` have the same key.
pub(super) fn check_unique<T>(items: &[T], key: impl Fn(&T) -> &str) -> Result<(), String> {
    match keys::duplicate(items, key) {
        Some(key) => Err(format!("duplicate key {}", quote(key))),
        None => Ok(()),
    }
}

fn check_string(string: &Scanned<'_>) -> Result<(), String> {
    if string.has_lone_surrogate() { Err(lone_surrogate(string)) } else { Ok(()) }
}

#[cold]
fn lone_surrogate(string: &Scanned<'_>) -> String {
    format!("half a surrogate pair in the string {}", quote(string::unquote(string.raw)))
}

//! What `serde_json` lets pass inside a value that it has found to be well formed.

use std::borrow::Cow;

use super::string::Scanned;
use super::{MAX_DEPTH, keys};
use crate::error::quote;

/// Checks a value `depth` levels deep in its document. `value` must be valid JSON: this is not a parser.
///
/// One pass, without recursion.
pub(super) fn check(value: &str, depth: usize) -> Result<(), String> {
    match value.as_bytes().first() {
        Some(b'"') => check_string(&Scanned::at(value, 0)),
        Some(b'{' | b'[') => Walk {
            value,
            depth,
            keys: Vec::new(),
            open: Vec::new(),
        }
        .run(),
        _ => Ok(()),
    }
}

struct Walk<'a> {
    value: &'a str,
    depth: usize,
    /// The keys of all open objects, outermost first.
    keys: Vec<Cow<'a, str>>,
    /// For every open object where its keys begin in `keys`; for a list none.
    open: Vec<Option<usize>>,
}

impl Walk<'_> {
    fn run(mut self) -> Result<(), String> {
        let bytes = self.value.as_bytes();
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
                    let string = Scanned::at(self.value, at);
                    at += string.raw.len() - 1;
                    if key_follows {
                        self.keys
                            .push(string.decode().ok_or_else(|| lone_surrogate(&string))?);
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
            if let Some(key) = keys::duplicate(&self.keys[start..], AsRef::as_ref) {
                return Err(duplicate_key(key));
            }
            self.keys.truncate(start);
        }
        Ok(())
    }
}

pub(super) fn duplicate_key(key: &str) -> String {
    format!("duplicate key {}", quote(key))
}

fn check_string(string: &Scanned<'_>) -> Result<(), String> {
    if string.has_lone_surrogate() {
        Err(lone_surrogate(string))
    } else {
        Ok(())
    }
}

fn lone_surrogate(string: &Scanned<'_>) -> String {
    format!(
        "half a surrogate pair in the string {}",
        quote(super::string::unquote(string.raw))
    )
}

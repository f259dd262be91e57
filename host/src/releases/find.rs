//! Finding a staged component by the beginning of its digest.

use super::store::{RuleStore, StoreError};
use crate::digest::Digest;
use std::fmt::Write;

/// Fewer digits than this name nothing.
const SHORTEST: usize = 4;
/// So many candidates are listed.
const LISTED: usize = 10;

/// Why a text names no component.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// Not the beginning of a digest.
    #[error("{0:?} is not a digest: write at least {SHORTEST} of its hexadecimal digits, in lower case")]
    NotADigest(String),
    /// No staged component begins like this.
    #[error("no staged component has a digest that begins with {text}{}", list(.staged))]
    Unknown {
        /// What was asked for.
        text: String,
        /// What is staged.
        staged: Vec<Digest>,
    },
    /// Several do.
    #[error("{text} is the beginning of several digests{}", list(.candidates))]
    Ambiguous {
        /// What was asked for.
        text: String,
        /// These.
        candidates: Vec<Digest>,
    },
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl RuleStore {
    /// The staged component whose digest begins with a text, with or without `sha256:`.
    pub fn find(&self, text: &str) -> Result<Digest, FindError> {
        let hex = text.strip_prefix("sha256:").unwrap_or(text);
        if !(SHORTEST..=64).contains(&hex.len()) || !hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(FindError::NotADigest(text.to_owned()));
        }
        let staged = self.staged()?;
        let candidates: Vec<Digest> = staged.iter().copied().filter(|digest| digest.hex().starts_with(hex)).collect();
        match candidates.as_slice() {
            [one] => Ok(*one),
            [] => Err(FindError::Unknown { text: text.to_owned(), staged }),
            _ => Err(FindError::Ambiguous { text: text.to_owned(), candidates }),
        }
    }
}

fn list(digests: &[Digest]) -> String {
    if digests.is_empty() {
        return ": nothing is staged here".to_owned();
    }
    let mut text = ":".to_owned();
    for digest in digests.iter().take(LISTED) {
        write!(text, "\n  {digest}").expect("writing to a string cannot fail");
    }
    if digests.len() > LISTED {
        write!(text, "\n  and {} more", digests.len() - LISTED).expect("writing to a string cannot fail");
    }
    text
}

//! What the outbox's blobs hold: frames, each an LZ4-compressed part that one thread made.

use super::LedgerError;
use crate::event::Event;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// An event as it was judged: what is needed to write it to quarantine if the table refuses its row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Original<'a> {
    /// The event.
    pub event: Cow<'a, Event>,
    /// The event version it was routed by, if that could be told.
    pub version: Option<Cow<'a, str>>,
    /// Label and digest of the rule that judged it, if one did.
    pub rule: Option<(Cow<'a, str>, Cow<'a, str>)>,
}

/// Frames one after another: the length of each, then its bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frames(Vec<u8>);

impl Frames {
    /// Adds a frame.
    pub fn push<T: Serialize>(&mut self, part: &T) {
        let plain = postcard::to_stdvec(part).expect("writing to memory cannot fail");
        let frame = lz4_flex::compress_prepend_size(&plain);
        let length = u32::try_from(frame.len()).expect("a micro-batch is bounded far below 4 GiB");
        self.0.extend_from_slice(&length.to_le_bytes());
        self.0.extend_from_slice(&frame);
    }

    /// Adds the frames of a later part.
    pub fn extend(&mut self, later: &Self) {
        self.0.extend_from_slice(&later.0);
    }

    /// Reads the frames back, in order.
    pub fn read<T: DeserializeOwned>(&self) -> Result<Vec<T>, LedgerError> {
        read(&self.0)
    }

    /// The bytes to store.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Reads frames back, in order.
pub(super) fn read<T: DeserializeOwned>(mut bytes: &[u8]) -> Result<Vec<T>, LedgerError> {
    let damaged = |what: &str| LedgerError::Damaged(format!("an entry of the outbox {what}"));
    let mut parts = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(|| damaged("is cut off"))?;
        let (frame, rest) =
            rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(|| damaged("is cut off"))?;
        let plain = lz4_flex::decompress_size_prepended(frame).map_err(|error| damaged(&error.to_string()))?;
        parts.push(postcard::from_bytes(&plain).map_err(|error| damaged(&error.to_string()))?);
        bytes = rest;
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_in_order_and_damage_is_told() {
        let mut frames = Frames::default();
        frames.push(&vec!["a".repeat(1_000)]);
        let mut later = Frames::default();
        later.push(&vec!["b".to_owned()]);
        frames.extend(&later);
        let parts: Vec<Vec<String>> = read(frames.bytes()).unwrap();
        assert_eq!(parts, [vec!["a".repeat(1_000)], vec!["b".to_owned()]]);
        assert!(frames.bytes().len() < 100, "a repetition is compressed");
        let cut = &frames.bytes()[..frames.bytes().len() - 1];
        assert!(read::<Vec<String>>(cut).unwrap_err().to_string().contains("damaged"));
        let mut flipped = frames.bytes().to_vec();
        flipped[9] ^= 0xff;
        assert!(read::<Vec<String>>(&flipped).is_err());
    }
}

//! Where a file was read to, and how it is recognised.
//!
//! A file is the path it was read by and the sha256 of all that was read of it, decompressed where it is compressed. At a new
//! start the digest of its first `offset` bytes is compared: the same means it is the same file, perhaps grown, and reading
//! goes on at `offset`; anything else means that it was replaced, and it is read as new, as the next generation.

use crate::digest::Running;
use crate::stop::Stop;
use serde::{Deserialize, Serialize};
use std::io::{self, Read};

/// A position in a file, as the ledger keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FilePosition {
    /// Bytes read.
    pub offset: u64,
    /// Lines read; of a JSON array, values.
    pub line: u64,
    /// sha256 of the bytes read, as text.
    pub digest: String,
    /// 1 for the first file read by this path, counted up each time it is replaced.
    pub generation: u32,
    /// Whether the last line read had no newline yet.
    pub open_line: bool,
}

/// Reads an input as far as a position says. The digest goes on from there if it is the same that was read before; none if
/// it is another, shorter or different.
///
/// Of a long file this takes its time: when asked to stop, it is interrupted.
pub(super) fn goes_on(input: &mut impl Read, position: &FilePosition, stop: &Stop) -> io::Result<Option<Running>> {
    let mut running = Running::default();
    let mut left = position.offset;
    let mut buffer = vec![0; 256 * 1024];
    while left > 0 {
        if stop.requested() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let want = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let got = input.read(&mut buffer[..want])?;
        if got == 0 {
            return Ok(None);
        }
        running.update(&buffer[..got]);
        left -= got as u64;
    }
    Ok((running.digest().to_string() == position.digest).then_some(running))
}

//! Where a file was read to, and how it is recognised.
//!
//! A file is the path it was read by and the sha256 of all that was read of it. At a new start the digest of its first
//! `offset` bytes is compared: the same means it is the same file, perhaps grown, and reading goes on at `offset`;
//! anything else means that it was replaced, and it is read as new, as the next generation.

use crate::digest::Running;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// A position in a file, as the ledger keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FilePosition {
    /// Bytes read.
    pub offset: u64,
    /// Lines read.
    pub line: u64,
    /// sha256 of the bytes read, as text.
    pub digest: String,
    /// 1 for the first file read by this path, counted up each time it is replaced.
    pub generation: u32,
    /// Whether the last line read had no newline yet.
    pub open_line: bool,
}

/// How a file relates to what the ledger knows of its path.
pub(super) enum Found {
    /// The same file, read to `offset`; the digest goes on from there.
    Same(FilePosition, Running),
    /// Another file than the one that was read.
    Replaced {
        /// The generation of this one.
        generation: u32,
    },
}

/// Compares a file with a position, leaving the file at the position if it is the same, else at its start.
pub(super) fn compare(file: &mut File, position: FilePosition) -> io::Result<Found> {
    let mut running = Running::default();
    let mut left = position.offset;
    let mut buffer = vec![0; 256 * 1024];
    file.seek(SeekFrom::Start(0))?;
    while left > 0 {
        let want = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let got = file.read(&mut buffer[..want])?;
        if got == 0 {
            break;
        }
        running.update(&buffer[..got]);
        left -= got as u64;
    }
    if left == 0 && running.digest().to_string() == position.digest {
        return Ok(Found::Same(position, running));
    }
    file.seek(SeekFrom::Start(0))?;
    Ok(Found::Replaced { generation: position.generation.saturating_add(1) })
}

//! What was read of an input and not given out yet.

use crate::digest::{Digest, Running};
use crate::event::KEPT;
use bytes::{Buf as _, Bytes, BytesMut};
use std::io::{self, Read};

/// How much is read at once.
pub(super) const CHUNK: usize = 256 * 1024;

/// Bytes between an input and what is made of them. What is given out is part of it, and is not copied.
pub(super) struct Buffer {
    bytes: BytesMut,
    taken: u64,
    given: u64,
    /// Over every byte given out.
    digest: Option<Running>,
}

impl Buffer {
    /// A buffer behind the first `given` bytes of an input. With a digest of these it goes on with that.
    pub fn new(given: u64, digest: Option<Running>) -> Self {
        Self { bytes: BytesMut::new(), taken: 0, given, digest }
    }

    /// Reads once. False at the end of the input.
    pub fn fill(&mut self, input: &mut impl Read) -> io::Result<bool> {
        let length = self.bytes.len();
        self.bytes.resize(length + CHUNK, 0);
        let got = loop {
            match input.read(&mut self.bytes[length..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.bytes.truncate(length + *got.as_ref().unwrap_or(&0));
        let got = got?;
        self.taken += got as u64;
        Ok(got > 0)
    }

    /// What is there.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes that were read.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Where in the input the bytes begin.
    pub fn given(&self) -> u64 {
        self.given
    }

    /// The digest of every byte given out so far.
    pub fn digest(&self) -> Option<Digest> {
        self.digest.as_ref().map(Running::digest)
    }

    /// Gives out the first bytes.
    pub fn give(&mut self, length: usize) -> Bytes {
        let bytes = self.bytes.split_to(length).freeze();
        self.given += bytes.len() as u64;
        if let Some(digest) = &mut self.digest {
            digest.update(&bytes);
        }
        bytes
    }
    /// Drops the first bytes: they are not given out.
    pub fn drop(&mut self, length: usize) {
        self.bytes.advance(length);
    }
}

/// What is too long to be held, while it is read: only its beginning is kept.
pub(super) struct Long {
    kept: Vec<u8>,
    size: u64,
    digest: Running,
    /// Bytes that left the buffer, and its digest with them. They become the buffer's when this is given out: a position that
    /// is stored before that ends in front of it, and so must its digest.
    passed: u64,
    over_all: Option<Running>,
}

impl Long {
    /// Begins with nothing.
    pub fn new(buffer: &Buffer) -> Self {
        let over_all = buffer.digest.clone();
        Self { kept: Vec::new(), size: 0, digest: Running::default(), passed: 0, over_all }
    }

    /// Passes over the first bytes of the buffer.
    pub fn pass(&mut self, buffer: &mut Buffer, length: usize) -> BytesMut {
        let piece = buffer.bytes.split_to(length);
        self.passed += piece.len() as u64;
        if let Some(digest) = &mut self.over_all {
            digest.update(&piece);
        }
        piece
    }

    /// Takes the first bytes of the buffer.
    pub fn take(&mut self, buffer: &mut Buffer, length: usize) {
        let piece = self.pass(buffer, length);
        // What is kept must not depend on how the input is cut: the same file gives the same rows, read anew or resumed.
        self.kept.extend_from_slice(&piece[..piece.len().min(KEPT - self.kept.len())]);
        self.size += piece.len() as u64;
        self.digest.update(&piece);
    }

    /// Gives it out: its beginning, its size and its digest.
    pub fn end(self, buffer: &mut Buffer) -> (Bytes, (u64, Digest)) {
        buffer.given += self.passed;
        buffer.digest = self.over_all;
        (self.kept.into(), (self.size, self.digest.digest()))
    }
}

//! Where in a bucket a key may be: the index of each bucket is in memory and always made from what the ledger holds, so
//! there is none that could be damaged.
//!
//! The bucket that is filled has a map. One that is full or has had its time gets a table of 8 bytes a key: 40 bits of
//! the key and 24 of its slot, in cells by the first bits. Where it says that a key may be, the ledger is asked: that is
//! wrong about once in 2⁴⁰ / keys look-ups.

use super::Key;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Bits of a slot's number.
const SLOT: u32 = 24;
/// Slots that an index can tell apart.
pub(super) const SLOTS: u32 = 1 << SLOT;
/// Bits of a key beside a slot.
const PREFIX: u32 = 64 - SLOT;

/// Bytes of a key in the index of a bucket that is full: its cell, and its part of a start.
pub(super) const SEALED_BYTES: usize = 9;
/// Bytes of a key in the index of the bucket that is filled, when its map has just grown.
pub(super) const FILLING_BYTES: usize = 48;

/// The index of the bucket that is filled.
#[derive(Debug, Default)]
pub(super) struct Filling(HashMap<Key, u32, BuildHasherDefault<First>>);

impl Filling {
    /// Notes where a key is. Of a key that is there twice the last counts.
    pub(super) fn insert(&mut self, key: Key, slot: u32) {
        self.0.insert(key, slot);
    }

    /// Where a key is.
    pub(super) fn slot(&self, key: &Key) -> Option<u32> {
        self.0.get(key).copied()
    }

    /// The index it becomes.
    pub(super) fn seal(self) -> Sealed {
        Sealed::new(self.0.iter().map(|(key, slot)| cell(key, *slot)).collect())
    }
}

/// A key is a hash already: its first bytes serve.
#[derive(Debug, Default)]
struct First(u64);

impl Hasher for First {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some((first, _)) = bytes.split_first_chunk::<8>() {
            self.0 = u64::from_le_bytes(*first);
        }
    }
}

/// The index of a bucket that nothing is added to any more.
#[derive(Debug)]
pub(super) struct Sealed {
    /// Of each value that the first bits of a prefix can have, where its cells begin; and the end of all.
    starts: Box<[u32]>,
    cells: Box<[u64]>,
    /// How far a cell is shifted to leave the bits that `starts` is indexed by.
    shift: u32,
}

/// A key's prefix and its slot.
pub(super) fn cell(key: &Key, slot: u32) -> u64 {
    debug_assert!(slot < SLOTS, "a bucket is bounded below that");
    key.prefix() >> SLOT << SLOT | u64::from(slot)
}

impl Sealed {
    /// The index of these keys.
    #[expect(clippy::cast_possible_truncation, reason = "a shifted cell has few bits")]
    pub(super) fn new(mut cells: Vec<u64>) -> Self {
        // About eight cells to a start.
        let bits = cells.len().max(1).ilog2().saturating_sub(3).clamp(1, PREFIX);
        let shift = 64 - bits;
        cells.sort_unstable();
        let mut starts = vec![0; (1 << bits) + 1];
        for cell in &cells {
            starts[(cell >> shift) as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        Self { starts: starts.into(), cells: cells.into(), shift }
    }

    /// Where a key may be, the last place first.
    #[expect(clippy::cast_possible_truncation, reason = "a shifted prefix and a slot have few bits")]
    pub(super) fn slots(&self, key: &Key) -> impl Iterator<Item = u32> {
        let prefix = key.prefix();
        let at = (prefix >> self.shift) as usize;
        let cells = &self.cells[self.starts[at] as usize..self.starts[at + 1] as usize];
        let wanted = prefix >> SLOT;
        cells.iter().rev().filter(move |cell| *cell >> SLOT == wanted).map(|cell| (cell % u64::from(SLOTS)) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> Key {
        Key::of("test", &number.to_le_bytes())
    }

    fn sealed(keys: u64) -> Sealed {
        let mut filling = Filling::default();
        for slot in 0..keys {
            filling.insert(key(slot), u32::try_from(slot).unwrap());
        }
        filling.seal()
    }

    #[test]
    fn every_key_is_found_at_its_slot_and_no_other() {
        for keys in [0, 1, 2, 7, 8, 9, 1_000, 100_000] {
            let index = sealed(keys);
            for slot in 0..keys {
                assert_eq!(index.slots(&key(slot)).collect::<Vec<_>>(), [u32::try_from(slot).unwrap()]);
            }
            assert!((keys..keys + 10_000).all(|other| index.slots(&key(other)).next().is_none()), "{keys}");
        }
    }

    #[test]
    fn keys_that_begin_alike_are_both_found() {
        let alike = |last: u8| Key([1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, last]);
        let index = Sealed::new(vec![cell(&alike(1), 5), cell(&alike(2), 9), cell(&key(1), 7)]);
        assert_eq!(index.slots(&alike(1)).collect::<Vec<_>>(), [9, 5], "the ledger tells which of them it is");
        let mut filling = Filling::default();
        filling.insert(alike(1), 5);
        filling.insert(alike(2), 9);
        assert_eq!((filling.slot(&alike(1)), filling.slot(&alike(2))), (Some(5), Some(9)));
    }
}

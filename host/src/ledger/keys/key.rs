//! Keys and fingerprints: hashes of what makes two events, or two deliveries of one, the same.

use sha2::{Digest as _, Sha256};

/// A key: 16 bytes of a sha256. Two different events share one by chance once in 2⁶⁴ events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(pub(super) [u8; Self::BYTES]);

/// A shorter hash, to compare two things that share a key already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub(super) [u8; Self::BYTES]);

impl Key {
    /// Its size.
    pub const BYTES: usize = 16;
    /// What stands where a key was released.
    pub(super) const NONE: Self = Self([0; Self::BYTES]);

    /// The key of one thing: `what` tells keys of different kinds apart.
    pub fn of(what: &str, thing: &[u8]) -> Self {
        let mut parts = Parts::of(what);
        parts.add(thing);
        parts.key()
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// Its first eight bytes as a number: as evenly spread as a hash is.
    pub(super) fn prefix(&self) -> u64 {
        let (first, _) = self.0.split_first_chunk::<8>().expect("a key has 16 bytes");
        u64::from_be_bytes(*first)
    }
}

impl Fingerprint {
    /// Its size.
    pub const BYTES: usize = 8;

    /// Its bytes.
    pub fn bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }
}

/// Parts of one thing, hashed so that no two lists of parts are the same bytes: each with its length before it.
#[derive(Debug, Clone)]
pub struct Parts(Sha256);

impl Parts {
    /// Without parts yet. `what` tells things of different kinds apart.
    pub fn of(what: &str) -> Self {
        let mut parts = Self(Sha256::new());
        parts.add(what.as_bytes());
        parts
    }

    /// Adds a part.
    pub fn add(&mut self, part: &[u8]) {
        self.0.update((part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    /// The key of the parts.
    pub fn key(self) -> Key {
        let digest: [u8; 32] = self.0.finalize().into();
        let (first, _) = digest.split_first_chunk().expect("a sha256 has 32 bytes");
        Key(*first)
    }

    /// The fingerprint of the parts.
    pub fn fingerprint(self) -> Fingerprint {
        let Key(key) = self.key();
        let (first, _) = key.split_first_chunk().expect("a key has 16 bytes");
        Fingerprint(*first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(what: &str, list: &[&str]) -> Key {
        let mut parts = Parts::of(what);
        for part in list {
            parts.add(part.as_bytes());
        }
        parts.key()
    }

    #[test]
    fn no_two_lists_of_parts_share_a_key() {
        let lists = [
            key("a", &["bc", "d"]),
            key("a", &["b", "cd"]),
            key("a", &["bcd"]),
            key("a", &["bcd", ""]),
            key("a", &["", "bcd"]),
            key("ab", &["cd"]),
            key("", &["a", "bcd"]),
        ];
        for (at, one) in lists.iter().enumerate() {
            assert!(!lists[at + 1..].contains(one), "{at}");
        }
        assert_eq!(Key::of("a", b"bcd"), key("a", &["bcd"]));
    }

    /// Ledgers of earlier versions hold keys: a key stays what it is.
    #[test]
    fn a_key_is_the_same_for_ever() {
        let expected: [u8; 16] = {
            let mut bytes = Vec::new();
            for part in ["message", "17"] {
                bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
                bytes.extend_from_slice(part.as_bytes());
            }
            *crate::digest::Digest::of(&bytes).bytes().first_chunk().unwrap()
        };
        assert_eq!(Key::of("message", b"17"), Key(expected));
    }
}

//! A share of the events, chosen by a hash: the same key is always on the same side, in every worker and version.

use crate::digest::Digest;

/// A share of all keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share(u64);

impl Share {
    /// Every key.
    pub const ALL: Self = Self(u64::MAX);

    /// A percentage of the keys; 100 and above is all.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float casts to the nearest bound")]
    pub fn percent(percent: f64) -> Self {
        Self((percent / 100.0 * u64::MAX as f64) as u64)
    }

    /// Whether a key is in it. Shares with another purpose are independent of each other.
    pub fn holds(self, purpose: &str, key: &[u8]) -> bool {
        if self == Self::ALL {
            return true;
        }
        let mut text = Vec::with_capacity(purpose.len() + 1 + key.len());
        text.extend_from_slice(purpose.as_bytes());
        text.push(0);
        text.extend_from_slice(key);
        let digest = Digest::of(&text);
        let first = digest.bytes().first_chunk().expect("a digest has 32 bytes");
        u64::from_be_bytes(*first) < self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(share: Share, purpose: &str) -> Vec<u32> {
        (0..10_000).filter(|n: &u32| share.holds(purpose, n.to_string().as_bytes())).collect()
    }

    #[test]
    fn a_share_is_about_its_percentage_and_grows_by_adding() {
        let (five, ten) = (kept(Share::percent(5.0), "canary"), kept(Share::percent(10.0), "canary"));
        assert!((400..600).contains(&five.len()), "{}", five.len());
        assert!(five.iter().all(|n| ten.contains(n)));
        assert_eq!(kept(Share::percent(0.0), "canary").len(), 0);
        assert_eq!(kept(Share::percent(100.0), "canary").len(), 10_000);
    }

    #[test]
    fn another_purpose_is_another_choice() {
        let (canary, shadow) = (kept(Share::percent(10.0), "canary"), kept(Share::percent(10.0), "shadow"));
        let both = canary.iter().filter(|n| shadow.contains(n)).count();
        assert!((50..200).contains(&both), "{both} of a thousand are in both");
    }

    #[test]
    fn the_same_key_is_on_the_same_side_in_every_build() {
        let half = Share::percent(50.0);
        let sides: Vec<bool> = ["a", "b", "c", "d", "e", "f"].map(|key| half.holds("canary", key.as_bytes())).into();
        assert_eq!(sides, [false, true, true, true, true, true]);
    }
}

//! Numbers that look random.

/// `SplitMix64`, as in Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014). Ours because the bytes of a generated file must
/// not change with the version of a library.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number of `0..end`. The bias of this is far below what any file could show.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        let scaled = (u128::from(self.next()) * u128::from(end)) >> 64;
        u64::try_from(scaled).expect("it is below the end")
    }

    /// One of them.
    pub(super) fn pick(&mut self, texts: &[&'static str]) -> &'static str {
        texts[self.index(texts.len())]
    }

    /// An index of `0..len`.
    pub(super) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).expect("it is below a length")
    }

    /// True so many times out of a hundred.
    pub(super) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_paper() {
        let mut random = Random::new(1_234_567);
        let numbers = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(numbers.map(|_| random.next()), numbers);
    }

    #[test]
    fn numbers_below_an_end_reach_all_of_them() {
        let mut random = Random::new(1);
        let mut seen = [0_u32; 7];
        for _ in 0..7_000 {
            seen[random.index(7)] += 1;
        }
        assert!(seen.iter().all(|times| (800..1_200).contains(times)), "{seen:?}");
    }
}

//! Comparing keys, and finding one that occurs twice.

/// Up to here comparing every pair is cheaper than sorting.
const FEW: usize = 16;

/// A key that more than one of `items` has. Takes `n log n` steps for many: an event may hold any number of keys.
pub(super) fn duplicate<T>(items: &[T], key: impl Fn(&T) -> &str) -> Option<&str> {
    if items.len() <= FEW {
        return items.iter().enumerate().find_map(|(at, item)| {
            let wanted = key(item);
            items[at + 1..].iter().any(|other| same(key(other), wanted)).then_some(wanted)
        });
    }
    // The hash spares comparing keys with long common beginnings. Keys that were made to have the same hash only cost that much more.
    let hashed = items.iter().map(|item| (hash(key(item)), key(item)));
    let mut keys: Vec<(u64, &str)> = hashed.collect();
    keys.sort_unstable();
    keys.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0].1)
}

fn hash(key: &str) -> u64 {
    let mix = |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    let (chunks, rest) = key.as_bytes().as_chunks::<8>();
    let hash = chunks.iter().fold(0, |hash, chunk| mix(hash, u64::from_le_bytes(*chunk)));
    rest.iter().fold(hash, |hash, byte| mix(hash, (*byte).into()))
}

/// `==` for short texts. Inside wasm the standard library's takes some 25 instructions a byte, and an event takes dozens of comparisons.
#[inline]
pub(super) fn same(one: &str, other: &str) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let (chunks, rest) = one.as_bytes().as_chunks::<8>();
    let (other_chunks, other_rest) = other.as_bytes().as_chunks::<8>();
    let eight_bytes = |chunk: &[u8; 8]| u64::from_ne_bytes(*chunk);
    chunks.iter().zip(other_chunks).all(|(one, other)| eight_bytes(one) == eight_bytes(other))
        && rest.iter().zip(other_rest).all(|(one, other)| one == other)
}

//! Finding a key that occurs twice.

/// Up to here comparing every pair is cheaper than sorting.
const FEW: usize = 16;

/// A key that more than one of `items` has. Takes `n log n` steps for many: an event may hold any number of keys.
pub(super) fn duplicate<T>(items: &[T], key: impl Fn(&T) -> &str) -> Option<&str> {
    if items.len() <= FEW {
        return items.iter().enumerate().find_map(|(at, item)| {
            let wanted = key(item);
            items[at + 1..]
                .iter()
                .any(|other| key(other) == wanted)
                .then_some(wanted)
        });
    }
    let mut keys: Vec<&str> = items.iter().map(key).collect();
    keys.sort_unstable();
    keys.windows(2)
        .find(|pair| pair[0] == pair[1])
        .map(|pair| pair[0])
}

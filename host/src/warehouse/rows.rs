//! Encoded rows, in order, each knowing the event it came from.

use serde::{Deserialize, Serialize};

/// Rows of one target, encoded back to back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowSet {
    #[serde(with = "serde_bytes")]
    bytes: Vec<u8>,
    /// End of each row in `bytes`.
    ends: Vec<u32>,
    /// For each row the index of its event in the micro-batch.
    events: Vec<u32>,
}

impl RowSet {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds the row that `encode` appends for an event. If the row has more than `limit` bytes it is taken back, and
    /// its size returned.
    pub fn push(&mut self, event: u32, limit: usize, encode: impl FnOnce(&mut Vec<u8>)) -> Result<(), usize> {
        let start = self.bytes.len();
        encode(&mut self.bytes);
        let size = self.bytes.len() - start;
        if size > limit {
            self.bytes.truncate(start);
            return Err(size);
        }
        self.ends.push(u32::try_from(self.bytes.len()).expect("a micro-batch is bounded far below 4 GiB"));
        self.events.push(event);
        Ok(())
    }

    /// A row's bytes.
    pub fn row(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        &self.bytes[start..self.ends[index] as usize]
    }

    /// The index of a row's event in the micro-batch.
    pub fn event(&self, index: usize) -> u32 {
        self.events[index]
    }

    /// Rows in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.row(index))
    }

    /// Appends the rows of a later part of the micro-batch.
    pub fn extend(&mut self, later: &Self) {
        let shift = u32::try_from(self.bytes.len()).expect("a micro-batch is bounded far below 4 GiB");
        self.bytes.extend_from_slice(&later.bytes);
        self.ends.extend(later.ends.iter().map(|end| end + shift));
        self.events.extend_from_slice(&later.events);
    }

    /// The same rows without some of them, by index.
    #[must_use]
    pub fn without(&self, refused: &[usize]) -> Self {
        self.those(|index| !refused.contains(&index))
    }

    /// The rows of some events only.
    #[must_use]
    pub fn of_events(&self, wanted: impl Fn(u32) -> bool) -> Self {
        self.those(|index| wanted(self.event(index)))
    }

    /// These rows and others, in the order of their events.
    #[must_use]
    pub fn merged(&self, others: &Self) -> Self {
        let mut rows: Vec<(&Self, usize)> =
            [self, others].into_iter().flat_map(|set| (0..set.len()).map(move |index| (set, index))).collect();
        rows.sort_by_key(|(set, index)| set.event(*index));
        let mut merged = Self::default();
        for (set, index) in rows {
            let row = set.row(index);
            merged.push(set.event(index), usize::MAX, |bytes| bytes.extend_from_slice(row)).ok();
        }
        merged
    }

    fn those(&self, wanted: impl Fn(usize) -> bool) -> Self {
        let mut kept = Self::default();
        for index in (0..self.len()).filter(|index| wanted(*index)) {
            let row = self.row(index);
            kept.push(self.event(index), usize::MAX, |bytes| bytes.extend_from_slice(row)).ok();
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(rows: &[(u32, &str)]) -> RowSet {
        let mut set = RowSet::default();
        for (event, row) in rows {
            set.push(*event, usize::MAX, |bytes| bytes.extend_from_slice(row.as_bytes())).unwrap();
        }
        set
    }

    #[test]
    fn rows_keep_their_order_and_their_events() {
        let mut rows = set(&[(0, "a"), (2, "bcd")]);
        rows.extend(&set(&[(5, ""), (6, "e")]));
        assert_eq!(rows.iter().collect::<Vec<_>>(), [b"a" as &[u8], b"bcd", b"", b"e"]);
        assert_eq!((0..4).map(|i| rows.event(i)).collect::<Vec<_>>(), [0, 2, 5, 6]);
        assert_eq!(rows.without(&[1, 3]), set(&[(0, "a"), (5, "")]));
        assert_eq!(rows.of_events(|event| event > 2), set(&[(5, ""), (6, "e")]));
        assert_eq!(
            set(&[(0, "a"), (5, "c")]).merged(&set(&[(2, "b"), (6, "")])),
            set(&[(0, "a"), (2, "b"), (5, "c"), (6, "")])
        );
    }

    #[test]
    fn a_row_above_the_limit_is_taken_back() {
        let mut rows = set(&[(0, "a")]);
        assert_eq!(rows.push(1, 2, |bytes| bytes.extend_from_slice(b"abc")), Err(3));
        assert_eq!(rows.push(1, 3, |bytes| bytes.extend_from_slice(b"abc")), Ok(()));
        assert_eq!(rows.len(), 2);
    }
}

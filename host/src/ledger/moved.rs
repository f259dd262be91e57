//! A stream that the warehouse no longer has, or that somebody else has written to: what was bound to it and is not in the
//! table is bound to another.

use super::{Entry, Ledger, LedgerError, Seq, Stream, Tier, outbox, schema};
use std::sync::Arc;

impl Ledger {
    /// The undone entries of a target that are bound to its stream, in the order they were bound.
    pub fn undone_entries(&self, tier: Tier) -> Result<Vec<(Seq, Entry)>, LedgerError> {
        let is_bound = |entry: &&Entry| entry.tier == tier && entry.layout.upsert.is_none();
        let mut found = Vec::new();
        for seq in &self.undone {
            let entries = self.entries(*seq)?;
            found.extend(entries.iter().filter(is_bound).map(|entry| (*seq, entry.clone())));
        }
        // A commit that a table's refusal added has a higher number than one whose entries came later in the stream.
        found.sort_by_key(|(_, entry)| entry.first_offset);
        Ok(found)
    }

    /// Remembers that somebody else has written to a target's stream: how many rows it has says nothing of ours.
    pub fn distrust_stream(&mut self, tier: Tier) -> Result<(), LedgerError> {
        let Some(stream) = self.streams.get(&tier) else { return Ok(()) };
        let key = distrusted(tier);
        self.connection.execute("INSERT OR REPLACE INTO meta VALUES (?1, ?2)", [&key, &stream.name])?;
        Ok(())
    }

    /// Whether somebody else has written to a target's stream.
    pub fn is_distrusted(&self, tier: Tier) -> Result<bool, LedgerError> {
        let name = schema::meta(&self.connection, &distrusted(tier))?;
        Ok(name.is_some() && name.as_deref() == self.streams.get(&tier).map(|stream| stream.name.as_str()))
    }

    /// Binds what is undone of a target's stream to the new stream `name`, in one transaction. The first `written` rows of
    /// the old one are in the table: of an entry that ends behind them only the rest is sent again.
    pub fn move_stream(&mut self, tier: Tier, name: &str, written: u64) -> Result<(), LedgerError> {
        let Some(old) = self.streams.get(&tier).cloned() else { return Ok(()) };
        let undone = self.undone_entries(tier)?;
        let mut new = Stream { name: name.to_owned(), next_offset: 0, layout: Arc::clone(&old.layout) };
        // The next start compares the counts of closed streams: this one has others than ours, and is forgotten.
        let counted = if self.is_distrusted(tier)? { 0 } else { written };
        let transaction = self.connection.transaction()?;
        let closed = Stream { next_offset: counted, ..old };
        outbox::close_stream(&transaction, tier, &closed)?;
        outbox::insert_stream(&transaction, tier, name, &new.layout)?;
        for (seq, entry) in undone {
            let before = written.saturating_sub(entry.first_offset).min(entry.rows.len() as u64);
            let before = usize::try_from(before).expect("it is not more than there are rows");
            let rest = if before == 0 { None } else { Some(entry.rows.without(&(0..before).collect::<Vec<_>>())) };
            let rows = entry.rows.len() - before;
            outbox::rebind(&transaction, (seq, tier), &new, rows, rest.as_ref())?;
            new.next_offset += rows as u64;
        }
        transaction.execute("DELETE FROM meta WHERE key = ?1", [distrusted(tier)])?;
        transaction.commit()?;
        self.streams.insert(tier, new);
        // What is in memory is bound to the old one.
        self.recent.clear();
        Ok(())
    }
}

/// Under this key a distrusted stream is remembered.
fn distrusted(tier: Tier) -> String {
    format!("distrusted-{tier}")
}

#[cfg(test)]
mod tests {
    use super::super::{Additions, Frames, Part};
    use super::*;
    use crate::warehouse::{Encoding, Layout, RowSet};

    fn rows(count: u32) -> RowSet {
        let mut rows = RowSet::default();
        for event in 0..count {
            rows.push(event, usize::MAX, |bytes| bytes.push(u8::try_from(event).unwrap())).unwrap();
        }
        rows
    }

    fn commit(ledger: &mut Ledger, layout: &Arc<Layout>, tiers: &[(Tier, u32)]) {
        let part = |(tier, count): &(Tier, u32)| {
            let (rows, mut frames) = (rows(*count), Frames::default());
            frames.push(&rows);
            Part { tier: *tier, layout: Arc::clone(layout), rows: Arc::new(rows), frames }
        };
        let parts: Vec<Part> = tiers.iter().map(part).collect();
        ledger.commit(&parts, &Frames::default(), None, &Additions::default()).unwrap();
    }

    /// Offset and row count of each undone entry of silver.
    fn bound(ledger: &Ledger) -> Vec<(String, u64, Vec<u8>)> {
        let entries = ledger.undone_entries(Tier::Silver).unwrap().into_iter();
        entries.map(|(_, e)| (e.stream.clone(), e.first_offset, e.rows.iter().flatten().copied().collect())).collect()
    }

    #[test]
    fn what_is_in_the_table_is_not_bound_again_and_the_rest_is_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let layout =
            Arc::new(Layout { table: "t".into(), columns: vec!["a".into()], encoding: Encoding::Cells, upsert: None });
        let open = || Ledger::open(directory.path(), "p", "w").unwrap();
        let mut ledger = open();
        for tier in [Tier::Silver, Tier::Quarantine] {
            ledger.open_stream(tier, tier.as_str(), Arc::clone(&layout)).unwrap();
        }
        commit(&mut ledger, &layout, &[(Tier::Silver, 2)]);
        commit(&mut ledger, &layout, &[(Tier::Silver, 3), (Tier::Quarantine, 1)]);
        commit(&mut ledger, &layout, &[(Tier::Silver, 1)]);
        // Two rows of the second commit are in the table, too.
        ledger.move_stream(Tier::Silver, "new", 4).unwrap();
        for reopened in [false, true] {
            if reopened {
                drop(ledger);
                ledger = open();
            }
            assert_eq!(bound(&ledger), [("new".to_owned(), 0, vec![2]), ("new".to_owned(), 1, vec![0])]);
            assert_eq!(ledger.stream(Tier::Silver).unwrap().next_offset, 2);
            assert_eq!(ledger.closed_streams().unwrap(), [("silver".to_owned(), 4)]);
            let other = ledger.undone_entries(Tier::Quarantine).unwrap();
            assert_eq!((other.len(), other[0].1.stream.as_str()), (1, "quarantine"));
            // The first commit has nothing left to send, and is done when it is looked at.
            assert_eq!((ledger.first_undone(), ledger.entries(1).unwrap().len()), (Some(1), 0));
        }
        commit(&mut ledger, &layout, &[(Tier::Silver, 1)]);
        assert_eq!(bound(&ledger).last().unwrap().1, 2);
    }

    #[test]
    fn a_stream_that_somebody_else_wrote_to_is_remembered_until_it_is_moved_and_then_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        let layout =
            Arc::new(Layout { table: "t".into(), columns: vec!["a".into()], encoding: Encoding::Cells, upsert: None });
        let open = || Ledger::open(directory.path(), "p", "w").unwrap();
        let mut ledger = open();
        ledger.open_stream(Tier::Silver, "old", Arc::clone(&layout)).unwrap();
        commit(&mut ledger, &layout, &[(Tier::Silver, 2)]);
        assert!(!ledger.is_distrusted(Tier::Silver).unwrap() && !ledger.is_of_earlier_run(1));
        ledger.distrust_stream(Tier::Silver).unwrap();
        drop(ledger);
        let mut ledger = open();
        assert!(ledger.is_distrusted(Tier::Silver).unwrap() && ledger.is_of_earlier_run(1));
        assert!(!ledger.is_distrusted(Tier::Bronze).unwrap());
        ledger.move_stream(Tier::Silver, "new", 1).unwrap();
        assert!(!ledger.is_distrusted(Tier::Silver).unwrap());
        assert_eq!(bound(&ledger), [("new".to_owned(), 0, vec![1])]);
        assert!(ledger.closed_streams().unwrap().is_empty());
    }

    #[test]
    fn targets_that_only_the_ledger_knows_come_back_and_others_are_damage() {
        let directory = tempfile::tempdir().unwrap();
        let layout =
            Arc::new(Layout { table: "t".into(), columns: vec!["a".into()], encoding: Encoding::Cells, upsert: None });
        let open = || Ledger::open(directory.path(), "p", "w");
        let mut ledger = open().unwrap();
        let tiers = ["silver", "late", "panes:per_minute"].map(|name| name.parse::<Tier>().unwrap());
        for tier in tiers {
            let name = ledger.new_stream_name(tier).unwrap();
            ledger.open_stream(tier, &name, Arc::clone(&layout)).unwrap();
        }
        commit(&mut ledger, &layout, &tiers.map(|tier| (tier, 2)));
        drop(ledger);
        let ledger = open().unwrap();
        assert_eq!(ledger.tiers(), tiers);
        assert_eq!(ledger.entries(1).unwrap().iter().map(|entry| entry.tier).collect::<Vec<_>>(), tiers);
        let name = format!("panes:per_minute-{}-3", ledger.id());
        assert_eq!(ledger.stream(tiers[2]).unwrap().name, name);
        assert!(!ledger.is_younger(&name).unwrap() && ledger.is_younger(&name.replace("-3", "-4")).unwrap());
        ledger.connection.execute("UPDATE streams SET tier = 'gold' WHERE tier = 'late'", []).unwrap();
        drop(ledger);
        let error = open().err().unwrap().to_string();
        assert!(error.contains("it names a target \"gold\""), "{error}");
    }

    #[test]
    fn nothing_written_moves_everything() {
        let directory = tempfile::tempdir().unwrap();
        let layout =
            Arc::new(Layout { table: "t".into(), columns: vec!["a".into()], encoding: Encoding::Cells, upsert: None });
        let mut ledger = Ledger::open(directory.path(), "p", "w").unwrap();
        ledger.open_stream(Tier::Silver, "old", Arc::clone(&layout)).unwrap();
        commit(&mut ledger, &layout, &[(Tier::Silver, 2)]);
        ledger.move_stream(Tier::Silver, "new", 0).unwrap();
        assert_eq!(bound(&ledger), [("new".to_owned(), 0, vec![0, 1])]);
        assert!(ledger.closed_streams().unwrap().is_empty());
    }
}

//! Rows that are upserted stand in no stream, and leave the streams of others alone.

use preflight::ledger::{Additions, Frames, Ledger, Part, Refused};
use preflight::telemetry::tally::Tally;
use preflight::warehouse::{Encoding, Layout, RowSet, Tier, Upsert};
use std::path::Path;
use std::sync::Arc;

fn open(directory: &Path) -> Ledger {
    Ledger::open(directory, "p", "w").unwrap()
}

fn layout(upsert: bool) -> Arc<Layout> {
    let upsert = upsert.then(|| Upsert { key: "id".into(), sequence: vec!["n".into()] });
    Arc::new(Layout { table: "t".into(), columns: vec!["id".into(), "n".into()], encoding: Encoding::Cells, upsert })
}

fn part(tier: Tier, rows: u32) -> Part {
    let mut set = RowSet::default();
    (0..rows).for_each(|event| set.push(event, usize::MAX, |bytes| bytes.push(b'x')).unwrap());
    let mut frames = Frames::default();
    frames.push(&set);
    Part { tier, layout: layout(tier != Tier::Silver && tier != Tier::Quarantine), rows: Arc::new(set), frames }
}

fn commit(ledger: &mut Ledger, parts: &[Part]) -> i64 {
    ledger.commit(parts, &Frames::default(), None, &Additions::default()).unwrap()
}

/// Target, stream, offset and rows of each entry of a commit.
fn entries(ledger: &Ledger, seq: i64) -> Vec<(Tier, String, u64, usize)> {
    let entries = ledger.entries(seq).unwrap();
    entries.iter().map(|entry| (entry.tier, entry.stream.clone(), entry.first_offset, entry.rows.len())).collect()
}

fn panes() -> Tier {
    "panes:per_minute".parse().unwrap()
}

#[test]
fn what_is_upserted_is_promised_without_a_stream_and_kept_until_it_is_done() {
    let directory = tempfile::tempdir().unwrap();
    let mut ledger = open(directory.path());
    ledger.open_stream(Tier::Silver, "s", layout(false)).unwrap();
    for seq in 1..=2 {
        assert_eq!(commit(&mut ledger, &[part(panes(), 2), part(Tier::Silver, 3)]), seq);
    }
    assert_eq!(ledger.tiers(), [Tier::Silver]);
    for reopened in [false, true] {
        if reopened {
            drop(ledger);
            ledger = open(directory.path());
        }
        assert_eq!(entries(&ledger, 2), [(panes(), String::new(), 0, 2), (Tier::Silver, "s".into(), 3, 3)]);
        assert_eq!(ledger.entries(2).unwrap()[0].layout, layout(true));
        assert!(ledger.stream(panes()).is_none() && ledger.undone_entries(panes()).unwrap().is_empty());
        assert_eq!(ledger.stream(Tier::Silver).unwrap().next_offset, 6);
        assert_eq!((ledger.first_undone(), ledger.undone()), (Some(1), 2));
    }
    for seq in 1..=2 {
        ledger.done(seq).unwrap();
    }
    assert_eq!(ledger.undone(), 0);
}

#[test]
fn a_row_that_is_taken_out_of_upserts_moves_no_other_entry() {
    let directory = tempfile::tempdir().unwrap();
    let mut ledger = open(directory.path());
    for tier in [Tier::Silver, Tier::Quarantine] {
        ledger.open_stream(tier, tier.as_str(), layout(false)).unwrap();
    }
    let other: Tier = "panes:other".parse().unwrap();
    let first = commit(&mut ledger, &[part(panes(), 2), part(Tier::Silver, 1)]);
    let second = commit(&mut ledger, &[part(panes(), 3), part(other, 1), part(Tier::Silver, 1)]);
    let before = ledger.entries(first).unwrap();
    let kept = before[0].rows.without(&[1]);
    let (instead, originals, counts) = ([part(Tier::Quarantine, 1)], Frames::default(), Tally::default());
    let (tier, events) = (panes(), &[1][..]);
    ledger
        .replace(&Refused {
            seq: first,
            tier,
            kept: &kept,
            instead: &instead,
            events,
            originals: &originals,
            counts: &counts,
        })
        .unwrap();
    for reopened in [false, true] {
        if reopened {
            drop(ledger);
            ledger = open(directory.path());
        }
        assert_eq!(entries(&ledger, first), [(panes(), String::new(), 0, 1), (Tier::Silver, "silver".into(), 0, 1)]);
        let behind =
            [(panes(), String::new(), 0, 3), (other, String::new(), 0, 1), (Tier::Silver, "silver".into(), 1, 1)];
        assert_eq!(entries(&ledger, second), behind);
        assert_eq!(ledger.stream(Tier::Silver).unwrap().next_offset, 2);
    }
}

/// A table that became one for upserts while rows of its stream were undone.
#[test]
fn a_stream_that_is_moved_leaves_upserts_of_its_target_alone() {
    let directory = tempfile::tempdir().unwrap();
    let mut ledger = open(directory.path());
    ledger.open_stream(panes(), "old", layout(false)).unwrap();
    let appended = Part { layout: layout(false), ..part(panes(), 2) };
    commit(&mut ledger, &[appended]);
    commit(&mut ledger, &[part(panes(), 3)]);
    ledger.distrust_stream(panes()).unwrap();
    assert_eq!(ledger.stream(panes()).unwrap().next_offset, 2);
    assert_eq!(ledger.undone_entries(panes()).unwrap().len(), 1);
    ledger.move_stream(panes(), "new", 1).unwrap();
    assert_eq!(entries(&ledger, 1), [(panes(), "new".into(), 0, 1)]);
    assert_eq!(entries(&ledger, 2), [(panes(), String::new(), 0, 3)]);
    assert_eq!(ledger.stream(panes()).unwrap().next_offset, 1);
}

//! What becomes of an event that was seen before: functions of what is known, and nothing else.

use crate::config::OnConflict;
use crate::ledger::{Claim, Key};
use crate::pipeline::facts::{Fact, Fate, Mark};
use std::collections::{BTreeSet, HashMap, HashSet};

/// What becomes of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// What its rule says.
    Stays,
    /// Its message was committed: it is written nowhere.
    Redelivered,
    /// The producer sent it before: it is counted, and in the raw tier.
    Duplicate,
    /// It is not the event that its key says: quarantine.
    Conflict,
}

/// What becomes of the events of a micro-batch, in their order.
#[derive(Debug)]
pub(super) struct Decisions(Vec<Decision>);

impl Decisions {
    /// Decides by the messages and the keys. `known` and `claims` are what the ledger says of each event; what stands
    /// earlier in the micro-batch comes first.
    pub(super) fn new(
        marks: &[Mark],
        known: &[bool],
        facts: &[Fact],
        claims: &[Option<Claim>],
        on_conflict: OnConflict,
    ) -> Self {
        let (mut ids, mut claimed) = (HashSet::new(), HashMap::new());
        let decide = |index: usize| {
            let fact = &facts[index];
            if known[index] || marks[index].id.is_some_and(|id| !ids.insert(id)) {
                return Decision::Redelivered;
            }
            let Some(key) = fact.key else { return Decision::Stays };
            let first = claims[index].or_else(|| claimed.get(&key).copied());
            let decision = by_claim(&fact.fate, &fact.claim, first.as_ref(), on_conflict);
            if decision == Decision::Stays && fact.fate == Fate::Accepted {
                claimed.insert(key, fact.claim);
            }
            decision
        };
        Self((0..facts.len()).map(decide).collect())
    }

    /// The events that get no row in silver and have a key, each with the key that says whether it is one more time the
    /// same.
    pub(super) fn repeats(&self, facts: &[Fact]) -> Vec<(usize, Key)> {
        let repeat = |(index, fact): (usize, &Fact)| {
            let key = match self.0[index] {
                Decision::Stays => fact.repeat(),
                Decision::Conflict => fact.repeated_conflict(),
                Decision::Redelivered | Decision::Duplicate => None,
            };
            Some((index, key?))
        };
        facts.iter().enumerate().filter_map(repeat).collect()
    }

    /// Makes duplicates of those that the ledger has `found`, and of all but the first in the micro-batch. Returns the
    /// keys that are new.
    pub(super) fn drop_repeated(&mut self, repeats: Vec<(usize, Key)>, found: &[bool]) -> Vec<Key> {
        let mut new = HashSet::new();
        let mut keys = Vec::new();
        for ((index, key), found) in repeats.into_iter().zip(found) {
            if *found || !new.insert(key) {
                self.0[index] = Decision::Duplicate;
            } else {
                keys.push(key);
            }
        }
        keys
    }

    /// The keys that are claimed: by accepted events only.
    pub(super) fn claims(&self, facts: &[Fact]) -> Vec<(u32, Key, Claim)> {
        let claims = self.iter().zip(facts).zip(0..).filter_map(|((decision, fact), index)| {
            let is_new = decision == Decision::Stays && fact.fate == Fate::Accepted;
            is_new.then_some((index, fact.key?, fact.claim))
        });
        claims.collect()
    }

    /// One after the other.
    pub(super) fn iter(&self) -> impl Iterator<Item = Decision> {
        self.0.iter().copied()
    }

    /// What becomes of an event.
    pub(super) fn about(&self, event: u32) -> Decision {
        // Without facts nothing was looked for.
        self.0.get(event as usize).copied().unwrap_or(Decision::Stays)
    }

    /// The events of which this becomes.
    pub(super) fn of(&self, wanted: Decision) -> BTreeSet<u32> {
        self.iter().zip(0..).filter(|(decision, _)| *decision == wanted).map(|(_, index)| index).collect()
    }
}

/// Decides of an event that has a key. `first` is what the accepted event claimed the key with that had it before; `own`
/// is what this one would.
///
/// What has the same content is a duplicate, whatever another rule would make of it by now: the first wins. What has
/// another content is judged by its own: the same row says nothing new, another row is a conflict, and what gets no row
/// is rejected or ignored for what it is.
fn by_claim(fate: &Fate, own: &Claim, first: Option<&Claim>, on_conflict: OnConflict) -> Decision {
    let Some(first) = first else { return Decision::Stays };
    if first.content == own.content {
        return Decision::Duplicate;
    }
    match (fate, on_conflict) {
        (Fate::Accepted, _) if first.row == own.row => Decision::Duplicate,
        (Fate::Accepted, OnConflict::Quarantine) => Decision::Conflict,
        (Fate::Accepted, OnConflict::Drop) => Decision::Duplicate,
        (Fate::Ignored | Fate::Rejected(..) | Fate::Duplicate, _) => Decision::Stays,
    }
}

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
            if decision == Decision::Stays && fact.fate.is_accepted() {
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
            let is_new = decision == Decision::Stays && fact.fate.is_accepted();
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
        (Fate::Accepted(_), _) if first.row == own.row => Decision::Duplicate,
        (Fate::Accepted(_), OnConflict::Quarantine) => Decision::Conflict,
        (Fate::Accepted(_), OnConflict::Drop) => Decision::Duplicate,
        (Fate::Ignored | Fate::Rejected(..) | Fate::Duplicate, _) => Decision::Stays,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{Fingerprint, Parts};
    use Decision::{Conflict, Duplicate, Redelivered, Stays};
    use std::sync::Arc;

    const ACCEPTED: Fate = Fate::Accepted(None);
    const REJECTED: Fate = Fate::Rejected(std::borrow::Cow::Borrowed("TOY"), None);

    fn print(of: &str) -> Fingerprint {
        Parts::of(of).fingerprint()
    }

    fn claim(content: &str, row: &str) -> Claim {
        Claim { content: print(content), row: print(row) }
    }

    fn key(of: &str) -> Key {
        Key::of("test", of.as_bytes())
    }

    fn fact(fate: Fate, of: Option<&str>, content: &str, row: &str) -> Fact {
        Fact { version: Arc::from("1"), rule: None, fate, key: of.map(key), claim: claim(content, row) }
    }

    #[test]
    fn what_becomes_of_an_event_by_who_has_its_key() {
        let first = claim("content", "row");
        let decide = |fate: &Fate, content: &str, row: &str, on_conflict| {
            by_claim(fate, &claim(content, row), Some(&first), on_conflict)
        };
        for on_conflict in [OnConflict::Quarantine, OnConflict::Drop] {
            let conflict = if on_conflict == OnConflict::Quarantine { Conflict } else { Duplicate };
            for fate in [ACCEPTED, Fate::Ignored, REJECTED, Fate::Duplicate] {
                assert_eq!(by_claim(&fate, &first, None, on_conflict), Stays, "{fate:?}: nobody has it");
                assert_eq!(decide(&fate, "content", "other", on_conflict), Duplicate, "{fate:?}: the first wins");
            }
            assert_eq!(decide(&ACCEPTED, "other", "row", on_conflict), Duplicate);
            assert_eq!(decide(&ACCEPTED, "other", "other", on_conflict), conflict);
            for fate in [Fate::Ignored, REJECTED] {
                assert_eq!(decide(&fate, "other", "", on_conflict), Stays, "{fate:?} for what it is");
            }
        }
    }

    #[test]
    fn the_first_in_a_micro_batch_comes_first() {
        let facts = [
            fact(REJECTED, Some("k"), "bad", ""),
            fact(ACCEPTED, Some("k"), "good", "row"),
            fact(ACCEPTED, None, "good", "row"),
            fact(ACCEPTED, Some("k"), "good", "row"),
            fact(ACCEPTED, Some("k"), "other", "other"),
            fact(ACCEPTED, Some("old"), "content", "row"),
            fact(REJECTED, Some("k"), "bad", ""),
            fact(Fate::Ignored, Some("k"), "bad", ""),
        ];
        let mut claims = [None; 8];
        claims[5] = Some(claim("content", "row"));
        let mut decisions = Decisions::new(&[Mark::default(); 8], &[false; 8], &facts, &claims, OnConflict::Quarantine);
        assert_eq!(decisions.0, [Stays, Stays, Stays, Duplicate, Conflict, Duplicate, Stays, Stays]);
        let claimed = decisions.claims(&facts);
        assert_eq!(claimed, [(1, key("k"), claim("good", "row"))], "by the accepted one that stays, and has a key");
        let repeats = decisions.repeats(&facts);
        assert_eq!(repeats.iter().map(|(index, _)| *index).collect::<Vec<_>>(), [0, 4, 6, 7]);
        let new = decisions.drop_repeated(repeats.clone(), &[false, true, false, false]);
        assert_eq!(decisions.0[..], [Stays, Stays, Stays, Duplicate, Duplicate, Duplicate, Duplicate, Stays]);
        assert_eq!(new, [repeats[0].1, repeats[3].1], "to be ignored is not to be rejected");
        assert_eq!(decisions.of(Duplicate), BTreeSet::from([3, 4, 5, 6]));
    }

    #[test]
    fn a_message_that_is_known_or_stands_twice_is_nothing_else() {
        let marks = ["a", "b", "a", "c"].map(|id| Mark { id: Some(key(id)), ..Mark::default() });
        let facts: Vec<Fact> = ["1", "2", "1", "2"].map(|k| fact(ACCEPTED, Some(k), k, k)).into();
        let known = [false, true, false, false];
        let decisions = Decisions::new(&marks, &known, &facts, &[None; 4], OnConflict::Quarantine);
        // What the second would have claimed is the fourth's.
        assert_eq!(decisions.0, [Stays, Redelivered, Redelivered, Stays]);
        assert_eq!(decisions.claims(&facts).iter().map(|(index, ..)| *index).collect::<Vec<_>>(), [0, 3]);
        assert_eq!(decisions.about(2), Redelivered);
        assert_eq!(decisions.about(99), Stays, "without facts nothing was looked for");
    }

    /// The same content under another rule, or another content under the same, is another word on the event.
    #[test]
    fn a_repetition_is_of_the_same_kind_content_and_rule() {
        let one = fact(REJECTED, Some("k"), "bad", "");
        assert_eq!(one.repeat(), fact(REJECTED, Some("k"), "bad", "").repeat());
        assert_ne!(one.repeat(), fact(REJECTED, Some("k"), "worse", "").repeat());
        assert_ne!(one.repeat(), fact(REJECTED, Some("l"), "bad", "").repeat());
        assert_ne!(one.repeat(), fact(Fate::Ignored, Some("k"), "bad", "").repeat());
        assert_eq!(one.repeat(), fact(ACCEPTED, Some("k"), "bad", "row").repeated_conflict());
        assert_eq!(fact(REJECTED, None, "bad", "").repeat(), None);
        assert_eq!(fact(ACCEPTED, Some("k"), "good", "row").repeat(), None);
    }
}

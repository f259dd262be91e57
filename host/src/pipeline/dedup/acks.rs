//! Up to which commit all messages are acknowledged. Acknowledging one may take longer than the next.

use crate::ledger::Seq;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Which commits' messages are acknowledged.
#[derive(Debug, Clone, Default)]
pub(super) struct Acks(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    under_way: BTreeSet<Seq>,
    highest: Seq,
}

/// Messages that are being acknowledged. Dropped before that is done they never are.
#[derive(Debug)]
#[must_use]
pub struct Acking {
    acks: Acks,
    seq: Seq,
}

impl Acks {
    pub(super) fn begin(&self, seq: Seq) -> Acking {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.under_way.insert(seq);
        state.highest = state.highest.max(seq);
        Acking { acks: self.clone(), seq }
    }

    /// The last commit whose messages are acknowledged, and of all before it.
    pub(super) fn up_to(&self) -> Seq {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.under_way.first().map_or(state.highest, |first| first - 1)
    }
}

impl Acking {
    /// They are acknowledged, or an answer says that they will come again.
    pub fn done(self) {
        self.acks.0.lock().unwrap_or_else(PoisonError::into_inner).under_way.remove(&self.seq);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_counts_when_all_before_it_are_acknowledged() {
        let acks = Acks::default();
        let [three, five, seven] = [3, 5, 7].map(|seq| acks.begin(seq));
        assert_eq!(acks.up_to(), 2);
        five.done();
        assert_eq!(acks.up_to(), 2);
        three.done();
        assert_eq!(acks.up_to(), 6, "nothing was to be acknowledged of 6");
        drop(seven);
        assert_eq!(acks.up_to(), 6, "a task that failed has acknowledged nothing");
    }
}

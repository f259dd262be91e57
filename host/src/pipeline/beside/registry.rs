//! The pairs that are compared now, and a few that were.

use super::pair::{Pair, PairKey};
use crate::releases::worker::Comparison;
use crate::rules::RuleSet;
use crate::rules::guard::GuardLimits;
use crate::time::Micros;
use std::collections::VecDeque;
use std::sync::Arc;

/// Comparisons kept after their end.
const PAST: usize = 10;

/// Pairs by what they compare: a pair goes on through reloads.
#[derive(Debug, Default)]
pub struct Registry {
    now: Vec<Arc<Pair>>,
    past: VecDeque<Comparison>,
}

impl Registry {
    /// The pairs of a rule set, by number. Those that are no longer compared become past.
    pub fn pairs(&mut self, rules: &RuleSet, limits: &GuardLimits, now: Micros) -> Arc<[Arc<Pair>]> {
        let keys = rules.served().flat_map(|(version, served)| {
            served.beside.iter().map(move |beside| {
                let (serving, other) = (served.rule.digest, beside.rule.digest);
                let (old, new) = if beside.kind.serving_is_new() { (other, serving) } else { (serving, other) };
                PairKey { events: version.to_owned(), kind: beside.kind.clone(), old, new }
            })
        });
        let pairs: Vec<Arc<Pair>> = keys
            .map(|key| {
                let known = self.now.iter().find(|pair| pair.key == key).map(Arc::clone);
                known.unwrap_or_else(|| Arc::new(Pair::new(key, limits.clone(), now)))
            })
            .collect();
        for ended in self.now.iter().filter(|pair| !pairs.iter().any(|other| Arc::ptr_eq(pair, other))) {
            self.past.push_back(ended.report(now));
        }
        while self.past.len() > PAST {
            self.past.pop_front();
        }
        self.now.clone_from(&pairs);
        pairs.into()
    }

    /// What comparing shows and has shown, the newest last.
    pub fn report(&self, now: Micros) -> Vec<Comparison> {
        self.past.iter().cloned().chain(self.now.iter().map(|pair| pair.report(now))).collect()
    }
}

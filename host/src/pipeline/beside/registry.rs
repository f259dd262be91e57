//! The pairs that are compared now, and a few that were.

use super::pair::{News, Pair, PairKey};
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
    /// Those that are no longer compared, and have perhaps something left to tell.
    ended: Vec<Arc<Pair>>,
    past: VecDeque<Comparison>,
}

impl Registry {
    /// The pairs of a rule set, by number. Those that are no longer compared become past. `passed` says of which pairs the
    /// guard has passed in an earlier run.
    pub fn pairs(
        &mut self,
        rules: &RuleSet,
        limits: &GuardLimits,
        passed: impl Fn(&PairKey) -> bool,
        now: Micros,
    ) -> Arc<[Arc<Pair>]> {
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
                known.unwrap_or_else(|| {
                    let passed = passed(&key);
                    Arc::new(Pair::new(key, limits.clone(), passed, now))
                })
            })
            .collect();
        for ended in self.now.iter().filter(|pair| !pairs.iter().any(|other| Arc::ptr_eq(pair, other))) {
            self.past.push_back(ended.report(now));
            self.ended.push(Arc::clone(ended));
        }
        while self.past.len() > PAST {
            self.past.pop_front();
        }
        self.now.clone_from(&pairs);
        pairs.into()
    }

    /// The pairs whose guard has passed.
    pub fn passed(&self, now: Micros) -> impl Iterator<Item = &PairKey> {
        self.now.iter().filter(move |pair| pair.has_passed(now)).map(|pair| &pair.key)
    }

    /// Tells each comparison what was counted since the last time.
    pub fn tell(&mut self, told: impl Fn(&'static str, News)) {
        for pair in self.now.iter().chain(&self.ended) {
            told(pair.key.kind.as_str(), pair.news());
        }
        // Micro-batches that began before a swap may still hold one.
        self.ended.retain(|pair| Arc::strong_count(pair) > 1);
    }

    /// What comparing shows and has shown, the newest last.
    pub fn report(&self, now: Micros) -> Vec<Comparison> {
        self.past.iter().cloned().chain(self.now.iter().map(|pair| pair.report(now))).collect()
    }
}

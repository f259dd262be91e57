//! What comparing two rules on the same events has shown so far.

use crate::digest::Digest;
use crate::releases::worker::{Comparison, Sample};
use crate::rules::compare::Difference;
use crate::rules::guard::{GuardLimits, Pairs, Stand, stand};
use crate::rules::set::BesideKind;
use crate::time::Micros;
use crate::verdict::clip;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Kinds of differences that are counted one by one: stages are a rule's own words.
const KINDS: usize = 100;
const OTHER_KINDS: &str = "(other kinds)";
/// Samples kept of a pair, and of each kind of difference.
const SAMPLES: usize = 20;
const SAMPLES_OF_A_KIND: usize = 3;
/// Bytes of a verdict in a sample.
const SHOWN: usize = 300;

/// Which rules are compared, and why.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PairKey {
    /// The event version.
    pub events: String,
    /// Why.
    pub kind: BesideKind,
    /// The component that counts as the old one.
    pub old: Digest,
    /// The component that counts as the new one.
    pub new: Digest,
}

/// Two rules and what comparing them has shown. It outlives reloads, as long as the same two are compared.
#[derive(Debug)]
pub struct Pair {
    /// Which.
    pub key: PairKey,
    limits: GuardLimits,
    started: Micros,
    skipped: AtomicU64,
    skipped_told: AtomicU64,
    over: AtomicBool,
    found: Mutex<Found>,
}

#[derive(Debug)]
struct Found {
    pairs: Pairs,
    differences: BTreeMap<String, u64>,
    samples: Vec<Sample>,
    stored: u64,
    stand: Stand,
    news: News,
}

/// What was counted since it was last told, for metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct News {
    /// Events that both judged.
    pub pairs: u64,
    /// Events that were not compared.
    pub skipped: u64,
    /// Differences by [`Difference::kind`].
    pub differences: BTreeMap<&'static str, u64>,
}

/// What an event that both judged has come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Whether its differences are to be stored: not once the table has its share of this pair.
    pub store: bool,
    /// Why the guard has tripped, with this event and never before.
    pub tripped: Option<String>,
}

impl Pair {
    /// A pair that nothing is known of yet, but perhaps that its guard has `passed` in an earlier run.
    pub fn new(key: PairKey, limits: GuardLimits, passed: bool, now: Micros) -> Self {
        let found = Found {
            pairs: Pairs::default(),
            differences: BTreeMap::new(),
            samples: Vec::new(),
            stored: 0,
            stand: if passed { Stand::Passed } else { Stand::Watching },
            news: News::default(),
        };
        Self {
            key,
            limits,
            started: now,
            skipped: AtomicU64::new(0),
            skipped_told: AtomicU64::new(0),
            over: AtomicBool::new(passed),
            found: Mutex::new(found),
        }
    }

    /// Whether comparing has ended: its guard has passed or tripped.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Whether its guard has passed.
    pub fn has_passed(&self, now: Micros) -> bool {
        let mut found = self.found();
        self.look_at_time(&mut found, now);
        found.stand == Stand::Passed
    }

    /// Counts events that were not compared.
    pub fn skip(&self, events: u64) {
        self.skipped.fetch_add(events, Ordering::Relaxed);
    }

    /// Records an event that both judged. At most `keep` events have their differences stored.
    pub fn record(
        &self,
        differences: &[Difference],
        sample: impl Fn(&Difference) -> Sample,
        keep: u64,
        now: Micros,
    ) -> Recorded {
        let mut found = self.found();
        found.pairs.add(differences);
        found.news.pairs += 1;
        for difference in differences {
            found.count(difference, &sample);
        }
        let store = !differences.is_empty() && found.stored < keep;
        found.stored += u64::from(store);
        let tripped = self.look(&mut found, now);
        Recorded { store, tripped }
    }

    /// What was counted since this was last asked.
    pub fn news(&self) -> News {
        let skipped = self.skipped.load(Ordering::Relaxed);
        let told = self.skipped_told.swap(skipped, Ordering::Relaxed);
        News { skipped: skipped.saturating_sub(told), ..std::mem::take(&mut self.found().news) }
    }

    /// What it has shown, for people.
    pub fn report(&self, now: Micros) -> Comparison {
        let mut found = self.found();
        self.look_at_time(&mut found, now);
        let guard = match &found.stand {
            _ if self.key.kind == BesideKind::Shadow => None,
            Stand::Watching => Some("watching".to_owned()),
            Stand::Passed => Some("passed".to_owned()),
            Stand::Tripped(why) => Some(why.clone()),
        };
        Comparison {
            events: self.key.events.clone(),
            kind: self.key.kind.as_str().to_owned(),
            old: self.key.old,
            new: self.key.new,
            pairs: found.pairs.all,
            skipped: self.skipped.load(Ordering::Relaxed),
            differences: found.differences.clone(),
            samples: found.samples.clone(),
            guard,
        }
    }

    /// A guard without traffic passes too.
    fn look_at_time(&self, found: &mut Found, now: Micros) {
        if found.stand == Stand::Watching && self.running(now) >= self.limits.time {
            self.look(found, now);
        }
    }

    fn running(&self, now: Micros) -> Duration {
        Duration::from_micros(u64::try_from(now.saturating_sub(self.started)).unwrap_or(0))
    }

    /// Looks how its guard stands. Why it tripped, the first time.
    fn look(&self, found: &mut Found, now: Micros) -> Option<String> {
        let expect_rejects = match self.key.kind {
            BesideKind::Shadow => return None,
            BesideKind::Canary { expect_rejects, .. } | BesideKind::Guard { expect_rejects, .. } => expect_rejects,
        };
        if found.stand != Stand::Watching {
            return None;
        }
        found.stand = stand(&self.limits, expect_rejects, &found.pairs, self.running(now));
        // A canary is watched as long as there is one.
        if found.stand == Stand::Passed && matches!(self.key.kind, BesideKind::Canary { .. }) {
            found.stand = Stand::Watching;
        }
        self.over.store(found.stand != Stand::Watching, Ordering::Relaxed);
        match &found.stand {
            Stand::Tripped(why) => Some(why.clone()),
            Stand::Watching | Stand::Passed => None,
        }
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        // Counting cannot leave half a change behind.
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Found {
    fn count(&mut self, difference: &Difference, sample: impl Fn(&Difference) -> Sample) {
        let kind = difference.to_string();
        let known = self.differences.len() < KINDS || self.differences.contains_key(&kind);
        let kind = if known { kind } else { OTHER_KINDS.to_owned() };
        let of_this_kind = self.samples.iter().filter(|sample| sample.kind == kind).count();
        if self.samples.len() < SAMPLES && of_this_kind < SAMPLES_OF_A_KIND {
            let mut sample = sample(difference);
            sample.old = clip(&sample.old, SHOWN).into_owned();
            sample.new = clip(&sample.new, SHOWN).into_owned();
            self.samples.push(Sample { kind: kind.clone(), ..sample });
        }
        *self.differences.entry(kind).or_default() += 1;
        *self.news.differences.entry(difference.kind()).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Micros = 60_000_000;

    fn pair(kind: BesideKind) -> Pair {
        let digest = |text: &str| Digest::of(text.as_bytes());
        let key = PairKey { events: "1".into(), kind, old: digest("old"), new: digest("new") };
        Pair::new(key, GuardLimits::default(), false, 0)
    }

    fn guard() -> BesideKind {
        BesideKind::Guard { expect_rejects: false, promoted_at: String::new() }
    }

    fn sample(_: &Difference) -> Sample {
        Sample { message_id: "m".into(), kind: String::new(), old: "o".repeat(1_000), new: "n".into() }
    }

    fn lost(stage: &str) -> [Difference; 1] {
        [Difference::AcceptToReject(stage.into())]
    }

    #[test]
    fn a_guard_trips_once_and_is_over() {
        let pair = pair(guard());
        let trips: Vec<String> = (0..200).filter_map(|_| pair.record(&lost("S"), sample, 0, 0).tripped).collect();
        assert_eq!(trips.len(), 1);
        assert!(pair.is_over());
        assert_eq!(pair.report(0).guard.as_ref(), Some(&trips[0]));
    }

    #[test]
    fn a_guard_passes_with_time_alone_and_a_canary_is_watched_on() {
        let pair_of = |kind| {
            let pair = pair(kind);
            pair.record(&[], sample, 0, 0);
            let state = pair.report(10 * MINUTE).guard.unwrap();
            (state, pair.is_over())
        };
        assert_eq!(pair_of(guard()), ("passed".into(), true));
        assert_eq!(
            pair_of(BesideKind::Canary { expect_rejects: false, since: String::new() }),
            ("watching".into(), false)
        );
    }

    #[test]
    fn news_are_told_once() {
        let pair = pair(BesideKind::Shadow);
        pair.record(&lost("S"), sample, 0, 0);
        pair.skip(3);
        let news = News { pairs: 1, skipped: 3, differences: [(lost("S")[0].kind(), 1)].into() };
        assert_eq!((pair.news(), pair.news()), (news, News::default()));
    }

    #[test]
    fn a_shadow_never_trips_and_has_no_guard() {
        let pair = pair(BesideKind::Shadow);
        assert!((0..1_000).all(|_| pair.record(&lost("S"), sample, 0, 0).tripped.is_none()));
        assert_eq!((pair.report(0).guard, pair.is_over()), (None, false));
    }

    #[test]
    fn what_is_kept_and_stored_is_bounded() {
        let pair = pair(BesideKind::Shadow);
        let stored = (0..500).filter(|n| pair.record(&lost(&format!("S_{n}")), sample, 7, 0).store).count();
        assert_eq!(stored, 7);
        let report = pair.report(0);
        assert_eq!((report.pairs, report.differences.len(), report.samples.len()), (500, KINDS + 1, SAMPLES));
        assert_eq!(report.differences[OTHER_KINDS], 400);
        assert!(report.samples.iter().all(|sample| sample.old.len() <= SHOWN));
        assert!(!pair.record(&[], sample, 7, 0).store);
    }
}

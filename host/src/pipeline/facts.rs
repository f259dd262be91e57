//! What is known of an event before it is judged, and what judging finds out about it, as far as it decides whether the
//! event is new.

use super::keys::{self, Compared};
use crate::event::Event;
use crate::ledger::{Claim, Key};
use crate::rules::Rule;
use crate::source::{Batch, Leases};
use crate::telemetry::tally::{CountedVersion, Tally};
use crate::verdict::Rejection;
use std::borrow::Cow;
use std::sync::Arc;

/// A micro-batch on its way to be judged.
#[derive(Debug, Default)]
pub struct Admitted {
    /// The events that are left.
    pub events: Vec<Event>,
    /// What is known of each; none where nothing has to be.
    pub marks: Vec<Mark>,
    /// Counts of the events that were left out.
    pub left_out: Tally,
    /// The ids of their messages.
    pub left_out_ids: Vec<Key>,
    /// The source's position.
    pub position: Option<(String, String)>,
    /// Our hold on the messages, also on those that were left out.
    pub leases: Leases,
}

impl From<Batch> for Admitted {
    /// Every event is judged.
    fn from(Batch { events, position, leases }: Batch) -> Self {
        Self { events, position, leases, ..Self::default() }
    }
}

/// What is known of an event before it is judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mark {
    /// The id of its message, where a message may be delivered again.
    pub id: Option<Key>,
    /// Its dedup key, where it has one before the rules.
    pub key: Option<Key>,
    /// What of it is compared with others.
    pub compared: Compared,
    /// Whether it is known to be a duplicate: then it is not judged.
    pub is_duplicate: bool,
}

/// What became of an event by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It has a row for silver: what its value is counted under, where rows are counted by one.
    Accepted(Option<Box<str>>),
    /// Its rule ignored it.
    Ignored,
    /// It has a row for quarantine: stage and code.
    Rejected(Cow<'static, str>, Option<Cow<'static, str>>),
    /// It was known to be a duplicate and not judged.
    Duplicate,
}

impl Fate {
    /// Of a rejected event.
    pub fn rejected(rejection: &Rejection) -> Self {
        Self::Rejected(rejection.stage.clone(), rejection.code.clone())
    }

    /// Whether it has a row for silver.
    pub fn is_accepted(&self) -> bool {
        matches!(self, Self::Accepted(_))
    }

    /// Takes an event out of the counts, where it is counted under that version.
    pub fn uncount(&self, tally: &mut Tally, version: &str) {
        let outcomes = tally.named(version);
        match self {
            Self::Accepted(counted) => {
                outcomes.accepted -= 1;
                if let Some(counted) = counted {
                    tally.silver_by.take_one(counted);
                }
            }
            Self::Ignored => outcomes.ignored -= 1,
            Self::Rejected(stage, code) => outcomes.rejected.take_one(stage, code.as_deref()),
            Self::Duplicate => outcomes.duplicates -= 1,
        }
    }
}

/// What was found out about an event.
#[derive(Debug, Clone)]
pub struct Fact {
    /// The event version it is counted under.
    pub version: Arc<str>,
    /// The rule that judged it, if one did.
    pub rule: Option<Arc<Rule>>,
    /// What became of it.
    pub fate: Fate,
    /// Its dedup key, if it has one.
    pub key: Option<Key>,
    /// What it would claim the key with. Only an accepted event has a row.
    pub claim: Claim,
}

/// The facts of the events of a part, in their order.
#[derive(Debug, Default)]
pub struct Facts {
    facts: Vec<Fact>,
    versions: Vec<Arc<str>>,
}

impl Facts {
    /// Notes an event.
    pub fn note(
        &mut self,
        version: CountedVersion<'_>,
        rule: Option<&Arc<Rule>>,
        fate: Fate,
        key: Option<Key>,
        claim: Claim,
    ) {
        let known = self.versions.iter().find(|known| known.as_ref() == version.as_str()).map(Arc::clone);
        let version = known.unwrap_or_else(|| {
            // Few have a count of their own.
            let version: Arc<str> = version.as_str().into();
            self.versions.push(Arc::clone(&version));
            version
        });
        self.facts.push(Fact { version, rule: rule.map(Arc::clone), fate, key, claim });
    }

    /// All of them.
    pub fn all(self) -> Vec<Fact> {
        self.facts
    }
}

impl Fact {
    /// The key that tells whether an event without a row says anything new: its content under its rule. None of an event
    /// that has no key, or that is accepted.
    pub fn repeat(&self) -> Option<Key> {
        let is_ignored = match self.fate {
            Fate::Ignored => true,
            Fate::Rejected(..) => false,
            Fate::Accepted(_) | Fate::Duplicate => return None,
        };
        self.repeat_as(is_ignored)
    }

    /// The same for an event that conflicts with another: it is as good as rejected.
    pub fn repeated_conflict(&self) -> Option<Key> {
        self.repeat_as(false)
    }

    fn repeat_as(&self, is_ignored: bool) -> Option<Key> {
        let digest = self.rule.as_ref().map(|rule| rule.digest.bytes().as_slice());
        Some(keys::repeat(&self.key?, self.claim.content, digest, is_ignored))
    }
}

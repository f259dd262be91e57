//! The rule set: which rule judges which event, and which rules judge it beside. A worker holds one, and a micro-batch
//! keeps its own.

use super::load::Rule;
pub use super::route::{By, Pointer, Routing};
use super::share::Share;
use crate::digest::Digest;
use crate::event::Event;
use crate::verdict::{Rejection, clip, stage};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An immutable set of rules with their routing.
#[derive(Debug)]
pub struct RuleSet {
    routing: Routing,
    canary_by: By,
    revision: Option<u64>,
    versions: BTreeMap<String, Serving>,
}

/// What serves one event version.
#[derive(Debug, Clone)]
pub struct Serving {
    /// Judges.
    pub active: Served,
    /// Judges this share of the events in its place.
    pub canary: Option<(Share, Served)>,
}

/// A rule whose verdicts count.
#[derive(Debug, Clone)]
pub struct Served {
    /// The rule.
    pub rule: Arc<Rule>,
    /// Rules that judge the same events, and never write.
    pub beside: Vec<Beside>,
}

/// A rule that judges what another one serves.
#[derive(Debug, Clone)]
pub struct Beside {
    /// The rule.
    pub rule: Arc<Rule>,
    /// Why.
    pub kind: BesideKind,
    /// Share of the events it sees.
    pub share: Share,
    /// Number of the pair within the set, counted from 0.
    pub pair: usize,
}

/// Why two rules are compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum BesideKind {
    /// The rule beside is new and on trial.
    Shadow,
    /// The rule beside is active, the serving one its canary.
    Canary {
        /// More rejections are wanted of the canary.
        expect_rejects: bool,
        /// Since when it is one: set again it is another comparison.
        since: String,
    },
    /// The rule beside is the one before, the serving one was promoted.
    Guard {
        /// More rejections are wanted of the promoted one.
        expect_rejects: bool,
        /// When it was promoted: another promotion is another comparison.
        promoted_at: String,
    },
}

impl BesideKind {
    /// The name in reports and tables.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Shadow => "shadow",
            Self::Canary { .. } => "canary",
            Self::Guard { .. } => "guard",
        }
    }

    /// Since when the new one of the two serves; none for a shadow, which does not.
    pub fn since(&self) -> Option<&str> {
        match self {
            Self::Shadow => None,
            Self::Canary { since, .. } => Some(since),
            Self::Guard { promoted_at, .. } => Some(promoted_at),
        }
    }

    /// Whether the rule that serves is the new one of the two.
    pub const fn serving_is_new(&self) -> bool {
        !matches!(self, Self::Shadow)
    }
}

impl Served {
    /// A rule that nothing is compared with.
    pub fn alone(rule: Arc<Rule>) -> Self {
        Self { rule, beside: Vec::new() }
    }
}

impl RuleSet {
    /// Rules that the pipeline file names, one per event version, each checked against the rule's manifest there.
    pub fn fixed(routing: Routing, rules: BTreeMap<String, Arc<Rule>>) -> Self {
        let versions = rules
            .into_iter()
            .map(|(version, rule)| (version, Serving { active: Served::alone(rule), canary: None }))
            .collect();
        Self { routing, canary_by: By::Default, revision: None, versions }
    }

    /// The rules of a store's revision. Pairs are numbered here, in order of event version.
    pub fn released(routing: Routing, canary_by: By, revision: u64, versions: BTreeMap<String, Serving>) -> Self {
        Self::numbered(Self { routing, canary_by, revision: Some(revision), versions })
    }

    fn numbered(mut set: Self) -> Self {
        let served = set.versions.values_mut().flat_map(|serving| {
            std::iter::once(&mut serving.active).chain(serving.canary.as_mut().map(|(_, served)| served))
        });
        for (number, beside) in served.flat_map(|served| &mut served.beside).enumerate() {
            beside.pair = number;
        }
        set
    }

    /// The store's revision, if the rules are from one.
    pub fn revision(&self) -> Option<u64> {
        self.revision
    }

    /// What serves each event version.
    pub fn versions(&self) -> &BTreeMap<String, Serving> {
        &self.versions
    }

    /// Every rule whose verdicts count, with its event version.
    pub fn served(&self) -> impl Iterator<Item = (&str, &Served)> {
        self.versions.iter().flat_map(|(version, serving)| {
            let canary = serving.canary.as_ref().map(|(_, served)| served);
            std::iter::once(&serving.active).chain(canary).map(move |served| (version.as_str(), served))
        })
    }

    /// The set without a component that serves an event version by way of a promotion or as a canary: what it is compared
    /// with serves in its place. None if it does not serve there, or nothing is there to take its place.
    #[must_use]
    pub fn without(&self, events: &str, digest: &Digest) -> Option<Self> {
        let serving = self.versions.get(events)?;
        let is_canary = serving.canary.as_ref().is_some_and(|(_, served)| served.rule.digest == *digest);
        let active = if is_canary {
            serving.active.clone()
        } else {
            let guards = |beside: &&Beside| matches!(beside.kind, BesideKind::Guard { .. });
            let previous = serving.active.beside.iter().find(guards)?;
            (serving.active.rule.digest == *digest).then(|| Served::alone(Arc::clone(&previous.rule)))?
        };
        let mut versions = self.versions.clone();
        versions.insert(events.to_owned(), Serving { active, canary: None });
        let (routing, canary_by) = (self.routing.clone(), self.canary_by.clone());
        Some(Self::numbered(Self { routing, canary_by, revision: self.revision, versions }))
    }

    /// The rule of a component, in whatever role it is.
    pub fn rule(&self, digest: &Digest) -> Option<&Arc<Rule>> {
        let rules = self.served().flat_map(|(_, served)| {
            std::iter::once(&served.rule).chain(served.beside.iter().map(|beside| &beside.rule))
        });
        { rules }.find(|rule| rule.digest == *digest)
    }

    /// The version of an event and the rule that serves it, or the rejection for quarantine. The version is told
    /// even when nobody serves it.
    pub fn route<'a>(&'a self, event: &'a Event) -> (Option<Cow<'a, str>>, Result<&'a Served, Rejection>) {
        let version = match self.routing.version(event) {
            Ok(version) => version,
            Err(rejection) => return (None, Err(rejection)),
        };
        let serving = self.versions.get(version.as_ref()).ok_or_else(|| {
            let shown = clip(&version, 100);
            Rejection::by_host(stage::ROUTING, "no_rule", format!("no rule serves event version {shown:?}"))
        });
        let served = serving.map(|serving| self.choose(serving, event));
        (Some(version), served)
    }

    /// The canary, for its share of the events: the same event always takes the same side.
    fn choose<'a>(&self, serving: &'a Serving, event: &Event) -> &'a Served {
        let Some((share, canary)) = &serving.canary else { return &serving.active };
        let key = match &self.canary_by {
            By::Attribute(name) => event.attribute(name).map(Cow::Borrowed),
            // A payload that cannot be read has no key; its rule will say what is wrong with it.
            By::Field(pointer) => {
                event.document().ok().and_then(|document| pointer.find(document).ok().flatten()).map(Cow::Owned)
            }
            By::Default => None,
        };
        let key = key.as_deref().unwrap_or(&event.message_id);
        if share.holds("canary", key.as_bytes()) { canary } else { &serving.active }
    }
}

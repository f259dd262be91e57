//! `releases.toml` as a value.

use crate::digest::Digest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The releases of a rule store at one revision.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Releases {
    /// Counts up by one with every change; 0 is a store without `releases.toml`.
    pub revision: u64,
    /// The change that made this revision: `history.ndjson` is completed from it after a crash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Changed>,
    /// The release of each event version.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub release: BTreeMap<String, Release>,
    /// Components that a guard took out of service: promoting one needs `--force`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub held: BTreeMap<Digest, Held>,
}

/// What serves one event version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// The rule that judges.
    pub validator: Roles,
}

/// The components of a release by role.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Roles {
    /// Judges.
    pub active: Digest,
    /// Where a rollback goes: what was active before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Digest>,
    /// There since `active` was promoted, gone after a rollback: workers compare `active` with `previous`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<Guarded>,
    /// Runs beside `active`, never writes; its differences are recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shadow: Option<Shadow>,
    /// Judges a share of the events in the place of `active`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<Canary>,
}

/// A promotion that workers guard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guarded {
    /// When it was promoted, RFC 3339.
    pub promoted_at: String,
    /// More rejections are wanted: only faults roll it back.
    #[serde(default)]
    pub expect_rejects: bool,
}

/// A component that runs beside `active`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shadow {
    /// The component.
    pub digest: Digest,
    /// Share of the events it sees, above 0 and at most 100.
    pub sample: f64,
}

/// A component that judges a share of the events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Canary {
    /// The component.
    pub digest: Digest,
    /// Share of the events it judges, above 0 and below 100.
    pub percent: f64,
    /// Since when, RFC 3339.
    pub since: String,
    /// More rejections are wanted: only faults end it.
    #[serde(default)]
    pub expect_rejects: bool,
}

/// Why a component is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Held {
    /// Since when, RFC 3339.
    pub since: String,
    /// The event version it was held for.
    pub events: String,
    /// The figures that tripped the guard.
    pub why: String,
}

/// A change as the history records it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Changed {
    /// When, RFC 3339.
    pub at: String,
    /// Who: `user@host`, or `worker PIPELINE` for a guard.
    pub by: String,
    /// What: `promote`, `rollback`, `shadow`, `shadow-off`, `canary`, `canary-off`, `retire`, `guard-rollback`.
    pub action: String,
    /// The event version.
    pub events: String,
    /// The component that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Why, in the words of whoever did it, or the guard's figures.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

impl Releases {
    /// What is wrong with values that a change would have refused: in a file that was written by other means.
    pub fn problem(&self) -> Option<String> {
        self.release.iter().find_map(|(events, release)| {
            let Roles { shadow, canary, .. } = &release.validator;
            let shadow = shadow.as_ref().is_some_and(|shadow| !(shadow.sample > 0.0 && shadow.sample <= 100.0));
            let canary = canary.as_ref().is_some_and(|canary| !(canary.percent > 0.0 && canary.percent < 100.0));
            (shadow || canary).then(|| format!("event version {events} has a share that is no percentage"))
        })
    }
}

impl Roles {
    /// Every component of the release, each once.
    pub fn digests(&self) -> impl Iterator<Item = Digest> {
        let mut digests = vec![self.active];
        let others = [self.previous, self.shadow.as_ref().map(|s| s.digest), self.canary.as_ref().map(|c| c.digest)];
        for digest in others.into_iter().flatten() {
            if !digests.contains(&digest) {
                digests.push(digest);
            }
        }
        digests.into_iter()
    }
}

//! What a worker says of itself: in the store's `workers/`, at its admin endpoint, in `rules status`.

use crate::digest::Digest;
use crate::time::{Micros, parse_rfc3339};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A worker's rules as it serves them now.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Worker {
    /// The pipeline's name.
    pub pipeline: String,
    /// Process id.
    pub pid: u32,
    /// When this was written, RFC 3339. A worker that runs writes it every second.
    pub at: String,
    /// False once it has ended.
    pub running: bool,
    /// The revision it serves; none with components named in the pipeline file.
    pub revision: Option<u64>,
    /// What serves each event version.
    pub event_versions: BTreeMap<String, Serving>,
    /// A newer revision that it could not take.
    pub refused: Option<RefusedRevision>,
    /// Why the store cannot be read just now.
    pub store_problem: Option<String>,
    /// Components that it took out of service by itself, since it cannot write the store.
    pub pins: Vec<Pin>,
    /// What comparing components on the same events showed.
    pub comparisons: Vec<Comparison>,
}

/// A worker that has not written for so long does not run any more, whatever it last said.
pub const SILENT: Micros = 5_000_000;

/// Whether a worker runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Life {
    /// It does.
    Running,
    /// It has ended, and said so.
    Ended,
    /// It has not written for [`SILENT`]: killed, stuck, or away from the store.
    Silent,
}

impl Worker {
    /// Whether it runs, as far as its file tells.
    pub fn life(&self, now: Micros) -> Life {
        if !self.running {
            Life::Ended
        } else if self.age(now).is_some_and(|age| age < SILENT) {
            Life::Running
        } else {
            Life::Silent
        }
    }

    /// How long ago it wrote, microseconds; none if that cannot be told.
    pub fn age(&self, now: Micros) -> Option<Micros> {
        parse_rfc3339(&self.at).ok().map(|at| now.saturating_sub(at))
    }

    /// Every component that it names.
    pub fn digests(&self) -> impl Iterator<Item = Digest> {
        let serving = self.event_versions.values().flat_map(|serving| serving.roles.values().map(|rule| rule.digest));
        let compared = self.comparisons.iter().flat_map(|comparison| [comparison.old, comparison.new]);
        serving.chain(compared).chain(self.pins.iter().map(|pin| pin.held))
    }
}

/// The rules of one event version by role.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Serving {
    /// By role: `active`, `shadow`, `canary`, and `previous` while a guard compares with it.
    pub roles: BTreeMap<String, ServedRule>,
}

/// A rule that is loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedRule {
    /// `name@version`.
    pub rule: String,
    /// Its component.
    pub digest: Digest,
}

/// A revision that was not taken; the one before it is served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedRevision {
    /// The revision.
    pub revision: u64,
    /// Why.
    pub why: String,
    /// When it was first tried, RFC 3339.
    pub since: String,
}

/// A component held by one worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// The event version.
    pub events: String,
    /// The component out of service.
    pub held: Digest,
    /// When it was promoted, or set as a canary.
    pub since: String,
    /// What the guard saw.
    pub why: String,
}

/// Two components that judged the same events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The event version.
    pub events: String,
    /// Why they are compared: `shadow`, `canary` or `guard` (a promotion).
    pub kind: String,
    /// The component that counts as the old one: `active` for shadow and canary, `previous` for a guard.
    pub old: Digest,
    /// The component that counts as the new one.
    pub new: Digest,
    /// Events both judged.
    pub pairs: u64,
    /// Events that were not compared, since the comparing side could not keep up.
    pub skipped: u64,
    /// Differences by kind, as `rules::compare` names them.
    pub differences: BTreeMap<String, u64>,
    /// A few of them.
    pub samples: Vec<Sample>,
    /// How a guard stands: `watching`, `passed`, or why it tripped.
    pub guard: Option<String>,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// The event's message id.
    pub message_id: String,
    /// Its kind.
    pub kind: String,
    /// The old component's verdict, short.
    pub old: String,
    /// The new component's verdict, short.
    pub new: String,
}

//! What a worker says of the rules it serves.

use super::state::Refused;
use crate::releases::worker::{Comparison, Pin, RefusedRevision, ServedRule, Serving as Roles, Worker};
use crate::rules::set::{BesideKind, Serving};
use crate::rules::{Rule, RuleSet};
use crate::time::{Micros, format_micros};
use std::collections::BTreeMap;

/// What a worker has to say.
pub(super) struct Said<'a> {
    /// The pipeline's name.
    pub pipeline: &'a str,
    /// False at its end.
    pub running: bool,
    /// The rules that serve.
    pub rules: &'a RuleSet,
    /// What was refused.
    pub refused: Option<&'a Refused>,
    /// Why the store cannot be read.
    pub store_problem: Option<&'a String>,
    /// What it holds by itself.
    pub pins: &'a [Pin],
    /// What comparing shows.
    pub comparisons: Vec<Comparison>,
}

impl Said<'_> {
    pub(super) fn worker(self, now: Micros) -> Worker {
        let refused = self.refused.map(|refused| RefusedRevision {
            revision: refused.releases.revision,
            why: refused.why.clone(),
            since: format_micros(refused.since),
        });
        Worker {
            pipeline: self.pipeline.to_owned(),
            pid: std::process::id(),
            at: format_micros(now),
            running: self.running,
            revision: self.rules.revision(),
            event_versions: serving(self.rules),
            refused,
            store_problem: self.store_problem.cloned(),
            pins: self.pins.to_vec(),
            comparisons: self.comparisons,
        }
    }
}

/// The rules of a set by event version and role.
pub fn serving(rules: &RuleSet) -> BTreeMap<String, Roles> {
    rules.versions().iter().map(|(version, serving)| (version.clone(), roles(serving))).collect()
}

fn roles(serving: &Serving) -> Roles {
    let named = |rule: &Rule| ServedRule { rule: rule.label.clone(), digest: rule.digest };
    let mut roles = BTreeMap::from([("active".to_owned(), named(&serving.active.rule))]);
    for beside in &serving.active.beside {
        let role = if beside.kind == BesideKind::Shadow { "shadow" } else { "previous" };
        roles.insert(role.to_owned(), named(&beside.rule));
    }
    if let Some((_, canary)) = &serving.canary {
        roles.insert("canary".to_owned(), named(&canary.rule));
    }
    Roles { roles }
}

//! What a worker says of the rules it serves.

use crate::releases::worker::{ServedRule, Serving as Said};
use crate::rules::set::{BesideKind, Serving};
use crate::rules::{Rule, RuleSet};
use std::collections::BTreeMap;

/// The rules of a set by event version and role.
pub fn serving(rules: &RuleSet) -> BTreeMap<String, Said> {
    rules.versions().iter().map(|(version, serving)| (version.clone(), said(serving))).collect()
}

fn said(serving: &Serving) -> Said {
    let named = |rule: &Rule| ServedRule { rule: rule.label.clone(), digest: rule.digest };
    let mut roles = BTreeMap::from([("active".to_owned(), named(&serving.active.rule))]);
    for beside in &serving.active.beside {
        let role = if beside.kind == BesideKind::Shadow { "shadow" } else { "previous" };
        roles.insert(role.to_owned(), named(&beside.rule));
    }
    if let Some((_, canary)) = &serving.canary {
        roles.insert("canary".to_owned(), named(&canary.rule));
    }
    Said { roles }
}

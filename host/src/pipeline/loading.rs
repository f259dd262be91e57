//! From components to a rule set: each is read, verified, compiled, checked and, from a store, held to its fixtures.

use crate::config::{Config, ConfigError, Problem};
use crate::digest::Digest;
use crate::fixtures;
use crate::releases::{Releases, RuleStore};
use crate::rules::cache::CodeCache;
use crate::rules::judge::Isolation;
use crate::rules::set::{Beside, BesideKind, Serving};
use crate::rules::share::Share;
use crate::rules::{Judge, Rule, RuleSet, Sandbox, Served, load};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Loads the files of the pipeline file. Event versions that name the same file share the rule.
pub(super) fn components(
    config: &Config,
    sandbox: &Arc<Sandbox>,
    components: &BTreeMap<String, PathBuf>,
) -> Result<RuleSet, ConfigError> {
    let cache = CodeCache::new(&config.rules.cache);
    let mut by_path: BTreeMap<&Path, Result<Arc<Rule>, String>> = BTreeMap::new();
    let mut rules = BTreeMap::new();
    let mut problems = Vec::new();
    for (version, path) in components {
        let loaded = by_path.entry(path).or_insert_with(|| {
            load::file(sandbox, &config.limits, &cache, path).map(Arc::new).map_err(|error| error.to_string())
        });
        match loaded.as_ref().map_err(Clone::clone).and_then(|rule| judges(rule, version)) {
            Ok(rule) => {
                rules.insert(version.clone(), rule);
            }
            Err(error) => {
                problems.push(Problem::new(config.rules.key(version), format!("{}: {error}", path.display())));
            }
        }
    }
    if problems.is_empty() {
        Ok(RuleSet::fixed(config.rules.routing.clone(), rules))
    } else {
        Err(ConfigError(problems))
    }
}

/// Loads a revision of a rule store whole: only if every component of every role passes is there a set. A component of
/// the set that serves now has passed, and is taken as it is once the store is seen to hold it still.
pub(super) fn releases(
    config: &Config,
    sandbox: &Arc<Sandbox>,
    store: &RuleStore,
    releases: &Releases,
    serving: Option<&RuleSet>,
) -> Result<RuleSet, ConfigError> {
    let mut all = Loader { config, sandbox, store, serving, loaded: BTreeMap::new(), problems: Vec::new() };
    // A store whose last release was retired serves nobody, as somebody wanted.
    if releases.revision == 0 {
        let what = format!(
            "{} releases nothing: stage a component and promote it (preflight rules stage, preflight rules promote)",
            store.directory().display()
        );
        return Err(Problem::new("rules.store", what).into());
    }
    let mut versions = BTreeMap::new();
    for (version, release) in &releases.release {
        if let Some(serving) = all.serving(version, &release.validator) {
            versions.insert(version.clone(), serving);
        }
    }
    if !all.problems.is_empty() {
        return Err(ConfigError(all.problems));
    }
    let rules = &config.rules;
    Ok(RuleSet::released(rules.routing.clone(), rules.canary_by.clone(), releases.revision, versions))
}

/// A rule for an event version that its manifest declares.
fn judges(rule: &Arc<Rule>, version: &str) -> Result<Arc<Rule>, String> {
    if rule.manifest.event_versions.iter().any(|declared| declared == version) {
        return Ok(Arc::clone(rule));
    }
    let declared = rule.manifest.event_versions.join(", ");
    Err(format!("rule {} judges event versions {declared}, not {version:?}", rule.label))
}

struct Loader<'a> {
    config: &'a Config,
    sandbox: &'a Arc<Sandbox>,
    store: &'a RuleStore,
    serving: Option<&'a RuleSet>,
    loaded: BTreeMap<Digest, Result<Arc<Rule>, String>>,
    problems: Vec<Problem>,
}

impl Loader<'_> {
    fn serving(&mut self, version: &str, roles: &crate::releases::Roles) -> Option<Serving> {
        let active = self.role(version, "active", &roles.active);
        let guard = roles.guard.as_ref().zip(roles.previous).map(|(guard, previous)| {
            let kind =
                BesideKind::Guard { expect_rejects: guard.expect_rejects, promoted_at: guard.promoted_at.clone() };
            (self.previous(version, &previous), kind, Share::ALL)
        });
        let shadow = roles.shadow.as_ref().map(|shadow| {
            (self.role(version, "shadow", &shadow.digest), BesideKind::Shadow, Share::percent(shadow.sample))
        });
        let canary = roles.canary.as_ref().map(|canary| (self.role(version, "canary", &canary.digest), canary));
        let active = active?;
        let mut served = Served::alone(Arc::clone(&active));
        if let Some((Some(rule), kind, share)) = guard {
            served.beside.push(Beside { rule, kind, share, pair: 0 });
        }
        if let Some((rule, kind, share)) = shadow {
            served.beside.push(Beside { rule: rule?, kind, share, pair: 0 });
        }
        let canary = match canary {
            None => None,
            Some((rule, canary)) => {
                let (expect_rejects, since) = (canary.expect_rejects, canary.since.clone());
                let kind = BesideKind::Canary { expect_rejects, since };
                let beside = vec![Beside { rule: active, kind, share: Share::ALL, pair: 0 }];
                Some((Share::percent(canary.percent), Served { rule: rule?, beside }))
            }
        };
        Some(Serving { active: served, canary })
    }

    /// The rule before a promotion. One that is itself bad, and was perhaps never served, must not keep a good one out:
    /// then there is nothing to compare with.
    fn previous(&mut self, version: &str, digest: &Digest) -> Option<Arc<Rule>> {
        let problems = self.problems.len();
        let rule = self.role(version, "previous", digest);
        for problem in self.problems.drain(problems..) {
            tracing::warn!("no guard watches the promotion, there is nothing to compare with: {}", problem.what);
        }
        rule
    }

    /// The rule of a role; a problem is noted.
    fn role(&mut self, version: &str, role: &str, digest: &Digest) -> Option<Arc<Rule>> {
        let loaded = match self.loaded.entry(*digest) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let known = self.serving.and_then(|serving| serving.rule(digest));
                entry.insert(staged(self.config, self.sandbox, self.store, digest, known))
            }
        };
        match loaded.as_ref().map_err(Clone::clone).and_then(|rule| judges(rule, version)) {
            Ok(loaded) => Some(loaded),
            Err(error) => {
                let what = format!("{role} of event version {version}: {error}");
                self.problems.push(Problem::new("rules.store", what));
                None
            }
        }
    }
}

/// A staged component, held to its fixtures unless it is known to hold to them.
fn staged(
    config: &Config,
    sandbox: &Arc<Sandbox>,
    store: &RuleStore,
    digest: &Digest,
    known: Option<&Arc<Rule>>,
) -> Result<Arc<Rule>, String> {
    let bytes = store.component(digest, config.limits.component).map_err(|error| error.to_string())?;
    if let Some(known) = known {
        return Ok(Arc::clone(known));
    }
    let cache = CodeCache::new(&config.rules.cache);
    let rule = load::bytes(sandbox, &config.limits, &cache, &bytes).map_err(|error| format!("{digest}: {error}"))?;
    let rule = Arc::new(rule);
    let fixtures = store.fixtures(digest).map_err(|error| error.to_string())?;
    let mut judge = Judge::new(Arc::clone(sandbox), config.limits.clone(), Isolation::Event);
    let outcomes = fixtures::judge(&mut judge, &rule, &fixtures).map_err(|error| error.to_string())?;
    let failed: Vec<_> = outcomes.iter().filter(|outcome| !outcome.differences.is_empty()).collect();
    match failed.first() {
        None => Ok(rule),
        Some(first) => Err(format!(
            "{} ({digest}) does not hold to {} of its {} fixtures; the first, {:?}: {}",
            rule.label,
            failed.len(),
            outcomes.len(),
            first.name,
            first.differences.join("; ")
        )),
    }
}

//! Components and how an event's version is told.

use super::check::Check;
use crate::config::layers::join;
use crate::config::raw::{RawEventVersion, RawGuard, RawKey, RawRules, RawShadow};
use crate::config::{RulesConfig, RulesFrom, ShadowConfig, default_cache};
use crate::rules::guard::GuardLimits;
use crate::rules::judge::Isolation;
use crate::rules::set::{By, Pointer, Routing};
use std::collections::BTreeMap;
use std::path::PathBuf;

impl Check {
    pub(super) fn rules(&mut self, raw: RawRules) -> Option<RulesConfig> {
        let from = match (raw.components, raw.store) {
            (Some(components), None) => Some(RulesFrom::Components(self.components(components))),
            (None, Some(store)) => {
                self.path("rules.store", &store);
                Some(RulesFrom::Store(PathBuf::from(store)))
            }
            _ => {
                self.refuse("rules", "give exactly one of rules.components (a file per event version) and rules.store")
            }
        };
        let isolation = match raw.isolation.as_deref() {
            None | Some("batch") => Isolation::Batch,
            Some("event") => Isolation::Event,
            Some(other) => {
                self.refuse("rules.isolation", format!("{other:?} is not an isolation: use \"batch\" or \"event\""))?
            }
        };
        let guard = self.guard(&raw.guard);
        let shadow = self.shadow(raw.shadow);
        let canary_by = match raw.canary_by {
            None => Some(By::Default),
            Some(RawKey { attribute, field }) => self.by("rules.canary_by", attribute, field),
        };
        let from = from?;
        let routing = self.routing(raw.event_version, &from)?;
        let cache = raw.cache.map_or_else(default_cache, PathBuf::from);
        Some(RulesConfig { routing, from, cache, isolation, canary_by: canary_by?, guard, shadow })
    }

    fn components(&mut self, raw: BTreeMap<String, String>) -> BTreeMap<String, PathBuf> {
        if raw.is_empty() {
            self.refuse::<()>("rules.components", "name at least one component: \"1\" = \"rules/my-rule.wasm\"");
        }
        let mut components = BTreeMap::new();
        for (version, path) in raw {
            if version.is_empty() {
                self.refuse::<()>(
                    &join(&["rules".into(), "components".into(), version]),
                    "an event version is not empty",
                );
            } else {
                components.insert(version, PathBuf::from(path));
            }
        }
        components
    }

    /// Without `event_version` every event goes to the only component. What a store serves may change, so there the
    /// default need not be served now.
    fn routing(&mut self, raw: Option<RawEventVersion>, from: &RulesFrom) -> Option<Routing> {
        let key = "rules.event_version";
        let where_it_is = "say where an event's version is: { attribute = \"…\" } or { field = \"/…\" }";
        let Some(raw) = raw else {
            return match from {
                RulesFrom::Store(_) => self.refuse(key, format!("with a rule store, {where_it_is}")),
                RulesFrom::Components(components) => match components.len() {
                    0 => None,
                    1 => Some(Routing { by: By::Default, default: components.keys().next().cloned() }),
                    _ => self.refuse(key, format!("with several components, {where_it_is}")),
                },
            };
        };
        let by = match (raw.attribute, raw.field) {
            (None, None) if raw.default.is_some() => By::Default,
            (attribute, field) => self.by(key, attribute, field)?,
        };
        if let (Some(default), RulesFrom::Components(components)) = (&raw.default, from)
            && !components.contains_key(default)
        {
            return self
                .refuse("rules.event_version.default", format!("no component serves event version {default:?}"));
        }
        Some(Routing { by, default: raw.default })
    }

    fn by(&mut self, key: &str, attribute: Option<String>, field: Option<String>) -> Option<By> {
        match (attribute, field) {
            (Some(attribute), None) if !attribute.is_empty() => Some(By::Attribute(attribute)),
            (None, Some(field)) => match Pointer::parse(&field) {
                Ok(pointer) => Some(By::Field(pointer)),
                Err(what) => self.refuse(&format!("{key}.field"), what),
            },
            _ => self.refuse(key, "give exactly one of attribute and field"),
        }
    }

    fn guard(&mut self, raw: &RawGuard) -> GuardLimits {
        let default = GuardLimits::default();
        let limits = GuardLimits {
            min_pairs: raw.min_pairs.unwrap_or(default.min_pairs),
            margin_percent: raw.margin_percent.unwrap_or(default.margin_percent),
            faults: raw.faults.unwrap_or(default.faults),
            time: self.duration("rules.guard.time", raw.time.as_deref(), default.time),
        };
        for (key, value) in [("rules.guard.min_pairs", limits.min_pairs), ("rules.guard.faults", limits.faults)] {
            if value == 0 {
                self.refuse::<()>(key, "must be at least 1");
            }
        }
        if !(0.0..100.0).contains(&limits.margin_percent) {
            self.refuse::<()>("rules.guard.margin_percent", "must be at least 0 and below 100");
        }
        limits
    }

    fn shadow(&mut self, raw: RawShadow) -> ShadowConfig {
        let table = raw.table.unwrap_or_else(|| "shadow_differences".to_owned());
        self.table("rules.shadow.table", &table);
        ShadowConfig { table, keep: raw.keep.unwrap_or(1_000) }
    }
}

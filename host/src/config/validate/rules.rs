//! Components and how an event's version is told.

use super::check::Check;
use crate::config::layers::join;
use crate::config::raw::{RawEventVersion, RawRules};
use crate::config::{RulesConfig, default_cache};
use crate::rules::judge::Isolation;
use crate::rules::set::{By, Pointer, Routing};
use std::collections::BTreeMap;
use std::path::PathBuf;

impl Check {
    pub(super) fn rules(&mut self, raw: RawRules) -> Option<RulesConfig> {
        if raw.components.is_empty() {
            self.refuse::<()>("rules.components", "name at least one component: \"1\" = \"rules/my-rule.wasm\"");
        }
        let mut components = BTreeMap::new();
        for (version, path) in raw.components {
            if version.is_empty() {
                self.refuse::<()>(
                    &join(&["rules".into(), "components".into(), version]),
                    "an event version is not empty",
                );
            } else {
                components.insert(version, PathBuf::from(path));
            }
        }
        let isolation = match raw.isolation.as_deref() {
            None | Some("batch") => Isolation::Batch,
            Some("event") => Isolation::Event,
            Some(other) => {
                self.refuse("rules.isolation", format!("{other:?} is not an isolation: use \"batch\" or \"event\""))?
            }
        };
        let routing = self.routing(raw.event_version, &components)?;
        Some(RulesConfig { routing, components, cache: raw.cache.map_or_else(default_cache, PathBuf::from), isolation })
    }

    /// Without `event_version` every event goes to the only component.
    fn routing(&mut self, raw: Option<RawEventVersion>, components: &BTreeMap<String, PathBuf>) -> Option<Routing> {
        let key = "rules.event_version";
        let Some(raw) = raw else {
            return match components.len() {
                0 => None,
                1 => Some(Routing { by: By::Default, default: components.keys().next().cloned() }),
                _ => self.refuse(key, "with several components, say where an event's version is: { attribute = \"…\" } or { field = \"/…\" }"),
            };
        };
        let by = match (raw.attribute, raw.field) {
            (Some(attribute), None) if !attribute.is_empty() => By::Attribute(attribute),
            (None, Some(field)) => match Pointer::parse(&field) {
                Ok(pointer) => By::Field(pointer),
                Err(what) => return self.refuse("rules.event_version.field", what),
            },
            (None, None) if raw.default.is_some() => By::Default,
            _ => return self.refuse(key, "give exactly one of attribute and field, with or without default"),
        };
        if let Some(default) = raw.default.as_ref().filter(|version| !components.contains_key(*version)) {
            return self
                .refuse("rules.event_version.default", format!("no component serves event version {default:?}"));
        }
        Some(Routing { by, default: raw.default })
    }
}

//! The rule set: which rule judges which event version. A worker holds one, and a micro-batch keeps its own.

use super::load::Rule;
pub use super::route::{By, Pointer, Routing};
use crate::event::Event;
use crate::verdict::{Rejection, clip, stage};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An immutable set of rules with their routing.
#[derive(Debug)]
pub struct RuleSet {
    routing: Routing,
    rules: BTreeMap<String, Arc<Rule>>,
}

impl RuleSet {
    /// A set. The versions are those that the pipeline file maps, each checked against the rule's manifest there.
    pub fn new(routing: Routing, rules: BTreeMap<String, Arc<Rule>>) -> Self {
        Self { routing, rules }
    }

    /// The rules by event version.
    pub fn rules(&self) -> &BTreeMap<String, Arc<Rule>> {
        &self.rules
    }

    /// The version of an event and the rule that serves it, or the rejection for quarantine. The version is told
    /// even when nobody serves it.
    pub fn route<'a>(&'a self, event: &'a Event) -> (Option<Cow<'a, str>>, Result<&'a Arc<Rule>, Rejection>) {
        let version = match self.routing.version(event) {
            Ok(version) => version,
            Err(rejection) => return (None, Err(rejection)),
        };
        let rule = self.rules.get(version.as_ref()).ok_or_else(|| {
            let shown = clip(&version, 100);
            Rejection::by_host(stage::ROUTING, "no_rule", format!("no rule serves event version {shown:?}"))
        });
        (Some(version), rule)
    }
}

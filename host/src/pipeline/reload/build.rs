//! Building a rule set aside.

use super::super::loading;
use super::super::plan::Plan;
use super::super::prepare::{inspect, plan_for};
use crate::config::{Config, ConfigError, Problem};
use crate::releases::{Releases, RuleStore};
use crate::rules::{RuleSet, Sandbox};
use std::sync::Arc;

/// Makes a rule set of releases and holds it against the live tables.
pub(super) fn build(
    config: &Config,
    sandbox: &Arc<Sandbox>,
    store: &RuleStore,
    releases: &Releases,
    serving: &RuleSet,
) -> Result<(RuleSet, Plan), ConfigError> {
    let rules = loading::releases(config, sandbox, store, releases, Some(serving))?;
    let (plan, new_tables) = plan_for(config, &rules, &inspect(config))?;
    if let Some(table) = new_tables.first() {
        return Err(Problem::new("warehouse", format!("table {} is gone", table.name)).into());
    }
    Ok((rules, plan))
}

//! Building a rule set aside.

use super::super::loading;
use super::super::plan::Plan;
use super::super::prepare::{inspect, plan_for};
use crate::config::{Config, ConfigError, Problem, key_path};
use crate::releases::{Releases, RuleStore};
use crate::rules::{RuleSet, Sandbox};
use std::sync::Arc;

/// Makes a rule set of releases and holds it against the live tables.
pub(super) fn build(
    config: &Config,
    sandbox: &Arc<Sandbox>,
    store: &RuleStore,
    releases: &Releases,
    (serving, planned): (&RuleSet, &Plan),
) -> Result<(RuleSet, Plan), ConfigError> {
    let rules = loading::releases(config, sandbox, store, releases, Some(serving))?;
    let (plan, new_tables) = plan_for(config, &rules, &inspect(config))?;
    if let Some(table) = new_tables.first() {
        return Err(Problem::new("warehouse", format!("table {} is gone", table.name)).into());
    }
    same_windows(planned, &plan)?;
    Ok((rules, plan))
}

/// What is measured over windows stays what it is while windows are open.
fn same_windows(before: &Plan, after: &Plan) -> Result<(), ConfigError> {
    let shapes = |plan: &Plan| -> Vec<_> {
        let aggregates = plan.windows.iter().flat_map(|windows| &windows.aggregates);
        aggregates.map(|planned| (Arc::clone(&planned.aggregate.name), planned.aggregate.shape())).collect()
    };
    let (before, after) = (shapes(before), shapes(after));
    let Some(((name, _), _)) = before.iter().zip(&after).find(|(before, after)| before != after) else { return Ok(()) };
    let what = "the rules make other types of its columns than those before, of which windows are open: stop the worker, and \
                give the aggregate another name and table";
    Err(Problem::new(key_path(&["aggregates", name]), what).into())
}

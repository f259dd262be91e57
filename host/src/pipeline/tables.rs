//! Planning again while a run goes on, because somebody has changed a table.
//!
//! A column that was added is written from the next micro-batch on, where the host has a value for it. A column that is
//! needed and gone: the plan stays, what was promised cannot be written and is tried again, and that stops the reading. Once
//! the column is back it goes on.

use super::deliver::Delivery;
use super::evaluate::Context;
use super::plan::Plan;
use super::prepare::{inspect, plan_for};
use crate::config::Config;
use crate::pace::Pace;
use crate::rules::RuleSet;
use crate::telemetry::status::Status;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How long is waited before tables that could not be planned for are looked at again: in the beginning, and at most.
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(10);

/// Follows the tables until the warehouse says no more.
pub(super) async fn follow(config: Config, delivery: Delivery, status: Status, current: watch::Sender<Context>) {
    let mut changes = delivery.warehouse.schema_changes();
    let config = Arc::new(config);
    while changes.changed().await.is_ok() {
        let mut trouble = None;
        let mut pace = Pace::new(FIRST, LONGEST);
        loop {
            let rules = Arc::clone(&current.borrow().rules);
            let (config, planned_for) = (Arc::clone(&config), Arc::clone(&rules));
            let planned = tokio::task::spawn_blocking(move || plan_again(&config, &planned_for)).await;
            match planned {
                Ok(Ok(plan)) => {
                    if !publish(&current, &rules, &Arc::new(plan), &delivery) {
                        // The rules were swapped meanwhile.
                        continue;
                    }
                    tracing::info!("a table has changed; rows are written as it is now");
                    break;
                }
                // Once it is repaired, rows are written again, and perhaps nobody tells of that change.
                Ok(Err(why)) => {
                    tracing::error!("{why}");
                    trouble.get_or_insert_with(|| status.trouble()).is(why);
                }
                Err(error) => tracing::error!("planning for the changed tables failed: {error}"),
            }
            tokio::time::sleep(pace.wait()).await;
        }
    }
}

fn plan_again(config: &Config, rules: &RuleSet) -> Result<Plan, String> {
    let live = inspect(config);
    if let Err(error) = &live
        && error.retryable
    {
        return Err(format!("a table has changed, and cannot be looked at: {error}"));
    }
    let unfit = |why: &dyn Display| format!("a table has changed and no longer fits: {why}");
    let (plan, new) = plan_for(config, rules, &live).map_err(|error| unfit(&error))?;
    match new.first() {
        None => Ok(plan),
        // It was there when the run began: whoever took it away is not to find an empty one in its place.
        Some(table) => Err(unfit(&format_args!("table {} is gone", table.name))),
    }
}

/// Puts the plan in place if it was made for the rules that serve.
fn publish(current: &watch::Sender<Context>, rules: &Arc<RuleSet>, plan: &Arc<Plan>, delivery: &Delivery) -> bool {
    let published = current.send_if_modified(|context| {
        let same = Arc::ptr_eq(&context.rules, rules);
        if same {
            context.plan = Arc::clone(plan);
        }
        same
    });
    if published {
        delivery.replan(Arc::clone(plan));
    }
    published
}

//! Makes what is missing, one step after the other. What fails holds up no step that does not need it.

use super::compare::{Change, Step};
use super::look::Google;
use super::model::{Purpose, Resource};
use super::roles;

/// What became of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// The step.
    pub step: Step,
    /// Whether its change was made, and if not, why; a step without a change is made.
    pub result: Result<(), Failure>,
}

/// Why a change was not made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What was answered.
    pub why: String,
    /// Commands that may help, before the same call is made again.
    pub hints: Vec<String>,
}

/// Carries out the changes of all steps, in their order.
pub async fn apply(google: &Google, steps: Vec<Step>) -> Vec<Done> {
    let mut all = Vec::with_capacity(steps.len());
    for step in steps {
        let result = match &step.change {
            None => Ok(()),
            Some(change) => make(google, &step.resource, change).await,
        };
        let result = result.map_err(|why| Failure { hints: hints(&step.resource), why });
        all.push(Done { step, result });
    }
    all
}

async fn make(google: &Google, resource: &Resource, change: &Change) -> Result<(), String> {
    let bigquery = google.bigquery.as_ref().ok_or("the pipeline has no BigQuery");
    let pubsub = google.pubsub.as_ref().ok_or("the pipeline has no Pub/Sub");
    match (resource, change) {
        (Resource::Table(table), Change::AddColumns(columns)) => bigquery?.add_columns(table, columns).await,
        (Resource::Table(table), Change::Create) => bigquery?.create_table(table).await,
        (Resource::Dataset(dataset), _) => bigquery?.create_dataset(dataset).await,
        (Resource::View(view), _) => bigquery?.create_view(view).await,
        (Resource::Topic(topic), _) => pubsub?.create_topic(topic).await,
        (Resource::Subscription(subscription), _) => pubsub?.create_subscription(subscription).await,
    }
}

/// Pub/Sub makes no subscription to a table that it may not write to.
fn hints(resource: &Resource) -> Vec<String> {
    match resource {
        Resource::Subscription(subscription) => match &subscription.purpose {
            Purpose::Bronze { table } => {
                let mut lines = roles::service_agent_lines(&subscription.name);
                lines.extend(roles::bronze(table).into_iter().map(|grant| grant.command));
                lines
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

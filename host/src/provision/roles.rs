//! Which roles each identity needs, on the table, the subscription, the topic: no more, and nowhere else. Pure.

use super::commands::{parts, quoted};
use super::model::{Purpose, Subscription, TableName, TableRole, Wanted};
use std::collections::BTreeSet;

/// The role that may write rows to a table, read them, and read its schema.
const DATA_EDITOR: &str = "roles/bigquery.dataEditor";
/// What a worker uses of that role.
const PERMISSIONS: &str = "bigquery.tables.get,bigquery.tables.getData,bigquery.tables.updateData";

/// Whose role it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// Whoever calls `preflight provision`.
    Provisioner,
    /// Pub/Sub itself.
    ServiceAgent,
    /// The worker.
    Worker,
}

impl Who {
    /// Its name, for programs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Provisioner => "provisioner",
            Self::ServiceAgent => "pubsub_service_agent",
            Self::Worker => "worker",
        }
    }

    /// The variable of the shell that names it.
    const fn variable(self) -> &'static str {
        match self {
            Self::Provisioner => "\"${PROVISIONER}\"",
            Self::ServiceAgent => "\"serviceAccount:${PUBSUB_SERVICE_AGENT}\"",
            Self::Worker => "\"${WORKER}\"",
        }
    }
}

/// A role on something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Whose.
    pub who: Who,
    /// The role.
    pub role: &'static str,
    /// On what.
    pub on: String,
    /// What for.
    pub why: &'static str,
    /// The command that grants it.
    pub command: String,
}

/// All roles that are needed, by whom, in the order in which they can be granted.
pub fn roles(wanted: &Wanted) -> Vec<Grant> {
    let mut grants = provisioner(wanted);
    for subscription in &wanted.subscriptions {
        grants.extend(service_agent(subscription));
    }
    grants.extend(worker(wanted));
    grants
}

/// The lines of a shell that name the identities.
pub fn identities(wanted: &Wanted, worker: Option<&str>) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(subscription) = wanted.subscriptions.iter().find(|subscription| needs_agent(subscription)) {
        lines.extend(service_agent_lines(&subscription.name));
    }
    let worker = worker.unwrap_or("serviceAccount:WORKER@PROJECT.iam.gserviceaccount.com");
    lines.push(format!("export WORKER={}", quoted(worker)));
    lines.push("export PROVISIONER=\"user:$(gcloud config get-value account)\"".to_owned());
    lines
}

/// The lines of a shell that name the identity under which Pub/Sub writes and forwards the messages of a subscription: it
/// is its project's.
pub fn service_agent_lines(subscription: &str) -> Vec<String> {
    let (project, _) = parts(subscription);
    vec![
        format!("export PROJECT_NUMBER=\"$(gcloud projects describe {project} --format='value(projectNumber)')\""),
        "export PUBSUB_SERVICE_AGENT=\"service-${PROJECT_NUMBER}@gcp-sa-pubsub.iam.gserviceaccount.com\"".to_owned(),
    ]
}

/// A role that has no more than a worker uses, in the place of the one of BigQuery, as a command. It is made once.
pub fn narrower(wanted: &Wanted) -> Option<String> {
    let table = wanted.tables.iter().find(|table| table.role != TableRole::BronzeBySubscription)?;
    let project = &table.name.project;
    Some(format!(
        "gcloud iam roles create preflightWriter --project={project} --stage=GA --title=\"Preflight writer\" \
         --permissions={PERMISSIONS}"
    ))
}

/// What the service agent needs to write bronze.
pub fn bronze(table: &TableName) -> Vec<Grant> {
    let grant = |role, why| on_table(Who::ServiceAgent, role, table, why);
    vec![
        grant(DATA_EDITOR, "it writes the messages of the bronze subscription"),
        grant("roles/bigquery.metadataViewer", "it looks at the columns of the bronze table"),
    ]
}

fn needs_agent(subscription: &Subscription) -> bool {
    matches!(subscription.purpose, Purpose::Bronze { .. } | Purpose::Worker { dead_letter: Some(_), .. })
}

fn service_agent(subscription: &Subscription) -> Vec<Grant> {
    match &subscription.purpose {
        Purpose::Bronze { table } => bronze(table),
        Purpose::Worker { dead_letter: Some((topic, _)), .. } => {
            let (project, id) = parts(topic);
            let publisher = "roles/pubsub.publisher";
            let forward = Grant {
                who: Who::ServiceAgent,
                role: publisher,
                on: topic.clone(),
                why: "it forwards what could not be handled to the dead-letter topic",
                command: bind(
                    &format!("gcloud pubsub topics add-iam-policy-binding {id} --project={project}"),
                    Who::ServiceAgent,
                    publisher,
                ),
            };
            let why = "it acknowledges what it has forwarded";
            vec![forward, on_subscription(Who::ServiceAgent, "roles/pubsub.subscriber", &subscription.name, why)]
        }
        _ => Vec::new(),
    }
}

fn worker(wanted: &Wanted) -> Vec<Grant> {
    let mut grants = Vec::new();
    let written = wanted.tables.iter().filter(|table| table.role != TableRole::BronzeBySubscription);
    for table in written {
        let why = "the worker reads the table's columns and appends rows";
        grants.push(on_table(Who::Worker, DATA_EDITOR, &table.name, why));
    }
    if let Some(project) = &wanted.billed_to {
        let why = "the worker asks a table for rows: at its start with a new ledger, and where a stream is gone";
        grants.push(on_project(Who::Worker, "roles/bigquery.jobUser", project, why));
    }
    for subscription in &wanted.subscriptions {
        if let Purpose::Worker { .. } = subscription.purpose {
            for (role, why) in [
                ("roles/pubsub.subscriber", "the worker pulls, extends and acknowledges messages"),
                ("roles/pubsub.viewer", "the worker looks at its subscription before it starts"),
            ] {
                grants.push(on_subscription(Who::Worker, role, &subscription.name, why));
            }
        }
    }
    grants
}

fn provisioner(wanted: &Wanted) -> Vec<Grant> {
    let datasets = wanted.datasets.iter().map(|dataset| dataset.project.as_str());
    let bigquery: BTreeSet<&str> = datasets.chain(wanted.billed_to.as_deref()).collect();
    let topics = wanted.topics.iter().map(|topic| topic.0.as_str());
    let subscriptions = wanted.subscriptions.iter().map(|subscription| subscription.name.as_str());
    let pubsub: BTreeSet<&str> = topics.chain(subscriptions).map(|name| parts(name).0).collect();
    let datasets = bigquery.into_iter().map(|project| {
        let why = "it makes datasets, by which it owns them with their tables, and runs the SQL";
        on_project(Who::Provisioner, "roles/bigquery.user", project, why)
    });
    let others = pubsub.into_iter().map(|project| {
        on_project(Who::Provisioner, "roles/pubsub.editor", project, "it makes topics and subscriptions")
    });
    datasets.chain(others).collect()
}

fn bind(command: &str, who: Who, role: &str) -> String {
    format!("{command} \\\n  --member={} --role={role}", who.variable())
}

fn on_table(who: Who, role: &'static str, table: &TableName, why: &'static str) -> Grant {
    let command = format!(
        "bq --project_id={} add-iam-policy-binding \\\n  --member={} --role={role} --table=true {}",
        table.project,
        who.variable(),
        table.bq()
    );
    Grant { who, role, on: table.to_string(), why, command }
}

fn on_subscription(who: Who, role: &'static str, name: &str, why: &'static str) -> Grant {
    let (project, id) = parts(name);
    let command = format!("gcloud pubsub subscriptions add-iam-policy-binding {id} --project={project}");
    Grant { who, role, on: name.to_owned(), why, command: bind(&command, who, role) }
}

fn on_project(who: Who, role: &'static str, project: &str, why: &'static str) -> Grant {
    let command = format!("gcloud projects add-iam-policy-binding {project} --condition=None");
    Grant { who, role, on: format!("projects/{project}"), why, command: bind(&command, who, role) }
}

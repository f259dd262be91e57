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
}

/// An identity, and how the shell calls it.
struct Identity {
    who: Who,
    /// A word of the shell.
    member: String,
}

impl Identity {
    fn provisioner() -> Self {
        Self { who: Who::Provisioner, member: "\"${PROVISIONER}\"".to_owned() }
    }

    fn worker() -> Self {
        Self { who: Who::Worker, member: "\"${WORKER}\"".to_owned() }
    }

    /// The service agent of the project of this number, among those that are needed.
    fn agent(number: usize) -> Self {
        Self { who: Who::ServiceAgent, member: format!("\"serviceAccount:${{{}}}\"", agent_variable(number)) }
    }
}

/// Each project has a service agent of its own, and a variable for it.
fn agent_variable(number: usize) -> String {
    let suffix = if number == 0 { String::new() } else { format!("_{}", number + 1) };
    format!("PUBSUB_SERVICE_AGENT{suffix}")
}

/// The projects whose service agents are needed, each once.
fn agents(wanted: &Wanted) -> Vec<&str> {
    let mut projects = Vec::new();
    for subscription in wanted.subscriptions.iter().filter(|subscription| needs_agent(subscription)) {
        let (project, _) = parts(&subscription.name);
        if !projects.contains(&project) {
            projects.push(project);
        }
    }
    projects
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
    let agents = agents(wanted);
    for subscription in &wanted.subscriptions {
        let (project, _) = parts(&subscription.name);
        if let Some(number) = agents.iter().position(|agent| *agent == project) {
            grants.extend(service_agent(subscription, &Identity::agent(number)));
        }
    }
    grants.extend(worker(wanted));
    grants
}

/// The lines of a shell that name the identities.
pub fn identities(wanted: &Wanted, worker: Option<&str>) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, project) in agents(wanted).into_iter().enumerate() {
        lines.extend(agent_lines(project, number));
    }
    let worker = worker.unwrap_or("serviceAccount:WORKER@PROJECT.iam.gserviceaccount.com");
    lines.push(format!("export WORKER={}", quoted(worker)));
    lines.push("export PROVISIONER=\"user:$(gcloud config get-value account)\"".to_owned());
    lines
}

/// The lines of a shell that name the identity under which Pub/Sub writes and forwards the messages of a subscription: it
/// is its project's.
pub fn service_agent_lines(subscription: &str) -> Vec<String> {
    agent_lines(parts(subscription).0, 0)
}

fn agent_lines(project: &str, number: usize) -> Vec<String> {
    let variable = agent_variable(number);
    vec![
        format!("export PROJECT_NUMBER=\"$(gcloud projects describe {project} --format='value(projectNumber)')\""),
        format!("export {variable}=\"service-${{PROJECT_NUMBER}}@gcp-sa-pubsub.iam.gserviceaccount.com\""),
    ]
}

/// What an identity needs that only looks whether all is as it was made, beside the roles of a project's Pub/Sub: datasets and
/// tables that another has made are not its own. As commands; who they are for stays to be filled in.
pub fn looker(wanted: &Wanted) -> Vec<String> {
    let datasets = wanted.datasets.iter().map(|dataset| (dataset.project.as_str(), "roles/bigquery.metadataViewer"));
    let subscriptions = wanted.subscriptions.iter().map(|subscription| parts(&subscription.name).0);
    let topics = wanted.topics.iter().map(|topic| parts(&topic.0).0);
    let pubsub = subscriptions.chain(topics).map(|project| (project, "roles/pubsub.viewer"));
    let grants: BTreeSet<(&str, &str)> = datasets.chain(pubsub).collect();
    let command = |(project, role): (&str, &str)| {
        format!("gcloud projects add-iam-policy-binding {project} --condition=None --member=WHO --role={role}")
    };
    grants.into_iter().map(command).collect()
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

/// What the service agent of [`service_agent_lines`] needs to write bronze.
pub fn bronze(table: &TableName) -> Vec<Grant> {
    bronze_of(table, &Identity::agent(0))
}

fn bronze_of(table: &TableName, agent: &Identity) -> Vec<Grant> {
    let grant = |role, why| on_table(agent, role, table, why);
    vec![
        grant(DATA_EDITOR, "it writes the messages of the bronze subscription"),
        grant("roles/bigquery.metadataViewer", "it looks at the columns of the bronze table"),
    ]
}

fn needs_agent(subscription: &Subscription) -> bool {
    matches!(subscription.purpose, Purpose::Bronze { .. } | Purpose::Worker { dead_letter: Some(_), .. })
}

fn service_agent(subscription: &Subscription, agent: &Identity) -> Vec<Grant> {
    match &subscription.purpose {
        Purpose::Bronze { table } => bronze_of(table, agent),
        Purpose::Worker { dead_letter: Some((topic, _)), .. } => {
            let (project, id) = parts(topic);
            let publisher = "roles/pubsub.publisher";
            let forward = Grant {
                who: agent.who,
                role: publisher,
                on: topic.clone(),
                why: "it forwards what could not be handled to the dead-letter topic",
                command: bind(
                    &format!("gcloud pubsub topics add-iam-policy-binding {id} --project={project}"),
                    agent,
                    publisher,
                ),
            };
            let why = "it acknowledges what it has forwarded";
            vec![forward, on_subscription(agent, "roles/pubsub.subscriber", &subscription.name, why)]
        }
        _ => Vec::new(),
    }
}

fn worker(wanted: &Wanted) -> Vec<Grant> {
    let (mut grants, who) = (Vec::new(), &Identity::worker());
    let written = wanted.tables.iter().filter(|table| table.role != TableRole::BronzeBySubscription);
    for table in written {
        let why = "the worker reads the table's columns and appends rows";
        grants.push(on_table(who, DATA_EDITOR, &table.name, why));
    }
    for view in wanted.views.iter().filter(|view| view.is_of_run) {
        let why = "the worker looks whether the view is there when it starts";
        grants.push(on_table(who, "roles/bigquery.metadataViewer", &view.name, why));
    }
    if let Some(project) = &wanted.billed_to {
        let why = "the worker runs queries: at a start with a new ledger, where a stream is gone, and for quarantine and its replay";
        grants.push(on_project(who, "roles/bigquery.jobUser", project, why));
    }
    for subscription in &wanted.subscriptions {
        if let Purpose::Worker { .. } = subscription.purpose {
            for (role, why) in [
                ("roles/pubsub.subscriber", "the worker pulls, extends and acknowledges messages"),
                ("roles/pubsub.viewer", "the worker looks at its subscription before it starts"),
            ] {
                grants.push(on_subscription(who, role, &subscription.name, why));
            }
        }
    }
    grants
}

fn provisioner(wanted: &Wanted) -> Vec<Grant> {
    let who = &Identity::provisioner();
    let datasets = wanted.datasets.iter().map(|dataset| dataset.project.as_str());
    let bigquery: BTreeSet<&str> = datasets.chain(wanted.billed_to.as_deref()).collect();
    let topics = wanted.topics.iter().map(|topic| topic.0.as_str());
    let subscriptions = wanted.subscriptions.iter().map(|subscription| subscription.name.as_str());
    let pubsub: BTreeSet<&str> = topics.chain(subscriptions).map(|name| parts(name).0).collect();
    let datasets = bigquery.into_iter().map(|project| {
        let why = "it makes datasets, by which it owns them with their tables, and runs the SQL";
        on_project(who, "roles/bigquery.user", project, why)
    });
    let others = pubsub
        .into_iter()
        .map(|project| on_project(who, "roles/pubsub.editor", project, "it makes topics and subscriptions"));
    datasets.chain(others).collect()
}

fn bind(command: &str, who: &Identity, role: &str) -> String {
    format!("{command} \\\n  --member={} --role={role}", who.member)
}

fn on_table(who: &Identity, role: &'static str, table: &TableName, why: &'static str) -> Grant {
    let command = format!(
        "bq --project_id={} add-iam-policy-binding \\\n  --member={} --role={role} --table=true {}",
        table.project,
        who.member,
        table.bq()
    );
    Grant { who: who.who, role, on: table.to_string(), why, command }
}

fn on_subscription(who: &Identity, role: &'static str, name: &str, why: &'static str) -> Grant {
    let (project, id) = parts(name);
    let command = format!("gcloud pubsub subscriptions add-iam-policy-binding {id} --project={project}");
    Grant { who: who.who, role, on: name.to_owned(), why, command: bind(&command, who, role) }
}

fn on_project(who: &Identity, role: &'static str, project: &str, why: &'static str) -> Grant {
    let command = format!("gcloud projects add-iam-policy-binding {project} --condition=None");
    Grant { who: who.who, role, on: format!("projects/{project}"), why, command: bind(&command, who, role) }
}

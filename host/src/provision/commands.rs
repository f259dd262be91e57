//! What is done, as an operator would type it: `bq`, `gcloud` and SQL. Pure.

use super::model::{Dataset, Purpose, Resource, Subscription, Table, TableName, View};
use crate::config::Backoff;
use crate::row::{Column, ColumnType};
use crate::warehouse::bigquery::{
    add_columns_statement, create_statement, create_view_statement, replace_view_statement,
};
use std::time::Duration;

/// What makes or changes one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The SQL, if it is SQL.
    pub sql: Option<String>,
    /// The command, for a shell.
    pub command: String,
}

/// Else it is refused before anything is compared.
const WANTED_VIEW: &str = "a wanted view has a query";

/// The statement that makes something.
pub fn create(resource: &Resource) -> Statement {
    let command = |command| Statement { sql: None, command };
    match resource {
        Resource::Dataset(dataset) => command(create_dataset(dataset)),
        Resource::Table(table) => {
            let sql = create_statement(&table.new_table(), &table.name.project);
            let sql = sql.expect("a wanted table has a dataset, and the columns of its partitions");
            query(&table.name, table.location.as_deref(), sql)
        }
        Resource::View(view) => {
            let sql = create_view_statement(&view.view, &view.name.project);
            query(&view.name, view.location.as_deref(), sql.expect(WANTED_VIEW))
        }
        Resource::Topic(topic) => {
            let (project, id) = parts(&topic.0);
            command(format!("gcloud pubsub topics create {id} --project={project}"))
        }
        Resource::Subscription(subscription) => command(create_subscription(subscription)),
    }
}

/// The statement that adds nullable columns to a table.
pub fn add_columns(table: &Table, columns: &[Column]) -> Statement {
    query(&table.name, table.location.as_deref(), add_columns_statement(&table.name, columns))
}

/// The statement that gives a table a primary key.
pub fn add_primary_key(table: &Table, column: &str) -> Statement {
    let sql = format!("ALTER TABLE {}\n  ADD PRIMARY KEY (`{column}`) NOT ENFORCED", table.name.sql());
    query(&table.name, table.location.as_deref(), sql)
}

/// The statement that makes a view in the place of another of its name.
pub fn replace_view(view: &View) -> Statement {
    let sql = replace_view_statement(&view.view, &view.name.project);
    query(&view.name, view.location.as_deref(), sql.expect(WANTED_VIEW))
}

/// The command that changes a subscription.
pub fn update_subscription(subscription: &Subscription, flags: &str) -> String {
    let (project, id) = parts(&subscription.name);
    format!("gcloud pubsub subscriptions update {id} --project={project} {flags}")
}

/// The command that lets a column be null.
pub fn drop_not_null(table: &TableName, column: &str) -> String {
    format!(
        "bq --project_id={} query --use_legacy_sql=false 'ALTER TABLE `{table}` ALTER COLUMN {column} DROP NOT NULL'",
        table.project
    )
}

/// The command that changes what a table's rows are sorted by.
pub fn cluster(table: &TableName, columns: &[String]) -> String {
    format!("bq --project_id={} update --clustering_fields={} {}", table.project, columns.join(","), table.bq())
}

/// The command that changes a table's description.
pub fn describe(table: &TableName, description: &str) -> String {
    format!("bq --project_id={} update --description={} {}", table.project, quoted(description), table.bq())
}

/// The command that makes a dataset of another name where it is wanted: its tables can then be copied.
pub fn copy_dataset(dataset: &Dataset) -> String {
    create_dataset(&Dataset { name: format!("{}_copy", dataset.name), ..dataset.clone() })
}

/// What stands behind `PARTITION BY` for the days of a column.
pub fn partition(column: &str, kind: Option<ColumnType>) -> String {
    if kind == Some(ColumnType::Date) { column.to_owned() } else { format!("DATE({column})") }
}

fn create_dataset(dataset: &Dataset) -> String {
    let location = dataset.location.as_ref().map(|location| format!(" --location={location}")).unwrap_or_default();
    let Dataset { project, name, .. } = dataset;
    format!("bq --project_id={project}{location} mk --dataset {project}:{name}")
}

fn query(name: &TableName, location: Option<&str>, sql: String) -> Statement {
    let location = location.map(|location| format!(" --location={location}")).unwrap_or_default();
    let command =
        format!("bq --project_id={}{location} query --use_legacy_sql=false <<'SQL'\n{sql};\nSQL", name.project);
    Statement { sql: Some(sql), command }
}

fn create_subscription(subscription: &Subscription) -> String {
    let (project, id) = parts(&subscription.name);
    let near = |name: &str| {
        let (its_project, id) = parts(name);
        if its_project == project { id.to_owned() } else { name.to_owned() }
    };
    let topic = subscription.topic.as_deref().map_or_else(|| "TOPIC".to_owned(), near);
    let mut words = vec![
        format!("gcloud pubsub subscriptions create {id}"),
        format!("--project={project}"),
        format!("--topic={topic}"),
    ];
    match &subscription.purpose {
        Purpose::Worker { settings, dead_letter, filter } => {
            words.push(format!("--ack-deadline={}", settings.ack_deadline.as_secs()));
            if !filter.is_empty() {
                words.push(format!("--message-filter={}", quoted(filter)));
            }
            if let Some((topic, attempts)) = dead_letter {
                words.push(format!("--dead-letter-topic={}", near(topic)));
                words.push(format!("--max-delivery-attempts={attempts}"));
            }
            words.extend(settings.retention.map(retention));
            if let Some(Backoff { min, max }) = settings.retry {
                words.push(format!("--min-retry-delay={}s", min.as_secs()));
                words.push(format!("--max-retry-delay={}s", max.as_secs()));
            }
            for (on, flag) in [
                (settings.retain_acked, "--retain-acked-messages"),
                (settings.ordering, "--enable-message-ordering"),
                (settings.exactly_once, "--enable-exactly-once-delivery"),
            ] {
                if on {
                    words.push(flag.to_owned());
                }
            }
        }
        Purpose::Bronze { table } => {
            words.push(format!("--bigquery-table={table}"));
            words.push("--write-metadata".to_owned());
        }
        Purpose::DeadLetter => words.push(retention(Purpose::DEAD_LETTER_RETENTION)),
    }
    words.push("--expiration-period=never".to_owned());
    words.join(" \\\n  ")
}

fn retention(time: Duration) -> String {
    format!("--message-retention-duration={}s", time.as_secs())
}

/// Project and name of a topic or a subscription.
pub fn parts(name: &str) -> (&str, &str) {
    let mut parts = name.split('/').skip(1).step_by(2);
    (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
}

/// A word for a shell.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::{TableRole, Topic};
    use super::*;
    use crate::config::SubscriptionSettings;

    fn subscription(purpose: Purpose) -> String {
        let subscription = Subscription {
            name: "projects/p/subscriptions/s".into(),
            topic: Some("projects/q/topics/t".into()),
            purpose,
        };
        create(&Resource::Subscription(subscription)).command.replace(" \\\n ", "")
    }

    #[test]
    fn a_subscription_says_no_more_than_what_is_not_pubsubs_own_way() {
        let plain =
            Purpose::Worker { settings: SubscriptionSettings::default(), dead_letter: None, filter: String::new() };
        assert_eq!(
            subscription(plain),
            "gcloud pubsub subscriptions create s --project=p --topic=projects/q/topics/t --ack-deadline=60 \
             --expiration-period=never"
        );
        let settings = SubscriptionSettings {
            ack_deadline: Duration::from_secs(30),
            retention: Some(Duration::from_hours(1)),
            retain_acked: true,
            ordering: true,
            exactly_once: true,
            retry: Some(Backoff { min: Duration::from_secs(1), max: Duration::from_secs(2) }),
        };
        let dead_letter = Some(("projects/p/topics/dead".into(), 7));
        let filter = "attributes.shard = \"0\"".into();
        assert_eq!(
            subscription(Purpose::Worker { settings, dead_letter, filter }),
            "gcloud pubsub subscriptions create s --project=p --topic=projects/q/topics/t --ack-deadline=30 \
             --message-filter='attributes.shard = \"0\"' --dead-letter-topic=dead --max-delivery-attempts=7 \
             --message-retention-duration=3600s --min-retry-delay=1s --max-retry-delay=2s --retain-acked-messages \
             --enable-message-ordering --enable-exactly-once-delivery --expiration-period=never"
        );
    }

    #[test]
    fn a_dead_letter_subscription_keeps_its_messages() {
        assert!(
            subscription(Purpose::DeadLetter).contains("--message-retention-duration=2678400s --expiration-period")
        );
        let topic = create(&Resource::Topic(Topic("projects/p/topics/t".into())));
        assert_eq!((topic.sql, topic.command.as_str()), (None, "gcloud pubsub topics create t --project=p"));
    }

    #[test]
    fn sql_is_typed_where_its_dataset_is() {
        let table = Table {
            role: TableRole::Silver,
            name: TableName::parse("p.d.t", "").unwrap(),
            location: Some("EU".into()),
            columns: vec![],
            partition_by: None,
            cluster_by: vec![],
            primary_key: None,
            description: None,
        };
        let statement = add_columns(&table, &[Column::new("a", ColumnType::Text, true)]);
        let sql = statement.sql.unwrap();
        assert_eq!(
            statement.command,
            format!("bq --project_id=p --location=EU query --use_legacy_sql=false <<'SQL'\n{sql};\nSQL")
        );
    }

    #[test]
    fn words_are_quoted_as_a_shell_reads_them() {
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("a.b=c"), "a.b=c");
    }
}

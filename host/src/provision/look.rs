//! What is there of what is wanted. Changes nothing.

use super::bigquery;
use super::compare::{Change, Step};
use super::model::{Found, Purpose, Wanted};
use super::pubsub;
use crate::config::{Config, SourceConfig, WarehouseConfig};

/// Whom to ask, and to let make things: those of Google's services that the pipeline uses.
pub struct Google {
    pub(super) bigquery: Option<bigquery::Admin>,
    pub(super) pubsub: Option<pubsub::Admin>,
    bigquery_tells_all: bool,
    pubsub_tells_all: bool,
}

impl Google {
    /// Prepares to connect; nothing is sent yet.
    pub async fn new(config: &Config) -> Result<Self, String> {
        let (bigquery, bigquery_tells_all) = match &config.warehouse {
            WarehouseConfig::Bigquery(config) => (Some(bigquery::Admin::new(config).await?), config.endpoint.is_none()),
            WarehouseConfig::Sqlite { .. } => (None, false),
        };
        let (pubsub, pubsub_tells_all) = match &config.source {
            SourceConfig::Pubsub(config) => (Some(pubsub::Admin::new(config).await?), config.endpoint.is_none()),
            SourceConfig::File { .. } | SourceConfig::Stdin { .. } => (None, false),
        };
        Ok(Self { bigquery, pubsub, bigquery_tells_all, pubsub_tells_all })
    }

    /// Looks for everything that is wanted. The first that cannot be looked for is the error: nothing was changed yet.
    pub async fn look(&self, wanted: &Wanted) -> Result<Found, String> {
        let mut found = Found {
            bigquery_tells_all: self.bigquery_tells_all,
            pubsub_tells_all: self.pubsub_tells_all,
            ..Found::default()
        };
        if let Some(bigquery) = &self.bigquery {
            for dataset in &wanted.datasets {
                if let Some(location) = bigquery.dataset(dataset).await? {
                    found.datasets.insert(dataset.to_string(), location);
                }
            }
            for table in &wanted.tables {
                if let Some(there) = bigquery.table(&table.name).await? {
                    found.tables.insert(table.name.clone(), there);
                }
            }
            for view in &wanted.views {
                if let Some(there) = bigquery.view(view).await? {
                    found.views.insert(view.name.clone(), there);
                }
            }
        }
        if let Some(pubsub) = &self.pubsub {
            for topic in &wanted.topics {
                if pubsub.topic(&topic.0).await? {
                    found.topics.insert(topic.0.clone());
                }
            }
            for subscription in &wanted.subscriptions {
                if let Some(there) = pubsub.subscription(&subscription.name).await? {
                    found.subscriptions.insert(subscription.name.clone(), there);
                }
            }
        }
        Ok(found)
    }

    /// What emulators do not do of what is wanted: it is made there all the same.
    pub fn emulator_notes(&self, wanted: &Wanted, steps: &[Step]) -> Vec<String> {
        let mut notes = Vec::new();
        let widens = |step: &Step| matches!(step.change, Some(Change::AddColumns(_)));
        if !self.bigquery_tells_all && steps.iter().any(widens) {
            let what =
                "an emulator of BigQuery may not tell of columns that were added: then the next call adds them again";
            notes.push(what.to_owned());
        }
        if self.bigquery.is_some()
            && !self.bigquery_tells_all
            && wanted.tables.iter().any(|table| table.primary_key.is_some())
        {
            let what = "an emulator of BigQuery may not keep primary keys: there no aggregate has write = \"upsert\"";
            notes.push(what.to_owned());
        }
        if self.pubsub.is_some() && !self.pubsub_tells_all {
            let any = |does: fn(&Purpose) -> bool| wanted.subscriptions.iter().any(|one| does(&one.purpose));
            if any(|purpose| matches!(purpose, Purpose::Bronze { .. })) {
                notes.push(
                    "Pub/Sub's emulator writes nothing to BigQuery: there, let the worker write [bronze]".to_owned(),
                );
            }
            if any(|purpose| matches!(purpose, Purpose::Worker { filter, .. } if !filter.is_empty())) {
                notes.push("Pub/Sub's emulator ignores filters: there, every shard gets every message".to_owned());
            }
        }
        notes
    }
}

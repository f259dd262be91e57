//! Pub/Sub and BigQuery: names, addresses, who we are there.

use super::check::Check;
use crate::config::raw::{RawBatch, RawBigquery, RawPubsub};
use crate::config::{BatchConfig, BigqueryConfig, PubsubConfig, SourceConfig};
use crate::google::credentials::Identity;
use crate::google::endpoint::Endpoint;
use crate::warehouse::bigquery::MAX_ROW;
use std::num::NonZeroUsize;
use std::time::Duration;

/// Variables that an emulator's users set.
const PUBSUB_EMULATOR: &str = "PUBSUB_EMULATOR_HOST";
const BIGQUERY_EMULATOR: &str = "BIGQUERY_EMULATOR_HOST";
const STORAGE_EMULATOR: &str = "BIGQUERY_STORAGE_EMULATOR_HOST";

/// A worker holds this many messages at most unless the pipeline file says otherwise.
const OUTSTANDING_MESSAGES: usize = 50_000;
const OUTSTANDING_BYTES: usize = 256 << 20;
/// More streams than this are refused.
const MAX_STREAMS: usize = 64;

impl Check {
    pub(super) fn pubsub(&mut self, raw: RawPubsub) -> Option<PubsubConfig> {
        let key = |name: &str| format!("source.pubsub.{name}");
        let streams = self.positive(&key("streams"), raw.streams, 2);
        if streams > MAX_STREAMS {
            self.refuse::<()>(&key("streams"), format!("must be at most {MAX_STREAMS}"));
        }
        let workers = self.positive(&key("workers"), raw.workers, 1);
        let messages =
            self.positive(&key("max_outstanding_messages"), raw.max_outstanding_messages, OUTSTANDING_MESSAGES);
        let bytes = self.size(&key("max_outstanding_bytes"), raw.max_outstanding_bytes.as_deref(), OUTSTANDING_BYTES);
        let endpoint = self.endpoint(&key("endpoint"), raw.endpoint, PUBSUB_EMULATOR, raw.allow_plaintext);
        let identity = self.identity(&key("credentials"), raw.credentials.as_deref(), endpoint.as_ref());
        let mut parts = raw.subscription.split('/');
        let named = parts.next() == Some("projects")
            && parts.next().is_some_and(|part| !part.is_empty())
            && parts.next() == Some("subscriptions")
            && parts.next().is_some_and(|part| !part.is_empty())
            && parts.next().is_none();
        if !named {
            let what =
                format!("{:?} is not a subscription: write projects/PROJECT/subscriptions/NAME", raw.subscription);
            return self.refuse(&key("subscription"), what);
        }
        Some(PubsubConfig {
            subscription: raw.subscription,
            streams: NonZeroUsize::new(streams)?,
            workers: NonZeroUsize::new(workers)?,
            max_outstanding_messages: messages,
            max_outstanding_bytes: bytes,
            endpoint,
            identity: identity?,
        })
    }

    /// What one worker knows, another on the same subscription does not: a redelivery may go to either, and each would have
    /// panes of its own for every window.
    pub(super) fn one_worker(&mut self, source: Option<&SourceConfig>, dedup: bool, aggregates: bool) {
        let Some(SourceConfig::Pubsub(PubsubConfig { workers, .. })) = source else { return };
        if workers.get() == 1 {
            return;
        }
        let help = "Give every worker a subscription and a ledger of its own (`preflight provision --shards N`)";
        let key = "source.pubsub.workers";
        if dedup {
            let what = format!(
                "with [dedup] a subscription has one worker: of two events that are the same each could go to another. \
                 {help}, or take [dedup] out"
            );
            self.refuse::<()>(key, what);
        }
        if aggregates {
            let what = "with [aggregates] a subscription has one worker: of two each would have a part of the events of a window. \
                        Say workers = 1, or take [aggregates] out";
            self.refuse::<()>(key, what);
        }
    }

    pub(super) fn bigquery(&mut self, raw: RawBigquery) -> Option<BigqueryConfig> {
        let key = |name: &str| format!("warehouse.bigquery.{name}");
        let timeout = self.duration(&key("request_timeout"), raw.request_timeout.as_deref(), Duration::from_mins(1));
        let give_up_after =
            self.duration(&key("give_up_after"), raw.give_up_after.as_deref(), Duration::from_hours(24));
        let endpoint = self.endpoint(&key("endpoint"), raw.endpoint, BIGQUERY_EMULATOR, raw.allow_plaintext);
        let storage_key = key("storage_endpoint");
        let storage = self.endpoint(&storage_key, raw.storage_endpoint, STORAGE_EMULATOR, raw.allow_plaintext);
        if endpoint.is_some() != storage.is_some() {
            let what = "endpoint and storage_endpoint belong together: give both or none";
            self.refuse::<()>(&storage_key, what);
        }
        let identity = self.identity(&key("credentials"), raw.credentials.as_deref(), endpoint.as_ref());
        if identity == Some(Identity::ApplicationDefault) && storage.as_ref().is_some_and(tells_everybody) {
            self.refuse::<()>(&storage_key, UNSAFE);
        }
        if timeout.is_zero() {
            self.refuse::<()>(&key("request_timeout"), "must be at least 1 ms");
        }
        if raw.project.is_empty() || raw.project.contains(['/', '`', ' ']) {
            return self.refuse(&key("project"), format!("{:?} is not a project", raw.project));
        }
        Some(BigqueryConfig {
            project: raw.project,
            request_timeout: timeout,
            give_up_after,
            endpoint,
            storage_endpoint: storage,
            identity: identity?,
        })
    }

    /// The size of a row that is written, bytes: BigQuery takes no more in one request.
    pub(super) fn max_row(&mut self, text: Option<&str>, bigquery: bool) -> usize {
        let default = if bigquery { MAX_ROW } else { 8 << 20 };
        let size = self.bounded_size("limits.row", text, default);
        if bigquery && size > MAX_ROW {
            self.refuse::<()>("limits.row", format!("BigQuery takes rows of at most {} MB", MAX_ROW / 1_000_000));
        }
        size
    }

    /// The age at which a micro-batch is full. With BigQuery it is called by what it means there.
    pub(super) fn max_age(&mut self, batch: &RawBatch, bigquery: Option<&RawBigquery>) -> Duration {
        let interval = bigquery.and_then(|bigquery| bigquery.commit_interval.as_deref());
        let key = "warehouse.bigquery.commit_interval";
        if interval.is_some() && batch.max_age.is_some() {
            self.refuse::<()>(key, "it is the same as batch.max_age: give one of them");
        }
        let default = if bigquery.is_some() { Duration::from_secs(1) } else { BatchConfig::default().max_age };
        let default = self.duration(key, interval, default);
        self.duration("batch.max_age", batch.max_age.as_deref(), default)
    }

    /// The address given, else that of an emulator's variable. Plain text leaves this machine only if that is asked for.
    fn endpoint(
        &mut self,
        key: &str,
        given: Option<String>,
        variable: &str,
        allow_plaintext: bool,
    ) -> Option<Endpoint> {
        let from_variable = || std::env::var(variable).ok().filter(|value| !value.is_empty());
        let (text, origin) = match given {
            Some(text) => (text, String::new()),
            None => (from_variable()?, format!("{variable}: ")),
        };
        match Endpoint::parse(&text) {
            Ok(endpoint) if endpoint.is_plaintext() && !endpoint.is_loopback() && !allow_plaintext => self.refuse(
                key,
                format!(
                    "{origin}{} is plain text over the network: use https://, or say allow_plaintext = true beside it",
                    endpoint.url
                ),
            ),
            Ok(endpoint) => Some(endpoint),
            Err(what) => self.refuse(key, format!("{origin}{what}")),
        }
    }

    /// Emulators want no credentials; everybody else does.
    fn identity(&mut self, key: &str, given: Option<&str>, endpoint: Option<&Endpoint>) -> Option<Identity> {
        match given {
            Some("application_default") if endpoint.is_some_and(tells_everybody) => self.refuse(key, UNSAFE),
            None if endpoint.is_some_and(Endpoint::is_plaintext) => Some(Identity::Anonymous),
            None | Some("application_default") => Some(Identity::ApplicationDefault),
            Some("anonymous") => Some(Identity::Anonymous),
            Some(other) => {
                self.refuse(key, format!("{other:?} is not known: use \"application_default\" or \"anonymous\""))
            }
        }
    }
}

/// An access token is good for everything the account may do: the network does not get to see it, whatever else it may.
const UNSAFE: &str = "credentials are not sent in plain text over the network: use https://";

fn tells_everybody(endpoint: &Endpoint) -> bool {
    endpoint.is_plaintext() && !endpoint.is_loopback()
}

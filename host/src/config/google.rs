//! What the pipeline file says of Pub/Sub and BigQuery.

use crate::google::credentials::Identity;
use crate::google::endpoint::Endpoint;
use std::num::NonZeroUsize;
use std::time::Duration;

/// A Pub/Sub subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PubsubConfig {
    /// `projects/…/subscriptions/…`
    pub subscription: String,
    /// Streaming pulls that are open at the same time.
    pub streams: NonZeroUsize,
    /// Workers that pull from it. With more than one a redelivery may go to another, whose ledger does not know it.
    pub workers: NonZeroUsize,
    /// Messages held and not acknowledged, over all streams.
    pub max_outstanding_messages: usize,
    /// Bytes of messages held and not acknowledged, over all streams.
    pub max_outstanding_bytes: usize,
    /// Where Pub/Sub is, if it is not Google's.
    pub endpoint: Option<Endpoint>,
    /// Who we are there.
    pub identity: Identity,
}

/// A project's BigQuery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BigqueryConfig {
    /// The project of tables without one in their name; queries are billed to it.
    pub project: String,
    /// How long one request may take before the connection is given up and the request repeated on a new one.
    pub request_timeout: Duration,
    /// How long retryable failures are retried before the run gives up.
    pub give_up_after: Duration,
    /// Where the REST interface is, if it is not Google's.
    pub endpoint: Option<Endpoint>,
    /// Where the Storage Write interface is, if it is not Google's.
    pub storage_endpoint: Option<Endpoint>,
    /// Who we are there.
    pub identity: Identity,
}

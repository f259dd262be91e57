//! Connections to Pub/Sub.

use super::holding::Share;
use super::look::{Found, Unfit};
use crate::config::PubsubConfig;
use google_cloud_gax::options::RequestOptionsBuilder as _;
use google_cloud_gax::retry_policy::NeverRetry;
use google_cloud_pubsub::Error;
use google_cloud_pubsub::client::{Subscriber, SubscriptionAdmin};
use google_cloud_pubsub::subscriber::{MessageStream, ShutdownBehavior};
use std::time::Duration;

/// How long one question may take, its credentials included.
const QUESTION: Duration = Duration::from_secs(10);
/// More connections than this help nobody: each carries about a hundred streams.
const MAX_CONNECTIONS: usize = 16;

/// A connection that is pulled through.
#[derive(Debug, Clone)]
pub(super) struct Client(Subscriber);

impl Client {
    /// Prepares to connect; nothing is sent yet.
    pub async fn new(config: &PubsubConfig) -> Result<Self, Unfit> {
        let credentials = config.identity.credentials().map_err(Unfit::Barred)?;
        let mut builder = Subscriber::builder().with_credentials(credentials);
        if let Some(endpoint) = &config.endpoint {
            builder = builder.with_endpoint(&endpoint.url);
        }
        // An ack that fails is sent again at once over another connection.
        let connections = config.streams.get().min(MAX_CONNECTIONS);
        let subscriber = builder.with_grpc_subchannel_count(connections).build().await;
        subscriber.map(Self).map_err(|error| Unfit::Barred(error.to_string()))
    }

    /// One stream of several, with its share of what may be held.
    pub fn stream(&self, config: &PubsubConfig, found: &Found) -> MessageStream {
        let share = Share::of(config, found);
        let limit = |most: usize| i64::try_from(most).unwrap_or(i64::MAX);
        self.0
            .subscribe(&config.subscription)
            .set_max_outstanding_messages(limit(share.messages))
            .set_max_outstanding_bytes(limit(share.bytes))
            .set_max_lease_extension(found.lease())
            // For ever, that is: a warehouse may be down for a day, and what we hold is safe with us.
            .set_max_lease(Duration::MAX)
            .set_shutdown_behavior(ShutdownBehavior::WaitForProcessing)
            .build()
    }
}

/// Whom to ask what the subscription is.
#[derive(Debug)]
pub(super) struct Desk(SubscriptionAdmin);

impl Desk {
    /// Prepares to connect; nothing is sent yet.
    pub async fn new(config: &PubsubConfig) -> Result<Self, Unfit> {
        let credentials = config.identity.credentials().map_err(Unfit::Barred)?;
        let mut builder = SubscriptionAdmin::builder().with_credentials(credentials);
        if let Some(endpoint) = &config.endpoint {
            builder = builder.with_endpoint(&endpoint.url);
        }
        builder.build().await.map(Self).map_err(|error| Unfit::Barred(error.to_string()))
    }

    /// Asks once.
    pub async fn ask(&self, config: &PubsubConfig) -> Result<Found, Unfit> {
        let question = self
            .0
            .get_subscription()
            .set_subscription(&config.subscription)
            .with_retry_policy(NeverRetry)
            .with_attempt_timeout(QUESTION)
            .send();
        let answer = tokio::time::timeout(QUESTION, question).await.unwrap_or_else(|late| Err(Error::timeout(late)));
        Found::of(&answer.map_err(|error| Unfit::from_error(config, &error))?)
    }
}

//! What the pipeline file says of what `preflight provision` makes beside the tables of the tiers.

use super::TierConfig;
use std::time::Duration;

/// What is made for a pipeline on Google Cloud.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProvisionConfig {
    /// Where datasets are made; where none is named, BigQuery decides (`US`).
    pub location: Option<String>,
    /// Who runs the worker, as IAM names it: `serviceAccount:…`.
    pub worker: Option<String>,
    /// Topics and subscriptions; none if the source is no subscription.
    pub pubsub: Option<PubsubProvision>,
}

/// Topics and subscriptions. All names are full: `projects/…/topics/…`, `projects/…/subscriptions/…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PubsubProvision {
    /// The topic whose messages the subscription gets. Without it no subscription can be made.
    pub topic: Option<String>,
    /// How the worker's subscription is made.
    pub settings: SubscriptionSettings,
    /// Where messages go that could not be handled however often they were delivered.
    pub dead_letter: Option<DeadLetter>,
    /// The subscription that writes bronze.
    pub bronze: Option<BronzeSubscription>,
}

/// How a worker's subscription is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionSettings {
    /// How long a message may be held before it is delivered again: whole seconds, 10 s to 600 s.
    pub ack_deadline: Duration,
    /// How long a message is kept: 10 minutes to 31 days. What Pub/Sub does by itself (7 days) if none is given.
    pub retention: Option<Duration>,
    /// Whether acknowledged messages are kept for that time, too.
    pub retain_acked: bool,
    /// Whether messages with the same ordering key are delivered in order.
    pub ordering: bool,
    /// Whether Pub/Sub delivers an acknowledged message never again.
    pub exactly_once: bool,
    /// The pauses before a message is delivered again. At once if none are given.
    pub retry: Option<Backoff>,
}

impl SubscriptionSettings {
    /// The deadline of the seed's subscription.
    pub const ACK_DEADLINE: Duration = Duration::from_mins(1);
}

impl Default for SubscriptionSettings {
    fn default() -> Self {
        Self {
            ack_deadline: Self::ACK_DEADLINE,
            retention: None,
            retain_acked: false,
            ordering: false,
            exactly_once: false,
            retry: None,
        }
    }
}

/// Pauses that grow from `min` to `max`: whole seconds, up to 600 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The first.
    pub min: Duration,
    /// The longest.
    pub max: Duration,
}

/// What happens to messages that could not be handled however often they were delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The topic they are forwarded to.
    pub topic: String,
    /// The subscription that keeps them: without one they would be gone.
    pub subscription: String,
    /// After so many deliveries, 5 to 100.
    pub max_delivery_attempts: u32,
}

/// A BigQuery subscription that writes every message to bronze, with metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BronzeSubscription {
    /// The subscription.
    pub subscription: String,
    /// The table; `create` says nothing here.
    pub tier: TierConfig,
}

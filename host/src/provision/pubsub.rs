//! Topics and subscriptions, by Pub/Sub's own interface: looked at, and made.

use super::model::{Delivery, FoundSubscription, Purpose, Subscription, Topic};
use crate::config::{Backoff, PubsubConfig, SubscriptionSettings};
use google_cloud_gax::error::rpc::Code;
use google_cloud_gax::options::RequestOptionsBuilder as _;
use google_cloud_gax::retry_policy::NeverRetry;
use google_cloud_pubsub::Error;
use google_cloud_pubsub::client::{SubscriptionAdmin, TopicAdmin};
use google_cloud_pubsub::model;
use google_cloud_pubsub::model::big_query_config::State;
use google_cloud_wkt as wkt;
use std::time::Duration;

/// How long one call may take, its credentials included. Whoever waits can call again.
const LIMIT: Duration = Duration::from_secs(30);

/// The emulator keeps messages no longer.
pub(super) const EMULATOR_RETENTION: Duration = Duration::from_hours(7 * 24);

/// The deadline of a subscription that says none.
const DEFAULT_DEADLINE: Duration = Duration::from_secs(10);

/// Pub/Sub, as who makes things in it.
pub(super) struct Admin {
    topics: TopicAdmin,
    subscriptions: SubscriptionAdmin,
    is_emulator: bool,
}

impl Admin {
    /// Prepares to connect; nothing is sent yet.
    pub(super) async fn new(config: &PubsubConfig) -> Result<Self, String> {
        let credentials = config.identity.credentials()?;
        let mut topics = TopicAdmin::builder().with_credentials(credentials.clone());
        let mut subscriptions = SubscriptionAdmin::builder().with_credentials(credentials);
        if let Some(endpoint) = &config.endpoint {
            topics = topics.with_endpoint(&endpoint.url);
            subscriptions = subscriptions.with_endpoint(&endpoint.url);
        }
        let unfit =
            |error: google_cloud_gax::client_builder::Error| format!("cannot set up a client of Pub/Sub: {error}");
        Ok(Self {
            topics: topics.build().await.map_err(unfit)?,
            subscriptions: subscriptions.build().await.map_err(unfit)?,
            is_emulator: config.endpoint.is_some(),
        })
    }

    /// Whether a topic is there.
    pub(super) async fn topic(&self, name: &str) -> Result<bool, String> {
        let ask = self.topics.get_topic().set_topic(name).with_retry_policy(NeverRetry).with_attempt_timeout(LIMIT);
        match within(ask.send()).await {
            Ok(_) => Ok(true),
            Err(error) if is(&error, Code::NotFound) => Ok(false),
            Err(error) => Err(format!("cannot look for the topic {name}: {}", whole(&error))),
        }
    }

    /// A subscription as it is, if it is there.
    pub(super) async fn subscription(&self, name: &str) -> Result<Option<FoundSubscription>, String> {
        let ask = self.subscriptions.get_subscription().set_subscription(name);
        match within(ask.with_retry_policy(NeverRetry).with_attempt_timeout(LIMIT).send()).await {
            Ok(there) => Ok(Some(found(&there))),
            Err(error) if is(&error, Code::NotFound) => Ok(None),
            Err(error) => Err(format!("cannot look for the subscription {name}: {}", whole(&error))),
        }
    }

    /// Makes a topic, unless it is there.
    pub(super) async fn create_topic(&self, topic: &Topic) -> Result<(), String> {
        let make = self.topics.create_topic().set_name(&topic.0);
        made(within(make.with_retry_policy(NeverRetry).with_attempt_timeout(LIMIT).send()).await)
    }

    /// Makes a subscription, unless it is there.
    pub(super) async fn create_subscription(&self, subscription: &Subscription) -> Result<(), String> {
        let mut request = request(subscription);
        if self.is_emulator
            && request.message_retention_duration.is_some_and(|time| from_wkt(time) > EMULATOR_RETENTION)
        {
            request = request.set_message_retention_duration(duration(EMULATOR_RETENTION));
        }
        let make = self.subscriptions.create_subscription().with_request(request);
        made(within(make.with_retry_policy(NeverRetry).with_attempt_timeout(LIMIT).send()).await)
    }
}

async fn within<T>(call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::time::timeout(LIMIT, call).await.unwrap_or_else(|late| Err(Error::timeout(late)))
}

fn made<T>(answer: Result<T, Error>) -> Result<(), String> {
    match answer {
        Err(error) if !is(&error, Code::AlreadyExists) => Err(whole(&error)),
        _ => Ok(()),
    }
}

fn is(error: &Error, code: Code) -> bool {
    error.status().is_some_and(|status| status.code == code)
}

/// An error and what it was caused by, once each.
fn whole(error: &Error) -> String {
    if let Some(status) = error.status() {
        return format!("{}: {}", status.code.name(), status.message);
    }
    let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    causes
        .map(ToString::to_string)
        .fold(error.to_string(), |text, cause| if text.contains(&cause) { text } else { format!("{text}: {cause}") })
}

fn request(subscription: &Subscription) -> model::Subscription {
    // Without a time to live it is for ever.
    let mut request = model::Subscription::new()
        .set_name(&subscription.name)
        .set_topic(subscription.topic.clone().unwrap_or_default())
        .set_expiration_policy(model::ExpirationPolicy::new());
    match &subscription.purpose {
        Purpose::Worker { settings, dead_letter, filter } => {
            request = request
                .set_ack_deadline_seconds(i32::try_from(settings.ack_deadline.as_secs()).unwrap_or(i32::MAX))
                .set_retain_acked_messages(settings.retain_acked)
                .set_enable_message_ordering(settings.ordering)
                .set_enable_exactly_once_delivery(settings.exactly_once)
                .set_filter(filter)
                .set_or_clear_message_retention_duration(settings.retention.map(duration));
            if let Some((topic, attempts)) = dead_letter {
                let policy = model::DeadLetterPolicy::new()
                    .set_dead_letter_topic(topic)
                    .set_max_delivery_attempts(i32::try_from(*attempts).unwrap_or(i32::MAX));
                request = request.set_dead_letter_policy(policy);
            }
            if let Some(Backoff { min, max }) = settings.retry {
                let policy =
                    model::RetryPolicy::new().set_minimum_backoff(duration(min)).set_maximum_backoff(duration(max));
                request = request.set_retry_policy(policy);
            }
        }
        Purpose::Bronze { table } => {
            let to = model::BigQueryConfig::new()
                .set_table(table.to_string())
                .set_use_topic_schema(false)
                .set_write_metadata(true);
            request = request.set_bigquery_config(to);
        }
        Purpose::DeadLetter => {
            request = request.set_message_retention_duration(duration(Purpose::DEAD_LETTER_RETENTION));
        }
    }
    request
}

fn found(there: &model::Subscription) -> FoundSubscription {
    let retry = there.retry_policy.as_ref().map(|policy| Backoff {
        min: policy.minimum_backoff.map_or(Duration::from_secs(10), from_wkt),
        max: policy.maximum_backoff.map_or(Duration::from_mins(10), from_wkt),
    });
    let deadline = u64::try_from(there.ack_deadline_seconds).ok().filter(|seconds| *seconds > 0);
    let settings = SubscriptionSettings {
        ack_deadline: deadline.map_or(DEFAULT_DEADLINE, Duration::from_secs),
        retention: there.message_retention_duration.map(from_wkt),
        retain_acked: there.retain_acked_messages,
        ordering: there.enable_message_ordering,
        exactly_once: there.enable_exactly_once_delivery,
        retry,
    };
    let dead_letter = there.dead_letter_policy.as_ref().filter(|policy| !policy.dead_letter_topic.is_empty());
    FoundSubscription {
        topic: there.topic.clone(),
        settings,
        dead_letter: dead_letter.map(|policy| {
            let attempts = u32::try_from(policy.max_delivery_attempts).ok().filter(|attempts| *attempts > 0);
            (policy.dead_letter_topic.clone(), attempts.unwrap_or(5))
        }),
        filter: there.filter.clone(),
        expires: there.expiration_policy.as_ref().and_then(|policy| policy.ttl).map(from_wkt),
        detached: there.detached,
        delivery: delivery(there),
    }
}

fn delivery(there: &model::Subscription) -> Delivery {
    if let Some(to) = there.bigquery_config.as_ref().filter(|to| !to.table.is_empty()) {
        let trouble = match &to.state {
            State::Unspecified | State::Active => None,
            other => Some(other.name().unwrap_or("for a reason that this version does not know").to_owned()),
        };
        return Delivery::BigQuery {
            table: to.table.clone(),
            write_metadata: to.write_metadata,
            by_schema: to.use_topic_schema || to.use_table_schema,
            trouble,
        };
    }
    if there.push_config.as_ref().is_some_and(|to| !to.push_endpoint.is_empty()) {
        Delivery::Push
    } else if there.cloud_storage_config.as_ref().is_some_and(|to| !to.bucket.is_empty()) {
        Delivery::CloudStorage
    } else if there.bigtable_config.as_ref().is_some_and(|to| !to.table.is_empty()) {
        Delivery::Bigtable
    } else {
        Delivery::Pull
    }
}

/// Whole seconds, which is all that a pipeline file says.
fn duration(time: Duration) -> wkt::Duration {
    wkt::Duration::clamp(i64::try_from(time.as_secs()).unwrap_or(i64::MAX), 0)
}

/// Of a negative duration, which Pub/Sub does not take, nothing.
fn from_wkt(time: wkt::Duration) -> Duration {
    let nanos = u32::try_from(time.nanos()).unwrap_or_default();
    Duration::new(u64::try_from(time.seconds()).unwrap_or_default(), nanos)
}

#[cfg(test)]
mod tests {
    use super::super::model::TableName;
    use super::*;

    fn wanted(purpose: Purpose) -> Subscription {
        let topic = Some("projects/p/topics/t".to_owned());
        Subscription { name: "projects/p/subscriptions/s".into(), topic, purpose }
    }

    #[test]
    fn what_is_asked_for_is_what_is_found() {
        let settings = SubscriptionSettings {
            ack_deadline: Duration::from_mins(1),
            retention: Some(Duration::from_hours(1)),
            retain_acked: true,
            ordering: true,
            exactly_once: true,
            retry: Some(Backoff { min: Duration::from_secs(1), max: Duration::from_secs(2) }),
        };
        let dead_letter = Some(("projects/p/topics/dead".to_owned(), 7));
        let filter = "attributes.shard = \"0\"".to_owned();
        let purpose =
            Purpose::Worker { settings: settings.clone(), dead_letter: dead_letter.clone(), filter: filter.clone() };
        let there = FoundSubscription {
            topic: "projects/p/topics/t".into(),
            settings,
            dead_letter,
            filter,
            expires: None,
            detached: false,
            delivery: Delivery::Pull,
        };
        assert_eq!(found(&request(&wanted(purpose))), there);
    }

    #[test]
    fn bronze_is_written_with_its_metadata_and_dead_letters_are_kept() {
        let table = TableName::parse("p.d.raw", "").unwrap();
        let delivery = found(&request(&wanted(Purpose::Bronze { table }))).delivery;
        let to = Delivery::BigQuery { table: "p.d.raw".into(), write_metadata: true, by_schema: false, trouble: None };
        assert_eq!(delivery, to);
        let dead = found(&request(&wanted(Purpose::DeadLetter)));
        assert_eq!((dead.settings.retention, dead.expires), (Some(Duration::from_hours(31 * 24)), None));
    }

    #[test]
    fn what_pubsub_leaves_out_is_what_it_does_by_itself() {
        let there = found(
            &model::Subscription::new()
                .set_dead_letter_policy(model::DeadLetterPolicy::new().set_dead_letter_topic("projects/p/topics/dead")),
        );
        assert_eq!(there.settings.ack_deadline, Duration::from_secs(10));
        assert_eq!(there.dead_letter, Some(("projects/p/topics/dead".into(), 5)));
        let idle = model::ExpirationPolicy::new().set_ttl(duration(Duration::from_hours(24)));
        let there = found(&model::Subscription::new().set_expiration_policy(idle));
        assert_eq!(there.expires, Some(Duration::from_hours(24)));
    }

    #[test]
    fn what_takes_the_messages_away_is_told() {
        let to = |subscription: model::Subscription| found(&subscription).delivery;
        let push = model::PushConfig::new().set_push_endpoint("https://example.com");
        assert_eq!(to(model::Subscription::new().set_push_config(push)), Delivery::Push);
        // A subscription that is pulled has an empty one.
        assert_eq!(to(model::Subscription::new().set_push_config(model::PushConfig::new())), Delivery::Pull);
        let bucket = model::CloudStorageConfig::new().set_bucket("b");
        assert_eq!(to(model::Subscription::new().set_cloud_storage_config(bucket)), Delivery::CloudStorage);
        let denied = model::BigQueryConfig::new().set_table("p.d.t").set_state(State::PermissionDenied);
        let Delivery::BigQuery { trouble, .. } = to(model::Subscription::new().set_bigquery_config(denied)) else {
            panic!("it writes to BigQuery")
        };
        assert_eq!(trouble.as_deref(), Some("PERMISSION_DENIED"));
    }
}

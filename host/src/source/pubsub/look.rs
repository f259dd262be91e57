//! What a subscription is, and whether it can be pulled.

use crate::config::PubsubConfig;
use crate::source::SourceError;
use google_cloud_gax::error::rpc::Code;
use google_cloud_pubsub::Error;
use google_cloud_pubsub::model;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// What topics are called whose subscriptions have outlived them.
const DELETED_TOPIC: &str = "_deleted-topic_";
/// Pub/Sub advises no shorter leases for exactly-once delivery, since a late extension makes the ack fail.
const SHORT_FOR_EXACTLY_ONCE: Duration = Duration::from_mins(1);

/// A subscription that can be pulled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// Its full name.
    pub name: String,
    /// The topic.
    pub topic: String,
    /// How long a lease is before it must be extended, seconds.
    pub ack_deadline_seconds: u64,
    /// Whether acks are confirmed and no message comes again after that.
    pub exactly_once: bool,
    /// Whether messages with the same ordering key come in the order they were published in.
    pub ordering: bool,
    /// Where Pub/Sub puts what was delivered too often, if anywhere. Only then does it count deliveries.
    pub dead_letters: Option<DeadLetters>,
}

/// Where Pub/Sub puts what was delivered too often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeadLetters {
    /// The topic.
    pub topic: String,
    /// After so many deliveries.
    pub attempts: u32,
}

impl Found {
    /// How long a lease is. Pub/Sub takes 10 seconds to 10 minutes.
    pub(super) fn lease(&self) -> Duration {
        Duration::from_secs(self.ack_deadline_seconds.clamp(10, 600))
    }

    /// How many streams are pulled. Messages of a key may come over any stream, and would overtake each other on two.
    pub(super) fn streams(&self, config: &PubsubConfig) -> usize {
        if self.ordering { 1 } else { config.streams.get() }
    }

    /// What an operator should know of it.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.topic == DELETED_TOPIC {
            notes.push("its topic was deleted: nothing more comes than what it holds".to_owned());
        }
        if self.exactly_once && Duration::from_secs(self.ack_deadline_seconds) < SHORT_FOR_EXACTLY_ONCE {
            notes.push(format!(
                "an ack deadline of {} s is short for exactly-once delivery: more acks fail, and more messages come again; 60 s is \
                 advised",
                self.ack_deadline_seconds
            ));
        }
        notes
    }

    /// From what Pub/Sub says of it; the error says why it cannot be pulled.
    pub(super) fn of(subscription: &model::Subscription) -> Result<Self, Unfit> {
        let not_pulled = |does: String| {
            Unfit::Gone(format!("it {does}, so it cannot be pulled: use another subscription of the topic"))
        };
        if subscription.detached {
            let what = "it is detached from its topic, and nothing comes of it any more: make a new one";
            return Err(Unfit::Gone(what.to_owned()));
        }
        if let Some(table) = subscription.bigquery_config.as_ref().map(|to| &to.table).filter(|to| !to.is_empty()) {
            return Err(not_pulled(format!("writes to the BigQuery table {table} itself")));
        }
        if let Some(bucket) =
            subscription.cloud_storage_config.as_ref().map(|to| &to.bucket).filter(|to| !to.is_empty())
        {
            return Err(not_pulled(format!("writes to the bucket {bucket} itself")));
        }
        if let Some(table) = subscription.bigtable_config.as_ref().map(|to| &to.table).filter(|to| !to.is_empty()) {
            return Err(not_pulled(format!("writes to the Bigtable table {table} itself")));
        }
        if let Some(url) = subscription.push_config.as_ref().map(|to| &to.push_endpoint).filter(|to| !to.is_empty()) {
            return Err(not_pulled(format!("pushes to {url}")));
        }
        let dead_letters =
            subscription.dead_letter_policy.as_ref().filter(|policy| !policy.dead_letter_topic.is_empty());
        Ok(Self {
            name: subscription.name.clone(),
            topic: subscription.topic.clone(),
            ack_deadline_seconds: u64::try_from(subscription.ack_deadline_seconds).unwrap_or_default(),
            exactly_once: subscription.enable_exactly_once_delivery,
            ordering: subscription.enable_message_ordering,
            dead_letters: dead_letters.map(|policy| DeadLetters {
                topic: policy.dead_letter_topic.clone(),
                attempts: u32::try_from(policy.max_delivery_attempts).unwrap_or_default(),
            }),
        })
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}, ack deadline {} s", self.name, self.topic, self.ack_deadline_seconds)?;
        f.write_str(if self.exactly_once { ", exactly-once delivery" } else { ", at-least-once delivery" })?;
        f.write_str(if self.ordering { ", ordered by key (so one stream is pulled)" } else { "" })?;
        match &self.dead_letters {
            Some(dead) => write!(f, ", dead letters to {} after {} deliveries", dead.topic, dead.attempts),
            None => f.write_str(", no dead-letter policy"),
        }
    }
}

/// Why a subscription cannot be pulled, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It is not there, or is not one to be pulled: that does not pass.
    #[error("{0}")]
    Gone(String),
    /// We may not. An operator can change that while a worker runs.
    #[error("{0}")]
    Barred(String),
    /// Pub/Sub does not answer, or not well. It passes by itself.
    #[error("{0}")]
    Away(String),
}

impl Unfit {
    /// As what it does to a source that starts.
    pub(super) fn of(self, config: &PubsubConfig) -> SourceError {
        let retryable = matches!(self, Self::Away(_));
        SourceError::Pubsub { subscription: config.subscription.clone(), error: self.to_string(), retryable }
    }

    /// What an error of Pub/Sub means.
    pub(super) fn from_error(config: &PubsubConfig, error: &Error) -> Self {
        let (project, name) = parts(&config.subscription);
        match error.status().map(|status| (status.code, &status.message)) {
            Some((Code::NotFound, message)) => Self::Gone(format!(
                "it does not exist ({message}). Make it with `preflight provision FILE`, or with: gcloud pubsub \
                 subscriptions create {name} --project={project} --topic=TOPIC --ack-deadline=60"
            )),
            Some((Code::PermissionDenied, message)) => Self::Barred(format!(
                "we may not use it ({message}). The worker needs the roles pubsub.subscriber and pubsub.viewer on it: \
                 gcloud pubsub subscriptions add-iam-policy-binding {name} --project={project} \
                 --member=serviceAccount:ACCOUNT --role=roles/pubsub.subscriber, and the same with roles/pubsub.viewer"
            )),
            Some((Code::InvalidArgument, message)) => Self::Gone(format!("Pub/Sub refuses the name ({message})")),
            Some((Code::Unauthenticated, message)) => Self::Barred(not_known(message)),
            Some((code, message)) => Self::Away(format!("Pub/Sub answers {}: {message}", code.name())),
            None if error.is_authentication() => Self::Barred(not_known(&whole(error))),
            None => Self::Away(format!("Pub/Sub cannot be reached: {}", whole(error))),
        }
    }
}

fn not_known(why: &str) -> String {
    format!(
        "Pub/Sub does not know who we are ({why}). Run `gcloud auth application-default login`, or set \
         GOOGLE_APPLICATION_CREDENTIALS"
    )
}

/// An error and what it was caused by.
fn whole(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        let next_text = next.to_string();
        if !text.contains(&next_text) {
            text.push_str(": ");
            text.push_str(&next_text);
        }
        cause = next.source();
    }
    text
}

/// Project and name of `projects/PROJECT/subscriptions/NAME`.
fn parts(subscription: &str) -> (&str, &str) {
    let mut parts = subscription.split('/');
    (parts.nth(1).unwrap_or_default(), parts.nth(1).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::google::credentials::Identity;
    use google_cloud_gax::error::rpc::Status;
    use google_cloud_pubsub::model::{BigQueryConfig, CloudStorageConfig, DeadLetterPolicy, PushConfig, Subscription};
    use std::num::NonZeroUsize;

    fn subscription() -> Subscription {
        Subscription::new()
            .set_name("projects/p/subscriptions/s")
            .set_topic("projects/p/topics/t")
            .set_ack_deadline_seconds(60)
    }

    #[test]
    fn what_a_subscription_is_stands_in_one_line() {
        // An empty push configuration is what Pub/Sub answers for one that is pulled.
        let found = Found::of(&subscription().set_push_config(PushConfig::new())).unwrap();
        assert_eq!(
            found.to_string(),
            "projects/p/subscriptions/s of projects/p/topics/t, ack deadline 60 s, at-least-once delivery, no dead-letter policy"
        );
        assert_eq!(found.notes(), [""; 0]);
        let policy = DeadLetterPolicy::new().set_dead_letter_topic("projects/p/topics/d").set_max_delivery_attempts(7);
        let all = subscription()
            .set_enable_exactly_once_delivery(true)
            .set_enable_message_ordering(true)
            .set_dead_letter_policy(policy);
        let text = Found::of(&all).unwrap().to_string();
        assert!(
            text.ends_with(
                "exactly-once delivery, ordered by key (so one stream is pulled), dead letters to projects/p/topics/d after \
                 7 deliveries"
            ),
            "{text}"
        );
    }

    #[test]
    fn what_is_ordered_comes_over_one_stream() {
        let config = PubsubConfig {
            subscription: "projects/p/subscriptions/s".into(),
            streams: NonZeroUsize::new(4).unwrap(),
            workers: NonZeroUsize::MIN,
            max_outstanding_messages: 1,
            max_outstanding_bytes: 1,
            endpoint: None,
            identity: Identity::Anonymous,
        };
        assert_eq!(Found::of(&subscription()).unwrap().streams(&config), 4);
        assert_eq!(Found::of(&subscription().set_enable_message_ordering(true)).unwrap().streams(&config), 1);
    }

    #[test]
    fn what_an_operator_should_know_is_noted() {
        let short = subscription().set_ack_deadline_seconds(10).set_topic(DELETED_TOPIC);
        assert_eq!(Found::of(&short).unwrap().notes().len(), 1);
        let notes = Found::of(&short.set_enable_exactly_once_delivery(true)).unwrap().notes();
        assert!(notes[0].contains("deleted") && notes[1].contains("60 s is advised"), "{notes:?}");
    }

    #[test]
    fn what_cannot_be_pulled_is_refused_with_the_reason() {
        for (subscription, reason) in [
            (subscription().set_detached(true), "detached"),
            (subscription().set_bigquery_config(BigQueryConfig::new().set_table("p.d.t")), "BigQuery table p.d.t"),
            (subscription().set_cloud_storage_config(CloudStorageConfig::new().set_bucket("b")), "bucket b"),
            (subscription().set_bigtable_config(model::BigtableConfig::new().set_table("t")), "Bigtable table t"),
            (subscription().set_push_config(PushConfig::new().set_push_endpoint("https://h")), "pushes to https://h"),
        ] {
            let unfit = Found::of(&subscription).unwrap_err();
            assert!(matches!(&unfit, Unfit::Gone(what) if what.contains(reason)), "{unfit}");
        }
    }

    #[test]
    fn a_lease_is_what_pubsub_takes_for_one() {
        let lease = |seconds| Found::of(&subscription().set_ack_deadline_seconds(seconds)).unwrap().lease().as_secs();
        assert_eq!([lease(0), lease(10), lease(60), lease(600), lease(6_000)], [10, 10, 60, 600, 600]);
    }

    #[test]
    fn an_error_says_what_to_do_and_whether_it_may_pass() {
        let config = PubsubConfig {
            subscription: "projects/p/subscriptions/s".into(),
            streams: NonZeroUsize::MIN,
            workers: NonZeroUsize::MIN,
            max_outstanding_messages: 1,
            max_outstanding_bytes: 1,
            endpoint: None,
            identity: Identity::Anonymous,
        };
        let unfit =
            |code| Unfit::from_error(&config, &Error::service(Status::default().set_code(code).set_message("why")));
        let text = |unfit: Unfit, part: &str| assert!(unfit.to_string().contains(part), "{unfit}");
        let missing = unfit(Code::NotFound);
        assert!(matches!(missing, Unfit::Gone(_)));
        text(missing.clone(), "preflight provision");
        text(missing, "gcloud pubsub subscriptions create s --project=p");
        let denied = unfit(Code::PermissionDenied);
        assert!(matches!(denied, Unfit::Barred(_)));
        text(denied, "roles/pubsub.subscriber");
        text(unfit(Code::Unauthenticated), "gcloud auth application-default login");
        assert!(matches!(unfit(Code::InvalidArgument), Unfit::Gone(_)));
        for code in [Code::Unavailable, Code::FailedPrecondition, Code::Cancelled, Code::Unknown] {
            let away = unfit(code);
            assert!(matches!(away, Unfit::Away(_)), "{away}");
            assert!(matches!(away.of(&config), SourceError::Pubsub { retryable: true, .. }));
        }
        assert!(matches!(unfit(Code::NotFound).of(&config), SourceError::Pubsub { retryable: false, .. }));
        text(Unfit::from_error(&config, &Error::io("connection refused")), "cannot be reached");
    }
}

//! What `preflight provision` makes: names completed, bounds of Pub/Sub held.

use super::check::Check;
use super::tables::{Target, resolved, views};
use crate::config::raw::{RawBronzeSubscription, RawProvision, RawTier};
use crate::config::{
    AggregateConfig, Backoff, BronzeSubscription, DeadLetter, ProvisionConfig, PubsubProvision, SourceConfig,
    SubscriptionSettings, WarehouseConfig,
};
use std::ops::RangeInclusive;
use std::time::Duration;

const ACK_DEADLINE: RangeInclusive<Duration> = Duration::from_secs(10)..=Duration::from_mins(10);
const RETENTION: RangeInclusive<Duration> = Duration::from_mins(10)..=Duration::from_hours(31 * 24);
const MAX_BACKOFF: Duration = Duration::from_mins(10);
/// What Pub/Sub does by itself where only the other end of the pauses is given.
const DEFAULT_BACKOFF: Backoff = Backoff { min: Duration::from_secs(10), max: MAX_BACKOFF };
const ATTEMPTS: RangeInclusive<u32> = 5..=100;

/// What may stand before the colon of a member of IAM.
const MEMBERS: [&str; 5] = ["serviceAccount", "user", "group", "principal", "principalSet"];

impl Check {
    /// The projects of the subscription and of the warehouse complete the short names.
    #[expect(clippy::unnecessary_wraps, reason = "it is the form of every check")]
    pub(super) fn provision(
        &mut self,
        raw: RawProvision,
        source: Option<&SourceConfig>,
        warehouse: Option<&WarehouseConfig>,
        targets: &[Target<'_>],
        aggregates: &[AggregateConfig],
    ) -> Option<ProvisionConfig> {
        let worker_subscription = match source {
            Some(SourceConfig::Pubsub(pubsub)) => Some(pubsub.subscription.as_str()),
            _ => None,
        };
        let project = worker_subscription.and_then(|name| name.split('/').nth(1));
        let settings = self.subscription_settings(&raw);
        let topic = raw.topic.map(|name| self.resource("provision.topic", "topics", name, project));
        let dead_letter =
            self.dead_letter(raw.dead_letter_topic, raw.dead_letter_subscription, raw.max_delivery_attempts, project);
        if let Some(bronze) = &raw.bronze {
            self.bronze_apart(&bronze.table, warehouse, targets, aggregates);
        }
        let bronze = raw.bronze.map(|bronze| self.bronze_subscription(bronze, project));
        if let Some(location) = &raw.location
            && (location.is_empty() || !location.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'))
        {
            let what = format!("{location:?} is not a location: write US, EU, us-central1 or another of BigQuery's");
            self.refuse::<()>("provision.location", what);
        }
        let home = match warehouse {
            Some(WarehouseConfig::Bigquery(bigquery)) => Some(bigquery.project.as_str()),
            _ => project,
        };
        let worker = raw.worker.and_then(|worker| self.member("provision.worker", worker, home));
        let pubsub = worker_subscription.map(|_| PubsubProvision {
            topic: topic.flatten(),
            settings,
            dead_letter: dead_letter.flatten(),
            bronze: bronze.flatten(),
        });
        Some(ProvisionConfig { location: raw.location, worker, pubsub })
    }

    fn subscription_settings(&mut self, raw: &RawProvision) -> SubscriptionSettings {
        let default = SubscriptionSettings::default();
        let key = "provision.ack_deadline";
        let ack_deadline = self.duration(key, raw.ack_deadline.as_deref(), default.ack_deadline);
        if !ACK_DEADLINE.contains(&ack_deadline) || ack_deadline.subsec_millis() > 0 {
            self.refuse::<()>(key, "must be whole seconds, at least 10 s and at most 600 s");
        }
        let retention = raw.retention.as_deref().map(|text| {
            let retention = self.duration("provision.retention", Some(text), *RETENTION.start());
            if !RETENTION.contains(&retention) || retention.subsec_millis() > 0 {
                self.refuse::<()>("provision.retention", "must be whole seconds, at least 10 m and at most 31 d");
            }
            retention
        });
        let retry = (raw.min_backoff.is_some() || raw.max_backoff.is_some()).then(|| {
            let (min, max) = ("provision.min_backoff", "provision.max_backoff");
            let retry = Backoff {
                min: self.duration(min, raw.min_backoff.as_deref(), DEFAULT_BACKOFF.min),
                max: self.duration(max, raw.max_backoff.as_deref(), DEFAULT_BACKOFF.max),
            };
            for (key, pause) in [(min, retry.min), (max, retry.max)] {
                if pause > MAX_BACKOFF || pause.subsec_millis() > 0 {
                    self.refuse::<()>(key, "must be whole seconds, at most 600 s");
                }
            }
            if retry.min > retry.max {
                self.refuse::<()>(min, "must not be longer than max_backoff");
            }
            retry
        });
        SubscriptionSettings {
            ack_deadline,
            retention,
            retain_acked: raw.retain_acked,
            ordering: raw.ordering,
            exactly_once: raw.exactly_once,
            retry,
        }
    }

    /// The inner option is none where the names cannot be completed.
    #[expect(clippy::option_option, reason = "absent, refused, or there")]
    fn dead_letter(
        &mut self,
        topic: Option<String>,
        subscription: Option<String>,
        attempts: Option<u32>,
        project: Option<&str>,
    ) -> Option<Option<DeadLetter>> {
        let Some(topic) = topic else {
            let given = [
                ("provision.dead_letter_subscription", subscription.is_some()),
                ("provision.max_delivery_attempts", attempts.is_some()),
            ];
            for (key, _) in given.into_iter().filter(|(_, given)| *given) {
                self.refuse::<()>(key, "it says nothing without provision.dead_letter_topic");
            }
            return None;
        };
        let attempts = attempts.unwrap_or(*ATTEMPTS.end());
        if !ATTEMPTS.contains(&attempts) {
            self.refuse::<()>("provision.max_delivery_attempts", "must be at least 5 and at most 100");
        }
        // Beside its topic: that may be another project's.
        let subscription = subscription.unwrap_or_else(|| format!("{}-sub", short(&topic)));
        let topic = self.resource("provision.dead_letter_topic", "topics", topic, project);
        let subscription = self.resource("provision.dead_letter_subscription", "subscriptions", subscription, project);
        Some(topic.zip(subscription).map(|(topic, subscription)| DeadLetter {
            topic,
            subscription,
            max_delivery_attempts: attempts,
        }))
    }

    /// What a local run calls bronze may be the same table; no other may.
    fn bronze_apart(
        &mut self,
        table: &str,
        warehouse: Option<&WarehouseConfig>,
        targets: &[Target<'_>],
        aggregates: &[AggregateConfig],
    ) {
        let same = |other: &str| resolved(warehouse, other) == resolved(warehouse, table);
        if targets.iter().any(|target| target.key != "bronze.table" && same(target.table))
            || views(aggregates).any(|(_, view)| same(&view))
        {
            self.refuse::<()>("provision.bronze.table", format!("{table:?} is another tier's table already"));
        }
    }

    fn bronze_subscription(&mut self, raw: RawBronzeSubscription, project: Option<&str>) -> Option<BronzeSubscription> {
        let tier = RawTier {
            table: raw.table,
            create: None,
            write: None,
            partition_by: raw.partition_by,
            cluster_by: raw.cluster_by,
            description: raw.description,
        };
        let tier = self.tier("provision.bronze", tier);
        let subscription = self.resource("provision.bronze.subscription", "subscriptions", raw.subscription, project);
        Some(BronzeSubscription { subscription: subscription?, tier: tier? })
    }

    /// A topic's or subscription's full name. None, without a problem, where there is no project to complete it with.
    fn resource(&mut self, key: &str, kind: &str, name: String, project: Option<&str>) -> Option<String> {
        let help = format!("write NAME or projects/PROJECT/{kind}/NAME");
        let parts: Vec<&str> = name.split('/').collect();
        let id = match parts.as_slice() {
            [id] => id,
            ["projects", project, found, id] if !project.is_empty() && *found == kind => id,
            _ => return self.refuse(key, format!("{name:?} does not name one of {kind}: {help}")),
        };
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.~+%".contains(c);
        let named = (3..=255).contains(&id.len())
            && id.starts_with(|c: char| c.is_ascii_alphabetic())
            && id.chars().all(fits)
            && !id.starts_with("goog");
        if !named {
            let rule = "3 to 255 letters, digits and -_.~+%, a letter first, and not \"goog\"";
            return self.refuse(key, format!("{id:?} cannot be a name in Pub/Sub: {rule}"));
        }
        if parts.len() == 1 { project.map(|project| format!("projects/{project}/{kind}/{id}")) } else { Some(name) }
    }

    /// A member of IAM. The name of a service account is completed by its project.
    fn member(&mut self, key: &str, name: String, project: Option<&str>) -> Option<String> {
        let fits = |c: char| c.is_ascii_alphanumeric() || "-._@/".contains(c);
        match name.split_once(':') {
            Some((kind, rest)) if MEMBERS.contains(&kind) && !rest.is_empty() && !rest.contains([' ', '"', '\'']) => {
                return Some(name);
            }
            None if name.contains('@') && name.chars().all(fits) => return Some(format!("serviceAccount:{name}")),
            None if !name.is_empty() && !name.contains(['.', '_', '/']) && name.chars().all(fits) => {
                return project.map(|project| format!("serviceAccount:{name}@{project}.iam.gserviceaccount.com"));
            }
            _ => {}
        }
        let kinds = MEMBERS.join(", ");
        let what = format!(
            "{name:?} is nobody: write a service account's name or e-mail address, or one of {kinds} and a colon before it"
        );
        self.refuse(key, what)
    }
}

/// The last part of a name.
fn short(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::super::tests::load_google;
    use super::*;

    fn provision(sets: &[&str]) -> ProvisionConfig {
        load_google(sets).unwrap().provision
    }

    #[test]
    fn short_names_are_completed_with_the_subscriptions_project() {
        let config = provision(&[
            "provision.topic=booking-events-topic",
            "provision.dead_letter_topic=projects/other/topics/dead",
            "provision.bronze.subscription=bronze-sub",
            "provision.bronze.table=offvia_bronze.raw",
            "provision.worker=offvia-worker",
        ]);
        let pubsub = config.pubsub.unwrap();
        assert_eq!(pubsub.topic.as_deref(), Some("projects/p/topics/booking-events-topic"));
        let dead = pubsub.dead_letter.unwrap();
        assert_eq!((dead.topic.as_str(), dead.max_delivery_attempts), ("projects/other/topics/dead", 100));
        assert_eq!(dead.subscription, "projects/p/subscriptions/dead-sub");
        assert_eq!(pubsub.bronze.unwrap().subscription, "projects/p/subscriptions/bronze-sub");
        // A service account is of the project that queries are billed to.
        assert_eq!(config.worker.as_deref(), Some("serviceAccount:offvia-worker@b.iam.gserviceaccount.com"));
    }

    #[test]
    fn what_is_left_out_is_left_to_pubsub() {
        let pubsub = provision(&[]).pubsub.unwrap();
        assert_eq!(pubsub.settings, SubscriptionSettings::default());
        assert_eq!((pubsub.topic, pubsub.dead_letter, pubsub.bronze), (None, None, None));
        let settings = provision(&["provision.min_backoff=1 s"]).pubsub.unwrap().settings;
        assert_eq!(settings.retry, Some(Backoff { min: Duration::from_secs(1), max: MAX_BACKOFF }));
    }

    #[test]
    fn members_are_taken_as_they_are_or_are_service_accounts() {
        for (given, member) in [
            ("w@p.iam.gserviceaccount.com", "serviceAccount:w@p.iam.gserviceaccount.com"),
            ("group:data@example.com", "group:data@example.com"),
            ("principal://iam.googleapis.com/x", "principal://iam.googleapis.com/x"),
        ] {
            assert_eq!(provision(&[&format!("provision.worker={given}")]).worker.as_deref(), Some(member));
        }
    }

    #[test]
    fn each_wrong_value_is_refused_with_its_key() {
        let refused = |sets: &[&str], key: &str, what: &str| {
            let error = load_google(sets).unwrap_err();
            assert!(error.contains(&format!("{key}: ")) && error.contains(what), "{sets:?}: {error}");
        };
        for deadline in ["9 s", "601 s", "10500 ms", "soon"] {
            refused(&[&format!("provision.ack_deadline={deadline}")], "provision.ack_deadline", " s");
        }
        for retention in ["9 m", "32 d"] {
            refused(&[&format!("provision.retention={retention}")], "provision.retention", "31 d");
        }
        refused(&["provision.max_backoff=601 s"], "provision.max_backoff", "600 s");
        refused(&["provision.min_backoff=500 ms"], "provision.min_backoff", "whole seconds");
        refused(&["provision.min_backoff=2 s", "provision.max_backoff=1 s"], "provision.min_backoff", "longer");
        refused(&["provision.max_delivery_attempts=5"], "provision.max_delivery_attempts", "dead_letter_topic");
        refused(&["provision.dead_letter_subscription=sss"], "provision.dead_letter_subscription", "says nothing");
        for attempts in ["4", "101"] {
            let attempts = format!("provision.max_delivery_attempts={attempts}");
            refused(&["provision.dead_letter_topic=dead", &attempts], "provision.max_delivery_attempts", "at most 100");
        }
        for topic in ["to", "1topic", "goog-topic", "a b"] {
            refused(&[&format!("provision.topic={topic}")], "provision.topic", "cannot be a name in Pub/Sub");
        }
        for topic in ["projects//topics/abc", "projects/p/subscriptions/abc", "p/abc"] {
            let what = "write NAME or projects/PROJECT/topics/NAME";
            refused(&[&format!("provision.topic={topic}")], "provision.topic", what);
        }
        let bronze = |subscription: &str| format!("provision.bronze.subscription={subscription}");
        refused(&[&bronze("b-sub"), "provision.bronze.table=a..b"], "provision.bronze.table", "is not a table");
        refused(&[&bronze("b-sub"), "provision.bronze.table=d.silver"], "provision.bronze.table", "another tier's");
        for same in ["b.d.silver", "d.quarantine"] {
            let table = format!("provision.bronze.table={same}");
            refused(&[&bronze("b-sub"), &table], "provision.bronze.table", "another tier's");
        }
        refused(&["provision.location=us central"], "provision.location", "us-central1");
        for worker in ["", "robot:x", "user:", "a b", "under_score"] {
            refused(&[&format!("provision.worker={worker}")], "provision.worker", "nobody");
        }
        refused(&["provision.tpoic=x"], "provision.tpoic", "did you mean `topic`?");
        refused(&["provision.bronze.tabel=x"], "provision.bronze.tabel", "did you mean `table`?");
    }
}

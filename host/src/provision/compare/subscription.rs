//! A subscription against one that is there. Nothing of it is changed.

use super::super::model::{Delivery, FoundSubscription, Purpose, Subscription, TableName};
use super::super::pubsub::EMULATOR_RETENTION;
use super::super::{commands, roles};
use super::Difference;
use crate::config::{Backoff, SubscriptionSettings};
use std::time::Duration;

/// How a subscription that is there differs. `tells_all`: whether it is Pub/Sub's own, not an emulator's, which keeps no
/// policy of expiration, and messages for seven days at most.
pub fn compare(wanted: &Subscription, there: &FoundSubscription, tells_all: bool) -> Vec<Difference> {
    let mut found = Differences { wanted, tells_all, all: Vec::new() };
    found.shared(there);
    match &wanted.purpose {
        Purpose::Worker { settings, dead_letter, filter } => {
            found.pulled(there);
            found.filter(filter, &there.filter);
            found.settings(settings, &there.settings);
            found.dead_letter(dead_letter.as_ref(), there.dead_letter.as_ref());
        }
        Purpose::Bronze { table } => {
            found.filter("", &there.filter);
            found.writes(table, there);
        }
        Purpose::DeadLetter => {
            found.pulled(there);
            found.filter("", &there.filter);
            let retention = Purpose::DEAD_LETTER_RETENTION;
            found.retention(Some(retention), there.settings.retention);
        }
    }
    found.all
}

struct Differences<'a> {
    wanted: &'a Subscription,
    tells_all: bool,
    all: Vec<Difference>,
}

impl Differences<'_> {
    #[expect(clippy::unnecessary_wraps, reason = "a difference may have no remedy")]
    fn update(&self, flags: &str) -> Option<String> {
        Some(commands::update_subscription(self.wanted, flags))
    }

    fn harmless(&mut self, what: impl Into<String>, flags: &str) {
        let remedy = self.update(flags);
        self.all.push(Difference::harmless(what, remedy));
    }

    /// What only another subscription can mend.
    fn fixed(&mut self, what: &str, blocks: bool) {
        let what = format!("{what}: it stays as it is, make another subscription");
        self.all.push(Difference { what, remedy: None, blocks });
    }

    fn shared(&mut self, there: &FoundSubscription) {
        if let Some(topic) = &self.wanted.topic
            && *topic != there.topic
        {
            let found = if there.topic == "_deleted-topic_" { "a topic that was deleted" } else { &there.topic };
            self.fixed(&format!("it is of {found}, not of {topic}"), true);
        }
        if there.detached {
            self.fixed("it was detached from its topic, and gets no message", true);
        }
        if let Some(idle) = there.expires
            && self.tells_all
        {
            let days = idle.as_secs() / 86_400;
            let what = format!("it is deleted, with what it holds, when nobody has used it for {days} days");
            self.harmless(what, "--expiration-period=never");
        }
    }

    fn pulled(&mut self, there: &FoundSubscription) {
        let (where_to, flags) = match &there.delivery {
            Delivery::Pull => return,
            Delivery::BigQuery { table, .. } => (format!("the table {table}"), Some("--clear-bigquery-config")),
            Delivery::Push => ("an HTTP endpoint".to_owned(), Some("--push-endpoint=")),
            Delivery::CloudStorage => ("Cloud Storage".to_owned(), Some("--clear-cloud-storage-config")),
            Delivery::Bigtable => ("Bigtable".to_owned(), None),
        };
        let remedy = flags.and_then(|flags| self.update(flags));
        let what = format!("its messages go to {where_to}: nobody can pull them");
        self.all.push(Difference::blocking(what, remedy));
    }

    fn filter(&mut self, wanted: &str, there: &str) {
        if wanted != there {
            let shown = |filter: &str| if filter.is_empty() { "none".to_owned() } else { format!("{filter:?}") };
            self.fixed(&format!("its filter is {}, not {}", shown(there), shown(wanted)), true);
        }
    }

    fn settings(&mut self, wanted: &SubscriptionSettings, there: &SubscriptionSettings) {
        let seconds = |time: Duration| time.as_secs();
        if wanted.ack_deadline != there.ack_deadline {
            let (wanted, there) = (seconds(wanted.ack_deadline), seconds(there.ack_deadline));
            let what = format!("its ack deadline is {there} s, not {wanted} s");
            self.harmless(what, &format!("--ack-deadline={wanted}"));
        }
        self.retention(wanted.retention, there.retention);
        let switches = [
            (
                [wanted.retain_acked, there.retain_acked],
                ["it does not keep acknowledged messages", "it keeps acknowledged messages"],
                "retain-acked-messages",
            ),
            (
                [wanted.exactly_once, there.exactly_once],
                ["it does not deliver exactly once", "it delivers exactly once"],
                "enable-exactly-once-delivery",
            ),
        ];
        for ([wanted, there], [off, on], flag) in switches {
            if wanted != there {
                let (what, no) = if there { (on, "no-") } else { (off, "") };
                self.harmless(format!("{what}, unlike the pipeline file"), &format!("--{no}{flag}"));
            }
        }
        if wanted.ordering != there.ordering {
            let how = if there.ordering { "in the order" } else { "in no order" };
            self.fixed(&format!("it delivers messages of one ordering key {how} in which they were published"), false);
        }
        if wanted.retry != there.retry {
            let shown = |retry: Option<Backoff>| {
                retry.map_or_else(
                    || "at once".to_owned(),
                    |Backoff { min, max }| format!("after {} s to {} s", seconds(min), seconds(max)),
                )
            };
            let flags = wanted.retry.map_or_else(
                || "--clear-retry-policy".to_owned(),
                |Backoff { min, max }| {
                    format!("--min-retry-delay={}s --max-retry-delay={}s", seconds(min), seconds(max))
                },
            );
            let what = format!("it delivers a message again {}, not {}", shown(there.retry), shown(wanted.retry));
            self.harmless(what, &flags);
        }
    }

    /// What the pipeline file does not say is not compared.
    fn retention(&mut self, wanted: Option<Duration>, there: Option<Duration>) {
        if let (Some(wanted), Some(there)) = (wanted, there)
            && wanted != there
            && (self.tells_all || wanted <= EMULATOR_RETENTION)
        {
            let what = format!("it keeps messages for {} s, not for {} s", there.as_secs(), wanted.as_secs());
            self.harmless(what, &format!("--message-retention-duration={}s", wanted.as_secs()));
        }
    }

    fn dead_letter(&mut self, wanted: Option<&(String, u32)>, there: Option<&(String, u32)>) {
        if wanted == there {
            return;
        }
        let shown = |policy: Option<&(String, u32)>| {
            policy.map_or_else(
                || "nowhere".to_owned(),
                |(topic, attempts)| format!("to {topic} after {attempts} deliveries"),
            )
        };
        let flags = wanted.map_or_else(
            || "--clear-dead-letter-policy".to_owned(),
            |(topic, attempts)| format!("--dead-letter-topic={topic} --max-delivery-attempts={attempts}"),
        );
        let what = format!("messages that cannot be handled go {}, not {}", shown(there), shown(wanted));
        self.harmless(what, &flags);
    }

    /// A bronze that is not written is no reason for the worker not to run.
    fn writes(&mut self, wanted: &TableName, there: &FoundSubscription) {
        let flags = format!("--bigquery-table={wanted} --write-metadata");
        let Delivery::BigQuery { table, write_metadata, by_schema, trouble } = &there.delivery else {
            return self.harmless("it does not write to BigQuery", &flags);
        };
        // Both forms are in use.
        if table.replacen(':', ".", 1) != wanted.to_string() {
            self.harmless(format!("it writes to {table}, not to {wanted}"), &flags);
        } else if !write_metadata {
            self.harmless("it writes no metadata: message id and publish time are lost", &flags);
        }
        if *by_schema {
            let flags = format!("{flags} --no-use-topic-schema --no-use-table-schema");
            self.harmless("it takes payloads apart by a schema, and writes no `data`", &flags);
        }
        if let Some(trouble) = trouble {
            let mut remedy = roles::service_agent_lines(&self.wanted.name);
            remedy.extend(roles::bronze(wanted).into_iter().map(|grant| grant.command));
            let remedy = remedy.join("\n");
            self.all.push(Difference::harmless(format!("it does not write: {trouble}"), Some(remedy)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOPIC: &str = "projects/p/topics/t";

    fn worker() -> Subscription {
        let purpose = Purpose::Worker {
            settings: SubscriptionSettings::default(),
            dead_letter: Some(("projects/p/topics/dead".into(), 100)),
            filter: String::new(),
        };
        Subscription { name: "projects/p/subscriptions/s".into(), topic: Some(TOPIC.into()), purpose }
    }

    fn there() -> FoundSubscription {
        FoundSubscription {
            topic: TOPIC.into(),
            settings: SubscriptionSettings { retention: Some(Duration::from_hours(168)), ..Default::default() },
            dead_letter: Some(("projects/p/topics/dead".into(), 100)),
            filter: String::new(),
            expires: None,
            detached: false,
            delivery: Delivery::Pull,
        }
    }

    /// What differs with its remedy's flags, and whether it blocks.
    fn differs(wanted: &Subscription, there: &FoundSubscription) -> Vec<(String, String, bool)> {
        let flags = |remedy: Option<String>| {
            remedy.map_or_else(String::new, |command| {
                let start = "gcloud pubsub subscriptions update s --project=p ";
                command.strip_prefix(start).unwrap_or(&command).to_owned()
            })
        };
        let all = compare(wanted, there, true);
        all.into_iter().map(|difference| (difference.what, flags(difference.remedy), difference.blocks)).collect()
    }

    #[track_caller]
    fn one(wanted: &Subscription, there: &FoundSubscription, what: &str, flags: &str, blocks: bool) {
        let all = differs(wanted, there);
        assert_eq!(all.len(), 1, "{all:?}");
        assert!(all[0].0.contains(what), "{all:?}");
        assert_eq!((all[0].1.as_str(), all[0].2), (flags, blocks), "{all:?}");
    }

    #[test]
    fn a_subscription_as_it_would_be_made_is_kept() {
        assert_eq!(differs(&worker(), &there()), []);
    }

    #[test]
    fn each_setting_is_told_with_the_command_that_changes_it() {
        let with = |settings: SubscriptionSettings| FoundSubscription { settings, ..there() };
        let default = SubscriptionSettings::default;
        let deadline = with(SubscriptionSettings { ack_deadline: Duration::from_secs(10), ..default() });
        one(&worker(), &deadline, "ack deadline is 10 s, not 60 s", "--ack-deadline=60", false);
        let exactly = with(SubscriptionSettings { exactly_once: true, ..default() });
        one(&worker(), &exactly, "delivers exactly once, unlike", "--no-enable-exactly-once-delivery", false);
        let retains = with(SubscriptionSettings { retain_acked: true, ..default() });
        one(&worker(), &retains, "keeps acknowledged", "--no-retain-acked-messages", false);
        let ordered = with(SubscriptionSettings { ordering: true, ..default() });
        one(&worker(), &ordered, "make another subscription", "", false);
        let backoff = Backoff { min: Duration::from_secs(1), max: Duration::from_secs(9) };
        let slow = with(SubscriptionSettings { retry: Some(backoff), ..default() });
        one(&worker(), &slow, "again after 1 s to 9 s, not at once", "--clear-retry-policy", false);
        let undead = FoundSubscription { dead_letter: None, ..there() };
        let flags = "--dead-letter-topic=projects/p/topics/dead --max-delivery-attempts=100";
        one(&worker(), &undead, "go nowhere, not to projects/p/topics/dead after 100", flags, false);
        let mortal = FoundSubscription { expires: Some(Duration::from_hours(31 * 24)), ..there() };
        one(&worker(), &mortal, "for 31 days", "--expiration-period=never", false);
        assert_eq!(compare(&worker(), &mortal, false), []);
    }

    #[test]
    fn what_the_pipeline_file_asks_for_is_asked_for() {
        let Purpose::Worker { settings, .. } = worker().purpose else { panic!("it is a worker's") };
        let settings = SubscriptionSettings {
            exactly_once: true,
            retain_acked: true,
            retention: Some(Duration::from_hours(24)),
            retry: Some(Backoff { min: Duration::from_secs(1), max: Duration::from_mins(1) }),
            ..settings
        };
        let wanted = Subscription {
            purpose: Purpose::Worker { settings, dead_letter: None, filter: String::new() },
            ..worker()
        };
        let flags: Vec<String> = differs(&wanted, &there()).into_iter().map(|(_, flags, _)| flags).collect();
        assert_eq!(
            flags,
            [
                "--message-retention-duration=86400s",
                "--retain-acked-messages",
                "--enable-exactly-once-delivery",
                "--min-retry-delay=1s --max-retry-delay=60s",
                "--clear-dead-letter-policy",
            ]
        );
    }

    #[test]
    fn a_subscription_whose_messages_a_worker_cannot_get_blocks() {
        let elsewhere = FoundSubscription { topic: "projects/p/topics/u".into(), ..there() };
        one(&worker(), &elsewhere, "of projects/p/topics/u, not of projects/p/topics/t", "", true);
        let orphan = FoundSubscription { topic: "_deleted-topic_".into(), ..there() };
        one(&worker(), &orphan, "a topic that was deleted", "", true);
        let detached = FoundSubscription { detached: true, ..there() };
        one(&worker(), &detached, "detached", "", true);
        let filtered = FoundSubscription { filter: "attributes:x".into(), ..there() };
        one(&worker(), &filtered, "its filter is \"attributes:x\", not none", "", true);
        for (delivery, flags) in [
            (Delivery::Push, "--push-endpoint="),
            (Delivery::CloudStorage, "--clear-cloud-storage-config"),
            (Delivery::Bigtable, ""),
        ] {
            let pushed = FoundSubscription { delivery, ..there() };
            one(&worker(), &pushed, "nobody can pull them", flags, true);
        }
    }

    #[test]
    fn a_bronze_that_is_not_written_is_told_and_blocks_no_worker() {
        let table = TableName::parse("p.d.raw", "").unwrap();
        let wanted = Subscription { purpose: Purpose::Bronze { table }, ..worker() };
        let writes = |table: &str, write_metadata, by_schema, trouble: Option<&str>| FoundSubscription {
            delivery: Delivery::BigQuery {
                table: table.into(),
                write_metadata,
                by_schema,
                trouble: trouble.map(str::to_owned),
            },
            ..there()
        };
        for table in ["p.d.raw", "p:d.raw"] {
            assert_eq!(differs(&wanted, &writes(table, true, false, None)), []);
        }
        let flags = "--bigquery-table=p.d.raw --write-metadata";
        one(&wanted, &there(), "does not write to BigQuery", flags, false);
        one(&wanted, &writes("p.d.other", true, false, None), "writes to p.d.other", flags, false);
        one(&wanted, &writes("p.d.raw", false, false, None), "no metadata", flags, false);
        let schema = format!("{flags} --no-use-topic-schema --no-use-table-schema");
        one(&wanted, &writes("p.d.raw", true, true, None), "by a schema", &schema, false);
        let denied = compare(&wanted, &writes("p.d.raw", true, false, Some("PERMISSION_DENIED")), true);
        assert!(denied[0].what.contains("does not write: PERMISSION_DENIED") && !denied[0].blocks);
        assert!(denied[0].remedy.as_ref().unwrap().contains("roles/bigquery.dataEditor"));
    }

    #[test]
    fn a_dead_letter_subscription_keeps_messages_as_long_as_it_can() {
        let wanted = Subscription { purpose: Purpose::DeadLetter, ..worker() };
        one(&wanted, &there(), "keeps messages for 604800 s", "--message-retention-duration=2678400s", false);
        assert_eq!(compare(&wanted, &there(), false), []);
    }
}

//! `preflight provision` on the emulators of BigQuery and Pub/Sub: what is missing is made, what is there is left as it is.
//! Where the emulator of BigQuery cannot (columns that are added, refusals) it is the strict fake.

use google_cloud_auth::credentials::anonymous;
use google_cloud_pubsub::client::{SubscriptionAdmin, TopicAdmin};
use google_cloud_pubsub::model::Subscription;
use preflight_tests::bigquery::emulator::PROJECT;
use preflight_tests::bigquery::fake::{Call, Fake, Fault, Refusal};
use preflight_tests::{Ended, bigquery, paths, pubsub};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;
use tonic::Code;

/// Offvia's pipeline with datasets, a topic and subscriptions of one test's own; `N` is replaced.
const PIPELINE: &str = r#"
name = "bookings"
[source.pubsub]
subscription = "projects/provision-N/subscriptions/worker-sub"
[rules]
event_version = { attribute = "event_version", default = "1" }
[rules.components]
RULES
[warehouse.bigquery]
project = "PROJECT"
[silver]
table = "silver_N.fact_bookings"
partition_by = "event_timestamp"
cluster_by = ["origin_airport", "destination_airport"]
description = "Validated real-time booking events"
[silver.host_columns]
ingestion_timestamp = "received_time"
source_message_id = "message_id"
[quarantine]
table = "quarantine_N.poisoned_events"
partition_by = "received_timestamp"
[provision]
location = "us-central1"
topic = "bookings"
dead_letter_topic = "dead-bookings"
max_delivery_attempts = 7
[provision.bronze]
subscription = "bronze-sub"
table = "bronze_N.raw_bookings"
"#;

/// A pipeline that nothing was made for.
struct Cloud {
    number: String,
    directory: TempDir,
    bigquery: &'static bigquery::Emulator,
    pubsub: &'static pubsub::Emulator,
    /// Where BigQuery's two interfaces are.
    rest: String,
    storage: String,
}

impl Cloud {
    fn new() -> Self {
        let emulator = bigquery::Emulator::shared();
        Self::at(emulator.rest().to_owned(), emulator.storage().to_owned())
    }

    /// The same with the strict fake of BigQuery.
    fn on(fake: &Fake) -> Self {
        Self::at(fake.rest().to_string(), fake.storage().to_string())
    }

    fn at(rest: String, storage: String) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed).to_string();
        let directory = tempfile::tempdir().unwrap();
        let (bigquery, pubsub) = (bigquery::Emulator::shared(), pubsub::Emulator::shared());
        let cloud = Self { number, directory, bigquery, pubsub, rest, storage };
        cloud.serve(&["offvia-booking"]);
        cloud
    }

    /// Writes the pipeline file, with these rules for the event versions 1 and up.
    fn serve(&self, rules: &[&str]) {
        let rules: Vec<String> = rules
            .iter()
            .enumerate()
            .map(|(index, rule)| format!("\"{}\" = {:?}", index + 1, paths::rule(rule).display().to_string()))
            .collect();
        let text = PIPELINE.replace("RULES", &rules.join("\n"));
        let text = text.replace("PROJECT", PROJECT).replace("_N.", &format!("_provision{}.", self.number));
        std::fs::write(self.file(), text.replace("provision-N", &self.project())).unwrap();
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("pipeline.toml")
    }

    /// The project of topic and subscriptions.
    fn project(&self) -> String {
        format!("provision-{}", self.number)
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(paths::preflight());
        command.arg(name).arg(self.file()).current_dir(self.directory.path()).stdin(Stdio::null());
        command.args(["--set", &format!("rules.cache={}", paths::scratch().join("code").display())]);
        command
            .env("PUBSUB_EMULATOR_HOST", &self.pubsub.address)
            .env("BIGQUERY_EMULATOR_HOST", &self.rest)
            .env("BIGQUERY_STORAGE_EMULATOR_HOST", &self.storage);
        command
    }

    fn provision(&self, arguments: &[&str]) -> Ended {
        let output = self.command("provision").args(arguments).output();
        Ended::from_output(output.expect("preflight can be started"))
    }

    /// The same as JSON, which must end with this code.
    fn report(&self, arguments: &[&str], code: i32) -> Value {
        self.provision(&[arguments, &["--json"]].concat()).expect(code).json()
    }

    /// A table's full name.
    fn table(&self, tier: &str, table: &str) -> String {
        format!("{PROJECT}.{tier}_provision{}.{table}", self.number)
    }

    /// A table's columns, as its DDL writes them.
    fn columns(&self, tier: &str, table: &str) -> Vec<String> {
        let sql = format!(
            "SELECT column_name, data_type, is_nullable FROM `{PROJECT}.{tier}_provision{}.INFORMATION_SCHEMA.COLUMNS`
             WHERE table_name = '{table}' ORDER BY ordinal_position",
            self.number
        );
        let column = |row: &serde_json::Map<String, Value>| {
            let of = |key: &str| row[key].as_str().unwrap_or_default();
            format!(
                "{} {}{}",
                of("column_name"),
                of("data_type"),
                if of("is_nullable") == "NO" { " NOT NULL" } else { "" }
            )
        };
        self.bigquery.query(&sql).iter().map(column).collect()
    }

    /// A subscription as Pub/Sub has it.
    fn subscription(&self, id: &str) -> Subscription {
        let name = format!("projects/{}/subscriptions/{id}", self.project());
        self.ask(|admin| async move { admin.get_subscription().set_subscription(name).send().await.unwrap() })
    }

    fn ask<T, F: Future<Output = T>>(&self, ask: impl FnOnce(SubscriptionAdmin) -> F) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let admin = SubscriptionAdmin::builder().with_endpoint(format!("http://{}", self.pubsub.address));
            let admin = admin.with_credentials(anonymous::Builder::new().build()).build().await.unwrap();
            ask(admin).await
        })
    }

    /// Makes a topic and a subscription of it by hand.
    fn subscribe(&self, topic: &str, wanted: Subscription) {
        let name = format!("projects/{}/topics/{topic}", self.project());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let admin = TopicAdmin::builder().with_endpoint(format!("http://{}", self.pubsub.address));
            let admin = admin.with_credentials(anonymous::Builder::new().build()).build().await.unwrap();
            admin.create_topic().set_name(&name).send().await.unwrap();
        });
        let wanted = wanted.set_topic(name);
        self.ask(|admin| async move { admin.create_subscription().with_request(wanted).send().await.unwrap() });
    }

    /// Makes a dataset by hand, and something in it.
    fn make(&self, tier: &str, sql: &str) {
        self.bigquery.query(&format!("CREATE SCHEMA `{PROJECT}.{tier}_provision{}`", self.number));
        self.bigquery.query(sql);
    }
}

/// What was said of one thing.
fn of<'a>(report: &'a Value, name: &str) -> &'a Value {
    let found =
        report["resources"].as_array().unwrap().iter().find(|one| one["name"].as_str().unwrap().ends_with(name));
    found.unwrap_or_else(|| panic!("nothing named {name} in {report}"))
}

fn states(report: &Value) -> Vec<&str> {
    report["resources"].as_array().unwrap().iter().map(|one| one["state"].as_str().unwrap()).collect()
}

#[test]
fn everything_is_made_once_and_a_second_call_changes_nothing() {
    let cloud = Cloud::new();
    let made = cloud.provision(&[]).expect(0).stdout;
    // Three datasets, three tables, two topics, three subscriptions.
    assert!(made.ends_with("bookings: 11 made\n"), "{made}");
    assert!(made.contains("note: Pub/Sub's emulator writes nothing to BigQuery"), "{made}");
    assert_eq!(
        cloud.columns("quarantine", "poisoned_events"),
        [
            "raw_payload STRING NOT NULL",
            "error_reason STRING NOT NULL",
            "error_stage STRING NOT NULL",
            "received_timestamp TIMESTAMP NOT NULL",
            "source_message_id STRING",
        ]
    );
    let silver = cloud.columns("silver", "fact_bookings");
    assert_eq!((silver.len(), silver[5].as_str()), (11, "fare_amount NUMERIC NOT NULL"), "{silver:?}");
    let worker = cloud.subscription("worker-sub");
    assert_eq!(worker.topic, format!("projects/{}/topics/bookings", cloud.project()));
    let policy = worker.dead_letter_policy.as_ref().unwrap();
    assert!(policy.dead_letter_topic.ends_with("/topics/dead-bookings"));
    assert_eq!((worker.ack_deadline_seconds, policy.max_delivery_attempts), (60, 7));
    let bronze = cloud.subscription("bronze-sub").bigquery_config.unwrap();
    assert_eq!(bronze.table, cloud.table("bronze", "raw_bookings"));
    assert!(bronze.write_metadata && !bronze.use_topic_schema);
    assert!(cloud.subscription("dead-bookings-sub").topic.ends_with("/topics/dead-bookings"));

    cloud.bigquery.query(&format!(
        "INSERT INTO `{}` VALUES ('p', 'r', 's', CURRENT_TIMESTAMP(), NULL)",
        cloud.table("quarantine", "poisoned_events")
    ));
    for _ in 0..2 {
        let kept = cloud.provision(&[]).expect(0).stdout;
        assert!(kept.ends_with("bookings: 11 kept\n"), "{kept}");
    }
    let rows = format!("SELECT COUNT(*) FROM `{}`", cloud.table("quarantine", "poisoned_events"));
    assert_eq!(cloud.bigquery.value(&rows), "1");
    // What was made is what a worker wants.
    let checked = cloud.command("check").output().unwrap();
    Ended::from_output(checked).expect(0);
}

#[test]
fn a_column_that_is_missing_is_told_and_added_only_when_that_is_asked_for() {
    let fake = Fake::start();
    let cloud = Cloud::on(&fake);
    cloud.provision(&[]).expect(0);
    cloud.serve(&["offvia-booking", "offvia-booking-v2"]);
    for _ in 0..2 {
        let report = cloud.report(&[], 1);
        let silver = of(&report, "fact_bookings");
        assert_eq!(silver["state"], "differs");
        let difference = &silver["differences"][0];
        assert_eq!(difference["what"], "it lacks column `loyalty_tier` STRING: --extended adds it");
        assert_eq!(difference["blocks"], true);
        assert!(difference["command"].as_str().unwrap().contains("ADD COLUMN IF NOT EXISTS `loyalty_tier` STRING"));
    }
    let report = cloud.report(&["--extended"], 0);
    let silver = of(&report, "fact_bookings");
    assert_eq!(silver["state"], "widened");
    assert_eq!(silver["added_columns"], serde_json::json!(["loyalty_tier STRING", "rule_digest STRING"]));
    let quarantine = &of(&report, "poisoned_events")["added_columns"];
    assert_eq!(quarantine.as_array().unwrap().len(), 13, "{quarantine}");
    // Whether it is asked for or not: now all is there.
    for arguments in [&["--extended"][..], &[]] {
        let report = cloud.report(arguments, 0);
        assert!(states(&report).iter().all(|state| *state == "kept"), "{report}");
    }
    // The worker's own check sees the columns.
    let checked = cloud.command("check").output().unwrap();
    Ended::from_output(checked).expect(0);
}

#[test]
fn what_cannot_be_made_holds_up_nothing_else_and_is_made_by_the_next_call() {
    let fake = Fake::start();
    let cloud = Cloud::on(&fake);
    let silver = format!("silver_provision{}.fact_bookings", cloud.number);
    let denied = Refusal::new(Code::PermissionDenied, "Access Denied: you may not");
    let rule = fake.when(Call::Query).table(&silver).always(Fault::Answer(denied));
    let ended = cloud.provision(&[]).expect(1);
    assert!(ended.stdout.contains("failed   table"), "{}", ended.stdout);
    assert!(ended.stdout.contains("Access Denied: you may not"), "{}", ended.stdout);
    assert!(ended.stdout.ends_with("bookings: 10 made, 1 failed\n"), "{}", ended.stdout);
    fake.lift(rule);
    let ended = cloud.provision(&[]).expect(0);
    assert!(ended.stdout.ends_with("bookings: 1 made, 10 kept\n"), "{}", ended.stdout);
}

#[test]
fn a_dataset_that_is_elsewhere_is_told_and_stays() {
    let fake = Fake::start();
    let cloud = Cloud::on(&fake);
    // What is there is in the EU; the pipeline file wants us-central1.
    fake.create_table(&format!("CREATE TABLE bronze_provision{}.other (x INT64)", cloud.number));
    let ended = cloud.provision(&[]).expect(0);
    assert!(ended.stdout.contains("it is in EU, not in us-central1"), "{}", ended.stdout);
    assert!(ended.stdout.ends_with("bookings: 10 made, 1 differs\n"), "{}", ended.stdout);
}

#[test]
fn a_table_of_other_types_and_a_view_are_left_as_they_are() {
    let cloud = Cloud::new();
    let (silver, quarantine) = (cloud.table("silver", "fact_bookings"), cloud.table("quarantine", "poisoned_events"));
    cloud.make(
        "silver",
        &format!(
            "CREATE TABLE `{silver}` (booking_id STRING NOT NULL, passenger_id STRING NOT NULL, flight_number STRING,
             origin_airport STRING, destination_airport STRING, fare_amount FLOAT64, currency STRING, booking_status STRING,
             event_timestamp TIMESTAMP, ingestion_timestamp TIMESTAMP, source_message_id STRING, theirs INT64 NOT NULL)"
        ),
    );
    cloud.make("quarantine", &format!("CREATE VIEW `{quarantine}` AS SELECT 'p' AS raw_payload"));
    let before = cloud.columns("silver", "fact_bookings");
    let ended = cloud.provision(&["--extended"]).expect(1);
    for told in [
        "column `fare_amount` is declared FLOAT64, which cannot hold NUMERIC without loss",
        "column `theirs` is NOT NULL, and nothing fills it (the pipeline cannot run with that)",
        "column `flight_number` may be null, a new table has it as NOT NULL",
        "it is no table but of type VIEW",
    ] {
        assert!(ended.stdout.contains(told), "{told} is not in {}", ended.stdout);
    }
    // What it has is as it was, and the digest's column was added, as it was asked for. The emulator does not tell of it.
    assert_eq!(cloud.columns("silver", "fact_bookings"), before);
    assert!(ended.stdout.contains("may not tell of columns that were added"), "{}", ended.stdout);
    assert_eq!(cloud.bigquery.value(&format!("SELECT COUNT(rule_digest) FROM `{silver}`")), "0");
    assert_eq!(cloud.bigquery.value(&format!("SELECT raw_payload FROM `{quarantine}`")), "p");
}

#[test]
fn a_subscription_that_differs_is_told_with_its_command_and_left() {
    let cloud = Cloud::new();
    let name = format!("projects/{}/subscriptions/worker-sub", cloud.project());
    cloud.subscribe("bookings", Subscription::new().set_name(name).set_ack_deadline_seconds(10));
    let ended = cloud.provision(&[]).expect(0);
    let project = cloud.project();
    for told in [
        "its ack deadline is 10 s, not 60 s".to_owned(),
        format!("gcloud pubsub subscriptions update worker-sub --project={project} --ack-deadline=60"),
        format!("go nowhere, not to projects/{project}/topics/dead-bookings after 7 deliveries"),
    ] {
        assert!(ended.stdout.contains(&told), "{told} is not in {}", ended.stdout);
    }
    assert!(ended.stdout.contains("differs  subscription"), "{}", ended.stdout);
    assert_eq!(cloud.subscription("worker-sub").ack_deadline_seconds, 10);

    // Of another topic it would be of no use, and the topic that is wanted is made all the same.
    let cloud = Cloud::new();
    let name = format!("projects/{}/subscriptions/worker-sub", cloud.project());
    cloud.subscribe("other-topic", Subscription::new().set_name(name).set_ack_deadline_seconds(60));
    let ended = cloud.provision(&[]).expect(1);
    assert!(ended.stdout.contains("topics/other-topic, not of"), "{}", ended.stdout);
    assert!(cloud.subscription("worker-sub").topic.ends_with("/topics/other-topic"));
}

#[test]
fn shards_have_filters_and_overlays_with_which_a_pipeline_passes_its_check() {
    let cloud = Cloud::new();
    let made = cloud.provision(&["--shards", "2"]).expect(0).stdout;
    // Two shards and the rest in the place of one subscription; three overlays.
    assert!(made.ends_with("bookings: 16 made\n"), "{made}");
    assert!(made.contains("note: Pub/Sub's emulator ignores filters"), "{made}");
    assert_eq!(cloud.subscription("worker-sub-shard-1").filter, "attributes.shard = \"1\"");
    let rest = cloud.subscription("worker-sub-shard-rest-of-2").filter;
    assert_eq!(rest, "NOT (attributes.shard = \"0\" OR attributes.shard = \"1\")");
    let overlay = cloud.directory.path().join("pipeline.shard-1.toml");
    let checked = cloud.command("check").arg("--with").arg(&overlay).output().unwrap();
    let checked = Ended::from_output(checked).expect(0);
    assert!(checked.stdout.starts_with("bookings-shard-1: every check passed"), "{}", checked.stdout);

    let kept = cloud.provision(&["--shards", "2"]).expect(0).stdout;
    assert!(kept.ends_with("bookings: 16 kept\n"), "{kept}");
    // What somebody added to an overlay stays.
    let edited = std::fs::read_to_string(&overlay).unwrap() + "[admin]\nlisten = \"127.0.0.1:9465\"\n";
    std::fs::write(&overlay, &edited).unwrap();
    let kept = cloud.provision(&["--shards", "2"]).expect(0).stdout;
    assert!(kept.ends_with("bookings: 15 kept, 1 differs\n"), "{kept}");
    assert_eq!(std::fs::read_to_string(&overlay).unwrap(), edited);
}

#[test]
fn a_service_that_is_not_reached_is_told_and_nothing_is_changed() {
    let cloud = Cloud::new();
    let mut command = cloud.command("provision");
    // Port 1 is nobody's.
    let ended = Ended::from_output(command.env("PUBSUB_EMULATOR_HOST", "127.0.0.1:1").output().unwrap()).expect(1);
    assert!(ended.stderr.contains("cannot look for the topic"), "{}", ended.stderr);
    assert!(ended.stderr.contains("nothing was changed"), "{}", ended.stderr);
    let datasets = format!(
        "SELECT COUNT(*) FROM `{PROJECT}.INFORMATION_SCHEMA.SCHEMATA` WHERE schema_name LIKE '%\\_provision{}'",
        cloud.number
    );
    assert_eq!(cloud.bigquery.value(&datasets), "0");
}

#[test]
fn a_subscription_whose_topic_is_not_said_is_looked_at_and_not_made() {
    let cloud = Cloud::new();
    let text = std::fs::read_to_string(cloud.file()).unwrap();
    let without: Vec<&str> = text.lines().filter(|line| !line.starts_with("topic =")).collect();
    std::fs::write(cloud.file(), without.join("\n")).unwrap();
    let ended = cloud.provision(&[]).expect(1);
    assert!(ended.stdout.contains("provision.topic does not say"), "{}", ended.stdout);
}

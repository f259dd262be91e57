//! What a dry run prints: nobody is asked. Offvia's is held to its seed, statement by statement.

use preflight_tests::pipeline::preflight;
use preflight_tests::{Ended, Store, paths};
use serde_json::Value;

const SEED_SQL: &str = include_str!("seed.sql");
const SEED_SH: &str = include_str!("seed.sh");
const GOLDEN: &str = "tests/all/provision/offvia.sh";

/// Offvia's rule store, with rules in service.
fn store(rules: &[(&str, &str, &str)]) -> Store {
    let store = Store::new();
    for (rule, fixtures, events) in rules {
        let fixtures = paths::root().join(fixtures);
        let stage = format!("stage {} --fixtures {} --json", paths::rule(rule).display(), fixtures.display());
        let staged = store.run(&stage).expect(0).json();
        let digest = staged["digest"].as_str().unwrap().to_owned();
        store.run(&format!("promote {digest} --events {events} --wait 0s")).expect(0);
    }
    store
}

fn first_version() -> Store {
    store(&[("offvia-booking", "guest-validators/offvia-booking/fixtures.ndjson", "1")])
}

/// Offvia's pipeline file with a rule store.
fn offvia(store: &Store, arguments: &[&str]) -> Ended {
    let file = paths::root().join("examples/offvia/pipeline.toml").display().to_string();
    let set = format!("rules.store={}", store.path().display());
    let cache = format!("rules.cache={}", paths::scratch().join("code").display());
    let fixed = ["provision", &file, "--set", &set, "--set", &cache];
    preflight(fixed.iter().chain(arguments))
}

/// Commands, each on one line, without quotes that change nothing.
fn commands(script: &str) -> Vec<String> {
    let joined = script.replace("\\\n", " ").replace('"', "");
    joined.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// SQL with one blank where there are some, and none in brackets; columns need no backticks.
fn statement(sql: &str) -> String {
    let words = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    words.replace("( ", "(").replace(" )", ")").replace("OPTIONS (", "OPTIONS(").replace('`', "")
}

#[test]
fn offvia_is_made_as_its_seed_says() {
    let script = offvia(&first_version(), &["--dry-run"]).expect(0).stdout;
    let ours = statement(&script);
    let seeds: Vec<String> = SEED_SQL.split(';').map(statement).filter(|sql| !sql.is_empty()).collect();
    assert_eq!(seeds.len(), 3);
    for seed in &seeds {
        assert!(ours.contains(&format!("{seed};")), "the seed's statement is not in the script:\n{seed}\n{script}");
    }
    assert_eq!(ours.matches("CREATE TABLE").count(), seeds.len(), "the seed has no other tables");

    // Every word of the seed's commands is a word of one of ours, which may say more: the project, what is forwarded to
    // the dead-letter topic, that nothing expires.
    let ours = commands(&script);
    let seed = SEED_SH.replace("${PROJECT_ID}", "YOUR_PROJECT_ID").replace("${REGION}", "us-central1");
    let seeds = commands(&seed);
    assert_eq!(seeds.len(), 9);
    for seed in &seeds {
        // The seed grants the whole dataset, we the table.
        let grants = seed.contains("add-iam-policy-binding");
        let seed = if grants { seed.replace(":offvia_bronze", ":offvia_bronze.raw_bookings") } else { seed.clone() };
        let found = ours.iter().any(|ours| {
            let words: Vec<&str> = ours.split(' ').collect();
            seed.split(' ').all(|word| words.contains(&word))
        });
        assert!(found, "the seed's command is not in the script:\n{seed}\n{script}");
    }
}

#[test]
fn the_script_of_offvia_is_the_one_that_was_read() {
    let script = offvia(&first_version(), &["--dry-run"]).expect(0).stdout;
    let golden = paths::root().join(GOLDEN);
    if std::env::var_os("UPDATE_GOLDENS").is_some_and(|update| update == "1") {
        std::fs::write(&golden, &script).unwrap();
    }
    let expected = std::fs::read_to_string(&golden).unwrap_or_default();
    let parted = script.lines().zip(expected.lines()).position(|(ours, read)| ours != read);
    assert_eq!(script, expected, "{GOLDEN} parts at line {parted:?}; with UPDATE_GOLDENS=1 it is written anew");
}

#[test]
fn a_shell_can_read_the_script() {
    let script = offvia(&first_version(), &["--dry-run", "--extended", "--shards", "3"]).expect(0).stdout;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("script.sh");
    std::fs::write(&file, script).unwrap();
    let read = std::process::Command::new("sh").arg("-n").arg(&file).output().unwrap();
    assert!(read.status.success() && read.stderr.is_empty(), "{}", String::from_utf8_lossy(&read.stderr));
}

/// The sections of a script, with their titles.
fn sections(script: &str) -> Vec<(&str, &str)> {
    script.split("\n\n# ").skip(1).map(|section| section.split_once('\n').unwrap_or((section, ""))).collect()
}

/// Once the roles stood between what is made, and only somebody with all rights came to the end.
#[test]
fn whoever_makes_things_grants_nothing_and_whoever_grants_makes_nothing() {
    let script = offvia(&first_version(), &["--dry-run"]).expect(0).stdout;
    let sections = sections(&script);
    let turns: Vec<&str> =
        sections.iter().filter_map(|(title, _)| title.split_once(':')).map(|(turn, _)| turn).collect();
    let mut turns_taken = turns.clone();
    turns_taken.dedup();
    assert_eq!(turns_taken, ["1. An administrator", "2. The provisioner", "3. An administrator", "4. The provisioner"]);
    for (title, commands) in &sections {
        let grants = commands.matches("add-iam-policy-binding").count();
        let makes = [" mk ", "CREATE TABLE", " create "]
            .iter()
            .any(|word| commands.lines().any(|line| !line.starts_with('#') && line.contains(word)));
        if title.contains("An administrator:") {
            assert!(grants > 0 && !makes, "{title}: {commands}");
        } else if title.contains("The provisioner:") {
            assert!(grants == 0 && makes, "{title}: {commands}");
        }
    }
    let (title, last) = sections[sections.len() - 2];
    assert!(title.starts_with("4. ") && last.contains("--bigquery-table=") && last.matches(" create ").count() == 1);
    let (_, looks) = sections[sections.len() - 1];
    assert!(looks.contains("roles/bigquery.metadataViewer") && looks.contains("roles/pubsub.viewer"), "{looks}");
    assert!(looks.lines().all(|line| line.starts_with("# ")), "nobody is granted anything by it: {looks}");
}

/// Once the agent of the worker's project was let write bronze, and that of the bronze subscription's was not.
#[test]
fn each_subscription_has_the_service_agent_of_its_own_project() {
    let store = first_version();
    let bronze = "provision.bronze.subscription=projects/other/subscriptions/bronze-sub";
    let script = offvia(&store, &["--dry-run", "--set", bronze]).expect(0).stdout;
    let own =
        "gcloud projects describe YOUR_PROJECT_ID --format='value(projectNumber)')\"\nexport PUBSUB_SERVICE_AGENT=";
    let other = "gcloud projects describe other --format='value(projectNumber)')\"\nexport PUBSUB_SERVICE_AGENT_2=";
    assert!(script.contains(own) && script.contains(other), "{script}");
    let commands = commands(&script);
    let on = |what: &str, agent: &str| {
        let member = format!("--member=serviceAccount:${{{agent}}} ");
        commands.iter().filter(|command| command.contains(what) && command.contains(&member)).count()
    };
    let (bronze, dead) = ("YOUR_PROJECT_ID:offvia_bronze.raw_bookings", "booking-events-dead-letter-topic");
    assert_eq!((on(bronze, "PUBSUB_SERVICE_AGENT_2"), on(bronze, "PUBSUB_SERVICE_AGENT")), (2, 0), "{script}");
    assert_eq!((on(dead, "PUBSUB_SERVICE_AGENT_2"), on(dead, "PUBSUB_SERVICE_AGENT")), (0, 1), "{script}");
}

/// The SQL of a dry run's table.
fn sql(report: &Value, table: &str) -> String {
    let resources = report["resources"].as_array().unwrap();
    let found = resources
        .iter()
        .find(|resource| resource["kind"] == "table" && resource["name"].as_str().unwrap().ends_with(table));
    found.unwrap_or_else(|| panic!("no table {table} in {report}"))["sql"].as_str().unwrap().replace('`', "")
}

#[test]
fn extended_tables_have_all_that_the_host_fills_and_what_the_next_rule_adds() {
    let both = store(&[
        ("offvia-booking", "guest-validators/offvia-booking/fixtures.ndjson", "1"),
        ("offvia-booking-v2", "guest-validators/offvia-booking-v2/fixtures.ndjson", "2"),
    ]);
    let report = offvia(&both, &["--dry-run", "--extended", "--json"]).expect(0).json();
    let silver = sql(&report, "fact_bookings");
    for column in ["  loyalty_tier STRING,", "  rule_digest STRING\n", "  event_timestamp TIMESTAMP NOT NULL,"] {
        assert!(silver.contains(column), "{column} is not in {silver}");
    }
    let quarantine = sql(&report, "poisoned_events");
    for column in
        ["raw_bytes BYTES", "raw_size INT64", "pipeline STRING", "resolved_at TIMESTAMP", "rule_digest STRING"]
    {
        assert!(quarantine.contains(&format!("  {column}")), "{column} is not in {quarantine}");
    }
    // Pub/Sub, which writes it, fills five columns.
    assert_eq!(sql(&report, "raw_bookings").matches("\n  ").count(), 5, "{}", sql(&report, "raw_bookings"));
    assert!(sql(&report, "shadow_differences").contains("old_verdict STRING NOT NULL"));
    // Without --extended a column of a rule is still a column.
    let report = offvia(&both, &["--dry-run", "--json"]).expect(0).json();
    assert!(sql(&report, "fact_bookings").contains("loyalty_tier"));
    assert!(!sql(&report, "fact_bookings").contains("rule_digest"));
}

#[test]
fn every_shard_has_a_subscription_and_an_overlay_that_only_differs_by_it() {
    let out = tempfile::tempdir().unwrap();
    let directory = out.path().display().to_string();
    let shards = ["--dry-run", "--shards", "2", "--out", &directory, "--json"];
    let report = offvia(&first_version(), &shards).expect(0).json();
    let commands: Vec<&str> =
        report["resources"].as_array().unwrap().iter().filter_map(|resource| resource["command"].as_str()).collect();
    for (name, filter) in [
        ("shard-0", "attributes.shard = \"0\""),
        ("shard-1", "attributes.shard = \"1\""),
        ("shard-rest-of-2", "NOT (attributes.shard = \"0\" OR attributes.shard = \"1\")"),
    ] {
        let made = format!("gcloud pubsub subscriptions create booking-events-dataflow-sub-{name} ");
        let command = commands.iter().find(|command| command.starts_with(&made)).unwrap();
        assert!(command.contains(&format!("--message-filter='{filter}'")), "{command}");
    }
    assert!(!commands.iter().any(|command| command.contains("booking-events-dataflow-sub ")), "{commands:?}");
    assert!(report["notes"][0].as_str().unwrap().contains("the attribute `shard`"), "{report}");
    let overlays = report["overlays"].as_array().unwrap();
    assert_eq!(overlays.len(), 3);
    let text = overlays[1]["text"].as_str().unwrap();
    for line in [
        "name = \"offvia-bookings-shard-1\"",
        "subscription = \"projects/YOUR_PROJECT_ID/subscriptions/booking-events-dataflow-sub-shard-1\"",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    assert!(text.contains("offvia-bookings-shard-1\"") && text.contains("[ledger]\npath = "), "{text}");
    // A dry run writes nothing.
    assert_eq!(out.path().read_dir().unwrap().count(), 0);
}

#[test]
fn least_privilege_is_told_by_identity() {
    let report = offvia(&first_version(), &["--dry-run", "--json"]).expect(0).json();
    let mut roles: Vec<String> = report["roles"]
        .as_array()
        .unwrap()
        .iter()
        .map(|grant| {
            let of = |key: &str| {
                grant[key].as_str().unwrap().replace("projects/YOUR_PROJECT_ID", "P").replace("YOUR_PROJECT_ID", "P")
            };
            format!("{} {} {}", of("who"), of("role"), of("on"))
        })
        .collect();
    roles.sort();
    assert_eq!(
        roles,
        [
            "provisioner roles/bigquery.user P",
            "provisioner roles/pubsub.editor P",
            "pubsub_service_agent roles/bigquery.dataEditor P.offvia_bronze.raw_bookings",
            "pubsub_service_agent roles/bigquery.metadataViewer P.offvia_bronze.raw_bookings",
            "pubsub_service_agent roles/pubsub.publisher P/topics/booking-events-dead-letter-topic",
            "pubsub_service_agent roles/pubsub.subscriber P/subscriptions/booking-events-dataflow-sub",
            "worker roles/bigquery.dataEditor P.offvia_quarantine.poisoned_events",
            "worker roles/bigquery.dataEditor P.offvia_silver.fact_bookings",
            "worker roles/bigquery.jobUser P",
            "worker roles/pubsub.subscriber P/subscriptions/booking-events-dataflow-sub",
            "worker roles/pubsub.viewer P/subscriptions/booking-events-dataflow-sub",
        ]
    );
}

#[test]
fn only_what_is_googles_is_made() {
    let local = paths::root().join("examples/offvia/local.toml").display().to_string();
    let rules: Vec<String> = ["offvia-booking", "offvia-booking-v2"]
        .iter()
        .enumerate()
        .map(|(index, rule)| format!("rules.components.{}={}", index + 1, paths::rule(rule).display()))
        .collect();
    let with = |more: &[&str]| {
        let mut arguments = vec!["--dry-run", "--with", &local];
        arguments.extend(rules.iter().flat_map(|set| ["--set", set.as_str()]));
        offvia(&Store::new(), &[&arguments, more].concat())
    };
    let nothing = with(&[]).expect(0).stdout;
    assert!(nothing.contains("the warehouse is SQLite") && nothing.contains("the source is no Pub/Sub"), "{nothing}");
    assert!(nothing.lines().all(|line| line.starts_with('#')), "{nothing}");
    // A file into BigQuery: tables only, bronze by the worker.
    let tables = with(&["--set", "warehouse.bigquery.project=p"]).expect(0).stdout;
    assert_eq!(tables.matches("CREATE TABLE").count(), 3, "{tables}");
    assert!(!tables.contains("gcloud pubsub"), "{tables}");
    // Pub/Sub into SQLite: subscriptions only, and none that writes to BigQuery.
    let pulled = with(&["--set", "source.pubsub.subscription=projects/p/subscriptions/sss"]).expect(0).stdout;
    assert!(pulled.contains("gcloud pubsub subscriptions create sss") && !pulled.contains("bq "), "{pulled}");
    // Shards of a file there are not.
    assert!(with(&["--shards", "2"]).expect(2).stderr.contains("shards are of a Pub/Sub subscription"));
}

#[test]
fn what_cannot_be_made_is_refused_before_anybody_is_asked() {
    let store = first_version();
    let refused = |sets: &[&str], key: &str, what: &str| {
        let mut arguments = vec!["--dry-run"];
        arguments.extend(sets.iter().flat_map(|set| ["--set", *set]));
        let stderr = offvia(&store, &arguments).expect(2).stderr;
        assert!(stderr.contains(key) && stderr.contains(what), "{sets:?}: {stderr}");
    };
    refused(&["silver.table=bookings"], "silver.table", "dataset.table");
    refused(&["silver.partition_by=fare_amount"], "silver.partition_by", "is NUMERIC");
    refused(&["quarantine.partition_by=when"], "quarantine.partition_by", "no column `when`");
    refused(&["silver.cluster_by=[\"nothing\"]"], "silver.cluster_by", "no column `nothing`");
    refused(&["provision.bronze.cluster_by=[\"attributes\"]"], "provision.bronze.cluster_by", "does not cluster by");
    refused(&["provision.topic=x"], "provision.topic", "cannot be a name");
    let itself = "provision.dead_letter_topic=booking-events-topic";
    refused(&[itself], "provision.dead_letter_topic", "it is the topic itself");
    let worker = "booking-events-dataflow-sub";
    let twice = format!("provision.bronze.subscription={worker}");
    refused(&[&twice], "provision.bronze.subscription", "another subscription of this pipeline");
    let twice = format!("provision.dead_letter_subscription={worker}");
    refused(&[&twice], "provision.dead_letter_subscription", "another subscription of this pipeline");
    let long = format!("name={}", "b".repeat(60));
    let shards = offvia(&store, &["--dry-run", "--shards", "2", "--set", &long]).expect(2).stderr;
    assert!(shards.contains("name: ") && shards.contains("at most 63"), "{shards}");
    let many = offvia(&store, &["--dry-run", "--shards", "10"]).expect(2).stderr;
    assert!(many.contains("10 shards are too many: at most 9"), "{many}");
    let empty = offvia(&Store::new(), &["--dry-run"]).expect(2).stderr;
    assert!(empty.contains("rules.store"), "{empty}");
}

//! Every value that is refused, and the defaults.

mod aggregates;
mod replace;

use super::*;
use crate::config::{CsvOptions, Format, RulesFrom, SourceConfig};
use crate::google::credentials::Identity;
use crate::record::Dialect;
use crate::rules::guard::GuardLimits;
use crate::rules::set::{By, Routing};
use crate::warehouse::HostColumn;
use std::sync::Arc;

const GOOD: &str = r#"
name = "offvia-bookings"
[source.file]
path = "events.ndjson"
[rules]
event_version = { attribute = "event_version", default = "1" }
[rules.components]
"1" = "one.wasm"
"2" = "two.wasm"
[warehouse.sqlite]
path = "d.db"
[bronze]
table = "offvia_bronze.raw_bookings"
[silver]
table = "offvia_silver.fact_bookings"
[silver.host_columns]
ingestion_timestamp = "received_time"
[quarantine]
table = "offvia_quarantine.poisoned_events"
"#;

fn load(sets: &[&str]) -> Result<Config, String> {
    let mut layers = Layers::default();
    layers.lay_file(GOOD, "p.toml", Path::new("base")).unwrap();
    for set in sets {
        layers.set(set).unwrap();
    }
    Config::from_layers(&layers).map_err(|error| error.to_string())
}

const GOOGLE: &str = r#"
name = "google"
[source.pubsub]
subscription = "projects/p/subscriptions/sub"
[rules.components]
"1" = "one.wasm"
[warehouse.bigquery]
project = "b"
[silver]
table = "d.silver"
[quarantine]
table = "d.quarantine"
"#;

/// A pipeline on Google Cloud with some keys set.
pub(super) fn load_google(sets: &[&str]) -> Result<Config, String> {
    let mut layers = Layers::default();
    layers.lay_file(GOOGLE, "p.toml", Path::new("base")).unwrap();
    for set in sets {
        layers.set(set).unwrap();
    }
    Config::from_layers(&layers).map_err(|error| error.to_string())
}

#[test]
fn csv_options_are_taken_or_refused_with_their_key() {
    let csv = |sets: &[&str]| {
        let sets: Vec<&str> = [&["source.stdin.format=csv"], sets].concat();
        load(&sets).map(|config| config.source.format().clone())
    };
    assert_eq!(csv(&[]).unwrap(), Format::Csv(Arc::default()));
    let given = csv(&[
        "source.stdin.csv.delimiter=\"\\t\"",
        "source.stdin.csv.quote=",
        "source.stdin.csv.header=false",
        "source.stdin.csv.columns=[\"a\", \"b\"]",
    ]);
    let dialect = Dialect { delimiter: b'\t', quote: None };
    let columns = Some(vec!["a".to_owned(), "b".to_owned()]);
    assert_eq!(given.unwrap(), Format::Csv(Arc::new(CsvOptions { dialect, header: false, columns })));
    for (sets, key, what) in [
        (&["source.stdin.csv.delimiter="][..], "delimiter", "not one ASCII character"),
        (&["source.stdin.csv.delimiter=;;"], "delimiter", "not one ASCII character"),
        (&["source.stdin.csv.delimiter=§"], "delimiter", "not one ASCII character"),
        (&["source.stdin.csv.delimiter=\"\\n\""], "delimiter", "ends a line"),
        (&["source.stdin.csv.delimiter='", "source.stdin.csv.quote='"], "delimiter", "they must differ"),
        (&["source.stdin.csv.quote=ab"], "quote", "not one ASCII character"),
        (&["source.stdin.csv.header=false"], "columns", "no header"),
        (&["source.stdin.csv.columns=[]"], "columns", "no column"),
        (&["source.stdin.csv.columns=[\"a\", \"\"]"], "columns", "column 2 has no name"),
        (&["source.stdin.csv.columns=[\"a\", \"a\"]"], "columns", "`a` stands twice"),
        (&["source.stdin.csv.comment=x"], "comment", "unknown key"),
    ] {
        let error = csv(sets).unwrap_err();
        assert!(error.contains(&format!("source.stdin.csv.{key}: ")) && error.contains(what), "{sets:?}: {error}");
    }
}

#[test]
fn defaults_fill_what_is_left_out() {
    let config = load(&[]).unwrap();
    assert_eq!(config.ledger, Path::new("base/d.db.offvia-bookings.ledger"));
    assert_eq!(config.limits, Limits::default());
    let RulesFrom::Components(components) = config.rules.from else { panic!("components are given") };
    assert_eq!(components["2"], Path::new("base/two.wasm"));
    assert_eq!((config.rules.guard, config.rules.canary_by), (GuardLimits::default(), By::Default));
    assert_eq!(config.silver.host_columns["ingestion_timestamp"], HostColumn::ReceivedTime);
    assert_eq!(config.rules.routing.by, By::Attribute("event_version".into()));
}

#[test]
fn each_wrong_value_is_refused_with_its_key_and_line() {
    let refused = |set: &str, key: &str, what: &str| {
        let error = load(&[set]).unwrap_err();
        assert!(error.contains(key) && error.contains(what), "{set}: {error}");
    };
    refused("name=Bad Name", "--set: name:", "a-z, 0-9");
    refused("source.file.format=xml", "source.file.format", "\"lines\", \"envelope\", \"csv\" or \"json-array\"");
    refused("source.file.csv.delimiter=;", "source.file.csv:", "write source.file.format = \"csv\"");
    refused("source.pubsub.subscription=s", "source.pubsub.subscription", "projects/PROJECT/subscriptions/NAME");
    refused("warehouse.bigquery.project=a b", "warehouse.bigquery.project", "not a project");
    refused("run.drain_timeout=soon", "run.drain_timeout", "unit");
    refused("silver.cluster_by=[\"a\", \"b\", \"c\", \"d\", \"e\"]", "silver.cluster_by", "at most four");
    refused("bronze.partition_by=a-b", "bronze.partition_by", "column name");
    refused("dedup.by=name", "dedup.by", "message_id");
    refused("dedup={ by = { attribute = \"a\", field = \"/f\" } }", "dedup.by", "exactly one of");
    refused("dedup={ by = { field = \"f\" } }", "dedup.by.field", "/");
    refused("dedup={ by = { columns = [\"a-b\"] } }", "dedup.by.columns", "column name");
    refused("dedup={ by = { columns = [] } }", "dedup.by", "exactly one of");
    refused("dedup={ by = \"payload\", horizon = \"1 ms\" }", "dedup.horizon", "at least 1 s");
    refused("dedup={ by = \"payload\", expected_rate = 0.0 }", "dedup.expected_rate", "above 0");
    refused("dedup={ by = \"payload\", on_conflict = \"keep\" }", "dedup.on_conflict", "quarantine");
    refused("rules.isolation=none", "rules.isolation", "\"batch\" or \"event\"");
    refused("rules.event_version.default=9", "rules.event_version.default", "no component serves");
    refused("rules.event_version.field=/v", "rules.event_version", "exactly one of");
    refused("limits.memory=64", "limits.memory", "unit");
    refused("limits.wall_clock=fast", "limits.wall_clock", "unit");
    refused("limits.events_per_instance=0", "limits.events_per_instance", "at least 1");
    refused("limits.fuel_base=0", "limits.fuel_base", "at least 1");
    refused("batch.max_events=0", "batch.max_events", "at least 1");
    refused("run.threads=0", "run.threads", "at least 1");
    refused("run.threads=200000", "run.threads", "at most 1024");
    refused("run.threads=-1", "run.threads", "expected a whole number");
    refused("batch.max_bytes=0 B", "batch.max_bytes", "at least 1 B");
    refused("limits.payload=0 kB", "limits.payload", "at least 1 B");
    for key in ["limits.payload", "limits.row", "limits.result", "batch.max_bytes"] {
        refused(&format!("{key}=513 MiB"), &format!("--set: {key}: "), "at most 512 MiB");
    }
    refused("batch.max_events=1_000_001", "batch.max_events", "at most 1000000");
    refused("limits.wall_clock=9 ms", "limits.wall_clock", "at least 10 ms");
    refused("bronze=1", "--set: bronze", "expected a table");
    for key in ["source.file.path", "warehouse.sqlite.path", "ledger.path", "rules.cache"] {
        refused(&format!("{key}="), &format!("--set: {key}: "), "not empty");
    }
    for tier in ["bronze", "silver", "quarantine"] {
        refused(&format!("{tier}.write=swap"), &format!("{tier}.write"), "\"append\" or \"replace\"");
    }
    refused("silver.create=maybe", "silver.create", "if_needed");
    refused("silver.table=a..b", "silver.table", "dataset");
    refused("silver.table=preflight_streams", "silver.table", "taken");
    refused("silver.table=x.raw_bookings", "silver.table", "another tier's table");
    refused("silver.partition_by=a-b", "silver.partition_by", "column name");
    refused("silver.host_columns.x=now", "silver.host_columns.x", "received_time");
    refused("rules.canary_by.field=x", "rules.canary_by.field", "/");
    refused("rules.canary_by={}", "rules.canary_by", "exactly one of attribute and field");
    refused("rules.guard.min_pairs=0", "rules.guard.min_pairs", "at least 1");
    refused("rules.guard.faults=0", "rules.guard.faults", "at least 1");
    refused("rules.guard.margin_percent=100", "rules.guard.margin_percent", "below 100");
    refused("rules.guard.time=soon", "rules.guard.time", "unit");
    refused("rules.shadow.table=fact_bookings", "rules.shadow.table", "another tier's table");
    refused("rules.shadow.table=preflight_x", "rules.shadow.table", "taken");
    refused("rules.components.\"\"=x", "rules.components", "not empty");
    refused("admin.listen=localhost:80", "admin.listen", "127.0.0.1:9464");
    for remote in ["0.0.0.0:80", "[::]:80", "192.0.2.1:80", "[::ffff:192.0.2.1]:80"] {
        refused(&format!("admin.listen={remote}"), "admin.listen", "allow_remote = true");
    }
}

#[test]
fn what_is_googles_is_refused_with_its_key() {
    let pubsub = "source.pubsub.subscription=projects/p/subscriptions/s";
    let bigquery = "warehouse.bigquery.project=p";
    let refused = |first: &str, set: &str, key: &str, what: &str| {
        let error = load(&[first, set]).unwrap_err();
        assert!(error.contains(key) && error.contains(what), "{set}: {error}");
    };
    refused(pubsub, "source.pubsub.streams=0", "source.pubsub.streams", "at least 1");
    refused(pubsub, "source.pubsub.streams=65", "source.pubsub.streams", "at most 64");
    refused(pubsub, "source.pubsub.workers=0", "source.pubsub.workers", "at least 1");
    refused(pubsub, "source.pubsub.max_outstanding_bytes=1", "source.pubsub.max_outstanding_bytes", "unit");
    refused(pubsub, "source.pubsub.endpoint=ftp://h", "source.pubsub.endpoint", "host:port");
    refused(pubsub, "source.pubsub.endpoint=http://h:1", "source.pubsub.endpoint", "allow_plaintext = true");
    refused(pubsub, "source.pubsub.credentials=mine", "source.pubsub.credentials", "application_default");
    refused(bigquery, "warehouse.bigquery.request_timeout=0 s", "warehouse.bigquery.request_timeout", "at least 1 ms");
    refused(bigquery, "warehouse.bigquery.endpoint=127.0.0.1:1", "storage_endpoint", "belong together");
    let both = "batch.max_age=1 s";
    let error = load(&[bigquery, "warehouse.bigquery.commit_interval=5 s", both]).unwrap_err();
    assert!(error.contains("commit_interval") && error.contains("batch.max_age"), "{error}");
}

#[test]
fn several_workers_on_a_subscription_are_refused_together_with_dedup() {
    let pubsub = "source.pubsub.subscription=projects/p/subscriptions/s";
    let two = "source.pubsub.workers=2";
    let dedup = "dedup.by=payload";
    assert!(load(&[pubsub, two]).is_ok());
    assert!(load(&[pubsub, dedup]).is_ok());
    let error = load(&[pubsub, two, dedup]).unwrap_err();
    assert!(error.contains("source.pubsub.workers") && error.contains("--shards N"), "{error}");
}

#[test]
fn a_micro_batch_for_bigquery_is_full_after_its_commit_interval() {
    let age = |sets: &[&str]| load(sets).unwrap().batch.max_age;
    assert_eq!(age(&[]), Duration::from_millis(500));
    assert_eq!(age(&["warehouse.bigquery.project=p"]), Duration::from_secs(1));
    let seed = ["warehouse.bigquery.project=p", "warehouse.bigquery.commit_interval=5 s"];
    assert_eq!(age(&seed), Duration::from_secs(5));
}

#[test]
fn an_emulator_is_spoken_to_without_credentials_and_google_with_those_of_the_machine() {
    let identity = |sets: &[&str]| {
        let config = load(&[&["source.pubsub.subscription=projects/p/subscriptions/s"], sets].concat()).unwrap();
        let SourceConfig::Pubsub(pubsub) = config.source else { panic!("it is a subscription") };
        pubsub.identity
    };
    assert_eq!(identity(&["source.pubsub.endpoint=https://h"]), Identity::ApplicationDefault);
    assert_eq!(identity(&["source.pubsub.endpoint=127.0.0.1:1"]), Identity::Anonymous);
    let asked = ["source.pubsub.endpoint=127.0.0.1:1", "source.pubsub.credentials=application_default"];
    assert_eq!(identity(&asked), Identity::ApplicationDefault);
    let remote = ["source.pubsub.endpoint=http://h:1", "source.pubsub.allow_plaintext=true"];
    assert_eq!(identity(&remote), Identity::Anonymous);
    let told_everybody = [
        "source.pubsub.subscription=projects/p/subscriptions/s",
        "source.pubsub.endpoint=http://h:1",
        "source.pubsub.allow_plaintext=true",
        "source.pubsub.credentials=application_default",
    ];
    assert!(load(&told_everybody).unwrap_err().contains("plain text over the network"));
}

#[test]
fn the_admin_endpoint_is_local_unless_it_is_said_otherwise() {
    assert_eq!(load(&[]).unwrap().admin, None);
    for local in ["127.0.0.1:0", "127.0.0.2:80", "[::1]:9464", "[::ffff:127.0.0.1]:1"] {
        let admin = load(&[&format!("admin.listen={local}")]).unwrap().admin.unwrap();
        assert_eq!(admin.listen.to_string(), local);
    }
    let remote = load(&["admin.listen=0.0.0.0:9464", "admin.allow_remote=true"]).unwrap();
    assert!(remote.admin.is_some());
}

#[test]
fn the_last_values_within_the_bounds_are_taken() {
    let sizes =
        ["limits.payload", "limits.row", "limits.result", "batch.max_bytes"].map(|key| format!("{key}=512 MiB"));
    let mut sets: Vec<&str> = sizes.iter().map(String::as_str).collect();
    sets.extend(["batch.max_events=1_000_000", "limits.wall_clock=10 ms"]);
    let config = load(&sets).unwrap();
    assert_eq!((config.max_payload, config.batch.max_events), (512 << 20, 1_000_000));
}

/// The pipeline on BigQuery, whatever variables of an emulator are set where the tests run.
fn on_bigquery(sets: &[&str]) -> Result<Config, String> {
    let text = GOOD.replace("[warehouse.sqlite]\npath = \"d.db\"", "[warehouse.bigquery]\nproject = \"p\"");
    let mut layers = Layers::default();
    layers.lay_file(&text, "p.toml", Path::new("base")).unwrap();
    for address in ["endpoint=https://bigquery.example.com", "storage_endpoint=https://storage.example.com"] {
        layers.set(&format!("warehouse.bigquery.{address}")).unwrap();
    }
    for set in sets {
        layers.set(set).unwrap();
    }
    Config::from_layers(&layers).map_err(|error| error.to_string())
}

#[test]
fn a_table_of_bigquery_is_in_a_dataset_and_its_rows_fit_a_request() {
    let config = on_bigquery(&["silver.table=project.dataset.bookings"]).unwrap();
    assert_eq!(config.rules.shadow.table, "project.dataset.shadow_differences");
    assert_eq!((config.max_row, config.warehouse.key()), (7_000_000, "warehouse.bigquery"));
    for key in ["bronze.table", "silver.table", "quarantine.table", "rules.shadow.table"] {
        let error = on_bigquery(&[&format!("{key}=bare")]).unwrap_err();
        assert!(error.contains(&format!("{key}: \"bare\" has no dataset")), "{error}");
    }
    assert_eq!(on_bigquery(&["limits.row=7 MB"]).unwrap().max_row, 7_000_000);
    let error = on_bigquery(&["limits.row=7_001 kB"]).unwrap_err();
    assert!(error.contains("limits.row: BigQuery takes rows of at most 7 MB"), "{error}");
}

/// Once `bronze.bookings` beside `silver.bookings` was refused: only the last part of the name was looked at.
#[test]
fn tables_of_bigquery_are_told_apart_by_project_dataset_and_case() {
    for apart in ["other.bookings", "elsewhere.silver.bookings", "silver.Bookings"] {
        on_bigquery(&["silver.table=silver.bookings", &format!("bronze.table={apart}")]).unwrap();
    }
    for same in ["silver.bookings", "p.silver.bookings"] {
        let error = on_bigquery(&["silver.table=silver.bookings", &format!("bronze.table={same}")]).unwrap_err();
        assert!(error.contains("silver.table: \"p.silver.bookings\" is another tier's table"), "{error}");
    }
    let local = load(&["silver.table=a.Bookings", "bronze.table=b.bookings"]).unwrap_err();
    assert!(local.contains("another tier's table"), "{local}");
}

#[test]
fn an_access_token_is_not_sent_in_plain_text() {
    let plain = |address: &str, credentials: &str| {
        let key = |name: &str, value: &str| format!("warehouse.bigquery.{name}={value}");
        let endpoint = key("endpoint", address);
        let storage = key("storage_endpoint", address);
        let (credentials, allow) = (key("credentials", credentials), key("allow_plaintext", "true"));
        on_bigquery(&[&endpoint, &storage, &credentials, &allow])
    };
    assert!(plain("http://127.0.0.1:1", "application_default").is_ok());
    assert!(plain("http://192.0.2.1:1", "anonymous").is_ok());
    let error = plain("http://192.0.2.1:1", "application_default").unwrap_err();
    assert!(error.contains("warehouse.bigquery.credentials: credentials are not sent in plain text"), "{error}");
    let storage = "warehouse.bigquery.storage_endpoint";
    let error = on_bigquery(&[
        &format!("{storage}=http://192.0.2.1:1"),
        "warehouse.bigquery.allow_plaintext=true",
        "warehouse.bigquery.credentials=application_default",
    ]);
    assert!(error.unwrap_err().contains(&format!("{storage}: credentials are not sent in plain text")));
}

#[test]
fn several_problems_are_reported_at_once() {
    let error = load(&["name=Bad", "limits.memory=64", "silver.create=maybe"]).unwrap_err();
    assert_eq!(error.lines().count(), 3, "{error}");
}

#[test]
fn one_component_needs_no_event_version() {
    let text = GOOD.replace("event_version = { attribute = \"event_version\", default = \"1\" }", "");
    let one = text.replace("\"2\" = \"two.wasm\"", "");
    let mut layers = Layers::default();
    layers.lay_file(&one, "p.toml", Path::new("")).unwrap();
    let routing = Config::from_layers(&layers).unwrap().rules.routing;
    assert_eq!(routing, Routing { by: By::Default, default: Some("1".into()) });
    let mut layers = Layers::default();
    layers.lay_file(&text, "p.toml", Path::new("")).unwrap();
    assert!(Config::from_layers(&layers).unwrap_err().to_string().contains("several components"));
}

#[test]
fn a_store_takes_the_place_of_components_and_needs_a_routing() {
    let with_store = |routing: &str| {
        let components = "[rules.components]\n\"1\" = \"one.wasm\"\n\"2\" = \"two.wasm\"\n";
        let event_version = "event_version = { attribute = \"event_version\", default = \"1\" }";
        let text = GOOD.replace(components, "").replace(event_version, &format!("store = \"rules\"\n{routing}"));
        let mut layers = Layers::default();
        layers.lay_file(&text, "p.toml", Path::new("base")).unwrap();
        Config::from_layers(&layers)
    };
    let config = with_store("event_version = { default = \"1\" }").unwrap();
    assert_eq!(config.rules.from, RulesFrom::Store("base/rules".into()));
    assert!(with_store("").unwrap_err().to_string().contains("with a rule store, say where"));
    let both = GOOD.replace("[rules]\n", "[rules]\nstore = \"rules\"\n");
    let mut layers = Layers::default();
    layers.lay_file(&both, "p.toml", Path::new("base")).unwrap();
    assert!(Config::from_layers(&layers).unwrap_err().to_string().contains("exactly one of rules.components"));
}

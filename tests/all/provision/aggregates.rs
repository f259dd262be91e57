//! What aggregates need: their tables, the views over these, the table of late events. Made, told from what differs, and written
//! to by a run that makes no tables.

use preflight_tests::bigquery::emulator::PROJECT;
use preflight_tests::bigquery::{Emulator, Fake};
use preflight_tests::{Ended, Pipeline, paths};
use serde_json::Value;
use std::fmt::Display;
use std::sync::atomic::{AtomicU32, Ordering};

/// Lumen & Loom's orders into datasets of one test's own; `N` is replaced.
const PIPELINE: &str = r#"
name = "orders"
[source.file]
path = "input.ndjson"
format = "envelope"
[batch]
max_events = 1
[rules]
event_version = { attribute = "event_version", default = "1" }
[rules.components]
"1" = RULE
[warehouse.bigquery]
project = PROJECT
endpoint = REST
storage_endpoint = STORAGE
[ledger]
path = "ledger"
[silver]
table = "lumen_silver_N.orders"
[quarantine]
table = "lumen_quarantine_N.rejected"
[watermark]
follows = "publish_time"
out_of_orderness = "30 s"
[late_data]
table = "lumen_late_N.late_events"
partition_by = "received_time"
[aggregates.per_minute]
table = "lumen_gold_N.per_minute"
partition_by = "window_start"
cluster_by = ["sku"]
description = "Orders per article and minute"
window = { fixed = "1 m" }
allowed_lateness = "4 m"
group_by = ["sku"]
measures = { orders = "count", revenue = { sum = "revenue" } }
"#;

/// The same windows, one row for each.
const UPSERTED: &str = r#"
[aggregates.newest]
table = "lumen_gold_N.newest"
cluster_by = ["window_id"]
window = { fixed = "1 m" }
allowed_lateness = "4 m"
group_by = ["sku"]
measures = { orders = "count" }
write = "upsert"
"#;

/// Article, when it was ordered, and when that was published. The second of article A comes within `allowed_lateness`, the third does not.
const ORDERS: [(&str, &str, &str); 5] = [
    ("A", "14:05:30", "14:05:45"),
    ("B", "14:06:40", "14:06:45"),
    ("A", "14:05:10", "14:09:30"),
    ("B", "14:12:05", "14:12:10"),
    ("A", "14:05:50", "14:12:10"),
];

/// A pipeline that nothing was made for.
struct Gold {
    pipeline: Pipeline,
    number: u32,
}

impl Gold {
    fn at(rest: impl Display, storage: impl Display, aggregates: &[&str]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let quoted = |text: &dyn Display| format!("{:?}", text.to_string());
        let toml = (PIPELINE.to_owned() + &aggregates.concat())
            .replace("RULE", &quoted(&paths::rule("lumen-loom-orders").display()))
            .replace("PROJECT", &quoted(&PROJECT))
            .replace("REST", &quoted(&rest))
            .replace("STORAGE", &quoted(&storage))
            .replace("_N.", &format!("_provision{number}."));
        let orders = ORDERS.iter().enumerate().map(|(id, (sku, occurred, published))| {
            let payload = format!(
                r#"{{"event_id":"E{id}","sku":"{sku}","channel":"web","quantity":1,"revenue":"1.5","occurred_at":"2026-07-19T{occurred}Z"}}"#
            );
            let published = format!("2026-07-19T{published}Z");
            format!("{}\n", serde_json::json!({ "data": payload, "message_id": id.to_string(), "publish_time": published }))
        });
        Self { pipeline: Pipeline::with_file(&toml, orders.collect::<String>()).warm(), number }
    }

    fn on(fake: &Fake, aggregates: &[&str]) -> Self {
        Self::at(fake.rest(), fake.storage(), aggregates)
    }

    fn provision(&self, arguments: &[&str]) -> Ended {
        let output = self.pipeline.command("provision").args(arguments).output();
        Ended::from_output(output.expect("preflight can be started"))
    }

    /// A table's name.
    fn table(&self, dataset: &str, table: &str) -> String {
        format!("{dataset}_provision{}.{table}", self.number)
    }

    /// Replaces something in the pipeline file.
    fn rewrite(&self, old: &str, new: &str) {
        let text = std::fs::read_to_string(self.pipeline.file()).unwrap();
        assert!(text.contains(old), "{old} is not in {text}");
        std::fs::write(self.pipeline.file(), text.replace(old, new)).unwrap();
    }
}

/// What was said of one thing.
fn of<'a>(report: &'a Value, name: &str) -> &'a Value {
    let found =
        report["resources"].as_array().unwrap().iter().find(|one| one["name"].as_str().unwrap().ends_with(name));
    found.unwrap_or_else(|| panic!("nothing named {name} in {report}"))
}

/// What differs, and whether it blocks.
fn differences<'a>(report: &'a Value, name: &str) -> Vec<(&'a str, bool)> {
    let of = of(report, name)["differences"].as_array().unwrap();
    of.iter().map(|one| (one["what"].as_str().unwrap(), one["blocks"].as_bool().unwrap())).collect()
}

#[test]
fn the_tables_and_views_of_aggregates_are_in_the_script() {
    let fake = Fake::start();
    let gold = Gold::on(&fake, &[UPSERTED]);
    let script = gold.provision(&["--dry-run"]).expect(0).stdout.replace('`', "");
    let name = |dataset: &str, table: &str| format!("{PROJECT}.{}", gold.table(dataset, table));
    let (late, panes, newest) =
        (name("lumen_late", "late_events"), name("lumen_gold", "per_minute"), name("lumen_gold", "newest"));
    let statements = [
        format!(
            "CREATE TABLE IF NOT EXISTS {late} (\n  aggregate STRING NOT NULL,\n  message_id STRING NOT NULL,\n  \
             event_time TIMESTAMP NOT NULL,\n  publish_time TIMESTAMP NOT NULL,\n  received_time TIMESTAMP NOT NULL,\n  \
             watermark TIMESTAMP,\n  key JSON NOT NULL,\n  missed_windows JSON NOT NULL,\n  late_by_ms INT64 NOT NULL,\n  \
             pipeline STRING NOT NULL\n)\nPARTITION BY DATE(received_time);\n"
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS {panes} (\n  window_start TIMESTAMP NOT NULL,\n  window_end TIMESTAMP NOT NULL,\n  \
             sku STRING,\n  orders INT64,\n  revenue NUMERIC,\n  timing STRING NOT NULL,\n  pane_index INT64 NOT NULL,\n  \
             epoch INT64 NOT NULL,\n  fired_at TIMESTAMP NOT NULL,\n  watermark TIMESTAMP,\n  error STRING,\n  \
             window_id STRING NOT NULL\n)\nPARTITION BY DATE(window_start)\nCLUSTER BY sku\n\
             OPTIONS (description = \"Orders per article and minute\");\n"
        ),
        format!("CREATE TABLE IF NOT EXISTS {newest} (\n"),
        "  window_id STRING NOT NULL,\n  PRIMARY KEY (window_id) NOT ENFORCED\n)\nCLUSTER BY window_id;\n".to_owned(),
        format!("CREATE VIEW IF NOT EXISTS {panes}_latest AS\nSELECT window_start, window_end, sku, orders, revenue, "),
        format!("FROM {panes}\n) AS panes\nWHERE preflight_place = 1 AND timing <> 'RETRACTED';\n"),
        format!("mk --dataset {PROJECT}:{}", gold.table("lumen_gold", "").trim_end_matches('.')),
        format!("mk --dataset {PROJECT}:{}", gold.table("lumen_late", "").trim_end_matches('.')),
    ];
    for statement in &statements {
        assert_eq!(script.matches(statement.as_str()).count(), 1, "{statement}\n{script}");
    }
    assert_eq!(script.matches("CREATE VIEW").count(), 1, "what is upserted has no view: {script}");
    let view = script.find("CREATE VIEW").unwrap();
    assert!(script.rfind("CREATE TABLE").unwrap() < view && view < script.find("# 3. ").unwrap(), "{script}");
    let editor = "--role=roles/bigquery.dataEditor --table=true";
    for table in [&late, &panes, &newest] {
        let grant = format!("{editor} {}\n", table.replacen('.', ":", 1));
        assert_eq!(script.matches(&grant).count(), 1, "{grant}\n{script}");
    }
    let looks = format!("--role=roles/bigquery.metadataViewer --table=true {}_latest\n", panes.replacen('.', ":", 1));
    assert!(!script.contains(&looks), "a run that makes no views does not look for them: {script}");
    gold.rewrite("partition_by = \"window_start\"", "create = \"if_needed\"");
    let script = gold.provision(&["--dry-run"]).expect(0).stdout;
    assert!(script.contains(&looks) && !script.contains("PARTITION BY DATE(`window_start`)"), "{script}");
    let sh = std::process::Command::new("sh").args(["-n", "-c", &script]).output().unwrap();
    assert!(sh.status.success() && sh.stderr.is_empty(), "{}", String::from_utf8_lossy(&sh.stderr));
}

#[test]
fn a_run_that_makes_no_tables_writes_panes_upserts_and_late_events_to_what_was_made() {
    let fake = Fake::start();
    let gold = Gold::on(&fake, &[UPSERTED]);
    let refused = gold.pipeline.check().expect(2).stderr;
    for table in ["late_data.table", "aggregates.per_minute.table", "aggregates.newest.table"] {
        assert!(refused.contains(&format!("{table}: ")), "{table} is not in {refused}");
    }
    // Four datasets, five tables, a view.
    let made = gold.provision(&[]).expect(0).stdout;
    assert!(made.ends_with("orders: 10 made\n"), "{made}");
    assert!(made.contains("made     view          ") && made.contains("may not keep primary keys"), "{made}");
    let kept = gold.provision(&["--extended"]).expect(0).stdout;
    assert!(kept.contains("kept     view          ") && !kept.contains("differs"), "{kept}");
    gold.pipeline.check().expect(0);
    gold.pipeline.run().expect(0);
    assert_eq!(fake.count(&gold.table("lumen_gold", "per_minute")), 4);
    assert_eq!(fake.count(&gold.table("lumen_gold", "newest")), 3);
    let late = fake.content(|content| content.rows(&gold.table("lumen_late", "late_events")));
    // Too late for either aggregate.
    let told: Vec<&str> = late.iter().map(|row| row["message_id"].as_str().unwrap()).collect();
    assert_eq!(told, ["4", "4"], "{late:?}");
}

#[test]
fn the_view_that_was_made_shows_the_newest_pane_of_each_window() {
    let emulator = Emulator::shared();
    let gold = Gold::at(emulator.rest(), emulator.storage(), &[]);
    let made = gold.provision(&[]).expect(0).stdout;
    assert!(made.ends_with("orders: 9 made\n") && !made.contains("primary keys"), "{made}");
    let kept = gold.provision(&[]).expect(0).stdout;
    assert!(kept.ends_with("orders: 9 kept\n"), "{kept}");
    gold.pipeline.run().expect(0);
    let sql = format!(
        "SELECT CONCAT(sku, ' ', FORMAT_TIMESTAMP('%H:%M', window_start), ' ', CAST(orders AS STRING), ' ', timing) AS line
         FROM `{PROJECT}.{}` ORDER BY window_start",
        gold.table("lumen_gold", "per_minute_latest")
    );
    let lines: Vec<Value> = emulator.query(&sql).into_iter().map(|mut row| row.remove("line").unwrap()).collect();
    assert_eq!(lines, ["A 14:05 2 LATE", "B 14:06 1 ON_TIME", "B 14:12 1 ON_TIME"]);
    let late = format!("SELECT COUNT(*) FROM `{PROJECT}.{}`", gold.table("lumen_late", "late_events"));
    assert_eq!(emulator.value(&late), "1");
}

#[test]
fn a_group_that_was_added_is_told_of_the_table_and_of_the_view() {
    let fake = Fake::start();
    let gold = Gold::on(&fake, &[]);
    gold.provision(&[]).expect(0);
    gold.rewrite("group_by = [\"sku\"]", "group_by = [\"sku\", \"region\"]");
    let another = ("it is another view than that of the newest panes: make it anew, it holds no rows", false);
    let report = gold.provision(&["--json"]).expect(1).json();
    let lacks = ("it lacks column `region` STRING: --extended adds it", true);
    assert_eq!(differences(&report, "per_minute"), [lacks]);
    assert_eq!(differences(&report, "per_minute_latest"), [another]);
    gold.pipeline.check().expect(2);
    let report = gold.provision(&["--extended", "--json"]).expect(0).json();
    assert_eq!(of(&report, "per_minute")["added_columns"], serde_json::json!(["region STRING"]));
    let view = of(&report, "per_minute_latest");
    assert_eq!((&view["kind"], &view["state"]), (&"view".into(), &"differs".into()));
    assert_eq!(differences(&report, "per_minute_latest"), [another]);
    let remedy = view["differences"][0]["command"].as_str().unwrap();
    assert!(remedy.contains("CREATE OR REPLACE VIEW") && remedy.contains("`region`"), "{remedy}");
    gold.pipeline.check().expect(0);
    gold.pipeline.run().expect(0);
    // A run that makes the view would not start.
    gold.rewrite("partition_by = \"window_start\"", "create = \"if_needed\"");
    let report = gold.provision(&["--json"]).expect(1).json();
    assert_eq!(differences(&report, "per_minute_latest"), [(another.0, true)]);
}

#[test]
fn tables_that_were_made_otherwise_are_told_and_left() {
    let fake = Fake::start();
    let gold = Gold::on(&fake, &[UPSERTED]);
    let create = |dataset: &str, table: &str, columns: &str| {
        fake.create_table(&format!("CREATE TABLE {} ({columns})", gold.table(dataset, table)));
    };
    // No primary key, no `error`; an integer as text; no optional `pipeline`, and a column that nobody fills.
    let window = "window_start TIMESTAMP NOT NULL, window_end TIMESTAMP NOT NULL, sku STRING, timing STRING NOT NULL, \
                  pane_index INT64 NOT NULL, epoch INT64 NOT NULL, fired_at TIMESTAMP, watermark TIMESTAMP";
    create("lumen_gold", "newest", &format!("{window}, orders INT64, window_id STRING NOT NULL"));
    create(
        "lumen_gold",
        "per_minute",
        &format!("{window}, orders STRING, revenue NUMERIC, error STRING, window_id STRING"),
    );
    create("lumen_gold", "per_minute_latest", "window_id STRING");
    let late = "aggregate STRING, message_id STRING, event_time TIMESTAMP, publish_time TIMESTAMP, received_time TIMESTAMP, \
                watermark TIMESTAMP, key JSON, missed_windows JSON, late_by_ms INT64, seen_by STRING NOT NULL";
    create("lumen_late", "late_events", late);
    let report = gold.provision(&["--json"]).expect(1).json();
    let blocking = |name: &str| -> Vec<&str> {
        differences(&report, name).into_iter().filter(|(_, blocks)| *blocks).map(|(what, _)| what).collect()
    };
    let lacks = "it lacks column `error` STRING: --extended adds it";
    let key = "column `window_id` is not its primary key, by which rows replace others: add it only where each value is there once";
    assert_eq!(blocking("newest"), [lacks, key]);
    let text = "column `orders` is declared STRING, which cannot hold INT64 without loss: a column's type stays as it is, make \
                another table";
    assert_eq!(blocking("per_minute"), [text]);
    assert_eq!(blocking("late_events"), ["column `seen_by` is NOT NULL, and nothing fills it"]);
    let optional = "it lacks column `pipeline` STRING, which can only be added as a nullable one";
    assert!(differences(&report, "late_events").contains(&(optional, false)), "{report}");
    let view = differences(&report, "per_minute_latest");
    assert!(view[0].0.starts_with("it is no view but of type TABLE") && !view[0].1, "{view:?}");
    // What blocks is what a run refuses.
    let refused = gold.pipeline.check().expect(2).stderr;
    for told in [
        "late_data.table: column `seen_by` is NOT NULL",
        "aggregates.newest.table: column `window_id` is not its primary key",
        "aggregates.newest.table: it lacks column `error`",
        "aggregates.per_minute.table: column `orders` is declared STRING",
    ] {
        assert!(refused.contains(told), "{told} is not in {refused}");
    }
}

#[test]
fn what_cannot_be_made_and_shards_are_refused_before_anybody_is_asked() {
    let fake = Fake::start();
    let gold = Gold::on(&fake, &[]);
    let refused = |arguments: &[&str], told: &[&str]| {
        let stderr = gold.provision(&[&["--dry-run"], arguments].concat()).expect(2).stderr;
        assert!(told.iter().all(|told| stderr.contains(told)), "{arguments:?}: {stderr}");
    };
    let subscription = "source.pubsub.subscription=projects/p/subscriptions/orders-sub";
    refused(&["--shards", "2", "--set", subscription], &["aggregates: there are no shards", "(`run.threads`)"]);
    let by = ["--set", "aggregates.per_minute.partition_by=sku"];
    refused(&by, &["aggregates.per_minute.partition_by", "is STRING"]);
    refused(&["--set", "late_data.cluster_by=[\"key\"]"], &["late_data.cluster_by", "does not cluster by"]);
    refused(&["--set", "aggregates.per_minute.group_by=[\"colour\"]"], &["no rule produces column `colour`"]);
    refused(&["--set", "aggregates.per_minute.table=per_minute"], &["aggregates.per_minute.table", "has no dataset"]);
}

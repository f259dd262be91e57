//! Lumen & Loom's three orders of the 14:05 minute: one in time, one within the allowed lateness, one behind it. The example
//! itself is run, by a script and against each warehouse.

use preflight_tests::bigquery::{Emulator, Fake, emulator, fake};
use preflight_tests::{Ended, paths, tables};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// The example with these overlays and settings; what it writes is in a directory of its own.
fn example(command: &str, directory: &Path, more: &[String]) -> Ended {
    let file = paths::root().join("examples/lumen-loom/pipeline.toml");
    let mut words = command.split(' ');
    let mut command = Command::new(paths::preflight());
    command.arg(words.next().expect("a command has a name")).arg(file).args(words).args(more);
    command.arg("--set").arg(format!("ledger.path={}", directory.join("ledger").display()));
    let cache = paths::scratch().join("code");
    command.arg("--set").arg(format!("rules.cache={}", cache.display())).current_dir(directory);
    Ended::from_output(command.output().expect("preflight can be started"))
}

/// An overlay for BigQuery.
fn bigquery(directory: &Path, project: &str, rest: &str, storage: &str) -> Vec<String> {
    let overlay = directory.join("bigquery.toml");
    let text = format!(
        "[warehouse.bigquery]\nproject = {project:?}\nendpoint = {rest:?}\nstorage_endpoint = {storage:?}\n\
         commit_interval = \"1 ms\"\n"
    );
    std::fs::write(&overlay, text).unwrap();
    vec!["--with".to_owned(), overlay.display().to_string()]
}

/// 2026-07-19T14:05:00Z.
const MINUTE: i64 = 1_784_469_900_000_000;

/// What the tables say of the minute and of the order that came too late.
fn expect(panes: &[Map<String, Value>], late: &[Map<String, Value>]) {
    let minute = |pane: &&Map<String, Value>| {
        // The fake has times as they were sent, in microseconds.
        let start = &pane["window_start"];
        let is_it = start.as_str().is_some_and(|start| start.contains("14:05:00")) || *start == MINUTE;
        pane["sku"] == "A" && is_it
    };
    let number = |value: &Value| value.as_i64().or_else(|| value.as_str()?.parse().ok());
    let of = |pane: &Map<String, Value>| {
        (pane["timing"].as_str().unwrap().to_owned(), number(&pane["pane_index"]), number(&pane["orders"]))
    };
    let mut minute: Vec<_> = panes.iter().filter(minute).map(of).collect();
    minute.sort_by_key(|(_, index, _)| *index);
    let expected = [("ON_TIME".to_owned(), Some(0), Some(1)), ("LATE".to_owned(), Some(1), Some(2))];
    assert_eq!(minute, expected, "{panes:?}");
    assert_eq!(late.len(), 1, "{late:?}");
    assert_eq!(late[0]["aggregate"], "orders_per_minute");
    assert!(late[0]["key"].to_string().contains('A'), "{late:?}");
    assert!(number(&late[0]["late_by_ms"]).unwrap() > 0, "{late:?}");
}

#[test]
fn by_a_script_the_minute_is_told_in_time_and_again_and_the_third_order_is_late() {
    let directory = tempfile::tempdir().unwrap();
    let script = paths::root().join("examples/lumen-loom/challenge-5.ndjson");
    let simulate = || example(&format!("simulate {}", script.display()), directory.path(), &[]).expect(0).stdout;
    let said = simulate();
    assert_eq!(said, simulate(), "byte for byte");
    let said: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let pane = |index: u32, timing: &str, orders: u32, revenue: &str| {
        json!({ "pane": {
            "aggregate": "orders_per_minute", "index": index, "timing": timing, "key": { "sku": "A" },
            "window": { "start": "2026-07-19T14:05:00.000000Z", "end": "2026-07-19T14:06:00.000000Z" },
            "measures": { "orders": orders, "revenue": revenue },
        } })
    };
    assert_eq!(said[..2], [pane(0, "ON_TIME", 1, "21.5"), pane(1, "LATE", 2, "64.5")]);
    assert_eq!((said.len(), &said[2]["late"]["message_id"]), (3, &json!("E-3")));
}

fn sqlite(more: &[String]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let database = format!("warehouse.sqlite.path={}", directory.path().join("orders.db").display());
    example("run", directory.path(), &[&["--set".to_owned(), database], more].concat()).expect(0);
    directory
}

#[test]
fn in_sqlite_the_view_has_one_row_of_the_minute_with_both_orders() {
    let directory = sqlite(&[]);
    let database = directory.path().join("orders.db");
    expect(&tables::rows(&database, "orders_per_minute"), &tables::rows(&database, "late_events"));
    let latest = "SELECT orders, revenue FROM orders_per_minute_latest
                  WHERE sku = 'A' AND window_start = '2026-07-19T14:05:00.000000Z'";
    assert_eq!(
        tables::query(&database, latest),
        [json!({ "orders": 2, "revenue": "64.5" }).as_object().unwrap().clone()]
    );
    assert_eq!(tables::query(&database, "SELECT 1 FROM orders WHERE event_id = 'E-3'").len(), 1, "it is in silver");
}

#[test]
fn upserted_in_sqlite_the_table_has_one_row_of_the_minute_with_both_orders() {
    let directory = sqlite(&["--set".into(), "aggregates.orders_per_minute.write=upsert".into()]);
    let rows = tables::rows(&directory.path().join("orders.db"), "orders_per_minute");
    let minute: Vec<_> = rows
        .iter()
        .filter(|row| row["sku"] == "A" && row["window_start"] == "2026-07-19T14:05:00.000000Z")
        .map(|row| (row["orders"].clone(), row["timing"].clone()))
        .collect();
    assert_eq!(minute, [(json!(2), json!("LATE"))]);
}

#[test]
fn in_the_fake_of_bigquery_panes_and_upserts_say_the_same() {
    let (panes, upserts) = (Fake::start(), Fake::start());
    for (fake, write) in [(&panes, "panes"), (&upserts, "upsert")] {
        let directory = tempfile::tempdir().unwrap();
        let (rest, storage) = (fake.rest().to_string(), fake.storage().to_string());
        let mut more = bigquery(directory.path(), fake::PROJECT, &rest, &storage);
        more.extend(["--set".into(), format!("aggregates.orders_per_minute.write={write}")]);
        example("run", directory.path(), &more).expect(0);
    }
    panes.content(|content| {
        expect(&content.rows("lumen_gold.orders_per_minute"), &content.rows("lumen_quarantine.late_events"));
    });
    upserts.content(|content| {
        let rows = content.rows("lumen_gold.orders_per_minute");
        let of_a: Vec<_> = rows.iter().filter(|row| row["sku"] == "A").map(|row| &row["timing"]).collect();
        assert_eq!(of_a, ["LATE"], "{rows:?}");
    });
}

#[test]
fn in_the_emulator_of_bigquery_the_view_has_one_row_of_the_minute_with_both_orders() {
    let emulator = Emulator::shared();
    let (directory, dataset) = (tempfile::tempdir().unwrap(), emulator.dataset("lumen"));
    let mut more = bigquery(directory.path(), emulator::PROJECT, emulator.rest(), emulator.storage());
    let tables = [
        ("silver.table", "orders"),
        ("quarantine.table", "rejected_orders"),
        ("late_data.table", "late_events"),
        ("aggregates.orders_per_minute.table", "orders_per_minute"),
    ];
    for (key, table) in tables {
        more.extend(["--set".to_owned(), format!("{key}={dataset}.{table}")]);
    }
    example("run", directory.path(), &more).expect(0);
    let panes = emulator.query(&format!(
        "SELECT sku, CAST(window_start AS STRING) AS window_start, timing, pane_index, orders FROM `{dataset}.orders_per_minute`"
    ));
    expect(&panes, &emulator.query(&format!("SELECT * FROM `{dataset}.late_events`")));
    let latest = format!("SELECT orders FROM `{dataset}.orders_per_minute_latest` WHERE sku = 'A'");
    assert_eq!(emulator.value(&latest), "2");
}

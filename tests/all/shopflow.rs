//! The batch system: CSV files of orders into one table that each run replaces.

use preflight_tests::bigquery::Emulator;
use preflight_tests::pipeline::preflight;
use preflight_tests::shopflow::{self, Beam, Shop};
use preflight_tests::{Ended, paths, tables};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::io::Write;
use xtask::shopflow::{Request, STATUSES, Shape};

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

/// Counts of the report, and how they came to be in the tables.
#[track_caller]
fn assert_as_expected(shop: &Shop, ended: Ended) {
    let report = ended.expect(0).json();
    let shape = shop.request.shape;
    let counts = ["events", "duplicates", "quarantine", "silver"].map(|name| report[name].as_u64());
    assert_eq!(counts, [shape.lines, shape.duplicates, shape.rejected, shape.accepted()].map(Some), "{report:#}");

    let rows =
        tables::query(&shop.database(), "SELECT status, COUNT(*) AS n FROM orders GROUP BY status ORDER BY n DESC");
    let expected = STATUSES.into_iter().zip(shape.by_status).map(|(status, n)| json!({"status": status, "n": n}));
    assert_eq!(rows.into_iter().map(Value::Object).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    assert_eq!(sorted(shop.rejected()), sorted(shop.expected_rejected()), "byte for byte the lines of the input");
}

#[test]
fn the_shops_own_numbers_come_out_and_come_out_again() {
    let shop = Shop::new(Request { seed: 1, shape: Shape::default(), files: 3 });
    for _ in 0..2 {
        assert_as_expected(&shop, shop.run());
        assert_eq!(tables::count(&shop.database(), "orders"), 39_900);
        assert_eq!(shop.rejected().len(), 100);
    }
}

#[test]
fn in_bigquery_the_numbers_are_the_same() {
    let emulator = Emulator::shared();
    let dataset = emulator.dataset("shopflow");
    let shop = Shop::new(Request { seed: 3, shape: Shape::of(4_015), files: 2 });
    let by_status = format!("SELECT status, COUNT(*) AS n FROM `{dataset}.orders` GROUP BY status");
    for _ in 0..2 {
        let output = shop.emulated(emulator, &dataset).output().expect("preflight can be started");
        let report = Ended::from_output(output).expect(0).json();
        assert_eq!((&report["silver"], &report["quarantine"]), (&3_990.into(), &10.into()), "{report:#}");
        let rows = emulator.query(&by_status).into_iter();
        let counts: BTreeMap<_, _> = rows.map(|row| (row["status"].to_string(), row["n"].to_string())).collect();
        let quoted = |text: &dyn Display| format!("\"{text}\"");
        let expected = STATUSES.into_iter().zip(shop.request.shape.by_status);
        assert_eq!(counts, expected.map(|(status, n)| (quoted(&status), quoted(&n))).collect());
        assert_eq!(sorted(shop.rejected()), sorted(shop.expected_rejected()));
    }
}

#[test]
fn a_line_that_was_rejected_and_comes_again_is_a_duplicate() {
    let mut shop = Shop::new(Request { seed: 2, shape: Shape::of(4_015), files: 1 });
    let mut file = std::fs::File::create(shop.orders().join("orders-2.csv")).unwrap();
    writeln!(file, "order_id,customer_id,channel,order_ts,status,currency,promo_id").unwrap();
    for line in shop.expected_rejected() {
        file.write_all(line.as_bytes()).unwrap();
    }
    let shape = &mut shop.request.shape;
    shape.lines += shape.rejected;
    shape.duplicates += shape.rejected;
    assert_as_expected(&shop, shop.run());
}

#[test]
fn beam_has_the_same_rows_and_the_same_rejected_lines() {
    let shop = Shop::new(Request { seed: 7, shape: Shape::of(12_000), files: 2 });
    assert!(shopflow::beam_venv().join("installed.txt").exists(), "Beam is missing: `cargo xtask test` installs it");
    let output = shop.beam_command().output().expect("Python can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let beam: Beam = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((beam.silver, beam.rejected), (shop.request.shape.accepted(), shop.request.shape.rejected));

    assert_as_expected(&shop, shop.run());
    assert_eq!(sorted(shop.rejected()), sorted(shop.beam_rejected()));
    let columns = "order_id, customer_id, channel, order_ts, status, currency, promo_id";
    let ours = tables::query(&shop.database(), &format!("SELECT {columns} FROM orders")).into_iter().map(|mut row| {
        let time = row["order_ts"].as_str().and_then(|time| time.strip_suffix(".000000Z")).expect("whole seconds, UTC");
        row["order_ts"] = time.into();
        Value::Object(row).to_string()
    });
    let theirs = shop.beam_silver().into_iter().map(|line| serde_json::from_str::<Value>(&line).unwrap().to_string());
    let (ours, theirs): (BTreeSet<String>, BTreeSet<String>) = (ours.collect(), theirs.collect());
    assert_eq!(ours.len() as u64, shop.request.shape.accepted());
    assert_eq!(ours.symmetric_difference(&theirs).next(), None);
}

#[test]
fn the_example_runs_as_its_readme_says() {
    let directory = tempfile::tempdir().unwrap();
    let example = paths::root().join("examples/shopflow");
    let (database, rejected) = (directory.path().join("shopflow.db"), directory.path().join("rejected"));
    let arguments = |command: &str| {
        let file = |name: &str| example.join(name).display().to_string();
        let settings = [
            format!("warehouse.sqlite.path={}", database.display()),
            format!("quarantine.files.path={}/orders", rejected.display()),
            format!("rules.cache={}", paths::scratch().join("code").display()),
        ];
        let mut words = vec![command.to_owned(), file("pipeline.toml"), "--with".to_owned(), file("local.toml")];
        words.extend(settings.into_iter().flat_map(|setting| ["--set".to_owned(), setting]));
        words
    };
    preflight::<String>(arguments("check")).expect(0);
    preflight::<String>(arguments("run")).expect(0);
    let readme = std::fs::read_to_string(example.join("README.md")).unwrap();
    let rejected = shopflow::shards(&rejected, "orders-");
    assert_eq!(rejected.len(), 5);
    assert!(rejected.iter().all(|line| readme.contains(line.as_str())), "{rejected:?}");
    for row in tables::query(&database, "SELECT status, COUNT(*) AS n FROM orders GROUP BY 1 ORDER BY 2 DESC, 1") {
        let line = format!("{} {}\n", row["status"].as_str().unwrap(), row["n"]);
        assert!(readme.contains(&line), "{line}");
    }
}

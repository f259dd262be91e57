//! A table that is dropped and made again under a running worker: the emulator goes on counting the stream of the old one, and
//! says of rows that are in no table that they are there.

use preflight_tests::bigquery::Emulator;
use preflight_tests::bigquery::emulator::PROJECT;
use preflight_tests::{Pipeline, Running, bookings, http};
use serde_json::Value;
use std::io::Write as _;

#[test]
fn what_was_promised_to_a_table_that_was_replaced_is_in_the_new_one() {
    let emulator = Emulator::shared();
    let dataset = emulator.dataset("replaced");
    let pipeline = Pipeline::offvia_from("[source.stdin]\nformat = \"lines\"").warm();
    let pipeline = emulator.warehouse_of(pipeline, &dataset).set("warehouse.bigquery.commit_interval=10 ms");
    // Makes the tables.
    pipeline.run().expect(0);
    let (mut run, mut stdin) = Running::start(&pipeline);
    let count = || emulator.value(&format!("SELECT COUNT(*) FROM `{dataset}.fact_bookings`"));
    let lines = bookings::good(40);
    let lines: Vec<&str> = lines.lines().collect();
    writeln!(stdin, "{}", lines[..20].join("\n")).unwrap();
    run.wait_patiently_until(|| count() == "20");
    emulator.query(&format!("CREATE TABLE `{dataset}.kept` AS SELECT * FROM `{dataset}.fact_bookings`"));
    let path = format!("/bigquery/v2/projects/{PROJECT}/datasets/{dataset}/tables/fact_bookings");
    http::send("DELETE", emulator.rest(), &path, &Value::Null);
    writeln!(stdin, "{}", lines[20..].join("\n")).unwrap();
    run.wait_for_log("trying again");
    emulator.query(&format!("CREATE TABLE `{dataset}.fact_bookings` AS SELECT * FROM `{dataset}.kept` WHERE FALSE"));
    let ended = run.finish().expect(1);
    assert!(ended.stderr.contains("The next run looks for what it had written"), "{}", ended.stderr);
    drop(stdin);
    pipeline.run().expect(0);
    assert_eq!(count(), "20");
    let distinct = format!("SELECT COUNT(DISTINCT booking_id) FROM `{dataset}.fact_bookings`");
    assert_eq!(emulator.value(&distinct), "20", "those of the second half, once");
}

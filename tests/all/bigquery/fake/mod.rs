//! The fake refuses what BigQuery refuses: its own tests.

mod changes;
mod faults;
mod requests;
mod rest;
mod rows;
mod streams;
mod writer;

use preflight_tests::bigquery::Fake;
use writer::Writer;

const TABLE: &str = "d.t";
const DDL: &str = "CREATE TABLE d.t (id STRING NOT NULL, fare NUMERIC, seen TIMESTAMP, day DATE, n INT64, x FLOAT64, b BOOL, \
                   raw BYTES, j JSON, short STRING(3)) PARTITION BY DATE(seen)";

fn fake() -> Fake {
    let fake = Fake::start();
    fake.create_table(DDL);
    fake
}

/// A stream of the table, and a writer.
fn stream(fake: &Fake) -> (Writer, String) {
    let writer = Writer::to(fake);
    let stream = writer.create(TABLE).unwrap();
    (writer, stream)
}

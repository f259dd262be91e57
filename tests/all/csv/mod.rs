//! Files of records: read exactly, whatever they hold and however often the reading is interrupted.

mod dedup;
mod exactly;
mod files;
mod json_array;
mod refusals;
mod replay;

use preflight_tests::{Pipeline, tables};
use std::fmt::Write as _;
use std::io::Write as _;

/// The columns of bookings of event version 1.
const HEADER: &str = "booking_id,passenger_id,flight_number,origin,destination,fare,event_time";

/// A booking of event version 1; the passenger may have what a field needs quotes for.
fn booking(id: &str, passenger: &str) -> String {
    format!("{id},{passenger},OF-104,JFK,LHR,749.50,2026-10-07T14:10:00Z")
}

/// So many bookings behind a header: some of several lines, some broken.
fn bookings(count: usize) -> String {
    let mut text = format!("{HEADER}\n");
    for number in 0..count {
        let passenger = match number % 50 {
            7 => "\"Doe, Jane\"",
            17 => "\"Jane\nDoe\"",
            27 => "\"Jane",
            37 => "Doe, Jane",
            _ => "PAX-1",
        };
        writeln!(text, "{}", booking(&format!("BK-{number}"), passenger)).expect("a string grows");
    }
    text
}

/// Offvia's pipeline over the CSV file `bookings.csv`.
fn pipeline(text: impl AsRef<[u8]>) -> Pipeline {
    let pipeline = Pipeline::offvia("").warm().set("source.file.path=bookings.csv").set("source.file.format=csv");
    write(&pipeline, "bookings.csv", text);
    pipeline
}

fn write(pipeline: &Pipeline, name: &str, bytes: impl AsRef<[u8]>) {
    let path = pipeline.directory().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn message_ids(pipeline: &Pipeline) -> Vec<String> {
    tables::column(&pipeline.database(), "raw_bookings", "message_id")
}

fn silver(pipeline: &Pipeline) -> Vec<String> {
    tables::column(&pipeline.database(), "fact_bookings", "booking_id")
}

fn rejected(pipeline: &Pipeline) -> Vec<(String, String)> {
    let rows = tables::rows(&pipeline.database(), "poisoned_events");
    let text =
        |row: &serde_json::Map<String, serde_json::Value>, column: &str| row[column].as_str().unwrap().to_owned();
    rows.iter().map(|row| (text(row, "error_stage"), text(row, "raw_payload"))).collect()
}

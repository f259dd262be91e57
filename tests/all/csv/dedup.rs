//! The text of a record is what makes two records the same.

use super::{HEADER, booking, pipeline, rejected, silver, write};
use serde_json::Value;

#[track_caller]
fn run(pipeline: &preflight_tests::Pipeline) -> Value {
    pipeline.run().expect(0).json()
}

#[test]
fn a_record_that_stands_twice_is_a_duplicate_and_so_is_a_broken_one() {
    let (good, bad, broken) =
        (booking("BK-1", "\"Doe, Jane\""), booking("BK-2", "").replace("749.50", "x"), "BK-3,\"Jane");
    let text = format!("{HEADER}\n{good}\n{bad}\n{broken}\n{good}\n{bad}\n{broken}\n");
    let pipeline = pipeline(text).set("dedup.by=payload");
    let report = run(&pipeline);
    assert_eq!((&report["events"], &report["silver"], &report["quarantine"]), (&6.into(), &1.into(), &2.into()));
    assert_eq!(report["duplicates"], 3);
    assert_eq!(rejected(&pipeline).len(), 2);
}

/// The same text under columns in another order is another order.
#[test]
fn the_same_text_is_another_record_under_other_columns() {
    let swapped = HEADER.replace("origin,destination", "destination,origin");
    let record = booking("BK-1", "PAX-1");
    let pipeline =
        pipeline(format!("{HEADER}\n{record}\n{record}\n")).set("dedup.by=payload").set("source.file.path=*.csv");
    write(&pipeline, "cities.csv", format!("{swapped}\n{record}\n"));
    assert_eq!(run(&pipeline)["duplicates"], 1);
    assert_eq!(silver(&pipeline), ["BK-1", "BK-1"]);
    let origins = preflight_tests::tables::column(&pipeline.database(), "fact_bookings", "origin_airport");
    assert_ne!(origins[0], origins[1]);
}

#[test]
fn a_field_is_looked_up_in_the_object() {
    let (one, other) = (booking("BK-1", "PAX-1"), booking("BK-1", "PAX-2"));
    let text = format!("{HEADER}\n{one}\n{other}\n");
    let pipeline = pipeline(text).set("dedup.by.field=/booking_id").set("dedup.on_conflict=drop");
    assert_eq!(run(&pipeline)["duplicates"], 1);
    assert_eq!(silver(&pipeline), ["BK-1"]);
}

//! Arrays of JSON.

use preflight_tests::{Booking, Pipeline, tables};

fn pipeline(text: &str) -> Pipeline {
    Pipeline::offvia(text).warm().set("source.file.format=json-array")
}

fn array(ids: std::ops::Range<usize>) -> String {
    let values: Vec<String> = ids.map(|id| Booking::v1(&format!("BK-{id}")).json()).collect();
    format!("[{}", values.join(",\n"))
}

#[test]
fn an_array_that_breaks_off_gives_what_stands_before_and_goes_on_when_it_is_whole() {
    let pipeline = pipeline(&(array(0..300) + ", {\"booking_id\"")).set("batch.max_events=100");
    for _ in 0..2 {
        let error = pipeline.run().expect(1).stderr;
        assert!(error.contains("input.ndjson: value 301 of its array"), "{error}");
    }
    pipeline.write_input(array(0..301) + "]");
    assert_eq!(pipeline.run().expect(0).json()["events"], 1);
    // Longer than it was, it is the same array.
    pipeline.write_input(array(0..303) + " ]\n");
    assert_eq!(pipeline.run().expect(0).json()["events"], 2);
    assert_eq!(pipeline.run().expect(0).json()["events"], 0);
    assert_eq!(tables::count(&pipeline.database(), "fact_bookings"), 303);
    let ids: Vec<String> = (1..=303).map(|number| format!("input.ndjson:{number}")).collect();
    assert_eq!(tables::column(&pipeline.database(), "raw_bookings", "message_id"), ids);
}

#[test]
fn a_value_above_the_limit_is_refused_and_those_behind_it_are_read() {
    let (one, two) = (Booking::v1("1").json(), Booking::v1("2").json());
    let long = format!("{{\"x\":\"{}\"}}", "]".repeat(100_000));
    let pipeline = pipeline(&format!("[{one}, {long}, {two}]")).set("limits.payload=2 kB");
    let report = pipeline.run().expect(0).json();
    assert_eq!((&report["silver"], &report["quarantine"]), (&2.into(), &1.into()));
    assert_eq!(tables::column(&pipeline.database(), "poisoned_events", "error_stage"), ["PAYLOAD_TOO_LARGE"]);
    assert_eq!(tables::column(&pipeline.database(), "poisoned_events", "source_message_id"), ["input.ndjson:2"]);
}

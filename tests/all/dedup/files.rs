//! Duplicates in a file, by everything that can be a key, in one micro-batch and across those in flight.

use super::{Line, counts, pipeline, silver, stages, text};
use preflight_tests::{Booking, Pipeline, bookings, tables};
use serde_json::json;

/// Micro-batches of one event have several in flight; one of all events has none.
const SIZES: [usize; 3] = [1, 3, 1_000];

fn bronze(pipeline: &Pipeline) -> u64 {
    tables::count(&pipeline.database(), "raw_bookings")
}

#[test]
fn the_first_of_a_payload_wins_and_the_raw_tier_has_all() {
    let good: Vec<Line> = [1, 2, 1, 3, 1, 2].map(|number| Line::booking(&format!("BK-{number}"))).into();
    for size in SIZES {
        let pipeline = pipeline("payload", &good).set(format!("batch.max_events={size}"));
        let report = pipeline.run().expect(0).json();
        assert_eq!(
            (counts(&report), &report["events"], &report["bronze"]),
            ([3, 0, 3], &json!(6), &json!(6)),
            "{size}"
        );
        assert_eq!(silver(&pipeline, "booking_id"), ["BK-1", "BK-2", "BK-3"], "{size}");
        let first: Vec<String> = silver(&pipeline, "source_message_id");
        let raw = tables::column(&pipeline.database(), "raw_bookings", "message_id");
        assert_eq!(first, [&raw[0], &raw[1], &raw[3]].map(String::clone), "{size}");
        assert_eq!(bronze(&pipeline), 6, "{size}");
    }
}

#[test]
fn the_same_bytes_are_the_same_payload_and_nothing_else() {
    let one = Booking::v1("BK-1").json();
    let lines = [Line::of(one.clone()), Line::of(one.replace(':', ": ")), Line::of(one).attribute("traced", "yes")];
    let pipeline = pipeline("payload", &lines);
    assert_eq!(counts(&pipeline.run().expect(0).json()), [2, 0, 1], "attributes are no part of a payload");
}

#[test]
fn keys_before_the_rules_are_a_message_id_an_attribute_or_a_field() {
    let booking = |id: &str, key: &str| {
        let payload = Booking::v1(id).with("order", &format!("{{\"id\":{key}}}")).json();
        Line::of(payload).attribute("event_id", key).message(key)
    };
    // The second is the first once more; the third has another key; the fourth has the first's and is another booking.
    let lines = [booking("BK-1", "7"), booking("BK-1", "7"), booking("BK-1", "8"), booking("BK-2", "7")];
    for by in ["message_id", "{ attribute = \"event_id\" }", "{ field = \"/order/id\" }"] {
        for size in SIZES {
            let pipeline = pipeline(by, &lines).set(format!("batch.max_events={size}"));
            let report = pipeline.run().expect(0).json();
            assert_eq!(counts(&report), [2, 1, 1], "{by} {size}");
            assert_eq!(silver(&pipeline, "booking_id"), ["BK-1", "BK-1"], "{by} {size}");
            assert_eq!(stages(&pipeline), ["DUPLICATE_CONFLICT"], "{by} {size}");
            assert_eq!(bronze(&pipeline), 4);
        }
    }
}

#[test]
fn a_conflict_says_what_it_is_and_keeps_the_event() {
    let lines = [
        Line::booking("BK-1").attribute("event_id", "e"),
        Line::booking("BK-2").attribute("event_id", "e"),
        Line::booking("BK-2").attribute("event_id", "e"),
        Line::of("no json"),
    ];
    let pipeline = pipeline("{ attribute = \"event_id\" }", &lines);
    let report = pipeline.run().expect(0).json();
    assert_eq!(counts(&report), [1, 2, 1], "the second conflict says nothing new");
    let rejected = json!([
        { "stage": "DUPLICATE_CONFLICT", "code": "different_row", "events": 1 },
        { "stage": "PARSE_JSON", "code": null, "events": 1 },
    ]);
    assert_eq!(report["rejected"], rejected);
    let rows = tables::rows(&pipeline.database(), "poisoned_events");
    assert_eq!(rows.len(), 2);
    let row = &rows[0];
    assert_eq!(row["error_code"], "different_row");
    assert!(
        row["error_reason"].as_str().unwrap().contains("the same attribute `event_id` was accepted before"),
        "{row:?}"
    );
    assert_eq!(row["raw_payload"], Booking::v1("BK-2").json());
    assert_eq!((&row["event_version"], &row["attributes"]), (&json!("1"), &json!("{\"event_id\":\"e\"}")));
    assert!(row["rule"].as_str().unwrap().starts_with("offvia-booking@"), "{row:?}");
    assert!(row["rule_digest"].as_str().unwrap().starts_with("sha256:"), "{row:?}");
}

#[test]
fn what_differs_and_makes_the_same_row_is_no_conflict() {
    let lines = [
        Line::booking("BK-1").attribute("event_id", "e"),
        Line::of(Booking::v1("BK-1").and("note", "\"sent again\"").json()).attribute("event_id", "e"),
        Line::booking("BK-1").attribute("event_id", "e").attribute("retry", "1"),
    ];
    for size in SIZES {
        let pipeline = pipeline("{ attribute = \"event_id\" }", &lines).set(format!("batch.max_events={size}"));
        assert_eq!(counts(&pipeline.run().expect(0).json()), [1, 0, 2], "{size}");
    }
}

#[test]
fn conflicts_can_be_dropped() {
    let lines = [1, 2, 3].map(|number| Line::booking(&format!("BK-{number}")).attribute("event_id", "e"));
    for size in SIZES {
        let pipeline = pipeline("{ attribute = \"event_id\" }", &lines)
            .set("dedup.on_conflict=drop")
            .set(format!("batch.max_events={size}"));
        assert_eq!(counts(&pipeline.run().expect(0).json()), [1, 0, 2], "{size}");
        assert_eq!(silver(&pipeline, "booking_id"), ["BK-1"]);
    }
}

#[test]
fn columns_of_the_accepted_row_are_a_key() {
    let fare = |id: &str, fare: &str| Line::of(Booking::v1(id).with("fare", fare).json());
    let lines = [
        fare("BK-1", "\"1.00\""),
        fare("BK-1", "1.00"),
        fare("BK-1", "\"2.00\""),
        fare("BK-2", "\"-1\""),
        fare("BK-2", "\"-1\""),
        fare("BK-2", "\"3.00\""),
    ];
    for size in SIZES {
        let pipeline = pipeline("{ columns = [\"BOOKING_ID\"] }", &lines).set(format!("batch.max_events={size}"));
        let report = pipeline.run().expect(0).json();
        assert_eq!(
            counts(&report),
            [2, 3, 1],
            "{size}: a rejected event claims nothing, and has no columns to compare"
        );
        assert_eq!(silver(&pipeline, "booking_id"), ["BK-1", "BK-2"]);
        let mut stages = stages(&pipeline);
        stages.sort();
        assert_eq!(stages, ["BUSINESS_RULE_VALIDATION", "BUSINESS_RULE_VALIDATION", "DUPLICATE_CONFLICT"]);
    }
}

#[test]
fn a_rejected_event_is_a_duplicate_of_itself_only() {
    let bad = |note: &str| {
        let payload = Booking::v1("BK-1").with("fare", "\"-1\"").and("note", note).json();
        Line::of(payload).attribute("event_id", "e")
    };
    let lines = [
        bad("1"),
        bad("1"),
        bad("2"),
        Line::booking("BK-1").attribute("event_id", "e"),
        bad("1"),
        Line::booking("BK-1").attribute("event_id", "e"),
        bad("3"),
    ];
    for size in SIZES {
        let pipeline = pipeline("{ attribute = \"event_id\" }", &lines).set(format!("batch.max_events={size}"));
        let report = pipeline.run().expect(0).json();
        // The good one is not held up by the bad ones before it, and the bad ones after it are bad for what they are.
        assert_eq!(counts(&report), [1, 3, 3], "{size}");
        assert_eq!(silver(&pipeline, "booking_id"), ["BK-1"]);
    }
}

#[test]
fn what_has_no_key_is_compared_with_nothing() {
    let repeated = Booking::v1("BK-1").and("id", "1").and("id", "2").json();
    let lines = [
        Line::booking("BK-1"),
        Line::booking("BK-1"),
        Line::of(Booking::v1("BK-1").and("id", "null").json()),
        Line::of(Booking::v1("BK-1").and("id", "\"\"").json()),
        Line::of(Booking::v1("BK-1").and("id", "[1]").json()),
        Line::of(Booking::v1("BK-1").and("id", "[1]").json()),
        Line::of(repeated.clone()),
        Line::of(repeated),
    ];
    let by_field = pipeline("{ field = \"/id\" }", &lines);
    assert_eq!(counts(&by_field.run().expect(0).json()), [6, 2, 0]);
    let empty = ["", "", "x"].map(|id| Line::booking("BK-1").attribute("event_id", id));
    let by_attribute = pipeline("{ attribute = \"event_id\" }", &empty);
    assert_eq!(counts(&by_attribute.run().expect(0).json()), [3, 0, 0], "an empty attribute is none");
}

/// What the source keeps of a payload above the limit is its beginning, and two of them may begin alike.
#[test]
fn what_is_no_whole_event_is_compared_with_nothing() {
    let long = |end: &str| Line::of(format!("{}{end}", "x".repeat(100_000)));
    let lines = [long("a"), long("b"), long("a")];
    let pipeline = pipeline("payload", &lines).set("limits.payload=65 KiB");
    assert_eq!(counts(&pipeline.run().expect(0).json()), [0, 3, 0]);
    assert_eq!(stages(&pipeline), ["PAYLOAD_TOO_LARGE"; 3]);
}

#[test]
fn the_horizon_of_a_file_is_the_run() {
    let first = [1, 1, 2].map(|number| Line::booking(&format!("BK-{number}")));
    let pipeline = pipeline("payload", &first);
    assert_eq!(counts(&pipeline.run().expect(0).json()), [2, 0, 1]);
    let grown = [first.as_slice(), &[Line::booking("BK-1"), Line::booking("BK-1")]].concat();
    pipeline.write_input(text(&grown));
    assert_eq!(counts(&pipeline.run().expect(0).json()), [1, 0, 1], "the first run was read to its end");
    let ledger = tables::count(&pipeline.ledger().join("ledger.db"), "key_pages");
    assert_eq!(ledger, 0, "no key is left");
}

#[test]
fn duplicates_are_in_the_closing_table() {
    let pipeline = pipeline("payload", &[1, 1, 1].map(|number| Line::booking(&format!("BK-{number}"))));
    let ended = preflight_tests::Ended::from_output(pipeline.command("run").output().unwrap()).expect(0);
    let line = ended.stdout.lines().find(|line| line.starts_with("duplicates")).unwrap();
    assert_eq!(line.split_whitespace().last(), Some("2"), "{}", ended.stdout);
}

#[test]
fn without_dedup_every_event_counts() {
    let pipeline = Pipeline::offvia(bookings::good(1).repeat(3)).warm();
    let report = pipeline.run().expect(0).json();
    assert_eq!(counts(&report), [3, 0, 0]);
}

//! The first thing a new user sees: the seed's three events in three tiers.

use preflight_tests::{Pipeline, paths, tables};

#[test]
fn the_seeds_three_events_end_in_three_tiers() {
    let events = std::fs::read(paths::root().join("examples/offvia/events.ndjson")).unwrap();
    let pipeline = Pipeline::offvia(events);
    let report = pipeline.run().expect(0).json();
    assert_eq!((&report["bronze"], &report["silver"], &report["quarantine"]), (&3.into(), &1.into(), &2.into()));
    let silver = tables::rows(&pipeline.database(), "fact_bookings");
    assert_eq!(silver[0]["booking_id"], "BK-90210");
    assert_eq!(silver[0]["fare_amount"], "749.5");
    let quarantine = tables::rows(&pipeline.database(), "poisoned_events");
    assert_eq!(quarantine[0]["error_stage"], "BUSINESS_RULE_VALIDATION");
    assert_eq!(quarantine[1]["error_stage"], "PARSE_JSON");
    assert_eq!(quarantine[1]["raw_payload"], "{\"booking_id\":\"BK-90212\", \"unclosed_json...");
}

#[path = "../../fixtures.rs"]
mod fixtures;

use preflight_sdk::prelude::*;
use preflight_sdk::value::Column;

use crate::{Booking, manifest, validate};

const VALID: &str = r#"{
    "booking_id": "BK-90210", "passenger_id": "PAX-4821", "flight_number": "OF-104", "origin": "JFK", "destination": "LHR",
    "fare": "749.50", "currency": "EUR", "status": "PENDING", "event_time": "2026-10-07T16:10:00+02:00"
}"#;

#[test]
fn every_fixture_is_judged_as_written() {
    fixtures::check(include_str!("../fixtures.ndjson"), 25, validate);
}

#[test]
fn each_field_reaches_its_own_column() {
    let booking = Booking {
        booking_id: "BK-90210".to_owned(),
        passenger_id: "PAX-4821".to_owned(),
        flight_number: "OF-104".to_owned(),
        origin_airport: "JFK".to_owned(),
        destination_airport: "LHR".to_owned(),
        fare_amount: Numeric::new(7495, 1),
        currency: "EUR".to_owned(),
        booking_status: "PENDING".to_owned(),
        event_timestamp: Timestamp::from_micros(1_791_382_200_000_000).unwrap().into(),
    };
    assert_eq!(validate(&Event::new(VALID)), Ok(booking));
}

#[test]
fn the_columns_are_those_of_the_silver_table() {
    let manifest = manifest();
    assert_eq!((manifest.name, manifest.event_versions), ("offvia-booking", &["1"][..]));
    assert_eq!(manifest.event_time, Some("event_timestamp"));
    assert_eq!(manifest.columns.len(), 9);
    assert!(manifest.columns.iter().all(|column| !column.nullable));
    assert_eq!(manifest.columns[5], Column { name: "fare_amount", kind: ColumnType::Numeric, nullable: false });
    assert!(manifest.attributes.is_empty(), "each attribute costs as much as a column");
}

#[test]
fn a_megabyte_of_text_is_no_id() {
    let payload = VALID.replace("BK-90210", &"x".repeat(1 << 20));
    let reason = "Invalid booking_id: booking_id must have at most 65536 bytes, found 1048576";
    assert_eq!(validate(&Event::new(payload)), reject(stage::SCHEMA_VALIDATION, reason));
}

#[test]
fn a_verdict_depends_on_nothing_but_the_payload() {
    let elsewhere = Event::new(VALID).with_message_id("16").with_attribute("source", "web");
    assert_eq!(validate(&elsewhere), validate(&Event::new(VALID)));
}

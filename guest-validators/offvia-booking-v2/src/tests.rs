#[path = "../../fixtures.rs"]
mod fixtures;

use preflight_sdk::prelude::*;
use preflight_sdk::value::Column;

use crate::{Booking, manifest, validate};

const VALID: &str = r#"{
    "booking_id": "BK-90210", "passenger_id": "PAX-4821", "flight_number": "OF-104", "origin": "jfk", "destination": "LHR",
    "fare": {"amount": "749.50", "currency": "EUR"}, "loyalty_tier": "GOLD", "status": "PENDING",
    "event_time": "2026-10-07T16:10:00+02:00"
}"#;

#[test]
fn every_fixture_is_judged_as_written() {
    fixtures::check(include_str!("../fixtures.ndjson"), 15, validate);
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
        loyalty_tier: Some("GOLD".to_owned()),
    };
    assert_eq!(validate(&Event::new(VALID)), Ok(booking));
}

#[test]
fn the_one_new_column_is_nullable_and_last() {
    let manifest = manifest();
    assert_eq!((manifest.name, manifest.event_versions), ("offvia-booking-v2", &["2"][..]));
    let (added, kept) = manifest.columns.split_last().unwrap();
    assert_eq!(*added, Column { name: "loyalty_tier", kind: ColumnType::Text, nullable: true });
    assert!(kept.iter().all(|column| !column.nullable));
    assert_eq!(kept.len(), 9);
}

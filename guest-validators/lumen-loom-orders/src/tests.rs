#[path = "../../fixtures.rs"]
mod fixtures;

use preflight_sdk::prelude::*;
use preflight_sdk::value::Column;

use crate::{Order, manifest, validate};

const VALID: &str = r#"{
    "event_id": "E-1", "sku": "LAMP-01", "region": "north", "channel": "web", "customer_id": "C-7", "quantity": 2,
    "revenue": "21.50", "occurred_at": "2026-11-30T15:05:30+01:00"
}"#;

#[test]
fn every_fixture_is_judged_as_written() {
    fixtures::check(include_str!("../fixtures.ndjson"), 25, validate);
}

#[test]
fn each_field_reaches_its_own_column() {
    let order = Order {
        event_id: "E-1".to_owned(),
        sku: "LAMP-01".to_owned(),
        region: Some("north".to_owned()),
        channel: "web".to_owned(),
        customer_id: Some("C-7".to_owned()),
        quantity: 2,
        revenue: Numeric::new(215, 1),
        occurred_at: Timestamp::from_micros(1_796_047_530_000_000).unwrap().into(),
    };
    assert_eq!(validate(&Event::new(VALID)), Ok(order));
}

#[test]
fn only_region_and_customer_may_be_null() {
    let manifest = manifest();
    assert_eq!((manifest.name, manifest.event_versions), ("lumen-loom-orders", &["1"][..]));
    assert_eq!(manifest.event_time, Some("occurred_at"));
    let nullable: Vec<_> = manifest.columns.iter().filter(|column| column.nullable).map(|column| column.name).collect();
    assert_eq!(nullable, ["region", "customer_id"]);
    assert_eq!(manifest.columns[6], Column { name: "revenue", kind: ColumnType::Numeric, nullable: false });
    assert_eq!(manifest.columns.len(), 8);
}

#[test]
fn a_verdict_depends_on_nothing_but_the_payload() {
    let elsewhere = Event::new(VALID).with_message_id("16").with_attribute("source", "web");
    assert_eq!(validate(&elsewhere), validate(&Event::new(VALID)));
}

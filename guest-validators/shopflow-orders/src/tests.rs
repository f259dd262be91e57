#[path = "../../fixtures.rs"]
mod fixtures;

use preflight_sdk::prelude::*;
use preflight_sdk::value::Column;

use crate::{Order, manifest, validate};

const VALID: &str = r#"{"order_id":"24418","customer_id":" 812 ","channel":"App ","order_ts":"2025-09-18 07:04:52","status":" DELIVERED",
    "currency":"eur","promo_id":"17"}"#;

#[test]
fn every_fixture_is_judged_as_written() {
    fixtures::check(include_str!("../fixtures.ndjson"), 40, validate);
}

#[test]
fn each_field_reaches_its_own_column() {
    let order = Order {
        order_id: 24_418,
        customer_id: 812,
        channel: "app".to_owned(),
        order_ts: Timestamp::from_micros(1_758_179_092_000_000).unwrap().into(),
        status: "delivered".to_owned(),
        currency: "EUR".to_owned(),
        promo_id: Some(17),
    };
    assert_eq!(validate(&Event::new(VALID)), Ok(order));
}

#[test]
fn the_columns_are_those_of_the_silver_table() {
    let manifest = manifest();
    assert_eq!((manifest.name, manifest.event_versions), ("shopflow-orders", &["1"][..]));
    assert_eq!(manifest.event_time, Some("order_ts"));
    let column = |name, kind| Column { name, kind, nullable: name == "promo_id" };
    let columns = [
        column("order_id", ColumnType::Int64),
        column("customer_id", ColumnType::Int64),
        column("channel", ColumnType::Text),
        column("order_ts", ColumnType::Timestamp),
        column("status", ColumnType::Text),
        column("currency", ColumnType::Text),
        column("promo_id", ColumnType::Int64),
    ];
    assert_eq!(manifest.columns, columns);
}

#[test]
fn twelve_spellings_are_four_statuses() {
    let spellings =
        ["delivered", "Delivered", " DELIVERED ", "placed", "PLACED", "Placed ", "shipped", " Shipped", "SHIPPED"];
    for spelling in spellings.into_iter().chain(["cancelled", "\tCANCELLED", "Cancelled"]) {
        let payload = VALID.replace(" DELIVERED", &spelling.replace('\t', "\\t"));
        let status = validate(&Event::new(payload)).unwrap().status;
        assert_eq!(status, spelling.trim().to_lowercase());
    }
}

#[test]
fn a_verdict_depends_on_nothing_but_the_payload() {
    let elsewhere = Event::new(VALID).with_message_id("orders-1.csv:16").with_attribute("source", "web");
    assert_eq!(validate(&elsewhere), validate(&Event::new(VALID)));
}

//! Columns that are narrower than their type: what does not fit is known before the table could refuse or round it.

use super::fakes::fake;
use super::place::Place;
use preflight_tests::bigquery::Fake;
use preflight_tests::bigquery::fake::PROJECT;
use preflight_tests::{Booking, Pipeline, paths};

const SILVER: &str = "CREATE TABLE offvia_silver.fact_bookings (booking_id STRING(8) NOT NULL, passenger_id STRING NOT NULL, \
    flight_number STRING NOT NULL, origin_airport STRING NOT NULL, destination_airport STRING NOT NULL, \
    fare_amount NUMERIC(8, 2) NOT NULL, currency STRING NOT NULL, booking_status STRING NOT NULL, \
    event_timestamp TIMESTAMP NOT NULL, ingestion_timestamp TIMESTAMP, source_message_id STRING)";

fn pipeline(fake: &Fake, input: &str) -> Pipeline {
    Pipeline::with_rule(&paths::rule("offvia-booking"), input)
        .warm()
        .set(format!("warehouse.bigquery.project={PROJECT}"))
        .set(format!("warehouse.bigquery.endpoint={}", fake.rest()))
        .set(format!("warehouse.bigquery.storage_endpoint={}", fake.storage()))
}

#[test]
fn a_value_that_is_too_wide_goes_to_quarantine_and_is_not_rounded() {
    let place = Place::fake();
    let fake = fake(&place);
    fake.create_table(SILVER);
    let booking = |id: &str, fare: &str| Booking::v1(id).with("fare", &format!("{fare:?}")).json() + "\n";
    let input = booking("BK-1", "749.5")
        + &booking("BK-2", "749.505")
        + &booking("BK-123456", "1")
        + &booking("BK-4", "1000000");
    let report = pipeline(fake, &input).run().expect(0).json();
    assert_eq!((&report["silver"], &report["quarantine"]), (&1.into(), &3.into()), "{report}");
    let rejected = &report["rejected"][0];
    assert_eq!(
        (&rejected["stage"], &rejected["code"], &rejected["events"]),
        (&"SINK_REJECTED".into(), &"value_too_wide".into(), &3.into()),
        "{report}"
    );
    fake.content(|content| {
        content.expect_each_once("offvia_silver.fact_bookings", "booking_id", ["BK-1"]);
        let reasons: Vec<String> = content
            .rows("offvia_quarantine.poisoned_events")
            .iter()
            .map(|row| row["error_reason"].to_string())
            .collect();
        assert!(reasons[0].contains("`fare_amount` has 3 digits before and 3 behind the point"), "{reasons:?}");
        assert!(reasons[1].contains("`booking_id` has 9 characters, the column takes 8"), "{reasons:?}");
        assert!(reasons[2].contains("`fare_amount` has 7 digits before and 0 behind the point"), "{reasons:?}");
    });
}

#[test]
fn a_table_that_the_host_fills_has_no_limits() {
    let place = Place::fake();
    let fake = fake(&place);
    fake.create_table(SILVER);
    fake.create_table(
        "CREATE TABLE offvia_quarantine.poisoned_events (raw_payload STRING NOT NULL, error_reason STRING(100) NOT NULL, \
         error_stage STRING NOT NULL)",
    );
    let text = pipeline(fake, "").check().expect(2).stderr;
    assert!(text.contains("quarantine.table: column `error_reason` is declared STRING(100)"), "{text}");
}

#[test]
fn what_a_new_table_cannot_be_is_refused_before_it_is_made() {
    let place = Place::fake();
    let text = pipeline(fake(&place), "")
        .set("silver.partition_by=booking_id")
        .set("quarantine.cluster_by=[\"nowhere\"]")
        .check()
        .expect(2)
        .stderr;
    assert!(text.contains("silver.table") && text.contains("cannot be partitioned by `booking_id`"), "{text}");
    assert!(text.contains("quarantine.table") && text.contains("cannot be clustered by `nowhere`"), "{text}");
}

/// An array where a row has a value is refused; one of the columns that a table may lack stays empty.
#[test]
fn a_column_that_is_an_array_is_refused_or_left_alone() {
    let place = Place::fake();
    let fake = fake(&place);
    fake.create_table(&SILVER.replace("currency STRING NOT NULL", "currency ARRAY<STRING>"));
    fake.create_table(
        "CREATE TABLE offvia_quarantine.poisoned_events (raw_payload STRING NOT NULL, error_reason STRING NOT NULL, \
         error_stage STRING NOT NULL, attributes ARRAY<STRING>)",
    );
    let text = pipeline(fake, "").check().expect(2).stderr;
    assert!(text.contains("`currency`") && text.contains("ARRAY<STRING>"), "{text}");
    fake.drop_table("offvia_silver.fact_bookings");
    fake.create_table(SILVER);
    let report = pipeline(fake, "no json\n").run().expect(0).json();
    assert_eq!(report["quarantine"], 1, "{report}");
}

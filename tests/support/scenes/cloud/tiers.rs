//! The three events of the seed, and its queries that verify each tier.

use super::worker::Worker;
use super::{Cloud, PIPELINE, PROJECT, TOPIC};
use anyhow::{Result, ensure};
use serde_json::{Map, Value};

/// The seed's payloads, byte for byte: one good booking, one with a negative fare, one that is cut off.
const PAYLOADS: [&str; 3] = [
    r#"{
"booking_id": "BK-90210",
"passenger_id": "PAX-4821",
"flight_number": "OF-104",
"origin": "JFK",
"destination": "LHR",
"fare": "749.50",
"currency": "USD",
"status": "CONFIRMED",
"event_time": "2026-10-07T14:10:00Z"
}"#,
    r#"{
"booking_id": "BK-90211",
"passenger_id": "PAX-7712",
"flight_number": "OF-208",
"origin": "SFO",
"destination": "HND",
"fare": "-50.00",
"event_time": "2026-10-07T14:10:05Z"
}"#,
    r#"{"booking_id":"BK-90212", "unclosed_json..."#,
];

const BRONZE: &str = "SELECT
message_id,
publish_time,
SUBSTR(data, 1, 100) AS raw_preview
FROM `YOUR_PROJECT_ID.offvia_bronze.raw_bookings`
ORDER BY publish_time DESC
LIMIT 10";

const SILVER: &str = "SELECT
booking_id,
flight_number,
origin_airport,
destination_airport,
fare_amount,
event_timestamp,
source_message_id
FROM `YOUR_PROJECT_ID.offvia_silver.fact_bookings`
WHERE booking_id = 'BK-90210'";

const QUARANTINE: &str = "SELECT
error_stage,
error_reason,
raw_payload,
received_timestamp,
source_message_id
FROM `YOUR_PROJECT_ID.offvia_quarantine.poisoned_events`
ORDER BY received_timestamp DESC
LIMIT 10";

type Row = Map<String, Value>;

impl Cloud<'_> {
    /// A worker starts; the three events are published; each tier is verified by the seed's SQL.
    pub fn three_events(&mut self) -> Result<()> {
        let run = PIPELINE.join(" ");
        self.operator.tell(&format!("A worker pulls the subscription:\n\n$ preflight run {run} &"));
        self.worker = Some(Worker::start(self)?);
        for payload in PAYLOADS {
            self.operator.tell(&format!("\n$ gcloud pubsub topics publish {TOPIC} --message='{payload}'"));
        }
        let ids = self.publisher.publish(PAYLOADS)?;
        self.operator.tell(&format!("  published as messages {}", ids.join(", ")));
        let rows = format!(
            "SELECT (SELECT COUNT(*) FROM `{PROJECT}.offvia_silver.fact_bookings`)
                  + (SELECT COUNT(*) FROM `{PROJECT}.offvia_quarantine.poisoned_events`)"
        );
        self.wait("three rows", |cloud| Ok(cloud.count(&rows)? >= 3))?;
        self.bronze(&ids)?;
        self.silver(&ids[0])?;
        self.quarantine(&ids[1], &ids[2])?;
        self.published.extend(ids);
        Ok(())
    }

    fn bronze(&self, ids: &[String]) -> Result<()> {
        self.operator.tell(
            "\nBronze has all three. (On Google Cloud its BigQuery subscription writes it; the emulator's writes nothing, so \
             with emulators.toml the worker does.)",
        );
        let rows = self.show(BRONZE, &["message_id", "publish_time", "raw_preview"]);
        let mut found: Vec<&str> = rows.iter().map(|row| text(row, "message_id")).collect();
        found.sort_unstable();
        ensure!(found == ids, "bronze has the messages {found:?}, not {ids:?}");
        Ok(())
    }

    fn silver(&self, id: &str) -> Result<()> {
        self.operator.tell("\nSilver has the good one, and no other:");
        let columns = [
            "booking_id",
            "flight_number",
            "origin_airport",
            "destination_airport",
            "fare_amount",
            "event_timestamp",
            "source_message_id",
        ];
        let rows = self.show(SILVER, &columns);
        let all = self.count(&format!("SELECT COUNT(*) FROM `{PROJECT}.offvia_silver.fact_bookings`"))?;
        ensure!(rows.len() == 1 && all == 1, "silver has {all} rows, {} of them BK-90210", rows.len());
        for (column, value) in [
            ("booking_id", "BK-90210"),
            ("flight_number", "OF-104"),
            ("origin_airport", "JFK"),
            ("destination_airport", "LHR"),
            ("source_message_id", id),
        ] {
            ensure!(text(&rows[0], column) == value, "silver's {column} is {:?}, not {value:?}", rows[0][column]);
        }
        let fare: f64 = text(&rows[0], "fare_amount").parse()?;
        ensure!((fare - 749.5).abs() < f64::EPSILON, "silver's fare is {fare}, not 749.50");
        Ok(())
    }

    fn quarantine(&self, negative: &str, cut_off: &str) -> Result<()> {
        self.operator
            .tell("\nQuarantine has the other two, each with the stage at which it failed and its message id:");
        let columns = ["error_stage", "error_reason", "raw_payload", "received_timestamp", "source_message_id"];
        let rows = self.show(QUARANTINE, &columns);
        ensure!(rows.len() == 2, "quarantine has {} rows, not 2", rows.len());
        let expected = [
            (negative, "BUSINESS_RULE_VALIDATION", "fare must be greater than zero", PAYLOADS[1]),
            (cut_off, "PARSE_JSON", "", PAYLOADS[2]),
        ];
        for (id, stage, reason, payload) in expected {
            let found = rows.iter().any(|row| {
                text(row, "source_message_id") == id
                    && text(row, "error_stage") == stage
                    && text(row, "error_reason").contains(reason)
                    && text(row, "raw_payload") == payload
            });
            ensure!(found, "quarantine has no row of message {id} with stage {stage}: {rows:?}");
        }
        Ok(())
    }

    /// Asks one of the seed's queries and shows the answer, a line for each value.
    fn show(&self, sql: &str, columns: &[&str]) -> Vec<Row> {
        let sql = sql.replace("YOUR_PROJECT_ID", PROJECT);
        self.operator.tell(&format!("\n{sql};\n"));
        let rows = self.query(&sql);
        for row in &rows {
            for column in columns {
                let value = row.get(*column).map_or("", |value| value.as_str().unwrap_or("NULL"));
                self.operator.tell(&format!("  {column:<20} {}", value.replace('\n', " ")));
            }
            self.operator.tell(&format!("  {}", "-".repeat(40)));
        }
        rows
    }
}

/// A value as text; null is empty.
fn text<'a>(row: &'a Row, column: &str) -> &'a str {
    row.get(column).and_then(Value::as_str).unwrap_or_default()
}

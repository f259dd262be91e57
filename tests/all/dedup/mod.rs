//! What comes again: messages that are delivered twice, events that were sent twice, and events that are replayed.

mod check;
mod crash;
mod files;
mod keys;
mod model;
mod refused;
mod replay;
mod swap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use preflight_tests::{Booking, Pipeline, tables};
use serde_json::{Map, Value, json};

/// A line of the envelope format with everything that makes two events the same, or not.
#[derive(Clone)]
struct Line {
    payload: String,
    attributes: Map<String, Value>,
    message_id: Option<String>,
}

impl Line {
    /// A good booking.
    fn booking(id: &str) -> Self {
        Self::of(Booking::v1(id).json())
    }

    fn of(payload: impl Into<String>) -> Self {
        Self { payload: payload.into(), attributes: Map::new(), message_id: None }
    }

    fn attribute(mut self, name: &str, value: &str) -> Self {
        self.attributes.insert(name.into(), value.into());
        self
    }

    fn message(mut self, id: &str) -> Self {
        self.message_id = Some(id.into());
        self
    }

    fn text(&self) -> String {
        let mut line = json!({ "data_base64": STANDARD.encode(&self.payload), "attributes": self.attributes });
        if let Some(id) = &self.message_id {
            line["message_id"] = id.as_str().into();
        }
        format!("{line}\n")
    }
}

fn text(lines: &[Line]) -> String {
    lines.iter().map(Line::text).collect()
}

/// Offvia's pipeline over envelopes, with `[dedup]`: `by` is TOML.
fn pipeline(by: &str, lines: &[Line]) -> Pipeline {
    Pipeline::offvia(text(lines)).warm().set("source.file.format=envelope").set(format!("dedup.by={by}"))
}

/// Counts of a report: silver, quarantine, duplicates.
fn counts(report: &Value) -> [u64; 3] {
    ["silver", "quarantine", "duplicates"].map(|name| report[name].as_u64().unwrap())
}

/// A column of silver.
fn silver(pipeline: &Pipeline, column: &str) -> Vec<String> {
    tables::column(&pipeline.database(), "fact_bookings", column)
}

/// Stage and code of each quarantine row.
fn stages(pipeline: &Pipeline) -> Vec<String> {
    tables::column(&pipeline.database(), "poisoned_events", "error_stage")
}

//! Runs a rule's `fixtures.ndjson` natively. Included by the tests of each rule; the host runs the same lines through the component.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use preflight_sdk::prelude::*;
use preflight_sdk::time;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value as Json, json};

/// One line: an event, and what the rule should say of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fixture {
    name: String,
    /// A string is the payload; an object's own text is, as it is written here.
    payload: Option<Box<RawValue>>,
    payload_base64: Option<String>,
    #[serde(default)]
    attributes: Map<String, Json>,
    expect: Json,
}

/// Judges every line with `validate` and fails with all that came out otherwise.
pub(crate) fn check<R: Row>(lines: &str, at_least: usize, validate: fn(&Event) -> Verdict<R>) {
    let fixtures: Vec<Fixture> = lines.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    assert!(fixtures.len() >= at_least, "only {} fixtures", fixtures.len());
    let mut differences = String::new();
    for fixture in fixtures {
        let outcome = outcome(validate(&fixture.event()));
        if outcome != fixture.expect {
            writeln!(differences, "{}\n  expected {}\n  found    {outcome}", fixture.name, fixture.expect)
                .expect("a String takes any text");
        }
    }
    assert!(differences.is_empty(), "\n{differences}");
}

impl Fixture {
    fn event(&self) -> Event {
        let payload = match (&self.payload, &self.payload_base64) {
            (Some(raw), None) if raw.get().starts_with('"') => {
                serde_json::from_str::<String>(raw.get()).expect("a string").into_bytes()
            }
            (Some(raw), None) => raw.get().as_bytes().to_vec(),
            (None, Some(encoded)) => STANDARD.decode(encoded).expect(encoded),
            _ => panic!("{}: one of payload and payload_base64", self.name),
        };
        let attributes = self.attributes.iter();
        attributes
            .fold(Event::new(payload), |event, (name, value)| event.with_attribute(name, value.as_str().expect("text")))
    }
}

fn outcome<R: Row>(verdict: Verdict<R>) -> Json {
    match verdict.and_then(|row| row.into_values().map_err(NotAccepted::from)) {
        Ok(values) => {
            let cells = R::COLUMNS.iter().zip(values).filter(|(_, value)| *value != Value::Null);
            json!({ "accept": cells.map(|(column, value)| (column.name.to_owned(), cell(value))).collect::<Map<_, _>>() })
        }
        Err(NotAccepted::Reject(Rejection { stage, reason })) => {
            json!({ "reject": { "stage": stage, "reason": reason } })
        }
        Err(NotAccepted::Ignore(why)) => json!({ "ignore": why }),
    }
}

fn cell(value: Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Boolean(value) => value.into(),
        Value::Int64(value) => value.into(),
        Value::Float64(value) => value.into(),
        Value::Numeric(text) | Value::Text(text) | Value::Json(text) => text.into(),
        Value::Bytes(bytes) => STANDARD.encode(bytes).into(),
        Value::Timestamp(micros) => time::format_micros(micros).into(),
        Value::Date(days) => time::format_date(days).into(),
    }
}

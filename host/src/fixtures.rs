//! Fixtures: events with the verdict an author expects, one JSON object a line.
//!
//! ```json
//! {"name": "a good booking", "payload": {"booking_id": "B1"}, "attributes": {"source": "web"},
//!  "expect": {"accept": {"booking_id": "B1", "fare_amount": "749.5"}}}
//! ```
//!
//! `payload` is text byte for byte, or any other JSON, whose own text is the payload as it is written;
//! `payload_base64` is for bytes that are not text. `expect` is one of `accept` (every column that is not null, as
//! `preflight inspect` names them; NUMERIC, TIMESTAMP and DATE as text, BYTES as base64), `reject` (`stage`, and
//! `reason` if it is given), `ignore` (its text, or `true` for any) and `fault` (its code).

use crate::event::{Event, Form};
use crate::rules::{Judge, Manifest, Rule, fault::SandboxError};
use crate::time::parse_rfc3339;
use crate::verdict::Verdict;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A fixture.
#[derive(Debug)]
pub struct Fixture {
    /// What it shows.
    pub name: String,
    /// The event.
    pub event: Event,
    expect: Expect,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFixture<'a> {
    name: String,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    payload_base64: Option<String>,
    #[serde(default)]
    attributes: BTreeMap<String, String>,
    message_id: Option<String>,
    publish_time: Option<String>,
    expect: Expect,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Expect {
    Accept(BTreeMap<String, Json>),
    Reject(ExpectReject),
    Ignore(Ignored),
    Fault(String),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectReject {
    stage: String,
    reason: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Ignored {
    Any(bool),
    Text(String),
}

/// What judging a fixture showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// The fixture's name.
    pub name: String,
    /// How the verdict differs from what was expected; empty if it does not.
    pub differences: Vec<String>,
}

/// Reads a file of fixtures. The error names the line.
pub fn parse(text: &str) -> Result<Vec<Fixture>, String> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let fixtures: Vec<Fixture> = lines
        .map(|(index, line)| fixture(line).map_err(|error| format!("line {}: {error}", index + 1)))
        .collect::<Result<_, _>>()?;
    if fixtures.is_empty() {
        return Err("it holds no fixture".to_owned());
    }
    Ok(fixtures)
}

fn fixture(line: &str) -> Result<Fixture, String> {
    let raw: RawFixture<'_> = serde_json::from_str(line).map_err(|error| format!("not a fixture: {error}"))?;
    let payload = match (raw.payload, raw.payload_base64) {
        (Some(_), Some(_)) => return Err("both `payload` and `payload_base64` are given".into()),
        (None, None) => return Err("neither `payload` nor `payload_base64` is given".into()),
        (None, Some(text)) => STANDARD.decode(text).map_err(|error| format!("`payload_base64`: {error}"))?.into(),
        (Some(json), None) => match serde_json::from_str::<String>(json.get()) {
            Ok(text) => Bytes::from(text),
            Err(_) => Bytes::from(json.get().to_owned()),
        },
    };
    let publish_time = match raw.publish_time {
        Some(text) => parse_rfc3339(&text).map_err(|error| format!("`publish_time`: {error}"))?,
        None => 0,
    };
    let event = Event {
        payload,
        attributes: raw.attributes.into_iter().collect(),
        message_id: raw.message_id.unwrap_or_else(|| "fixture".to_owned()),
        publish_time,
        received_time: publish_time,
        ordering_key: None,
        delivery_attempt: None,
        form: Form::Whole,
    };
    Ok(Fixture { name: raw.name, event, expect: raw.expect })
}

/// Judges fixtures, each alone in a fresh store.
pub fn judge(judge: &mut Judge, rule: &Arc<Rule>, fixtures: &[Fixture]) -> Result<Vec<Outcome>, SandboxError> {
    fixtures
        .iter()
        .map(|fixture| {
            let judged = judge.judge(rule, &fixture.event)?;
            judge.end_batch();
            let differences = match (&fixture.expect, judged.verdict) {
                (Expect::Accept(columns), Ok(Verdict::Accept(row))) => rows_differ(&rule.manifest, columns, &row),
                (Expect::Reject(expected), Ok(Verdict::Reject(got))) => {
                    let reason = expected.reason.as_ref();
                    differ("stage", &expected.stage, &got.stage)
                        .into_iter()
                        .chain(reason.and_then(|reason| differ("reason", reason, &got.reason)))
                        .collect()
                }
                (Expect::Ignore(Ignored::Any(true)), Ok(Verdict::Ignore(_))) => Vec::new(),
                (Expect::Ignore(Ignored::Text(expected)), Ok(Verdict::Ignore(got))) => {
                    differ("ignore", expected, &got).into_iter().collect()
                }
                (Expect::Fault(expected), Err(fault)) => {
                    differ("fault", expected, fault.code.as_str()).into_iter().collect()
                }
                (expected, got) => vec![format!("expected {}, got {}", kind(expected), shown(&rule.manifest, got))],
            };
            Ok(Outcome { name: fixture.name.clone(), differences })
        })
        .collect()
}

fn differ(what: &str, expected: &str, got: &str) -> Option<String> {
    (expected != got).then(|| format!("{what}: expected {expected:?}, got {got:?}"))
}

/// Every column that is not null must be expected, and every expected column must be there.
fn rows_differ(manifest: &Manifest, expected: &BTreeMap<String, Json>, row: &[crate::row::Value]) -> Vec<String> {
    let mut differences = Vec::new();
    for name in expected.keys().filter(|name| !manifest.columns.iter().any(|c| c.name == **name)) {
        differences.push(format!("{name}: the rule has no such column"));
    }
    for (column, value) in manifest.columns.iter().zip(row) {
        let got = value.to_json();
        let wanted = expected.get(&column.name).unwrap_or(&Json::Null);
        if !same(wanted, &got) {
            differences.push(format!("{}: expected {wanted}, got {got}", column.name));
        }
    }
    differences
}

/// Numbers are compared as numbers, so that `1` and `1.0` are the same FLOAT64.
fn same(wanted: &Json, got: &Json) -> bool {
    match (wanted, got) {
        (Json::Number(a), Json::Number(b)) => a == b || a.as_f64().is_some() && a.as_f64() == b.as_f64() && b.is_f64(),
        _ => wanted == got,
    }
}

fn kind(expect: &Expect) -> String {
    match expect {
        Expect::Accept(_) => "accept".to_owned(),
        Expect::Reject(reject) => format!("reject at {}", reject.stage),
        Expect::Ignore(_) => "ignore".to_owned(),
        Expect::Fault(code) => format!("fault {code}"),
    }
}

fn shown(manifest: &Manifest, got: Result<Verdict, crate::verdict::Fault>) -> String {
    match got {
        Ok(Verdict::Accept(row)) => {
            let columns = manifest.columns.iter().zip(&row).map(|(c, value)| format!("{}={}", c.name, value.to_json()));
            format!("accept {}", columns.collect::<Vec<_>>().join(" "))
        }
        Ok(Verdict::Reject(rejection)) => format!("reject at {}: {}", rejection.stage, rejection.reason),
        Ok(Verdict::Ignore(reason)) => format!("ignore: {reason}"),
        Err(fault) => format!("fault {}: {}", fault.code, fault.detail),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_text_or_json_as_written_or_base64() {
        let text = concat!(
            r#"{"name":"a","payload":"{\"x\": 1}\n","expect":{"ignore":true}}"#,
            "\n\n",
            r#"{"name":"b","payload":{"x":  1.50},"expect":{"ignore":"t"}}"#,
            "\n",
            r#"{"name":"c","payload_base64":"/w==","expect":{"fault":"fuel"}}"#,
        );
        let fixtures = parse(text).unwrap();
        let payloads: Vec<&[u8]> = fixtures.iter().map(|fixture| fixture.event.payload.as_ref()).collect();
        assert_eq!(payloads, [b"{\"x\": 1}\n" as &[u8], b"{\"x\":  1.50}", b"\xff"]);
    }

    #[test]
    fn what_is_not_a_fixture_is_refused_with_its_line() {
        let refused = |text: &str, what: &str| {
            let error = parse(text).unwrap_err();
            assert!(error.contains(what), "{error}");
        };
        refused("\n\n", "no fixture");
        refused("{}", "line 1: not a fixture");
        refused("\n{\"name\":\"a\",\"expect\":{\"ignore\":true}}", "line 2: neither");
        refused(r#"{"name":"a","payload":"x","payload_base64":"eA==","expect":{"ignore":true}}"#, "both");
        refused(r#"{"name":"a","payload_base64":"?","expect":{"ignore":true}}"#, "payload_base64");
        refused(r#"{"name":"a","payload":"x","publish_time":"now","expect":{"ignore":true}}"#, "publish_time");
        refused(r#"{"name":"a","payload":"x","expect":{"maybe":true}}"#, "unknown variant");
    }
}

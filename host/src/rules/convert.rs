//! From a guest's verdict to ours. After this boundary types carry the proof; before it nothing is used.
//!
//! Checked against the manifest: arity, types, nullability; then each value's own range: NUMERIC is canonical
//! decimal text (29 digits before, 9 after the point), TIMESTAMP lies in the years 1 to 9999, DATE too, FLOAT64
//! is finite, JSON is one value that reads one way only. A stage has the pattern `[A-Z][A-Z0-9_]*` and is not one of the host's.

use super::bindings::preflight::rules::types as wit;
use super::manifest::Manifest;
use crate::row::{Column, Row, Value};
use crate::time::{DAY, MAX_MICROS, MIN_MICROS};
use crate::verdict::{Fault, FaultCode, Rejection, Verdict, clip, stage};
use std::borrow::Cow;

/// Longest stage, bytes.
pub const STAGE: usize = 64;
/// Longer reasons are clipped, bytes.
pub const REASON: usize = 4_000;

/// Checks a verdict against the manifest of the rule that gave it.
pub(super) fn verdict(manifest: &Manifest, verdict: wit::Verdict) -> Result<Verdict, Fault> {
    match verdict {
        wit::Verdict::Accept(values) => row(&manifest.columns, values).map(Verdict::Accept),
        wit::Verdict::Reject(rejection) => reject(rejection).map(Verdict::Reject),
        wit::Verdict::Ignore(reason) => Ok(Verdict::Ignore(clip_owned(reason))),
    }
}

fn clip_owned(text: String) -> String {
    if text.len() <= REASON { text } else { clip(&text, REASON).into_owned() }
}

fn reject(rejection: wit::Rejection) -> Result<Rejection, Fault> {
    let name = rejection.stage;
    let pattern = name.len() <= STAGE
        && name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
    if !pattern {
        let shown = clip(&name, STAGE);
        return Err(broken(format!("stage {shown:?} is not [A-Z][A-Z0-9_]* of at most {STAGE} bytes")));
    }
    if stage::is_reserved(&name) {
        return Err(broken(format!("stage {name} belongs to the host")));
    }
    Ok(Rejection { stage: Cow::Owned(name), code: None, reason: clip_owned(rejection.reason) })
}

fn row(columns: &[Column], values: Vec<wit::Value>) -> Result<Row, Fault> {
    if values.len() != columns.len() {
        let (got, declared) = (values.len(), columns.len());
        return Err(broken(format!("the row has {got} values, the manifest declares {declared} columns")));
    }
    let row: Row = values.into_iter().map(Value::from).collect();
    for (column, value) in columns.iter().zip(&row) {
        check(column, value)?;
    }
    Ok(row)
}

impl From<wit::Value> for Value {
    fn from(guest: wit::Value) -> Self {
        match guest {
            wit::Value::Null => Self::Null,
            wit::Value::Boolean(b) => Self::Boolean(b),
            wit::Value::Int64(n) => Self::Int64(n),
            wit::Value::Float64(x) => Self::Float64(x),
            wit::Value::Numeric(text) => Self::Numeric(text),
            wit::Value::Text(text) => Self::Text(text),
            wit::Value::Bytes(bytes) => Self::Bytes(bytes),
            wit::Value::Timestamp(micros) => Self::Timestamp(micros),
            wit::Value::Date(days) => Self::Date(days),
            wit::Value::Json(text) => Self::Json(text),
        }
    }
}

fn check(column: &Column, value: &Value) -> Result<(), Fault> {
    match value.kind() {
        None if column.nullable => {}
        None => return Err(broken(format!("column `{}` is NOT NULL and came as null", column.name))),
        Some(kind) if kind == column.kind => {}
        Some(kind) => {
            return Err(broken(format!("column `{}` is {} and came as {kind}", column.name, column.kind)));
        }
    }
    match out_of_range(value) {
        Some(why) => Err(broken(format!("column `{}`: {why}", column.name))),
        None => Ok(()),
    }
}

/// Why a value is not one of its type, if it is not.
fn out_of_range(value: &Value) -> Option<String> {
    match value {
        Value::Float64(x) if !x.is_finite() => Some(format!("{x} is not finite")),
        Value::Numeric(text) if !preflight_sdk::decimal::is_canonical(text) => {
            Some(format!("{:?} is not canonical decimal text within NUMERIC", clip(text, 60)))
        }
        Value::Timestamp(micros) if !(MIN_MICROS..=MAX_MICROS).contains(micros) => {
            Some(format!("{micros} µs is outside the years 1 to 9999"))
        }
        Value::Date(days) if !(MIN_MICROS / DAY..=MAX_MICROS / DAY).contains(&i64::from(*days)) => {
            Some(format!("day {days} is outside the years 1 to 9999"))
        }
        Value::Json(text) => preflight_sdk::json::check(text).err().map(|error| format!("not one JSON value: {error}")),
        _ => None,
    }
}

fn broken(detail: String) -> Fault {
    Fault::new(FaultCode::Manifest, detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::ColumnType;
    use wit::Value as V;

    fn one(kind: ColumnType, nullable: bool, value: wit::Value) -> Result<Row, Fault> {
        row(&[Column::new("c", kind, nullable)], vec![value])
    }

    #[test]
    fn each_range_has_its_edge() {
        let edge = |kind, inside: wit::Value, outside: wit::Value, why: &str| {
            assert!(one(kind, false, inside).is_ok(), "{why}");
            let fault = one(kind, false, outside).unwrap_err();
            assert_eq!(fault.code, FaultCode::Manifest);
            assert!(fault.detail.contains(why), "{}", fault.detail);
        };
        edge(ColumnType::Float64, V::Float64(f64::MAX), V::Float64(f64::NAN), "not finite");
        edge(ColumnType::Float64, V::Float64(f64::MIN), V::Float64(f64::INFINITY), "not finite");
        edge(ColumnType::Timestamp, V::Timestamp(MAX_MICROS), V::Timestamp(MAX_MICROS + 1), "years 1 to 9999");
        edge(ColumnType::Timestamp, V::Timestamp(MIN_MICROS), V::Timestamp(MIN_MICROS - 1), "years 1 to 9999");
        edge(ColumnType::Date, V::Date(2_932_896), V::Date(2_932_897), "years 1 to 9999");
        edge(ColumnType::Date, V::Date(-719_162), V::Date(-719_163), "years 1 to 9999");
        let digits = "9".repeat(29);
        let more = format!("1{}", "0".repeat(29));
        edge(ColumnType::Numeric, V::Numeric(digits), V::Numeric(more), "canonical");
        edge(ColumnType::Numeric, V::Numeric("0.000000001".into()), V::Numeric("0.0000000001".into()), "canonical");
        edge(ColumnType::Json, V::Json("{\"a\":[1]}".into()), V::Json("{} {}".into()), "one JSON value");
    }

    #[test]
    fn arity_type_and_null_are_the_manifests() {
        let columns = [Column::new("a", ColumnType::Text, false), Column::new("b", ColumnType::Text, true)];
        let short = row(&columns, vec![wit::Value::Null]).unwrap_err();
        assert!(short.detail.contains("1 values, the manifest declares 2"));
        let null = row(&columns, vec![wit::Value::Null, wit::Value::Null]).unwrap_err();
        assert!(null.detail.contains("`a` is NOT NULL"));
        let typed = one(ColumnType::Text, true, wit::Value::Int64(1)).unwrap_err();
        assert!(typed.detail.contains("STRING and came as INT64"));
    }

    #[test]
    fn a_stage_has_its_pattern_and_is_not_the_hosts() {
        let say = |stage: &str| reject(wit::Rejection { stage: stage.into(), reason: "r".into() });
        assert!(say("PARSE_JSON").is_ok());
        assert!(say(&"A".repeat(STAGE)).is_ok());
        for bad in ["", "parse", "1A", "A-B", "RULE_FAULT", &"A".repeat(STAGE + 1)] {
            assert_eq!(say(bad).unwrap_err().code, FaultCode::Manifest, "{bad}");
        }
    }

    #[test]
    fn a_long_reason_is_clipped_not_refused() {
        let long = wit::Rejection { stage: "A".into(), reason: "x".repeat(REASON + 1) };
        assert!(reject(long).unwrap().reason.len() <= REASON);
    }
}

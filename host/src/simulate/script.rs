//! The script: NDJSON, a step a line.

use crate::time::{Micros, parse_rfc3339};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// What a line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// An event comes.
    Event(Event),
    /// A clock moves.
    Move(Move),
}

/// A clock moves to a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// The watermark; [`Micros::MAX`] is the end of a bounded source.
    Watermark(Micros),
    /// Processing time.
    ProcessingTime(Micros),
}

/// An event that comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its payload: the JSON as it stands in the script.
    pub payload: String,
    /// Its attributes.
    pub attributes: Vec<(String, String)>,
    /// Its message id; by default `line` and the number of the line.
    pub message_id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    #[serde(borrow)]
    event: Option<&'a RawValue>,
    attributes: Option<BTreeMap<String, String>>,
    message_id: Option<String>,
    watermark: Option<String>,
    processing_time: Option<String>,
    end: Option<bool>,
}

/// Reads a line; none if there is nothing on it.
pub fn read(line: &str, number: usize) -> Result<Option<Step>, String> {
    if line.trim().is_empty() {
        return Ok(None);
    }
    let line: Line<'_> = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let of_an_event = line.attributes.is_some() || line.message_id.is_some();
    let time = |name: &str, text: &str| parse_rfc3339(text).map_err(|error| format!("{name} {text:?} {error}"));
    let step = match (line.event, line.watermark, line.processing_time, line.end) {
        (Some(payload), None, None, None) => {
            return Ok(Some(Step::Event(Event {
                payload: payload.get().to_owned(),
                attributes: line.attributes.unwrap_or_default().into_iter().collect(),
                message_id: line.message_id.unwrap_or_else(|| format!("line {number}")),
            })));
        }
        (None, Some(to), None, None) => Move::Watermark(time("watermark", &to)?),
        (None, None, Some(to), None) => Move::ProcessingTime(time("processing_time", &to)?),
        (None, None, None, Some(true)) => Move::Watermark(Micros::MAX),
        _ => return Err("a step is exactly one of event, watermark, processing_time and \"end\": true".to_owned()),
    };
    if of_an_event {
        return Err("attributes and message_id are of an event".to_owned());
    }
    Ok(Some(Step::Move(step)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moves(line: &str) -> Result<Option<Step>, String> {
        read(line, 7)
    }

    #[test]
    fn a_payload_is_what_stands_there() {
        let Ok(Some(Step::Event(event))) = moves(r#"{"event": {"b": 1.50, "a": "é"}, "attributes": {"v": "2"}}"#)
        else {
            panic!("it is an event")
        };
        assert_eq!(event.payload, r#"{"b": 1.50, "a": "é"}"#);
        assert_eq!((event.attributes, event.message_id), (vec![("v".into(), "2".into())], "line 7".into()));
    }

    #[test]
    fn clocks_move_to_times_and_to_the_end() {
        let at = |line| moves(line).unwrap();
        assert_eq!(at(r#"{"watermark": "1970-01-01T00:00:01Z"}"#), Some(Step::Move(Move::Watermark(1_000_000))));
        assert_eq!(
            at(r#"{"processing_time": "1970-01-01T01:00:00+01:00"}"#),
            Some(Step::Move(Move::ProcessingTime(0)))
        );
        assert_eq!(at(r#"{"end": true}"#), Some(Step::Move(Move::Watermark(Micros::MAX))));
        assert_eq!(at("  "), None);
    }

    #[test]
    fn what_is_no_step_is_told() {
        for (line, why) in [
            ("{}", "exactly one of"),
            (r#"{"end": false}"#, "exactly one of"),
            (r#"{"event": 1, "end": true}"#, "exactly one of"),
            (r#"{"watermark": "yesterday"}"#, "\"yesterday\""),
            (r#"{"watermark": "1970-01-01T00:00:01Z", "message_id": "x"}"#, "of an event"),
            (r#"{"evnt": 1}"#, "unknown field `evnt`"),
            ("{", "EOF"),
        ] {
            let error = moves(line).unwrap_err();
            assert!(error.contains(why), "{line}: {error}");
        }
    }
}

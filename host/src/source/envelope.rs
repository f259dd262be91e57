//! The `envelope` format: one JSON object a line, with the payload and its metadata.
//!
//! `data` is the payload as text, `data_base64` as base64 (RFC 4648, with padding); with neither the payload is empty.
//! `attributes` is an object of texts. Names may also be written as Pub/Sub's JSON has them (`messageId`, …). A message id
//! or an ordering key has at most 1,024 bytes, an event at most 100 attributes, as in Pub/Sub; an empty id or key is an
//! absent one.

use crate::event::{Event, Form};
use crate::time::{Micros, parse_rfc3339};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// Bytes of a message id or an ordering key: rows carry them whole, quarantine rows of a clipped payload too.
const ID: usize = 1_024;
/// Attributes of an event. A line has room for millions, and each is compared with those before it.
const ATTRIBUTES: usize = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope {
    data: Option<String>,
    #[serde(alias = "dataBase64")]
    data_base64: Option<String>,
    #[serde(default)]
    attributes: Attributes,
    #[serde(alias = "messageId")]
    message_id: Option<String>,
    #[serde(alias = "publishTime")]
    publish_time: Option<String>,
    #[serde(alias = "orderingKey")]
    ordering_key: Option<String>,
    #[serde(alias = "deliveryAttempt")]
    delivery_attempt: Option<u32>,
}

/// Attributes in the order they came, no name twice.
#[derive(Default)]
struct Attributes(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Attributes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Attributes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of texts")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Attributes, A::Error> {
                let mut pairs: Vec<(String, String)> = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, String>()? {
                    if pairs.iter().any(|(known, _)| *known == name) {
                        return Err(A::Error::custom(format_args!("attribute `{name}` stands twice")));
                    }
                    if pairs.len() == ATTRIBUTES {
                        return Err(A::Error::custom(format_args!("more than {ATTRIBUTES} attributes")));
                    }
                    pairs.push((name, value));
                }
                Ok(Attributes(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

/// Parses a line. What it does not say of itself is as given: the message id, and the publish time where one may be missing.
pub(super) fn parse(
    line: &[u8],
    message_id: &str,
    publish_time: Option<Micros>,
    received_time: Micros,
) -> Result<Event, String> {
    // Without this, serde would read a list of seven values as the seven fields.
    if line.trim_ascii_start().first() != Some(&b'{') {
        return Err("not an envelope: it is not a JSON object".into());
    }
    let envelope: Envelope = serde_json::from_slice(line).map_err(|error| format!("not an envelope: {error}"))?;
    let payload = match (envelope.data, envelope.data_base64) {
        (Some(_), Some(_)) => return Err("both `data` and `data_base64` are given".into()),
        (Some(text), None) => Bytes::from(text),
        (None, Some(text)) => {
            Bytes::from(STANDARD.decode(text).map_err(|error| format!("`data_base64` is not base64: {error}"))?)
        }
        (None, None) => Bytes::new(),
    };
    let publish_time = match envelope.publish_time {
        Some(text) => parse_rfc3339(&text).map_err(|error| format!("`publish_time` is not a time: {error}"))?,
        None => publish_time.ok_or("`publish_time` is missing, and the watermark follows it (watermark.follows)")?,
    };
    let id = |name: &str, text: Option<String>| match text.filter(|text| !text.is_empty()) {
        Some(text) if text.len() > ID => Err(format!("`{name}` has {} bytes, at most {ID} are taken", text.len())),
        other => Ok(other),
    };
    Ok(Event {
        payload,
        attributes: envelope.attributes.0,
        message_id: id("message_id", envelope.message_id)?.unwrap_or_else(|| message_id.to_owned()),
        publish_time,
        received_time,
        ordering_key: id("ordering_key", envelope.ordering_key)?,
        delivery_attempt: envelope.delivery_attempt,
        form: Form::Whole,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Event, String> {
        super::parse(line.as_bytes(), "f:1", Some(5), 6)
    }

    #[test]
    fn a_publish_time_may_not_be_missing_where_the_watermark_follows_it() {
        let error = super::parse(b"{}", "f:1", None, 6).unwrap_err();
        assert!(error.contains("publish_time") && error.contains("watermark.follows"), "{error}");
        assert_eq!(
            super::parse(br#"{"publish_time":"1970-01-01T00:00:01Z"}"#, "f:1", None, 6).unwrap().publish_time,
            1_000_000
        );
    }

    #[test]
    fn the_payload_is_text_or_base64_or_empty() {
        assert_eq!(parse(r#"{"data":"{\"a\":\"\u00e9\"}"}"#).unwrap().payload.as_ref(), "{\"a\":\"é\"}".as_bytes());
        assert_eq!(parse(r#"{"data_base64":"/wA="}"#).unwrap().payload.as_ref(), b"\xff\x00");
        let empty = parse(r#"{"attributes":{"b":"1","a":"2"}}"#).unwrap();
        assert!(empty.payload.is_empty());
        assert_eq!(empty.attributes, [("b".into(), "1".into()), ("a".into(), "2".into())]);
        assert_eq!((empty.message_id.as_str(), empty.publish_time, empty.received_time), ("f:1", 5, 6));
    }

    #[test]
    fn pubsubs_own_names_are_known() {
        let event = parse(
            r#"{"data":"x","messageId":"7","publishTime":"1970-01-01T00:00:01Z","orderingKey":"k","deliveryAttempt":2}"#,
        )
        .unwrap();
        assert_eq!((event.message_id.as_str(), event.publish_time), ("7", 1_000_000));
        assert_eq!((event.ordering_key.as_deref(), event.delivery_attempt), (Some("k"), Some(2)));
    }

    #[test]
    fn an_id_is_bounded_and_an_empty_one_is_absent() {
        let long = "k".repeat(ID);
        let event = parse(&format!(r#"{{"message_id":"","ordering_key":"{long}"}}"#)).unwrap();
        assert_eq!((event.message_id.as_str(), event.ordering_key), ("f:1", Some(long.clone())));
        assert!(parse(&format!(r#"{{"message_id":"{long}k"}}"#)).unwrap_err().contains("`message_id` has 1025 bytes"));
        assert!(parse(&format!(r#"{{"ordering_key":"{long}k"}}"#)).unwrap_err().contains("`ordering_key`"));
    }

    /// Ten million names, each compared with all before it, took an hour.
    #[test]
    fn attributes_are_counted() {
        let envelope = |attributes: usize| {
            let pairs: Vec<String> = (0..attributes).map(|n| format!("\"{n}\":\"\"")).collect();
            format!("{{\"attributes\":{{{}}}}}", pairs.join(","))
        };
        assert_eq!(parse(&envelope(ATTRIBUTES)).unwrap().attributes.len(), ATTRIBUTES);
        for attributes in [ATTRIBUTES + 1, 2_000_000] {
            let error = parse(&envelope(attributes)).unwrap_err();
            assert!(error.contains("more than 100 attributes"), "{error}");
        }
    }

    #[test]
    fn what_is_not_an_envelope_says_why() {
        let why = |line: &str, what: &str| {
            let error = parse(line).unwrap_err();
            assert!(error.contains(what), "{line}: {error}");
        };
        why("", "not an envelope");
        why("[]", "not a JSON object");
        why(r#"["x",null,{},null,null,null,null]"#, "not a JSON object");
        why(r#"{"data":"x"} {}"#, "trailing");
        why(r#"{"data":{}}"#, "expected a string");
        why(r#"{"dat":"x"}"#, "unknown field `dat`");
        why(r#"{"data":"x","data":"y"}"#, "duplicate field");
        why(r#"{"data":"x","data_base64":"eA=="}"#, "both");
        why(r#"{"data_base64":"e"}"#, "not base64");
        why(r#"{"attributes":{"a":1}}"#, "expected a string");
        why(r#"{"attributes":{"a":"1","a":"2"}}"#, "stands twice");
        why(r#"{"publish_time":"yesterday"}"#, "not a time");
    }
}

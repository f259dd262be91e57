//! Offvia's booking events, written field by field so that a test can put anything anywhere.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A booking: field names with the JSON text of their values, in order.
#[derive(Debug, Clone)]
pub struct Booking {
    fields: Vec<(String, String)>,
}

impl Booking {
    /// A good booking of event version 1.
    pub fn v1(id: &str) -> Self {
        let fields = [
            ("booking_id", id),
            ("passenger_id", "PAX-4821"),
            ("flight_number", "OF-104"),
            ("origin", "JFK"),
            ("destination", "LHR"),
            ("fare", "749.50"),
            ("event_time", "2026-10-07T14:10:00Z"),
        ];
        Self { fields: fields.map(|(name, text)| (name.to_owned(), format!("{text:?}"))).into() }
    }

    /// A good booking of event version 2.
    pub fn v2(id: &str) -> Self {
        Self::v1(id).with("fare", r#"{"amount":"749.50","currency":"USD"}"#)
    }

    /// A good booking of either version.
    pub fn of_version(version: &str, id: &str) -> Self {
        if version == "1" { Self::v1(id) } else { Self::v2(id) }
    }

    /// With this JSON text as the value of a field, in the field's place or at the end.
    #[must_use]
    pub fn with(mut self, name: &str, json: &str) -> Self {
        match self.fields.iter_mut().find(|(known, _)| known == name) {
            Some((_, value)) => json.clone_into(value),
            None => self.fields.push((name.to_owned(), json.to_owned())),
        }
        self
    }

    /// With one more field at the end, even one that there is already. The name is the inside of a JSON string.
    #[must_use]
    pub fn and(mut self, name: &str, json: &str) -> Self {
        self.fields.push((name.to_owned(), json.to_owned()));
        self
    }

    /// Without a field.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.fields.retain(|(known, _)| known != name);
        self
    }

    /// The payload.
    pub fn json(&self) -> String {
        let fields: Vec<String> = self.fields.iter().map(|(name, json)| format!("\"{name}\":{json}")).collect();
        format!("{{{}}}", fields.join(","))
    }
}

/// A line of the `envelope` format for any payload, with attributes.
pub fn envelope(payload: impl AsRef<[u8]>, attributes: &[(&str, &str)]) -> String {
    let attributes: serde_json::Map<String, serde_json::Value> =
        attributes.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
    let line = serde_json::json!({ "data_base64": STANDARD.encode(payload), "attributes": attributes });
    format!("{line}\n")
}

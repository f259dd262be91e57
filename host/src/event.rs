//! One unit of data with its metadata, as a source hands it over.

use crate::record::{Columns, Record};
use crate::time::Micros;
use crate::verdict::Rejection;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

/// What is kept of a payload that is above a limit, bytes: enough to see what it was.
pub const KEPT: usize = 64 * 1024;

/// An event. The payload is never re-encoded: quarantine and bronze keep it byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The bytes the producer sent.
    pub payload: Bytes,
    /// Attributes in the order they came; names are unique.
    pub attributes: Vec<(String, String)>,
    /// Unique within the source, and the same when the event is delivered again.
    pub message_id: String,
    /// When the source took it from its producer. For a file: the time the file was last changed.
    pub publish_time: Micros,
    /// When this worker received it (processing time).
    pub received_time: Micros,
    /// Pub/Sub's ordering key, where there is one.
    pub ordering_key: Option<String>,
    /// How often it was delivered, where the source counts.
    pub delivery_attempt: Option<u32>,
    /// What the payload is.
    pub form: Form,
}

/// What a payload is. Ledgers hold it: a form may be added at the end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Form {
    /// What rules judge, as it is.
    #[default]
    Whole,
    /// What was read where the source could not make a whole event of it (a broken envelope, a payload above the limit).
    /// Such an event goes to quarantine without being judged.
    Refused(Rejection),
    /// The text of a record, as it stands in its file. Rules judge the JSON object that is made of it.
    Record(Record),
}

impl Event {
    /// What rules judge, and what fields are looked up in: the payload, or what is made of it. The error is why there is
    /// nothing to judge.
    pub fn document(&self) -> Result<&[u8], &Rejection> {
        match &self.form {
            Form::Whole => Ok(&self.payload),
            Form::Refused(rejection) => Err(rejection),
            Form::Record(record) => record.document(&self.payload, &self.message_id),
        }
    }

    /// Why the source could not make a whole event of what it read, if it could not: then the payload may be a part of it.
    pub const fn refused(&self) -> Option<&Rejection> {
        match &self.form {
            Form::Refused(rejection) => Some(rejection),
            Form::Whole | Form::Record(_) => None,
        }
    }

    /// The columns of the record that the payload is, if it is one.
    pub fn columns(&self) -> Option<&Arc<Columns>> {
        match &self.form {
            Form::Record(record) => Some(record.columns()),
            Form::Whole | Form::Refused(_) => None,
        }
    }

    /// The value of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The attributes as a JSON object, sorted by name; with the columns of a record, where the payload is one.
    pub fn attributes_json(&self) -> Cow<'_, str> {
        let columns = self.columns().map(|columns| columns.attributes());
        if self.attributes.is_empty() {
            return columns.unwrap_or("{}").into();
        }
        let mut map: serde_json::Map<String, serde_json::Value> = columns
            .map(|columns| serde_json::from_str(columns).expect("it was written as an object"))
            .unwrap_or_default();
        map.extend(self.attributes.iter().map(|(name, value)| (name.clone(), value.clone().into())));
        serde_json::Value::Object(map).to_string().into()
    }

    /// Roughly what it holds in memory, for the limits of a micro-batch.
    pub fn weight(&self) -> usize {
        let attributes: usize = self.attributes.iter().map(|(n, v)| n.len() + v.len() + 48).sum();
        let document = self.columns().map_or(0, |columns| columns.weight() + self.payload.len());
        self.payload.len() + document + self.message_id.len() + attributes + size_of::<Self>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Dialect;
    use crate::verdict::stage;

    fn event(form: Form) -> Event {
        Event {
            payload: Bytes::from_static(b"1;2"),
            attributes: vec![],
            message_id: "f:2".into(),
            publish_time: 0,
            received_time: 0,
            ordering_key: None,
            delivery_attempt: None,
            form,
        }
    }

    fn record() -> Form {
        let dialect = Dialect { delimiter: b';', quote: None };
        Form::Record(Record::of(Columns::new(vec!["a".into(), "b".into()], dialect).unwrap().into()))
    }

    #[test]
    fn a_record_is_judged_as_an_object_and_kept_as_a_text_with_its_columns() {
        let mut event = event(record());
        assert_eq!(event.document().unwrap(), br#"{"a":"1","b":"2"}"#);
        let columns = r#""csv":{"columns":["a","b"],"delimiter":";","quote":""}"#;
        assert_eq!(event.attributes_json(), format!("{{{columns}}}"));
        event.attributes = vec![("x".into(), "y".into())];
        assert_eq!(event.attributes_json(), format!("{{{columns},\"x\":\"y\"}}"));
        let bytes = postcard::to_stdvec(&event).unwrap();
        assert_eq!(postcard::from_bytes::<Event>(&bytes).unwrap(), event);
    }

    /// Ledgers of before there were records hold events whose last part was `Option<Rejection>`.
    #[test]
    fn an_event_that_an_older_ledger_holds_is_read() {
        let refused = Rejection::by_host(stage::PARSE_ENVELOPE, "envelope", "why");
        for (old, form) in [(None, Form::Whole), (Some(refused.clone()), Form::Refused(refused))] {
            assert_eq!(postcard::to_stdvec(&old).unwrap(), postcard::to_stdvec(&form).unwrap());
        }
    }
}

//! The event that a rule judges.

use crate::json::{self, Object};
use crate::value::Timestamp;
use crate::verdict::Verdict;

/// One event: nothing in it changes when it is delivered again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    payload: Vec<u8>,
    attributes: Vec<(String, String)>,
    message_id: String,
    publish_time: i64,
}

impl Event {
    /// An event with that payload and nothing else, for tests.
    pub fn new(payload: impl Into<Vec<u8>>) -> Self {
        Self { payload: payload.into(), attributes: Vec::new(), message_id: String::new(), publish_time: 0 }
    }

    /// The event of the four parts that the contract has.
    pub fn from_parts(
        payload: Vec<u8>,
        attributes: Vec<(String, String)>,
        message_id: String,
        publish_time: i64,
    ) -> Self {
        Self { payload, attributes, message_id, publish_time }
    }

    /// The event with one more attribute.
    #[must_use]
    pub fn with_attribute(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.attributes.push((name.into(), value.into()));
        self
    }

    /// The event with that message id.
    #[must_use]
    pub fn with_message_id(mut self, id: impl Into<String>) -> Self {
        self.message_id = id.into();
        self
    }

    /// The event with that publish time.
    #[must_use]
    pub fn with_publish_time(mut self, time: Timestamp) -> Self {
        self.publish_time = time.micros();
        self
    }

    /// The payload, byte for byte.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// The payload as a JSON object, read strictly: see [`crate::json`].
    pub fn json(&self) -> Verdict<Object<'_>> {
        json::read(&self.payload)
    }

    /// The attribute of that name. Only those that the manifest asks for are here.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// The attributes that the manifest asks for and the message has.
    pub fn attributes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.attributes.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The message's id, unique within its topic.
    pub fn message_id(&self) -> &str {
        &self.message_id
    }

    /// When the message was published, or none if the source gave a time outside years 1 to 9999.
    pub fn publish_time(&self) -> Option<Timestamp> {
        Timestamp::from_micros(self.publish_time)
    }
}

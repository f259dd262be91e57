//! Events as a source would hand them over, for tests that call the library.

use preflight::event::{Event, Form};

/// An event with this payload.
pub fn event(message_id: &str, payload: impl Into<Vec<u8>>) -> Event {
    Event {
        payload: payload.into().into(),
        attributes: Vec::new(),
        message_id: message_id.into(),
        publish_time: 1_791_382_200_000_000,
        received_time: 1_791_382_201_000_000,
        ordering_key: None,
        delivery_attempt: None,
        form: Form::Whole,
    }
}

/// An event for each line of `lines`; their message ids are `PREFIX:1`, `PREFIX:2`…
pub fn from_lines(prefix: &str, lines: &str) -> Vec<Event> {
    lines.lines().enumerate().map(|(index, line)| event(&format!("{prefix}:{}", index + 1), line)).collect()
}

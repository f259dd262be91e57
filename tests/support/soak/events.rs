//! The events of a soak: what each is, and where it must be in the end, told by its number alone.

use crate::bookings;
use google_cloud_pubsub::model::Message;

/// Where an event must be in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Accepted.
    Silver,
    /// Rejected by its rule.
    Quarantine,
    /// Accepted by its rule, refused by the table.
    Refused,
}

/// Where the event of this number must be.
pub(super) fn place(number: usize) -> Place {
    match number {
        _ if number % 11 == 10 || number % 5 == 4 => Place::Quarantine,
        _ if number % 97 == 3 => Place::Refused,
        _ => Place::Silver,
    }
}

/// The message that carries it.
pub(super) fn message(number: usize) -> Message {
    let payload = bookings::from(number, 1);
    let attributes = [("event_id".to_owned(), format!("E-{number}"))];
    Message::new().set_data(payload.trim_end().as_bytes().to_vec()).set_attributes(attributes)
}

/// The number of the booking that a text tells of.
pub(super) fn number_in(text: &str) -> Option<usize> {
    let (_, rest) = text.split_once("BK-")?;
    rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())].parse().ok()
}

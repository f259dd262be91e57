//! From a message to an event.

use crate::event::{Event, Form};
use crate::source::oversize::refuse_above;
use crate::time::{MAX_MICROS, MIN_MICROS, Micros};
use google_cloud_pubsub::model::Message;

/// The event in a message. Attributes are sorted by name, since Pub/Sub gives them no order.
pub(super) fn event(message: Message, attempt: Option<i32>, received_time: Micros, max_payload: usize) -> Event {
    let publish_time = message.publish_time.map_or(received_time, |time| {
        let micros = time.seconds().saturating_mul(1_000_000).saturating_add(i64::from(time.nanos()) / 1_000);
        micros.clamp(MIN_MICROS, MAX_MICROS)
    });
    let mut attributes: Vec<(String, String)> = message.attributes.into_iter().collect();
    attributes.sort_unstable();
    let mut event = Event {
        payload: message.data,
        attributes,
        message_id: message.message_id,
        publish_time,
        received_time,
        ordering_key: Some(message.ordering_key).filter(|key| !key.is_empty()),
        delivery_attempt: attempt.and_then(|attempt| u32::try_from(attempt).ok()),
        form: Form::Whole,
    };
    refuse_above(max_payload, &mut event);
    event
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::KEPT;
    use crate::verdict::stage;
    use google_cloud_wkt::Timestamp;

    #[test]
    fn everything_of_a_message_is_in_its_event() {
        let message = Message::new()
            .set_data("\u{0}payload".as_bytes().to_vec())
            .set_attributes([("b", "2"), ("a", "1")])
            .set_message_id("7")
            .set_publish_time(Timestamp::clamp(3, 4_005_999))
            .set_ordering_key("k");
        let event = event(message, Some(2), 9, 100);
        assert_eq!(event.payload.as_ref(), b"\0payload");
        assert_eq!(event.attributes, [("a".into(), "1".into()), ("b".into(), "2".into())]);
        assert_eq!((event.message_id.as_str(), event.publish_time, event.received_time), ("7", 3_004_005, 9));
        assert_eq!((event.ordering_key.as_deref(), event.delivery_attempt), (Some("k"), Some(2)));
        assert_eq!(event.refused(), None);
    }

    #[test]
    fn what_a_message_does_not_have_is_absent() {
        let event = event(Message::new().set_message_id("7"), None, 9, 100);
        assert!(event.payload.is_empty() && event.attributes.is_empty());
        assert_eq!((event.publish_time, event.ordering_key, event.delivery_attempt), (9, None, None));
    }

    #[test]
    fn a_payload_at_the_limit_is_taken_and_one_above_it_is_refused_and_clipped() {
        let of = |size: usize| event(Message::new().set_data(vec![b'x'; size]), None, 9, 100_000);
        assert_eq!(of(100_000).refused(), None);
        let event = of(100_001);
        let refused = event.refused().expect("it is refused");
        assert_eq!((refused.stage.as_ref(), event.payload.len()), (stage::PAYLOAD_TOO_LARGE, KEPT));
        assert!(refused.reason.starts_with("100001 bytes"), "{}", refused.reason);
    }
}

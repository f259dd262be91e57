//! What came of a stream and the pipeline has no room for yet.
//!
//! The client extends leases only of what was taken from it: what stays on the wire is delivered again when its lease has run
//! out, and goes to the dead letters in the end. So what comes is taken also while the pipeline takes nothing, up to the
//! stream's share of what a worker may hold. Pub/Sub sends no more than that; where it does all the same (the emulator knows
//! no flow control, and a stream that is opened again may be sent another share), memory stays bounded.

use super::holding::{Holding, Share};
use super::lease::Lease;
use crate::event::Event;
use std::collections::VecDeque;
use std::sync::Arc;

/// Messages that are handed on together, if so many have come.
pub(super) const TOGETHER: usize = 256;
/// Bytes that are handed on together: a message may have ten million.
pub(super) const TOGETHER_BYTES: usize = 1 << 20;

/// Messages that wait, in the order they came in.
pub(super) struct Waiting {
    share: Share,
    messages: VecDeque<(Event, Lease)>,
    /// With what was handed on already.
    pub holding: Arc<Holding>,
}

impl Waiting {
    /// Nothing waits.
    pub fn new(share: Share) -> Self {
        Self { share, messages: VecDeque::new(), holding: Arc::default() }
    }

    /// This came.
    pub fn add(&mut self, came: (Event, Lease)) {
        self.messages.push_back(came);
    }

    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Whether no more is to be taken until some of it was handed on.
    pub fn is_full(&self) -> bool {
        !self.is_empty() && self.holding.reaches(self.share)
    }

    /// What is handed on next, at least one message if any waits.
    pub fn portion(&mut self) -> Vec<(Event, Lease)> {
        let (mut portion, mut bytes) = (Vec::new(), 0);
        while portion.len() < TOGETHER
            && bytes < TOGETHER_BYTES
            && let Some(next) = self.messages.pop_front()
        {
            bytes += next.0.weight();
            portion.push(next);
        }
        portion
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(waiting: &Waiting, id: usize, bytes: usize) -> (Event, Lease) {
        let event = Event {
            payload: vec![b'x'; bytes].into(),
            attributes: Vec::new(),
            message_id: id.to_string(),
            publish_time: 0,
            received_time: 0,
            ordering_key: None,
            delivery_attempt: None,
            form: crate::event::Form::Whole,
        };
        let bytes = event.weight();
        (event, Lease::of_nothing_of(&waiting.holding, bytes))
    }

    fn ids(portion: &[(Event, Lease)]) -> Vec<usize> {
        portion.iter().map(|(event, _)| event.message_id.parse().unwrap()).collect()
    }

    fn bring(waiting: &mut Waiting, id: usize, bytes: usize) {
        let came = message(waiting, id, bytes);
        waiting.add(came);
    }

    #[test]
    fn it_is_handed_on_in_the_order_it_came_in_some_of_it_at_a_time() {
        let mut waiting = Waiting::new(Share { messages: 1_000, bytes: 1 << 20 });
        (0..300).for_each(|id| bring(&mut waiting, id, 1));
        assert_eq!(ids(&waiting.portion()), (0..TOGETHER).collect::<Vec<_>>());
        bring(&mut waiting, 300, 1);
        assert_eq!(ids(&waiting.portion()), (TOGETHER..301).collect::<Vec<_>>());
        assert!(waiting.is_empty() && waiting.portion().is_empty());
    }

    #[test]
    fn it_is_full_when_the_share_is_held_also_by_who_has_taken_some() {
        let mut waiting = Waiting::new(Share { messages: 3, bytes: 1 << 20 });
        (0..2).for_each(|id| bring(&mut waiting, id, 1));
        assert!(!waiting.is_full());
        let taken = waiting.portion();
        bring(&mut waiting, 2, 1);
        assert!(waiting.is_full());
        drop(taken);
        assert!(!waiting.is_full());
    }

    /// Else nobody would say when there is room again.
    #[test]
    fn who_has_nothing_that_waits_takes_one_more() {
        let mut waiting = Waiting::new(Share { messages: 1, bytes: 1 << 20 });
        bring(&mut waiting, 0, 1);
        assert!(waiting.is_full());
        let _taken = waiting.portion();
        assert!(!waiting.is_full());
    }

    #[test]
    fn bytes_fill_it_too_and_a_large_message_is_handed_on_alone() {
        let mut waiting = Waiting::new(Share { messages: 10, bytes: 1 << 20 });
        bring(&mut waiting, 0, 2 << 20);
        assert!(waiting.is_full());
        bring(&mut waiting, 1, 1);
        assert_eq!(ids(&waiting.portion()), [0]);
        assert_eq!(ids(&waiting.portion()), [1]);
    }
}

//! What is counted of messages, and what is held of them.

use crate::time::Micros;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Counts of one run, for whoever asks while it runs.
#[derive(Debug, Default)]
pub struct Messages {
    /// Received, those that came again included.
    pub received: AtomicU64,
    /// Received with a delivery attempt above 1, which Pub/Sub counts where there is a dead-letter policy.
    pub redelivered: AtomicU64,
    /// Acknowledged.
    pub acked: AtomicU64,
    /// Acknowledged, but that was not confirmed although the subscription confirms.
    pub unconfirmed: AtomicU64,
    /// Given back.
    pub nacked: AtomicU64,
    /// Streams that were opened again.
    pub reopened: AtomicU64,
    held: Mutex<Held>,
}

/// What is held at present.
#[derive(Debug, Default)]
struct Held {
    messages: u64,
    bytes: u64,
    /// Messages by publish time.
    published: BTreeMap<Micros, u32>,
}

impl Messages {
    /// How many are held.
    pub fn held(&self) -> u64 {
        self.locked(|held| held.messages)
    }

    /// How many bytes those have that are held.
    pub fn held_bytes(&self) -> u64 {
        self.locked(|held| held.bytes)
    }

    /// When the oldest that is held was published.
    pub fn oldest(&self) -> Option<Micros> {
        self.locked(|held| held.published.first_key_value().map(|(published, _)| *published))
    }

    /// One more is held.
    pub(super) fn take(&self, published: Micros, bytes: u64) {
        self.locked(|held| {
            held.messages += 1;
            held.bytes += bytes;
            *held.published.entry(published).or_default() += 1;
        });
    }

    /// It is held no longer.
    pub(super) fn let_go(&self, published: Micros, bytes: u64) {
        self.locked(|held| {
            held.messages -= 1;
            held.bytes -= bytes;
            if let Some(count) = held.published.get_mut(&published) {
                *count -= 1;
                if *count == 0 {
                    held.published.remove(&published);
                }
            }
        });
    }

    fn locked<T>(&self, look: impl FnOnce(&mut Held) -> T) -> T {
        look(&mut self.held.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Counts one more.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_known_whatever_the_order_they_are_let_go_in() {
        let messages = Messages::default();
        for published in [30, 10, 20, 10] {
            messages.take(published, 5);
        }
        assert_eq!((messages.held(), messages.held_bytes(), messages.oldest()), (4, 20, Some(10)));
        messages.let_go(10, 5);
        assert_eq!(messages.oldest(), Some(10));
        messages.let_go(10, 5);
        assert_eq!(messages.oldest(), Some(20));
        messages.let_go(30, 5);
        messages.let_go(20, 5);
        assert_eq!((messages.held(), messages.held_bytes(), messages.oldest()), (0, 0, None));
    }
}

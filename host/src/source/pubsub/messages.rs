//! What is counted of messages, and what is held of them.

use super::holding::Share;
use super::traffic::Traffic;
use crate::running_time::RunningTime;
use crate::time::Micros;
use crate::window::watermark::Seen;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Counts of one run, for whoever asks while it runs.
#[derive(Debug)]
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
    most: Share,
    running_time: RunningTime,
    held: Mutex<Held>,
}

/// What is held at present.
#[derive(Debug)]
struct Held {
    all: Share,
    /// Messages by publish time.
    published: BTreeMap<Micros, u32>,
    traffic: Traffic,
    /// Older ones say nothing of the watermark.
    floor: Micros,
}

/// A message that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Came {
    /// When it was published.
    pub published: Micros,
    /// When it came (processing time).
    pub received: Micros,
    /// Its size.
    pub bytes: usize,
}

impl Messages {
    /// Nothing came yet; so much may be held.
    pub(super) fn new(most: Share, running_time: &RunningTime) -> Self {
        let traffic = Traffic::new(running_time.passed());
        let held = Held { all: Share::default(), published: BTreeMap::new(), traffic, floor: Micros::MIN };
        Self {
            received: AtomicU64::default(),
            redelivered: AtomicU64::default(),
            acked: AtomicU64::default(),
            unconfirmed: AtomicU64::default(),
            nacked: AtomicU64::default(),
            reopened: AtomicU64::default(),
            most,
            running_time: running_time.clone(),
            held: Mutex::new(held),
        }
    }

    /// How many are held.
    pub fn held(&self) -> u64 {
        self.locked(|held| held.all.messages as u64)
    }

    /// How many bytes those have that are held.
    pub fn held_bytes(&self) -> u64 {
        self.locked(|held| held.all.bytes as u64)
    }

    /// When the oldest that is held was published.
    pub fn oldest(&self) -> Option<Micros> {
        self.locked(|held| held.published.first_key_value().map(|(published, _)| *published))
    }

    /// What the watermark is estimated from. Messages that were published before the floor say nothing of it, those that come
    /// from now on included.
    pub fn seen(&self, processing_time: Micros, floor: Micros) -> Seen {
        let (at, unbroken) = (self.running_time.passed(), self.running_time.unbroken());
        self.locked(|held| {
            held.floor = floor;
            held.seen(processing_time, at, unbroken)
        })
    }

    /// One more is held. Returns it as it is to be let go: what says that it was published in the future was published when it
    /// came.
    pub(super) fn take(&self, came: Came) -> Came {
        let came = Came { published: came.published.min(came.received), ..came };
        let at = self.running_time.passed();
        self.locked(|held| held.take(came, self.most, at));
        came
    }

    /// It is held no longer.
    pub(super) fn let_go(&self, came: Came) {
        let at = self.running_time.passed();
        self.locked(|held| held.let_go(came, self.most, at));
    }

    fn locked<T>(&self, look: impl FnOnce(&mut Held) -> T) -> T {
        look(&mut self.held.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Held {
    fn take(&mut self, came: Came, most: Share, at: Duration) {
        self.all.messages += 1;
        self.all.bytes += came.bytes;
        *self.published.entry(came.published).or_default() += 1;
        let lag = (came.published >= self.floor).then(|| came.received.saturating_sub(came.published));
        self.traffic.came(came.published, lag, at);
        self.traffic.holds(self.all, most, at);
    }

    fn let_go(&mut self, came: Came, most: Share, at: Duration) {
        self.all.messages -= 1;
        self.all.bytes -= came.bytes;
        if let Some(count) = self.published.get_mut(&came.published) {
            *count -= 1;
            if *count == 0 {
                self.published.remove(&came.published);
            }
        }
        self.traffic.holds(self.all, most, at);
    }

    fn seen(&self, processing_time: Micros, at: Duration, unbroken: Duration) -> Seen {
        // Who holds something, or could not be reached, has not been waiting in vain.
        let quiet = if self.all.messages > 0 { Duration::ZERO } else { self.traffic.quiet(at).min(unbroken) };
        Seen {
            processing_time,
            oldest_held: self.published.range(self.floor..).next().map(|(published, _)| *published),
            newest: self.traffic.newest,
            quiet: Micros::try_from(quiet.as_micros()).unwrap_or(Micros::MAX),
            lag: self.traffic.lag(at),
            full: self.traffic.was_crowded(at),
        }
    }
}

#[cfg(test)]
impl Default for Messages {
    /// Any number may be held.
    fn default() -> Self {
        Self::new(Share { messages: usize::MAX, bytes: usize::MAX }, &RunningTime::start())
    }
}

#[cfg(test)]
impl Messages {
    /// A message came and was let go.
    pub(crate) fn pass(&self, published: Micros, received: Micros) {
        let came = self.take(Came { published, received, bytes: 1 });
        self.let_go(came);
    }
}

/// Counts one more.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn came(published: Micros) -> Came {
        Came { published, received: 100, bytes: 5 }
    }

    #[test]
    fn the_oldest_is_known_whatever_the_order_they_are_let_go_in() {
        let messages = Messages::default();
        for published in [30, 10, 20, 10] {
            messages.take(came(published));
        }
        assert_eq!((messages.held(), messages.held_bytes(), messages.oldest()), (4, 20, Some(10)));
        messages.let_go(came(10));
        assert_eq!(messages.oldest(), Some(10));
        messages.let_go(came(10));
        assert_eq!(messages.oldest(), Some(20));
        messages.let_go(came(30));
        messages.let_go(came(20));
        assert_eq!((messages.held(), messages.held_bytes(), messages.oldest()), (0, 0, None));
    }

    #[test]
    fn what_is_behind_the_floor_says_nothing_of_the_watermark() {
        let messages = Messages::default();
        messages.take(came(30));
        let seen = messages.seen(100, 20);
        assert_eq!((seen.oldest_held, seen.newest, seen.lag), (Some(30), Some(30), Some(70)));
        // Lags are told by those that came with this floor.
        messages.take(came(10));
        let seen = messages.seen(100, 20);
        assert_eq!((seen.oldest_held, seen.newest, seen.lag), (Some(30), Some(30), Some(70)));
        assert_eq!(messages.seen(100, 31).oldest_held, None);
        assert_eq!(messages.seen(100, Micros::MIN).oldest_held, Some(10));
        assert_eq!(messages.oldest(), Some(10), "it is held all the same");
    }

    #[test]
    fn what_was_published_in_the_future_was_published_when_it_came() {
        let messages = Messages::default();
        let taken = messages.take(Came { published: 400, received: 100, bytes: 1 });
        let seen = messages.seen(200, 0);
        assert_eq!((seen.oldest_held, seen.newest, seen.lag), (Some(100), Some(100), Some(0)));
        messages.let_go(taken);
        assert_eq!(messages.oldest(), None);
    }

    #[test]
    fn it_is_full_when_as_many_or_as_much_is_held_as_may_be() {
        for most in [Share { messages: 2, bytes: 100 }, Share { messages: 100, bytes: 10 }] {
            let messages = Messages::new(most, &RunningTime::start());
            messages.take(came(10));
            assert!(!messages.seen(100, 0).full);
            messages.take(came(10));
            assert!(messages.seen(100, 0).full);
            messages.let_go(came(10));
            assert!(messages.seen(100, 0).full, "it was a moment ago, and will be again");
        }
    }

    #[test]
    fn who_holds_something_is_not_quiet_and_neither_is_who_could_not_be_reached() {
        let running_time = RunningTime::start();
        let messages = Messages::new(Share { messages: 9, bytes: 99 }, &running_time);
        while messages.seen(100, 0).quiet == 0 {}
        let taken = messages.take(came(10));
        assert_eq!(messages.seen(100, 0).quiet, 0);
        messages.let_go(taken);
        while messages.seen(100, 0).quiet == 0 {}
        let _halt = running_time.halt();
        assert_eq!(messages.seen(100, 0).quiet, 0);
    }
}

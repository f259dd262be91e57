//! Publishes as fast as the worker keeps up, some events more than once.

use super::events::{Place, message, place};
use crate::bigquery::Fake;
use crate::bigquery::offvia::BRONZE;
use crate::pubsub::Feed;
use fastrand::Rng;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Events published at once.
const CHUNK: usize = 200;
/// Messages that may wait for the worker.
const AHEAD: usize = 5_000;
/// How often it is looked whether it is time to stop.
const LOOK: Duration = Duration::from_millis(200);

/// What was published.
#[derive(Debug, Default)]
pub(super) struct Published {
    /// Events, numbered from 0.
    pub(super) events: usize,
    /// Message ids: more than there are events, since some were published again.
    pub(super) messages: Vec<String>,
}

impl Published {
    /// Publishes so many new events, and some old ones again.
    pub(super) fn publish(&mut self, feed: &Feed, again: &mut VecDeque<usize>, rng: &mut Rng, new: usize) {
        let mut numbers: Vec<usize> = (self.events..self.events + new).collect();
        for number in self.events..self.events + new {
            // What only the table refuses gives its key free, so that it would be in quarantine once for each message.
            if place(number) != Place::Refused && rng.u8(..) < 20 {
                again.push_back(number);
            }
        }
        while again.len() > 50 || (new == 0 && !again.is_empty()) {
            numbers.extend(again.pop_front());
        }
        rng.shuffle(&mut numbers);
        self.events += new;
        self.messages.extend(feed.publish(numbers.into_iter().map(message)));
    }
}

/// Publishes until it is told to stop.
pub(super) fn publish(feed: &Feed, fake: &Fake, stop: &AtomicBool, mut rng: Rng) -> Published {
    let (mut published, mut again) = (Published::default(), VecDeque::new());
    while !stop.load(Ordering::Relaxed) {
        let there = published.messages.len();
        if fake.wait_for(LOOK, |content| content.count(BRONZE) + AHEAD > there) {
            published.publish(feed, &mut again, &mut rng, CHUNK);
        }
    }
    published.publish(feed, &mut again, &mut rng, 0);
    published
}

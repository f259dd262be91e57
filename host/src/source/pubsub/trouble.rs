//! What is wrong at present, of several streams and of who watches them: told as one.

use crate::running_time::{Halt, RunningTime};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// What is wrong, by the number of who says so: the streams, and behind them who watches.
pub(super) struct Troubles(Arc<Shared>);

struct Shared {
    streams: usize,
    now: Mutex<Now>,
    told: watch::Sender<Option<String>>,
    running_time: RunningTime,
}

#[derive(Default)]
struct Now {
    all: BTreeMap<usize, String>,
    /// While Pub/Sub is of no use at all.
    halt: Option<Halt>,
}

/// What one of them says.
pub(super) struct Trouble {
    shared: Arc<Shared>,
    number: usize,
}

impl Troubles {
    /// All is well. The receiver shows what the lowest number says. Running time stands still while no stream is well, or
    /// the subscription does not answer: while one of several streams brings messages, keys grow older.
    pub fn new(streams: usize, running_time: &RunningTime) -> (Self, watch::Receiver<Option<String>>) {
        let (told, receiver) = watch::channel(None);
        let (now, running_time) = (Mutex::default(), running_time.clone());
        (Self(Arc::new(Shared { streams, now, told, running_time })), receiver)
    }

    /// For a stream.
    pub fn of(&self, number: usize) -> Trouble {
        Trouble { shared: Arc::clone(&self.0), number }
    }

    /// For who watches the streams.
    pub fn of_watch(&self) -> Trouble {
        self.of(self.0.streams)
    }
}

impl Trouble {
    /// This is wrong.
    pub fn is(&self, why: String) {
        self.change(|all| drop(all.insert(self.number, why)));
    }

    /// It is well.
    pub fn is_over(&self) {
        self.change(|all| drop(all.remove(&self.number)));
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<usize, String>)) {
        let Shared { streams, now, told, running_time } = self.shared.as_ref();
        let mut now = now.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut now.all);
        let is_away = now.all.contains_key(streams) || now.all.len() >= *streams;
        now.halt = is_away.then(|| now.halt.take().unwrap_or_else(|| running_time.halt()));
        let first = now.all.values().next();
        told.send_if_modified(|told| {
            let changed = told.as_ref() != first;
            if changed {
                *told = first.cloned();
            }
            changed
        });
    }
}

impl Drop for Trouble {
    fn drop(&mut self) {
        self.is_over();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_is_told_until_all_of_it_is_over() {
        let (troubles, told) = Troubles::new(3, &RunningTime::start());
        let (one, two) = (troubles.of(1), troubles.of(2));
        let now = || told.borrow().clone();
        two.is("no network".into());
        assert_eq!(now().as_deref(), Some("no network"));
        one.is("no permission".into());
        assert_eq!(now().as_deref(), Some("no permission"));
        one.is_over();
        assert_eq!(now().as_deref(), Some("no network"));
        drop(two);
        assert_eq!(now(), None);
    }

    /// One stream that failed for ever kept every key for ever.
    #[test]
    fn running_time_stands_still_only_while_no_stream_is_well_or_the_subscription_does_not_answer() {
        let time = RunningTime::start();
        let (troubles, _told) = Troubles::new(2, &time);
        let (one, two, watch) = (troubles.of(0), troubles.of(1), troubles.of_watch());
        one.is("no permission".into());
        assert!(!time.stands_still());
        two.is("no permission".into());
        two.is("no network".into());
        assert!(time.stands_still());
        one.is_over();
        assert!(!time.stands_still());
        two.is_over();
        watch.is("no answer".into());
        assert!(time.stands_still());
        drop(watch);
        assert!(!time.stands_still());
    }
}

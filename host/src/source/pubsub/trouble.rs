//! What is wrong at present, of several streams: told as one.

use super::messages::Messages;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// What is wrong, by the number of who says so.
pub(super) struct Troubles(Arc<Shared>);

struct Shared {
    all: Mutex<BTreeMap<usize, String>>,
    told: watch::Sender<Option<String>>,
    messages: Arc<Messages>,
}

/// What one of them says.
pub(super) struct Trouble {
    shared: Arc<Shared>,
    number: usize,
}

impl Troubles {
    /// All is well. The receiver shows what the lowest number says; how long it lasts is counted.
    pub fn new(messages: &Arc<Messages>) -> (Self, watch::Receiver<Option<String>>) {
        let (told, receiver) = watch::channel(None);
        (Self(Arc::new(Shared { all: Mutex::default(), told, messages: Arc::clone(messages) })), receiver)
    }

    /// For one that may be in trouble.
    pub fn of(&self, number: usize) -> Trouble {
        Trouble { shared: Arc::clone(&self.0), number }
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
        let mut all = self.shared.all.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut all);
        let now = all.values().next();
        self.shared.messages.is_away(now.is_some());
        self.shared.told.send_if_modified(|told| {
            let changed = told.as_ref() != now;
            if changed {
                *told = now.cloned();
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
        let (troubles, told) = Troubles::new(&Arc::default());
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
}

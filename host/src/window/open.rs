//! The open windows of an aggregate: each has a number, and is found by its key and span.
//!
//! Invariant: each window that is found by key and span is in its slot, and each slot that is taken is found.

use super::span::Span;
use super::state::Window;
use crate::time::Micros;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A window of a key. Panes that fire at the same time come out in this order.
pub type Place = (Arc<[u8]>, Span);

/// The number of an open window. When that is closed another may get it.
pub type Id = usize;

/// Open windows.
#[derive(Debug, Default)]
pub(super) struct Open {
    keys: HashMap<Arc<[u8]>, BTreeMap<Span, Id>>,
    slots: Vec<Option<(Arc<[u8]>, Window)>>,
    free: Vec<Id>,
}

impl Open {
    /// How many windows are open.
    pub fn count(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The window that a span belongs to: the same, or where windows merge one that has all of it. No other touches that.
    pub fn find(&self, key: &[u8], span: Span, merges: bool) -> Option<Id> {
        let windows = self.keys.get(key)?;
        if merges {
            let (window, id) = windows.range(..before_end(span)).next_back()?;
            window.contains(span).then_some(*id)
        } else {
            windows.get(&span).copied()
        }
    }

    /// The window at a place.
    pub fn at(&self, place: &Place) -> Option<Id> {
        self.find(&place.0, place.1, false)
    }

    /// The same bytes, shared with what is open of that key.
    pub fn key(&self, key: &[u8]) -> Arc<[u8]> {
        self.keys.get_key_value(key).map_or_else(|| Arc::from(key), |(key, _)| Arc::clone(key))
    }

    /// The windows of a key that a span overlaps, the last first. They do not overlap each other, so they are neighbours.
    pub fn touched(&self, key: &[u8], span: Span) -> impl Iterator<Item = Span> {
        let before = self.keys.get(key).into_iter().flat_map(move |windows| windows.range(..before_end(span)).rev());
        before.map(|(other, _)| *other).take_while(move |other| other.end > span.start)
    }

    /// An open window with its key.
    pub fn get_mut(&mut self, id: Id) -> Option<(&Arc<[u8]>, &mut Window)> {
        self.slots.get_mut(id)?.as_mut().map(|(key, window)| (&*key, window))
    }

    /// All windows with their keys.
    pub fn all(&self) -> impl Iterator<Item = (&Arc<[u8]>, &Window)> {
        self.slots.iter().flatten().map(|(key, window)| (key, window))
    }

    /// Opens a window at a place that has none.
    pub fn insert(&mut self, key: Arc<[u8]>, window: Window) -> Id {
        let id = self.free.pop().unwrap_or(self.slots.len());
        let before = self.keys.entry(Arc::clone(&key)).or_default().insert(window.span, id);
        debug_assert_eq!(before, None, "a place has one window");
        let slot = Some((key, window));
        if id == self.slots.len() {
            self.slots.push(slot);
        } else {
            self.slots[id] = slot;
        }
        id
    }

    /// Takes a window out.
    pub fn remove(&mut self, place: &Place) -> Option<Window> {
        let windows = self.keys.get_mut(&place.0)?;
        let id = windows.remove(&place.1)?;
        if windows.is_empty() {
            self.keys.remove(&place.0);
        }
        self.free.push(id);
        self.slots[id].take().map(|(_, window)| window)
    }
}

/// Spans below this begin before the end of that one.
const fn before_end(span: Span) -> Span {
    Span { start: span.end, end: Micros::MIN }
}

//! The windows of one aggregate that are open: events go in, panes come out.
//!
//! Invariants: windows of a key that merge do not overlap. A window has one event timer, its end or, once that is passed, its
//! expiry; and a processing timer where something waits for one. What it says does not depend on how often it was asked.

use super::pane::{Pane, Timing};
use super::span::Span;
use super::spec::{LateTrigger, Spec};
use super::state::Window;
use crate::row::Value;
use crate::time::Micros;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

/// What time it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// All events before it are thought to have been seen: [`Micros::MIN`] at first, [`Micros::MAX`] at the end of a bounded
    /// source.
    pub watermark: Micros,
    /// Processing time.
    pub processing_time: Micros,
}

/// An event on its way into windows.
#[derive(Debug, Clone, Copy)]
pub struct Element<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// When it happened.
    pub event_time: Micros,
    /// What is measured, in the order of the measures.
    pub inputs: &'a [Value],
}

/// A window of a key. Panes that fire at the same time come out in this order.
pub type Place = (Arc<[u8]>, Span);

/// What became of a window since it was asked last.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// Its key.
    pub key: &'a Arc<[u8]>,
    /// Its span.
    pub span: Span,
    /// The window; none if it is no longer open.
    pub window: Option<&'a Window>,
}

/// The windows of each key, in their order.
type Keys = BTreeMap<Arc<[u8]>, BTreeMap<Span, Window>>;

/// The open windows of an aggregate.
#[derive(Debug)]
pub struct Aggregator {
    spec: Spec,
    /// The windows of a key, in order.
    keys: Keys,
    open: u64,
    event_timers: BTreeSet<(Micros, Place)>,
    processing_timers: BTreeSet<(Micros, Place)>,
    /// Windows that fire with the commit.
    late: BTreeSet<Place>,
    /// Windows that were changed or dropped since the last commit.
    changed: Vec<Place>,
    /// Windows that end at this time or before it are closed, if they are not open. It is the latest end of one that was dropped.
    closed: Micros,
    /// Windows that expire behind this time are not dropped: that of the present, at the end of a source that may grow.
    kept_from: Micros,
}

impl Aggregator {
    /// Without windows.
    pub fn new(spec: Spec) -> Self {
        Self {
            spec,
            keys: BTreeMap::new(),
            open: 0,
            event_timers: BTreeSet::new(),
            processing_timers: BTreeSet::new(),
            late: BTreeSet::new(),
            changed: Vec::new(),
            closed: Micros::MIN,
            kept_from: Micros::MAX,
        }
    }

    /// Windows that end at this time or before it are closed, if they are not open.
    pub const fn closed(&self) -> Micros {
        self.closed
    }

    /// The same as an earlier process had it.
    pub fn restore_closed(&mut self, closed: Micros) {
        self.closed = self.closed.max(closed);
    }

    /// Windows that expire behind this time fire with the end of the source, and stay open: it may have more for them later.
    pub const fn keep_from(&mut self, processing_time: Micros) {
        self.kept_from = processing_time;
    }

    /// How many windows are open.
    pub const fn open(&self) -> u64 {
        self.open
    }

    /// Adds an event to its windows. Returns those it is too late for: the watermark is beyond their end and the allowed
    /// lateness, or they were closed before. A session is too late only if what it would become by merging is.
    pub fn add(&mut self, element: Element<'_>, now: Now) -> Vec<Span> {
        let mut missed = Vec::new();
        for span in self.spec.windowing.windows(element.event_time) {
            if !self.add_to(span, element, now) {
                missed.push(span);
            }
        }
        missed
    }

    fn add_to(&mut self, span: Span, element: Element<'_>, now: Now) -> bool {
        let merges = self.spec.windowing.merges();
        let Some((key, window)) = open_one(&mut self.keys, element.key, span, merges) else {
            let key =
                self.keys.get_key_value(element.key).map_or_else(|| Arc::from(element.key), |(key, _)| Arc::clone(key));
            let joined = self.joined(&key, span);
            if now.watermark >= self.expiry(joined) || joined.end <= self.closed {
                return false;
            }
            self.open_window(&key, joined, now.watermark >= joined.end);
            return self.add_to(span, element, now);
        };
        let span = window.span;
        if now.watermark >= span.end.saturating_add(self.spec.allowed_lateness) {
            // It is due to be dropped.
            return false;
        }
        window.add(element.inputs);
        if !window.changed {
            window.changed = true;
            self.changed.push((Arc::clone(key), span));
        }
        let wait = if window.passed {
            match self.spec.trigger.late {
                // What was never heard of waits for nothing.
                LateTrigger::Every(wait) if window.has_spoken() => Some(wait),
                LateTrigger::Each | LateTrigger::Every(_) => {
                    self.late.insert((Arc::clone(key), span));
                    return true;
                }
            }
        } else {
            self.spec.trigger.early
        };
        if let (Some(wait), None) = (wait, window.due) {
            let due = now.processing_time.saturating_add(wait);
            window.due = Some(due);
            self.processing_timers.insert((due, (Arc::clone(key), span)));
        }
        true
    }

    /// The window that a span belongs to: itself, or what it and the sessions that it touches become.
    fn joined(&self, key: &Arc<[u8]>, span: Span) -> Span {
        self.touched(key, span).fold(span, Span::joined)
    }

    /// The sessions of a key that a span overlaps. They do not overlap each other, so they are neighbours.
    fn touched(&self, key: &Arc<[u8]>, span: Span) -> impl Iterator<Item = Span> {
        let windows = self.keys.get(key).filter(|_| self.spec.windowing.merges());
        let before = windows.into_iter().flat_map(move |windows| windows.range(..before_end(span)).rev());
        before.map(|(other, _)| *other).take_while(move |other| other.end > span.start)
    }

    /// Opens a window, which takes over the sessions that it overlaps.
    fn open_window(&mut self, key: &Arc<[u8]>, span: Span, passed: bool) {
        let mut window = Window::new(span, passed, &self.spec);
        let touched: Vec<Span> = self.touched(key, span).collect();
        for other in touched.into_iter().rev() {
            let absorbed = self.close(key, other);
            window.absorb(absorbed);
        }
        let place = (Arc::clone(key), span);
        if let Some(due) = window.due {
            self.processing_timers.insert((due, place.clone()));
        }
        let timer = if passed { self.expiry(span) } else { span.end };
        self.event_timers.insert((timer, place));
        self.open += 1;
        self.keys.entry(Arc::clone(key)).or_default().insert(span, window);
    }

    /// Takes a window out, with its timers.
    fn close(&mut self, key: &Arc<[u8]>, span: Span) -> Window {
        let windows = self.keys.get_mut(key).expect("a window that is closed is open");
        let window = windows.remove(&span).expect("a window that is closed is open");
        if windows.is_empty() {
            self.keys.remove(key);
        }
        let place = (Arc::clone(key), span);
        if let Some(due) = window.due {
            self.processing_timers.remove(&(due, place.clone()));
        }
        let timer = if window.passed { self.expiry(span) } else { span.end };
        self.late.remove(&place);
        if !window.changed {
            self.changed.push(place.clone());
        }
        self.event_timers.remove(&(timer, place));
        self.open -= 1;
        window
    }

    /// When a window takes no more events, by the watermark.
    fn expiry(&self, span: Span) -> Micros {
        span.end.saturating_add(self.spec.allowed_lateness)
    }

    /// Fires what is due: first windows that events came late for, then by the watermark, then by processing time. Stops when
    /// there are `limit` panes and returns whether more is due; windows that are expired are dropped.
    pub fn fire(&mut self, now: Now, limit: usize, panes: &mut Vec<Pane>) -> bool {
        while let Some(place) = self.late.pop_first() {
            self.fire_window(&place, Timing::Late, panes);
            if panes.len() >= limit {
                return self.is_due(now);
            }
        }
        while let Some((at, place)) = take_due(&mut self.event_timers, now.watermark) {
            self.event_timer(at, &place, panes);
            if panes.len() >= limit {
                return self.is_due(now);
            }
        }
        while let Some((_, place)) = take_due(&mut self.processing_timers, now.processing_time) {
            let passed = self.window(&place).passed;
            self.fire_window(&place, if passed { Timing::Late } else { Timing::Early }, panes);
            if panes.len() >= limit {
                return self.is_due(now);
            }
        }
        false
    }

    /// Whether a window fires, or is dropped, at this time.
    pub fn is_due(&self, now: Now) -> bool {
        !self.late.is_empty()
            || self.event_timers.first().is_some_and(|(at, _)| *at <= now.watermark)
            || self.processing_timers.first().is_some_and(|(at, _)| *at <= now.processing_time)
    }

    /// The watermark has come to a window's end, or to its expiry.
    fn event_timer(&mut self, at: Micros, place: &Place, panes: &mut Vec<Pane>) {
        if !self.window(place).passed {
            self.window(place).passed = true;
            self.fire_window(place, Timing::OnTime, panes);
            self.event_timers.insert((self.expiry(place.1), place.clone()));
            return;
        }
        debug_assert_eq!(at, self.expiry(place.1), "a passed window has no timer but its expiry");
        if self.window(place).fresh > 0 {
            self.fire_window(place, Timing::Late, panes);
        }
        if at > self.kept_from {
            // Without a timer: the process ends, and the next makes one.
            return;
        }
        self.event_timers.insert((at, place.clone()));
        self.close(&place.0, place.1);
        self.closed = self.closed.max(place.1.end);
    }

    fn fire_window(&mut self, place: &Place, timing: Timing, panes: &mut Vec<Pane>) {
        if let Some(due) = self.window(place).due {
            self.processing_timers.remove(&(due, place.clone()));
        }
        let windows = self.keys.get_mut(&place.0).expect("a timer is of an open window");
        let window = find(windows, place.1);
        window.fire(&place.0, timing, &self.spec, panes);
        if !window.changed {
            window.changed = true;
            self.changed.push(place.clone());
        }
    }

    fn window(&mut self, place: &Place) -> &mut Window {
        find(self.keys.get_mut(&place.0).expect("a timer is of an open window"), place.1)
    }

    /// What was changed since it was asked last.
    pub fn take_changes(&mut self, mut each: impl FnMut(Change<'_>)) {
        for (key, span) in self.changed.drain(..) {
            let window = self.keys.get_mut(&key).and_then(|windows| windows.get_mut(&span)).map(|window| {
                window.changed = false;
                &*window
            });
            each(Change { key: &key, span, window });
        }
    }

    /// Open windows in order, from this place on.
    pub fn windows_from(&self, place: Option<&Place>) -> impl Iterator<Item = (&Arc<[u8]>, &Window)> {
        let keys = match place {
            Some((key, _)) => self.keys.range::<[u8], _>((Bound::Included(key.as_ref()), Bound::Unbounded)),
            None => self.keys.range::<[u8], _>((Bound::Unbounded, Bound::Unbounded)),
        };
        keys.flat_map(|(key, windows)| windows.values().map(move |window| (key, window)))
            .skip_while(move |(key, window)| place.is_some_and(|from| (*key, window.span) < (&from.0, from.1)))
    }

    /// Opens a window that an earlier process had open, in place of one of the same key and span.
    pub fn restore(&mut self, key: &Arc<[u8]>, window: Window) {
        self.remove(key, window.span);
        let place = (Arc::clone(key), window.span);
        if let Some(due) = window.due {
            self.processing_timers.insert((due, place.clone()));
        } else if window.passed && window.fresh > 0 {
            // The process ended before it fired.
            self.late.insert(place.clone());
        }
        let timer = if window.passed { self.expiry(window.span) } else { window.span.end };
        self.event_timers.insert((timer, place));
        self.open += 1;
        self.keys.entry(Arc::clone(key)).or_default().insert(window.span, window);
    }

    /// Windows that fired at the end of a source and end behind the watermark are not over: they will fire when it passes.
    pub fn reopen(&mut self, watermark: Micros) {
        let all = self.keys.iter().flat_map(|(key, windows)| windows.values().map(move |window| (key, window)));
        let reopened = all.filter(|(_, window)| window.passed && window.span.end > watermark);
        let reopened: Vec<Place> = reopened.map(|(key, window)| (Arc::clone(key), window.span)).collect();
        for place in reopened {
            self.event_timers.remove(&(self.expiry(place.1), place.clone()));
            self.late.remove(&place);
            self.window(&place).passed = false;
            self.event_timers.insert((place.1.end, place));
        }
    }

    /// Drops a window that an earlier process has dropped, if it is open.
    pub fn remove(&mut self, key: &Arc<[u8]>, span: Span) {
        if self.keys.get(key).is_some_and(|windows| windows.contains_key(&span)) {
            self.close(key, span);
            self.changed.clear();
        }
    }
}

/// The open window that a span belongs to, with its key: the same, or a session that has all of it. No other touches that.
fn open_one<'a>(keys: &'a mut Keys, key: &[u8], span: Span, merges: bool) -> Option<(&'a Arc<[u8]>, &'a mut Window)> {
    let (found, windows) = keys.range_mut::<[u8], _>((Bound::Included(key), Bound::Unbounded)).next()?;
    if found.as_ref() != key {
        return None;
    }
    let window = if merges {
        let (_, window) = windows.range_mut(..before_end(span)).next_back()?;
        window.span.contains(span).then_some(window)
    } else {
        windows.get_mut(&span)
    };
    window.map(|window| (found, window))
}

/// Spans below this begin before the end of that one.
const fn before_end(span: Span) -> Span {
    Span { start: span.end, end: Micros::MIN }
}

/// The first timer that is due.
fn take_due(timers: &mut BTreeSet<(Micros, Place)>, now: Micros) -> Option<(Micros, Place)> {
    if timers.first()?.0 <= now { timers.pop_first() } else { None }
}

fn find(windows: &mut BTreeMap<Span, Window>, span: Span) -> &mut Window {
    windows.get_mut(&span).expect("a timer is of an open window")
}

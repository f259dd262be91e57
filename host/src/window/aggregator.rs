//! The windows of one aggregate that are open: events go in, panes come out.
//!
//! Invariants: windows of a key that merge do not overlap. A window has one event timer, its end or, once that is passed, its
//! expiry; and a processing timer where something waits for one. What it says does not depend on how often it was asked.

use super::open::{Id, Open, Place};
use super::pane::{Pane, Timing};
use super::span::Span;
use super::spec::{LateTrigger, Spec};
use super::state::Window;
use crate::row::Value;
use crate::time::Micros;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What is asked for by a timer, or was found.
const OPEN: &str = "a window that is closed has no timers";

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

/// What became of a window since it was asked last.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// Its key.
    pub key: &'a Arc<[u8]>,
    /// Its span.
    pub span: Span,
    /// The window with its number; none if it is no longer open.
    pub window: Option<(Id, &'a Window)>,
}

/// The open windows of an aggregate.
#[derive(Debug)]
pub struct Aggregator {
    spec: Spec,
    open: Open,
    event_timers: BTreeSet<(Micros, Place)>,
    processing_timers: BTreeSet<(Micros, Place)>,
    /// Windows that fire with the commit.
    late: BTreeSet<Place>,
    /// Windows that were changed since the last record; some may be closed again, and their number be that of another.
    changed: Vec<Id>,
    /// Windows of earlier records that were closed since the last.
    dropped: Vec<Place>,
    /// Windows that end at this time or before it are closed, if they are not open. It is the latest end of one that was dropped.
    closed: Micros,
    /// The same, as it was asked last.
    told_closed: Micros,
    /// Windows that expire behind this time are not dropped: that of the present, at the end of a source that may grow.
    kept_from: Micros,
}

impl Aggregator {
    /// Without windows.
    pub fn new(spec: Spec) -> Self {
        Self {
            spec,
            open: Open::default(),
            event_timers: BTreeSet::new(),
            processing_timers: BTreeSet::new(),
            late: BTreeSet::new(),
            changed: Vec::new(),
            dropped: Vec::new(),
            closed: Micros::MIN,
            told_closed: Micros::MIN,
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
        self.told_closed = self.closed;
    }

    /// The same, if it has moved since it was asked last.
    pub fn take_closed(&mut self) -> Option<Micros> {
        let moved = self.closed > self.told_closed;
        self.told_closed = self.closed;
        moved.then_some(self.closed)
    }

    /// Windows that expire behind this time fire with the end of the source, and stay open: it may have more for them later.
    pub const fn keep_from(&mut self, processing_time: Micros) {
        self.kept_from = processing_time;
    }

    /// How many windows are open.
    pub fn open(&self) -> u64 {
        u64::try_from(self.open.count()).unwrap_or(u64::MAX)
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
        let found = self.open.find(element.key, span, self.spec.windowing.merges());
        let Some(id) = found.or_else(|| self.open_for(span, element.key, now.watermark)) else { return false };
        let (key, window) = self.open.get_mut(id).expect(OPEN);
        let span = window.span;
        if now.watermark >= span.end.saturating_add(self.spec.allowed_lateness) {
            // It is due to be dropped.
            return false;
        }
        window.add(element.inputs);
        if !std::mem::replace(&mut window.changed, true) {
            self.changed.push(id);
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

    /// Opens the window that a span belongs to: itself, or what it and the sessions that it touches become. None if that is closed.
    fn open_for(&mut self, span: Span, key: &[u8], watermark: Micros) -> Option<Id> {
        let key = self.open.key(key);
        let merged: Vec<Span> =
            if self.spec.windowing.merges() { self.open.touched(&key, span).collect() } else { Vec::new() };
        let joined = merged.iter().copied().fold(span, Span::joined);
        if watermark >= self.expiry(joined) || joined.end <= self.closed {
            return None;
        }
        let passed = watermark >= joined.end;
        let mut window = Window::new(joined, passed, &self.spec);
        for other in merged.into_iter().rev() {
            window.absorb(self.close(&(Arc::clone(&key), other)));
        }
        Some(self.open_window(key, window))
    }

    /// Opens a window, with its timers.
    fn open_window(&mut self, key: Arc<[u8]>, window: Window) -> Id {
        let place = (Arc::clone(&key), window.span);
        if let Some(due) = window.due {
            self.processing_timers.insert((due, place.clone()));
        }
        self.event_timers.insert((self.event_timer_of(&window), place));
        self.open.insert(key, window)
    }

    /// Takes a window out, with its timers.
    fn close(&mut self, place: &Place) -> Window {
        let window = self.take_out(place);
        self.event_timers.remove(&(self.event_timer_of(&window), place.clone()));
        window
    }

    /// The same, but for its event timer.
    fn take_out(&mut self, place: &Place) -> Window {
        let window = self.open.remove(place).expect(OPEN);
        if let Some(due) = window.due {
            self.processing_timers.remove(&(due, place.clone()));
        }
        self.late.remove(place);
        if window.said.is_some() {
            self.dropped.push(place.clone());
        }
        window
    }

    /// When the watermark comes to what is next of a window.
    fn event_timer_of(&self, window: &Window) -> Micros {
        if window.passed { self.expiry(window.span) } else { window.span.end }
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
        let window = self.window(place);
        if !window.passed {
            window.passed = true;
            self.fire_window(place, Timing::OnTime, panes);
            self.event_timers.insert((self.expiry(place.1), place.clone()));
            return;
        }
        let is_fresh = window.fresh > 0;
        debug_assert_eq!(at, self.expiry(place.1), "a passed window has no timer but its expiry");
        if is_fresh {
            self.fire_window(place, Timing::Late, panes);
        }
        if at > self.kept_from {
            // Without a timer: the process ends, and the next makes one.
            return;
        }
        // Its event timer was this one.
        self.take_out(place);
        self.closed = self.closed.max(place.1.end);
    }

    fn fire_window(&mut self, place: &Place, timing: Timing, panes: &mut Vec<Pane>) {
        let id = self.open.at(place).expect(OPEN);
        let (key, window) = self.open.get_mut(id).expect(OPEN);
        if let Some(due) = window.due {
            self.processing_timers.remove(&(due, place.clone()));
        }
        window.fire(key, timing, &self.spec, panes);
        if !std::mem::replace(&mut window.changed, true) {
            self.changed.push(id);
        }
    }

    fn window(&mut self, place: &Place) -> &mut Window {
        let id = self.open.at(place).expect(OPEN);
        self.open.get_mut(id).expect(OPEN).1
    }

    /// What was changed since it was asked last, for the record of this number: what is closed before what is open.
    pub fn take_changes(&mut self, record: u64, mut each: impl FnMut(Change<'_>)) {
        for (key, span) in self.dropped.drain(..) {
            each(Change { key: &key, span, window: None });
        }
        for id in self.changed.drain(..) {
            let Some((key, window)) = self.open.get_mut(id).filter(|(_, window)| window.changed) else { continue };
            window.changed = false;
            window.said = Some(record);
            each(Change { key, span: window.span, window: Some((id, window)) });
        }
    }

    /// A window that was said last in the record of this number, if it is still open.
    pub fn said(&mut self, id: Id, record: u64) -> Option<(&Arc<[u8]>, &mut Window)> {
        self.open.get_mut(id).filter(|(_, window)| window.said == Some(record))
    }

    /// Opens a window that an earlier process had open, in place of one of the same key and span. It was said in the record of this number.
    pub fn restore(&mut self, key: &[u8], mut window: Window, record: u64) -> Id {
        self.remove(key, window.span);
        window.said = Some(record);
        let key = self.open.key(key);
        if window.due.is_none() && window.passed && window.fresh > 0 {
            // The process ended before it fired.
            self.late.insert((Arc::clone(&key), window.span));
        }
        self.open_window(key, window)
    }

    /// Windows that fired at the end of a source and end behind the watermark are not over: they will fire when it passes.
    pub fn reopen(&mut self, watermark: Micros) {
        let reopened = self.open.all().filter(|(_, window)| window.passed && window.span.end > watermark);
        let reopened: Vec<Place> = reopened.map(|(key, window)| (Arc::clone(key), window.span)).collect();
        for place in reopened {
            self.event_timers.remove(&(self.expiry(place.1), place.clone()));
            self.late.remove(&place);
            self.window(&place).passed = false;
            self.event_timers.insert((place.1.end, place));
        }
    }

    /// Drops a window that an earlier process has dropped, if it is open.
    pub fn remove(&mut self, key: &[u8], span: Span) {
        let place = (self.open.key(key), span);
        if self.open.at(&place).is_some() {
            self.close(&place);
            // That is in the records.
            self.dropped.clear();
        }
    }
}

/// The first timer that is due.
fn take_due(timers: &mut BTreeSet<(Micros, Place)>, now: Micros) -> Option<(Micros, Place)> {
    if timers.first()?.0 <= now { timers.pop_first() } else { None }
}

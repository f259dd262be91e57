//! The windows of all aggregates of a pipeline, and the watermark they are judged by. What changes is told as a record for the
//! ledger; the records, read in their order, give the state back.
//!
//! The log of records does not grow for ever: each record also repeats as many unchanged windows as it has changed ones, going
//! round through all of them. What is older than a whole round is said again behind it, and may be deleted. A process goes on with
//! the round of the one before it: where processes end sooner than a round does, the log would grow otherwise.

use super::aggregator::{Aggregator, Element, Now, Place};
use super::pane::Pane;
use super::span::Span;
use super::spec::Spec;
use super::state::Window;
use crate::time::Micros;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Unchanged windows that a record repeats at least.
const REPEATED: usize = 16;

/// The open windows of all aggregates.
#[derive(Debug)]
pub struct Windows {
    watermark: Micros,
    /// The watermark before the end of a bounded source.
    before_end: Micros,
    aggregates: BTreeMap<Arc<str>, Aggregator>,
    round: Round,
}

/// How far the log was said again.
#[derive(Debug, Default)]
struct Round {
    /// Number of the next record.
    next: u64,
    /// Number of the first record of this round.
    began: u64,
    /// Number of the first record of the last whole round.
    needed: u64,
    /// What is repeated next; none for the first.
    at: Option<(Arc<str>, Place)>,
    /// Whether windows were restored since the last record.
    restored: bool,
}

/// A pane with the name of its aggregate.
pub type Named = (Arc<str>, Pane);

/// What changed in a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// They count up.
    pub number: u64,
    /// The changes.
    pub bytes: Vec<u8>,
    /// Records before this one are of no use any more.
    pub first_needed: u64,
    /// The watermark from now on.
    pub watermark: Micros,
    /// Up to which time windows of an aggregate are closed.
    pub closed: Vec<(Arc<str>, Micros)>,
}

/// A window in a record: aggregate, key and span; the window is none if it is no longer open.
type Entry<'a, W> = (&'a str, &'a [u8], Span, Option<W>);

/// A record that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a record of windows cannot be read: {0}")]
pub struct Unreadable(String);

impl Windows {
    /// Of these aggregates, without open windows.
    pub fn new(specs: impl IntoIterator<Item = (Arc<str>, Spec)>) -> Self {
        let aggregates = specs.into_iter().map(|(name, spec)| (name, Aggregator::new(spec))).collect();
        Self { watermark: Micros::MIN, before_end: Micros::MIN, aggregates, round: Round::default() }
    }

    /// How far the watermark is.
    pub const fn watermark(&self) -> Micros {
        self.watermark
    }

    /// How many windows are open.
    pub fn open(&self) -> u64 {
        self.aggregates.values().map(Aggregator::open).sum()
    }

    /// How many windows of each aggregate are open.
    pub fn open_of_each(&self) -> impl Iterator<Item = (&Arc<str>, u64)> {
        self.aggregates.iter().map(|(name, aggregator)| (name, aggregator.open()))
    }

    /// Adds an event to the windows of an aggregate. Returns those it is too late for.
    pub fn add(&mut self, aggregate: &str, element: Element<'_>, processing_time: Micros) -> Vec<Span> {
        let now = Now { watermark: self.watermark, processing_time };
        self.aggregates.get_mut(aggregate).map(|aggregator| aggregator.add(element, now)).unwrap_or_default()
    }

    /// Fires what events came late for, by the watermark as it is; then moves the watermark, never back, and fires what is due.
    /// Stops when there are `limit` panes and returns whether more is due.
    pub fn fire(&mut self, watermark: Micros, processing_time: Micros, limit: usize, panes: &mut Vec<Named>) -> bool {
        self.watermark = self.watermark.max(watermark);
        if self.watermark < Micros::MAX {
            self.before_end = self.watermark;
        }
        let now = Now { watermark: self.watermark, processing_time };
        for (name, aggregator) in &mut self.aggregates {
            let Some(left) = limit.checked_sub(panes.len()).filter(|left| *left > 0) else { break };
            let mut fired = Vec::new();
            aggregator.fire(now, left, &mut fired);
            panes.extend(fired.into_iter().map(|pane| (Arc::clone(name), pane)));
        }
        self.is_due(self.watermark, processing_time)
    }

    /// Whether a window would fire, or be dropped, at this time.
    pub fn is_due(&self, watermark: Micros, processing_time: Micros) -> bool {
        let now = Now { watermark: self.watermark.max(watermark), processing_time };
        self.aggregates.values().any(|aggregator| aggregator.is_due(now))
    }

    /// The end of a source that may have more later: windows that expire behind the present fire with it, and stay open.
    pub fn keep_from(&mut self, processing_time: Micros) {
        self.aggregates.values_mut().for_each(|aggregator| aggregator.keep_from(processing_time));
    }

    /// What changed since the last record. At the end of a bounded source the watermark that is kept is that of before: another
    /// run may read on.
    pub fn record(&mut self) -> Record {
        if std::mem::take(&mut self.round.restored) {
            self.resume();
        }
        let mut bytes = Vec::new();
        let mut count = 0;
        for (name, aggregator) in &mut self.aggregates {
            aggregator.take_changes(|change| {
                push(&mut bytes, name, change.key, change.span, change.window);
                count += 1;
            });
        }
        if count > 0 {
            self.repeat(count + REPEATED, &mut bytes);
        }
        let number = self.round.next;
        self.round.next += 1;
        let closed = self.aggregates.iter().map(|(name, aggregator)| (Arc::clone(name), aggregator.closed()));
        let closed = closed.filter(|(_, closed)| *closed > Micros::MIN).collect();
        Record { number, bytes, first_needed: self.round.needed, watermark: self.before_end, closed }
    }

    /// Goes on with the round of an earlier process: at the first of the windows that were said least recently. Those before it were
    /// said later.
    fn resume(&mut self) {
        let round = &mut self.round;
        (round.needed, round.began, round.at) = (u64::MAX, round.next, None);
        for (name, aggregator) in &self.aggregates {
            for (key, window) in aggregator.windows_from(None).filter(|(_, window)| !window.changed) {
                if window.restored < round.needed {
                    round.began = round.needed.min(round.next);
                    round.needed = window.restored;
                    round.at = Some((Arc::clone(name), (Arc::clone(key), window.span)));
                }
            }
        }
        round.needed = round.needed.min(round.next);
    }

    /// Says unchanged windows again, and notes when all were.
    fn repeat(&mut self, count: usize, bytes: &mut Vec<u8>) {
        let from = self.round.at.take();
        let mut repeated = 0;
        for (name, aggregator) in &self.aggregates {
            let place = match &from {
                Some((at, _)) if name < at => continue,
                Some((at, place)) if name == at => Some(place),
                _ => None,
            };
            for (key, window) in aggregator.windows_from(place) {
                if repeated == count {
                    self.round.at = Some((Arc::clone(name), (Arc::clone(key), window.span)));
                    return;
                }
                push(bytes, name, key, window.span, Some(window));
                repeated += 1;
            }
        }
        // Everything that is open was said since the round began. The next begins with the next record.
        self.round.needed = self.round.began;
        self.round.began = self.round.next + 1;
    }

    /// Takes a record in that was written before; all of them, in their order. What it says of other aggregates is left out.
    pub fn restore(&mut self, number: u64, mut bytes: &[u8]) -> Result<(), Unreadable> {
        while !bytes.is_empty() {
            let read = postcard::take_from_bytes::<Entry<'_, Window>>(bytes);
            let ((name, key, span, window), rest) = read.map_err(|error| Unreadable(error.to_string()))?;
            bytes = rest;
            let Some(aggregator) = self.aggregates.get_mut(name) else { continue };
            let key = Arc::from(key);
            match window {
                Some(mut window) => {
                    window.restored = number;
                    aggregator.restore(&key, window);
                }
                None => aggregator.remove(&key, span),
            }
        }
        self.round = Round { next: number + 1, restored: true, ..Round::default() };
        Ok(())
    }

    /// Up to which time windows of an aggregate are closed, if they are not open.
    pub fn closed(&self, aggregate: &str) -> Option<Micros> {
        self.aggregates.get(aggregate).map(Aggregator::closed)
    }

    /// Up to which time windows of an aggregate were closed.
    pub fn restore_closed(&mut self, aggregate: &str, closed: Micros) {
        if let Some(aggregator) = self.aggregates.get_mut(aggregate) {
            aggregator.restore_closed(closed);
        }
    }

    /// The watermark as it was committed last, after all records.
    pub fn restore_watermark(&mut self, watermark: Micros) {
        self.watermark = watermark;
        self.before_end = watermark;
        self.aggregates.values_mut().for_each(|aggregator| aggregator.reopen(watermark));
    }
}

/// The windows that records leave open, of whatever aggregates: how many of each.
#[derive(Debug, Default)]
pub struct LeftOpen(BTreeMap<String, BTreeSet<(Vec<u8>, Span)>>);

impl LeftOpen {
    /// Takes a record in; all of them, in their order.
    pub fn read(&mut self, mut bytes: &[u8]) -> Result<(), Unreadable> {
        while !bytes.is_empty() {
            let read = postcard::take_from_bytes::<Entry<'_, Window>>(bytes);
            let ((name, key, span, window), rest) = read.map_err(|error| Unreadable(error.to_string()))?;
            bytes = rest;
            let places = self.0.entry(name.to_owned()).or_default();
            let place = (key.to_vec(), span);
            if window.is_some() {
                places.insert(place);
            } else {
                places.remove(&place);
            }
        }
        Ok(())
    }

    /// How many of an aggregate are open.
    pub fn of(&self, aggregate: &str) -> usize {
        self.0.get(aggregate).map_or(0, BTreeSet::len)
    }
}

fn push(bytes: &mut Vec<u8>, name: &str, key: &[u8], span: Span, window: Option<&Window>) {
    let entry: Entry<'_, &Window> = (name, key, span, window);
    postcard::to_io(&entry, bytes).expect("writing to memory cannot fail");
}

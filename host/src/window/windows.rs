//! The windows of all aggregates of a pipeline, and the watermark they are judged by. What changes is told as a record for the
//! ledger; the records, read in their order, give the state back.
//!
//! A record also repeats windows that did not change, where the log of records would grow too long otherwise.

use super::aggregator::{Aggregator, Element, Now};
use super::log::Log;
use super::pane::Pane;
use super::span::Span;
use super::spec::Spec;
use super::state::Window;
use crate::time::Micros;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A record repeats so many windows at most, and two for each that has changed: no commit takes long for it.
const REPEATED: usize = 16;

/// The open windows of all aggregates.
#[derive(Debug)]
pub struct Windows {
    watermark: Micros,
    /// The watermark before the end of a bounded source.
    before_end: Micros,
    /// By name, in its order.
    aggregates: Vec<(Arc<str>, Aggregator)>,
    log: Log,
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
    /// Up to which time windows of an aggregate are closed, if that has moved.
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
        let aggregates = specs.into_iter().map(|(name, spec)| (name, Aggregator::new(spec)));
        let mut aggregates: Vec<(Arc<str>, Aggregator)> = aggregates.collect();
        aggregates.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        Self { watermark: Micros::MIN, before_end: Micros::MIN, aggregates, log: Log::default() }
    }

    /// How far the watermark is.
    pub const fn watermark(&self) -> Micros {
        self.watermark
    }

    /// How many windows are open.
    pub fn open(&self) -> u64 {
        self.aggregates.iter().map(|(_, aggregator)| aggregator.open()).sum()
    }

    /// How many windows of each aggregate are open.
    pub fn open_of_each(&self) -> impl Iterator<Item = (&Arc<str>, u64)> {
        self.aggregates.iter().map(|(name, aggregator)| (name, aggregator.open()))
    }

    /// Adds an event to the windows of an aggregate. Returns those it is too late for.
    pub fn add(&mut self, aggregate: &str, element: Element<'_>, processing_time: Micros) -> Vec<Span> {
        let now = Now { watermark: self.watermark, processing_time };
        self.of_mut(aggregate).map(|aggregator| aggregator.add(element, now)).unwrap_or_default()
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
        self.aggregates.iter().any(|(_, aggregator)| aggregator.is_due(now))
    }

    /// The end of a source that may have more later: windows that expire behind the present fire with it, and stay open.
    pub fn keep_from(&mut self, processing_time: Micros) {
        self.aggregates.iter_mut().for_each(|(_, aggregator)| aggregator.keep_from(processing_time));
    }

    /// What changed since the last record. At the end of a bounded source the watermark that is kept is that of before: another
    /// run may read on.
    pub fn record(&mut self) -> Record {
        let (mut bytes, mut changes) = (Vec::new(), 0);
        for (index, (name, aggregator)) in self.aggregates.iter_mut().enumerate() {
            aggregator.take_changes(self.log.next(), |change| {
                push(&mut bytes, name, change.key, change.span, change.window.map(|(_, window)| window));
                if let Some((id, _)) = change.window {
                    self.log.push(index, id);
                }
                changes += 1;
            });
        }
        if changes > 0 {
            self.repeat(REPEATED + 2 * changes, &mut bytes);
        }
        let (number, first_needed) = (self.log.next(), self.log.first_needed());
        self.log.end_record();
        let closed = self
            .aggregates
            .iter_mut()
            .filter_map(|(name, aggregator)| Some((Arc::clone(name), aggregator.take_closed()?)));
        Record { number, bytes, first_needed, watermark: self.before_end, closed: closed.collect() }
    }

    /// Says the windows again that were said least recently, no more than so many, as long as the log is too long.
    fn repeat(&mut self, most: usize, bytes: &mut Vec<u8>) {
        let open = usize::try_from(self.open()).unwrap_or(usize::MAX);
        let mut repeated = 0;
        while let Some(oldest) = self.log.oldest() {
            let (name, aggregator) = &mut self.aggregates[oldest.aggregate];
            if let Some((key, window)) = aggregator.said(oldest.window, oldest.record) {
                if repeated == most || !self.log.is_long(open) {
                    return;
                }
                push(bytes, name, key, window.span, Some(window));
                window.said = Some(self.log.next());
                self.log.push(oldest.aggregate, oldest.window);
                repeated += 1;
            }
            self.log.pop_oldest();
        }
    }

    /// Takes a record in that was written before; all of them, in their order. What it says of other aggregates is left out.
    pub fn restore(&mut self, number: u64, mut bytes: &[u8]) -> Result<(), Unreadable> {
        self.log.restore(number);
        while !bytes.is_empty() {
            let read = postcard::take_from_bytes::<Entry<'_, Window>>(bytes);
            let ((name, key, span, window), rest) = read.map_err(|error| Unreadable(error.to_string()))?;
            bytes = rest;
            let Ok(index) = self.index(name) else { continue };
            let aggregator = &mut self.aggregates[index].1;
            match window {
                Some(window) => {
                    let id = aggregator.restore(key, window, number);
                    self.log.push(index, id);
                }
                None => aggregator.remove(key, span),
            }
        }
        self.log.end_record();
        Ok(())
    }

    /// Up to which time windows of an aggregate are closed, if they are not open.
    pub fn closed(&self, aggregate: &str) -> Option<Micros> {
        self.index(aggregate).ok().map(|index| self.aggregates[index].1.closed())
    }

    /// Up to which time windows of an aggregate were closed.
    pub fn restore_closed(&mut self, aggregate: &str, closed: Micros) {
        if let Some(aggregator) = self.of_mut(aggregate) {
            aggregator.restore_closed(closed);
        }
    }

    /// The watermark as it was committed last, after all records.
    pub fn restore_watermark(&mut self, watermark: Micros) {
        self.watermark = watermark;
        self.before_end = watermark;
        self.aggregates.iter_mut().for_each(|(_, aggregator)| aggregator.reopen(watermark));
    }

    fn index(&self, aggregate: &str) -> Result<usize, usize> {
        self.aggregates.binary_search_by(|(name, _)| name.as_ref().cmp(aggregate))
    }

    fn of_mut(&mut self, aggregate: &str) -> Option<&mut Aggregator> {
        let index = self.index(aggregate).ok()?;
        Some(&mut self.aggregates[index].1)
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
    let written = postcard::to_extend(&entry, std::mem::take(bytes));
    *bytes = written.expect("writing to memory cannot fail");
}

//! An open window: what it has, and what it has said.

use super::accumulator::Content;
use super::pane::{Pane, Timing};
use super::span::Span;
use super::spec::{Accumulation, Spec};
use crate::row::Value;
use crate::time::Micros;
use serde::{Deserialize, Serialize};
use std::mem;
use std::sync::Arc;

/// A window that still takes events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Its span; that of a session grows.
    pub span: Span,
    /// What its next pane has.
    content: Content,
    /// What its panes had, where the next does not have it again and a merge may take it back.
    spent: Option<Content>,
    /// Panes that were fired.
    pub index: u32,
    /// Whether the watermark has passed its end.
    pub passed: bool,
    /// Events since the last pane.
    pub fresh: u64,
    /// When it fires in processing time.
    pub due: Option<Micros>,
    /// Sessions that were merged into it and have fired, with their next index: they are taken back with its first pane.
    absorbed: Vec<(Span, u32)>,
    /// Whether it was changed since the last commit.
    #[serde(skip)]
    pub changed: bool,
    /// Number of the last record that has it.
    #[serde(skip)]
    pub said: Option<u64>,
}

impl Window {
    /// A window without events.
    pub fn new(span: Span, passed: bool, spec: &Spec) -> Self {
        let content = Content::new(&spec.measures);
        let takes_back = spec.accumulation == Accumulation::Discarding && spec.windowing.merges();
        Self {
            span,
            spent: takes_back.then(|| content.clone()),
            content,
            index: 0,
            passed,
            fresh: 0,
            due: None,
            absorbed: Vec::new(),
            changed: false,
            said: None,
        }
    }

    /// Adds an event.
    pub fn add(&mut self, inputs: &[Value]) {
        self.content.add(inputs);
        self.fresh += 1;
    }

    /// Whether it has fired, or a session that is part of it has.
    pub const fn has_spoken(&self) -> bool {
        self.index > 0 || !self.absorbed.is_empty()
    }

    /// Takes a session over. All its events are in the next pane; what it has fired is taken back with that.
    pub fn absorb(&mut self, other: Self) {
        self.content.merge(&other.content);
        if let Some(spent) = &other.spent {
            self.content.merge(spent);
        }
        self.fresh = self.content.events;
        // What waited to be told late is on time again, if the watermark is not yet at the end of the whole.
        let waits = other.due.filter(|_| self.passed || !other.passed);
        self.due = match (self.due, waits) {
            (Some(ours), Some(theirs)) => Some(ours.min(theirs)),
            (ours, theirs) => ours.or(theirs),
        };
        self.absorbed.extend(other.absorbed);
        if other.index > 0 {
            self.absorbed.push((other.span, other.index));
        }
    }

    /// Fires a pane, behind those that take back what was absorbed.
    pub fn fire(&mut self, key: &Arc<[u8]>, timing: Timing, spec: &Spec, panes: &mut Vec<Pane>) {
        self.absorbed.sort_unstable();
        for (window, index) in self.absorbed.drain(..) {
            panes.push(Pane {
                key: Arc::clone(key),
                window,
                index,
                timing: Timing::Retracted,
                events: 0,
                values: vec![Value::Null; spec.measures.len()],
                overflowed: Vec::new(),
            });
        }
        let (values, overflowed) = self.content.values(&spec.measures);
        panes.push(Pane {
            key: Arc::clone(key),
            window: self.span,
            index: self.index,
            timing,
            events: self.content.events,
            values,
            overflowed,
        });
        self.index += 1;
        self.fresh = 0;
        self.due = None;
        if spec.accumulation == Accumulation::Discarding {
            let said = mem::replace(&mut self.content, Content::new(&spec.measures));
            if let Some(spent) = &mut self.spent {
                spent.merge(&said);
            }
        }
    }
}

//! What the records in the ledger have of open windows, oldest first: so that it is known which of them are of no use any more.
//!
//! The records are a log that does not grow for ever. What is said of a window stands until it is said again, or the window is
//! closed; records before the first of which something stands may be deleted. Where too much of the log has been superseded, the
//! windows that were said least recently are said again, and what was before them goes.

use super::open::Id;
use std::collections::VecDeque;

/// The log holds no more than so many times the open windows, before some are said again.
const TIMES: usize = 3;
/// And so many more.
const MORE: usize = 32;

/// A window in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Said {
    /// Number of the record.
    pub record: u64,
    /// Index of the aggregate.
    pub aggregate: usize,
    /// Number of the window. If it was said again, or is closed, this stands no more.
    pub window: Id,
}

/// What all records have.
#[derive(Debug, Default)]
pub(super) struct Log {
    next: u64,
    said: VecDeque<Said>,
}

impl Log {
    /// Number of the next record.
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Notes that a window is in the next record.
    pub fn push(&mut self, aggregate: usize, window: Id) {
        self.said.push_back(Said { record: self.next, aggregate, window });
    }

    /// The next record has the next number.
    pub fn end_record(&mut self) {
        self.next += 1;
    }

    /// Goes on behind a record of an earlier process.
    pub fn restore(&mut self, record: u64) {
        self.next = record;
    }

    /// What was said least recently.
    pub fn oldest(&self) -> Option<Said> {
        self.said.front().copied()
    }

    /// The oldest stands no more.
    pub fn pop_oldest(&mut self) {
        self.said.pop_front();
    }

    /// Whether it is too long for so many open windows.
    pub fn is_long(&self, open: usize) -> bool {
        self.said.len() > TIMES * open + MORE
    }

    /// Records before this one are of no use any more.
    pub fn first_needed(&self) -> u64 {
        self.said.front().map_or(self.next, |oldest| oldest.record)
    }
}

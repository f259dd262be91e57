//! How much of a stream is held, and how much may be.

use super::look::Found;
use crate::config::PubsubConfig;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What is held or may be: of one stream, or of a worker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub messages: usize,
    pub bytes: usize,
}

impl Share {
    /// Of one of the streams of a subscription.
    pub fn of(config: &PubsubConfig, found: &Found) -> Self {
        let share = |most: usize| most.div_ceil(found.streams(config));
        Self { messages: share(config.max_outstanding_messages), bytes: share(config.max_outstanding_bytes) }
    }

    /// Of all streams together.
    pub fn whole(config: &PubsubConfig) -> Self {
        Self { messages: config.max_outstanding_messages, bytes: config.max_outstanding_bytes }
    }

    /// Whether this is at least as much in one respect.
    pub fn reaches(self, most: Self) -> bool {
        self.messages >= most.messages || self.bytes >= most.bytes
    }
}

/// What of one stream is held, wherever it is by now.
#[derive(Debug, Default)]
pub(super) struct Holding {
    messages: AtomicUsize,
    bytes: AtomicUsize,
}

impl Holding {
    /// One more is held.
    pub fn take(&self, bytes: usize) {
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// It is held no longer.
    pub fn let_go(&self, bytes: usize) {
        self.messages.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether no more may be held.
    pub fn reaches(&self, share: Share) -> bool {
        let held = Share { messages: self.messages.load(Ordering::Relaxed), bytes: self.bytes.load(Ordering::Relaxed) };
        held.reaches(share)
    }
}

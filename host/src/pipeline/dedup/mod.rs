//! Three kinds of "again" that must not be confused: a message that is delivered once more (redelivery), an event that
//! its producer sent twice (duplicate), and an event that an operator wants again (replay of quarantine).
//!
//! [`admit`] looks before the rules: a message that was committed before is left out, an event that is known to be a
//! duplicate is not judged. [`settle`] looks again at the commit, when everything before it is committed, and its word
//! counts: admission only spares work. From settling to the commit nobody else commits: a replay waits.

mod acks;
mod admit;
mod decide;
mod need;
mod settle;

pub use acks::Acking;
pub use need::{DedupNeed, Needs, needs};
pub use settle::Settled;

use crate::config::{Config, DedupConfig, SourceConfig};
use crate::ledger::{Horizon, Retention, Seq};
use crate::source::{Messages, Progress};
use acks::Acks;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, MutexGuard};

/// How long the id of a message is known after it was acknowledged: as long as the longest ack deadline, in running time.
pub const REDELIVERY_HORIZON: Duration = Duration::from_mins(10);

/// What a run does about messages and events that come again. Clones are the same.
#[derive(Debug, Clone)]
pub struct Dedup(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Whether messages may be delivered again.
    redeliveries: bool,
    /// What is done about duplicates.
    duplicates: Option<DedupConfig>,
    bounded: bool,
    started: Instant,
    /// What is counted of the source's messages, once it runs.
    messages: OnceLock<Arc<Messages>>,
    acks: Acks,
    /// Held from settling to the commit.
    committing: Mutex<()>,
}

impl Dedup {
    /// What a pipeline does. Its running time begins now.
    pub fn of(config: &Config) -> Self {
        Self::new(matches!(config.source, SourceConfig::Pubsub(_)), config.dedup.clone())
    }

    /// The same for a source that may deliver a message again and has no end; or for one that has an end, and a position
    /// that tells what was read.
    pub fn new(is_subscription: bool, duplicates: Option<DedupConfig>) -> Self {
        Self(Arc::new(Inner {
            redeliveries: is_subscription,
            duplicates,
            bounded: !is_subscription,
            started: Instant::now(),
            messages: OnceLock::new(),
            acks: Acks::default(),
            committing: Mutex::new(()),
        }))
    }

    /// What the ledger has to keep for it.
    pub fn retention(&self) -> Retention {
        let claims = self
            .0
            .duplicates
            .as_ref()
            .map(|dedup| if self.0.bounded { Horizon::Run } else { Horizon::For(dedup.horizon) });
        Retention { ids: self.0.redeliveries.then_some(REDELIVERY_HORIZON), claims }
    }

    /// Whether keys are to be forgotten when the source was read to its end.
    pub fn ends_with_the_source(&self) -> bool {
        self.0.bounded && self.0.duplicates.is_some()
    }

    /// Whether nothing has to be looked at.
    fn is_off(&self) -> bool {
        !self.0.redeliveries && self.0.duplicates.is_none()
    }

    /// The source runs from now on.
    pub fn reading(&self, progress: &Progress) {
        if let Some(messages) = &progress.messages {
            // A second source of the same run would be a mistake that changes nothing but how long keys are kept.
            self.0.messages.set(Arc::clone(messages)).ok();
        }
    }

    /// The running time of keys. It stands still while the source cannot be reached: an ack may be lost then, and its message
    /// come again only behind that.
    fn ran(&self) -> Duration {
        let away = self.0.messages.get().map_or(Duration::ZERO, |messages| messages.away());
        self.0.started.elapsed().saturating_sub(away)
    }

    /// The messages of a commit are going to be acknowledged.
    pub fn acking(&self, seq: Seq) -> Acking {
        self.0.acks.begin(seq)
    }

    /// Keeps others from committing until it is dropped.
    pub async fn committing(&self) -> MutexGuard<'_, ()> {
        self.0.committing.lock().await
    }
}

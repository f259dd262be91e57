//! Three kinds of "again" that must not be confused: a message that is delivered once more (redelivery), an event that
//! its producer sent twice (duplicate), and an event that an operator wants again (replay of quarantine).
//!
//! `admit` looks before the rules: a message that was committed before is left out, an event that is known to be a
//! duplicate is not judged. `settle` looks again at the commit, when everything before it is committed, and its word
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
use crate::ledger::{Additions, Horizon, Retention, Seq};
use crate::running_time::RunningTime;
use acks::Acks;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, OwnedMutexGuard};

/// How long the id of a message is known after it was acknowledged, in running time: the longest ack deadline, behind it the
/// longest pause of a retry policy, ten minutes each, and as much again to be safe.
pub const REDELIVERY_HORIZON: Duration = Duration::from_mins(30);

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
    /// What horizons are counted in.
    running_time: RunningTime,
    acks: Acks,
    /// Held from settling to the commit.
    committing: Arc<Mutex<()>>,
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
            running_time: RunningTime::start(),
            acks: Acks::default(),
            committing: Arc::default(),
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

    /// The running time of keys. Who cannot read or write halts it: an ack may be lost then and its message come again only
    /// behind that, and what waits to be judged is older than it seems.
    pub fn running_time(&self) -> &RunningTime {
        &self.0.running_time
    }

    fn ran(&self) -> Duration {
        self.0.running_time.passed()
    }

    /// What a commit adds that has no events.
    pub fn nothing_seen(&self) -> Additions {
        Additions { ran: self.ran(), acked: self.0.acks.up_to(), ..Additions::default() }
    }

    /// The messages of a commit are going to be acknowledged.
    pub fn acking(&self, seq: Seq) -> Acking {
        self.0.acks.begin(seq)
    }

    /// Keeps others from committing until it is dropped. Who commits on a thread of its own gives it to the call: nobody may
    /// wait for that any more.
    pub async fn committing(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.0.committing).lock_owned().await
    }
}

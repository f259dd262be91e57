//! Committing: what a micro-batch came to, or what time alone makes due, goes into the ledger in one transaction, and from there
//! to delivery.
//!
//! The commits of a run are made one after the other, and from settling to the end of a commit nobody else commits: a replay
//! waits. Windows change only in between, so what a ledger holds of them is never behind what it holds of events.

use super::bound::Bound;
use super::dedup::{Dedup, Settled};
use super::deliver::Delivery;
use super::error::RunError;
use super::evaluate::{EvaluateError, Evaluated};
use super::plan::Plan;
use super::watermark::WatermarkSource;
use super::windows::{Contribution, EventTime, Step};
use crate::event::Event;
use crate::failpoint;
use crate::ledger::{Additions, Frames, Ledger, Part, Seq};
use crate::source::Leases;
use crate::telemetry::status::Status;
use crate::telemetry::tally::Tally;
use crate::time::{Clock, Micros};
use crate::window::watermark::Estimate;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedMutexGuard, mpsc};

/// How often is looked whether windows that are full have closed.
const FULL: Duration = Duration::from_secs(1);

/// What the watermark must have moved to be worth a commit by itself.
const MOVED: Micros = 1_000_000;

/// A commit that waits for its delivery.
pub(super) struct Commit {
    /// Its number.
    pub seq: Seq,
    /// The counts of its events.
    pub tally: Tally,
    /// Our hold on their messages.
    pub leases: Leases,
}

/// Commits for a run.
pub(super) struct Committer {
    pub delivery: Delivery,
    pub dedup: Dedup,
    /// Windows and what moves their watermark, if anything is measured over windows.
    pub event_time: Option<(EventTime, Mutex<WatermarkSource>)>,
    /// Whether the source has an end, at which all windows close.
    pub is_bounded: bool,
    pub commits: mpsc::Sender<Commit>,
    pub status: Status,
    /// How many events may be rejected, if that is bounded.
    pub bound: Option<Arc<Bound>>,
    pub clock: Arc<dyn Clock>,
}

/// What makes a commit.
pub(super) enum Turn {
    /// A micro-batch that was judged.
    Batch(Box<Result<Evaluated, EvaluateError>>),
    /// Time has passed.
    Tick(Arc<Plan>),
    /// The source was read to its end.
    EndOfInput(Arc<Plan>),
}

/// What is committed together.
struct Work {
    parts: Vec<Part>,
    originals: Frames,
    position: Option<(String, String)>,
    seen: Additions,
    /// Nobody may commit meanwhile, also if nobody waits for this any more.
    _alone: Arc<OwnedMutexGuard<()>>,
}

/// Whether delivery goes on taking commits; where it does not, it has failed and says why itself.
type Delivering = bool;

impl Committer {
    /// Makes a commit, or none if there is nothing to commit.
    pub(super) async fn turn(&self, turn: Turn) -> Result<Delivering, RunError> {
        match turn {
            Turn::Batch(judged) => self.batch(*judged).await,
            Turn::Tick(plan) => self.tick(&plan).await,
            Turn::EndOfInput(plan) => self.end_of_input(&plan).await,
        }
    }

    /// Commits a judged micro-batch.
    async fn batch(&self, judged: Result<Evaluated, EvaluateError>) -> Result<Delivering, RunError> {
        let judged = judged?;
        failpoint::pass(failpoint::BATCH_JUDGED);
        if !judged.contributions.is_empty() && !self.wait_for_windows(&judged.plan).await? {
            return Ok(false);
        }
        // Bounded memory: nothing is committed that delivery has no room for.
        let Ok(room) = self.commits.clone().reserve_owned().await else { return Ok(false) };
        let alone = Arc::new(self.dedup.committing().await);
        let settled = self.dedup.settle(judged, &self.delivery).await?;
        let Settled { mut parts, originals, mut tally, mut seen, contributions, events, .. } = settled;
        let Settled { plan, position, leases, submitted, revision, .. } = settled;
        let read = tally.read;
        seen.counts = tally.clone();
        let mut more = false;
        if let Some((event_time, source)) = &self.event_time {
            // Once for each event, whatever it is measured for.
            let first = contributions.iter().filter(|contribution| contribution.aggregate == 0);
            let behind = |of: &Contribution| events[of.event as usize].publish_time.saturating_sub(of.event_time);
            self.delivery.metrics.out_of_orderness(first.map(behind));
            lock(source)
                .committed(events.iter().filter(|event| event.refused().is_none()).map(|event| event.publish_time));
            let watermark = lock(source).estimate(event_time.watermark()).watermark;
            let step = Self::step(event_time, &plan, contributions, events, watermark, &self.clock).await?;
            more = Self::take(step, &mut parts, &mut seen, &mut tally);
        }
        let work = Work { parts, originals, position, seen, _alone: Arc::clone(&alone) };
        let seq = self.commit(work).await?;
        let bound = self.bound.as_ref().map_or(Ok(()), |bound| bound.add(&tally));
        room.send(Commit { seq, tally, leases });
        bound?;
        let micros = u64::try_from(submitted.elapsed().as_micros()).unwrap_or(u64::MAX);
        tracing::debug!(target: "preflight::batch", seq, events = read, revision, micros, "committed");
        if more { self.windows(&plan, Micros::MIN, alone).await } else { Ok(true) }
    }

    /// Commits what time alone makes due, if anything is, or if the watermark has moved.
    async fn tick(&self, plan: &Arc<Plan>) -> Result<Delivering, RunError> {
        let Some((event_time, source)) = &self.event_time else { return Ok(true) };
        let current = event_time.watermark();
        let watermark = self.estimate(event_time, source);
        let moved = watermark.saturating_sub(current) >= MOVED;
        if !moved && !event_time.is_due(watermark, self.clock.as_ref()) {
            return Ok(true);
        }
        let alone = Arc::new(self.dedup.committing().await);
        self.windows(plan, watermark, alone).await
    }

    /// The source was read to its end: closes all windows.
    async fn end_of_input(&self, plan: &Arc<Plan>) -> Result<Delivering, RunError> {
        if self.event_time.is_none() || !self.is_bounded {
            return Ok(true);
        }
        let alone = Arc::new(self.dedup.committing().await);
        self.windows(plan, Micros::MAX, alone).await
    }

    /// Commits until nothing is due. The watermark moves on, if this is further.
    async fn windows(
        &self,
        plan: &Arc<Plan>,
        watermark: Micros,
        alone: Arc<OwnedMutexGuard<()>>,
    ) -> Result<Delivering, RunError> {
        let Some((event_time, _)) = &self.event_time else { return Ok(true) };
        loop {
            let Ok(room) = self.commits.clone().reserve_owned().await else { return Ok(false) };
            let step = Self::step(event_time, plan, Vec::new(), Arc::default(), watermark, &self.clock).await?;
            let (mut parts, mut seen, mut tally) = (Vec::new(), self.dedup.nothing_seen(), Tally::default());
            let more = Self::take(step, &mut parts, &mut seen, &mut tally);
            let originals = Frames::default();
            let seq = self.commit(Work { parts, originals, position: None, seen, _alone: Arc::clone(&alone) }).await?;
            room.send(Commit { seq, tally, leases: Leases::default() });
            if !more {
                return Ok(true);
            }
        }
    }

    /// How far the watermark may move. Told is what is committed, and why it goes no further.
    fn estimate(&self, event_time: &EventTime, source: &Mutex<WatermarkSource>) -> Micros {
        let current = event_time.watermark();
        let estimate = lock(source).estimate(current);
        self.delivery.metrics.watermark(&Estimate { watermark: current, ..estimate });
        estimate.watermark
    }

    /// On a thread that may take its time.
    ///
    /// What is changed in memory by this is in the commit that follows. Where that fails for good the run ends, and the next
    /// begins with what the ledger has.
    async fn step(
        event_time: &EventTime,
        plan: &Arc<Plan>,
        contributions: Vec<Contribution>,
        events: Arc<Vec<Event>>,
        watermark: Micros,
        clock: &Arc<dyn Clock>,
    ) -> Result<Option<Step>, RunError> {
        let (event_time, plan, clock) = (event_time.clone(), Arc::clone(plan), Arc::clone(clock));
        let stepping = tokio::task::spawn_blocking(move || {
            let step = |windows| event_time.step(windows, &contributions, &events, watermark, clock.as_ref());
            plan.windows.as_ref().map(step).transpose()
        });
        let step = stepping.await.map_err(|error| RunError::Thread(std::io::Error::other(error)))?;
        Ok(step?)
    }

    /// Takes what windows add into a commit. Returns whether more is due.
    fn take(step: Option<Step>, parts: &mut Vec<Part>, seen: &mut Additions, tally: &mut Tally) -> bool {
        let Some(Step { parts: more_parts, record, more, counts }) = step else { return false };
        parts.extend(more_parts);
        seen.windows = Some(record);
        tally.windows.add(&counts);
        more
    }

    async fn commit(&self, work: Work) -> Result<Seq, RunError> {
        for part in work.parts.iter().filter(|part| !part.rows.is_empty()) {
            self.delivery.ensure_stream(part.tier).await?;
        }
        // A retry needs the parts again, so they are shared until the commit takes them.
        let work = Arc::new(work);
        let call = move |ledger: &mut Ledger| {
            let Work { parts, originals, position, seen, .. } = work.as_ref();
            ledger.commit(parts, originals, position.as_ref().map(|(key, at)| (key.as_str(), at.as_str())), seen)
        };
        let committing = Instant::now();
        let seq = self.delivery.ledger.retrying(&self.delivery.patience, call).await?;
        failpoint::pass(failpoint::LEDGER_COMMITTED);
        self.delivery.metrics.committed(committing.elapsed());
        if let Some((event_time, source)) = &self.event_time {
            event_time.committed();
            self.estimate(event_time, source);
            for (aggregate, open) in event_time.open() {
                self.delivery.metrics.windows_open(&aggregate, open);
            }
        }
        Ok(seq)
    }

    /// Waits while as many windows are open as may be: memory is bounded by them. Nothing is read meanwhile, and the watermark
    /// goes on as far as what is held lets it, whatever else would hold it.
    async fn wait_for_windows(&self, plan: &Arc<Plan>) -> Result<Delivering, RunError> {
        let Some((event_time, source)) = &self.event_time else { return Ok(true) };
        if !event_time.is_full() {
            return Ok(true);
        }
        let limit = event_time.limit();
        if self.is_bounded {
            return Err(RunError::TooManyWindows { limit });
        }
        tracing::error!(limit, "as many windows are open as may be; nothing is read until some have closed");
        let mut trouble = self.status.trouble();
        trouble.is(format!(
            "{limit} windows are open (limits.open_windows): nothing is read until some have closed. Raise the limit if there is \
             memory for more"
        ));
        loop {
            // Where it is held it would stay for ever: what waits here is part of what holds it.
            let unheld = lock(source).unheld(event_time.watermark());
            let alone = Arc::new(self.dedup.committing().await);
            if !self.windows(plan, unheld, alone).await? {
                return Ok(false);
            }
            if !event_time.is_full() {
                tracing::info!("windows have closed, reading goes on");
                return Ok(true);
            }
            tokio::time::sleep(FULL).await;
        }
    }
}

fn lock(source: &Mutex<WatermarkSource>) -> MutexGuard<'_, WatermarkSource> {
    // It is whole after every call.
    source.lock().unwrap_or_else(PoisonError::into_inner)
}

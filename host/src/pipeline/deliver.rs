//! Sending what the ledger promised, lowest commit first, until the warehouse confirms it.

mod moved;
mod refused;
mod resume;
mod sinks;
mod taken;

use super::plan::Plan;
use super::retry::{Backoff, Patience, retrying};
use crate::failpoint;
use crate::ledger::{Ledger, LedgerError, Seq};
use crate::reject_files::RejectFiles;
use crate::telemetry::metrics::{Metrics, Retry};
use crate::telemetry::tally::Tally;
use crate::warehouse::{AppendError, Layout, StreamRows, Tier, Warehouse, WarehouseError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

/// A ledger that the committing and the delivering side share.
#[derive(Clone)]
pub struct SharedLedger(Arc<Mutex<Ledger>>);

impl SharedLedger {
    /// Shares a ledger.
    pub fn new(ledger: Ledger) -> Self {
        Self(Arc::new(Mutex::new(ledger)))
    }

    /// Runs a call on a blocking thread.
    pub async fn call<T: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Ledger) -> Result<T, LedgerError> + Send + 'static,
    ) -> Result<T, LedgerError> {
        let ledger = Arc::clone(&self.0);
        let result = tokio::task::spawn_blocking(move || {
            // A panic in another call left no half transaction: SQLite rolled it back.
            let mut ledger = ledger.lock().unwrap_or_else(PoisonError::into_inner);
            f(&mut ledger).map_err(|error| error.at(ledger.directory()))
        });
        result.await.unwrap_or_else(|error| Err(LedgerError::Damaged(format!("a call to it failed: {error}"))))
    }

    /// Runs a call, waiting and repeating it while the disk is full or the database is held by another program.
    pub async fn retrying<T: Send + 'static>(
        &self,
        patience: &Patience,
        f: impl Fn(&mut Ledger) -> Result<T, LedgerError> + Clone + Send + 'static,
    ) -> Result<T, LedgerError> {
        retrying(patience, || self.call(f.clone())).await
    }
}

/// Why delivery stopped. What was promised stays in the ledger.
#[derive(Debug, thiserror::Error)]
pub enum DeliverError {
    /// The ledger failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The warehouse failed otherwise than on an append.
    #[error(transparent)]
    Warehouse(#[from] WarehouseError),
    /// Ledger and warehouse do not know the same rows.
    #[error(
        "{0}: ledger and database are not of the same time (was one of them restored from a backup?). Restore the other \
         to that time too; a ledger that is older than its table would write rows again, a younger one would miss some"
    )]
    Diverged(String),
    /// An append failed for good, or for longer than `give_up_after`.
    #[error("cannot write to {tier}: {error}{advice}")]
    Append {
        /// The target.
        tier: Tier,
        /// Why.
        error: AppendError,
        /// What it means for what was read.
        advice: &'static str,
    },
    /// It failed before, for this reason, when another waited for it.
    #[error("{0}")]
    Before(String),
}

const KEPT: &str = ". Nothing is lost: the ledger holds what was read and not written, the next run sends it first";

const LOOKED_FOR: &str = ". The next run looks for what it had written, and sends the rest";

/// What the sides that send know of each other.
#[derive(Default)]
struct Sending {
    /// What tables refused of commits that the other side has sent.
    refused: BTreeMap<Seq, Tally>,
    /// Commits that this process has begun to send and that are not done.
    begun: BTreeSet<Seq>,
    /// Why it failed: it is over, and nobody is to wait as long again.
    failed: Option<String>,
}

/// When rows were bound to a target's stream last.
type Used = BTreeMap<Tier, Instant>;

/// Sends commits of a ledger to a warehouse.
#[derive(Clone)]
pub struct Delivery {
    /// What was promised.
    pub ledger: SharedLedger,
    /// Where it goes.
    pub warehouse: Arc<dyn Warehouse>,
    /// Where rejects go as they came, if they go to files.
    files: Option<Arc<RejectFiles>>,
    /// How quarantine rows are made of refused events; follows the tables.
    plan: Arc<RwLock<Arc<Plan>>>,
    /// How long failures that may pass are waited for.
    pub patience: Patience,
    /// Held while a stream is made: the committing and the delivering side may both find one missing.
    making_streams: Arc<tokio::sync::Mutex<Used>>,
    /// Held while commits are sent, by whoever waits for one: a micro-batch or a replay.
    sending: Arc<tokio::sync::Mutex<Sending>>,
    /// Counts and times what is sent.
    pub metrics: Metrics,
}

impl Delivery {
    /// A delivery of what this ledger promises.
    pub fn new(
        ledger: Ledger,
        warehouse: Arc<dyn Warehouse>,
        plan: Arc<Plan>,
        patience: Patience,
        metrics: Metrics,
    ) -> Self {
        let (making_streams, sending) = (Arc::default(), Arc::default());
        let plan = Arc::new(RwLock::new(plan));
        let ledger = SharedLedger::new(ledger);
        Self { ledger, warehouse, files: None, plan, patience, making_streams, sending, metrics }
    }

    /// Where values go.
    pub fn plan(&self) -> Arc<Plan> {
        Arc::clone(&self.plan.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Where values go from now on: the tables have changed.
    pub fn replan(&self, plan: Arc<Plan>) {
        *self.plan.write().unwrap_or_else(PoisonError::into_inner) = plan;
    }

    /// Delivers every undone commit up to `last`. Returns what changed in the counts of `last` itself: rows that a table
    /// refused after all are no longer accepted.
    pub async fn deliver(&self, last: Seq) -> Result<Tally, DeliverError> {
        let mut sending = self.sending.lock().await;
        self.send(&mut sending, Some(last)).await?;
        Ok(sending.refused.remove(&last).unwrap_or_default())
    }

    /// Delivers every undone commit.
    pub async fn deliver_all(&self) -> Result<(), DeliverError> {
        self.send(&mut *self.sending.lock().await, None).await
    }

    async fn send(&self, sending: &mut Sending, last: Option<Seq>) -> Result<(), DeliverError> {
        if let Some(why) = &sending.failed {
            return Err(DeliverError::Before(why.clone()));
        }
        let sent = self.send_up_to(last, sending).await;
        if let Err(error) = &sent {
            sending.failed = Some(error.to_string());
        }
        sent
    }

    async fn send_up_to(&self, last: Option<Seq>, sending: &mut Sending) -> Result<(), DeliverError> {
        let mut until = last;
        loop {
            let first = self.ledger.call(|ledger| Ok(ledger.first_undone())).await?;
            match first {
                Some(seq) if until.is_none_or(|until| seq <= until) => {
                    let promised = self.deliver_one(seq, sending).await?;
                    // An event whose row was refused is durable in quarantine only: its message is acknowledged after that.
                    if last.is_some_and(|last| seq <= last) {
                        until = until.max(promised);
                    }
                }
                _ => return Ok(()),
            }
        }
    }

    /// Delivers a commit. Returns the last commit that promises what a table refused of it to quarantine.
    async fn deliver_one(&self, seq: Seq, sending: &mut Sending) -> Result<Option<Seq>, DeliverError> {
        let mut promised = None;
        let mut backoff = Backoff::new(&self.patience);
        loop {
            let read = move |ledger: &mut Ledger| Ok((ledger.entries(seq)?, ledger.resolution(seq)));
            let (entries, resolution) = self.ledger.retrying(&self.patience, read).await?;
            // Before it is sent: whoever waits for it may be gone before the answer, and another sends it again.
            let first = sending.begun.insert(seq);
            let began = Instant::now();
            let results = self.append(&entries).await;
            self.metrics.sent(began.elapsed());
            failpoint::pass(failpoint::ROWS_APPENDED);
            if first {
                self.refuse_taken(seq, &entries, &results).await?;
            }
            let problems = entries.iter().zip(results).filter_map(|(entry, result)| result.err().map(|e| (entry, e)));
            // What may pass for one entry does not, if another failed for good.
            let problem = problems.min_by_key(|(_, error)| matches!(error, AppendError::Retryable(_)));
            match problem {
                None => {
                    if let Some(resolution) = resolution {
                        retrying(&self.patience, || self.warehouse.resolve(Arc::clone(&resolution))).await?;
                        failpoint::pass(failpoint::ROWS_RESOLVED);
                    }
                    self.ledger.retrying(&self.patience, move |ledger| ledger.done(seq)).await?;
                    sending.begun.remove(&seq);
                    failpoint::pass(failpoint::ENTRY_DONE);
                    self.metrics.confirmed(&entries);
                    return Ok(promised);
                }
                // Bronze and quarantine take every event: a table that refuses one of theirs stops the pipeline.
                Some((entry, AppendError::Rows(rows))) if entry.tier == Tier::Silver => {
                    let refused = sending.refused.entry(seq).or_default();
                    match resolution {
                        Some(resolution) => self.withdraw(seq, entry, &rows, &resolution, refused).await?,
                        None => promised = Some(self.replace(seq, entry, &rows, refused).await?),
                    }
                }
                Some((entry, AppendError::Retryable(why))) => {
                    tracing::warn!(tier = entry.tier.as_str(), "cannot write, trying again: {why}");
                    if !backoff.wait(Retry::Append, format!("{}: {why}", entry.tier)).await {
                        let error = AppendError::Retryable(why);
                        return Err(DeliverError::Append { tier: entry.tier, error, advice: KEPT });
                    }
                }
                Some((entry, error)) => {
                    if let AppendError::Replaced(_) = error {
                        self.distrust(entry.tier).await?;
                    }
                    let advice = match &error {
                        AppendError::Replaced(_) => LOOKED_FOR,
                        AppendError::StreamGone(_) if self.warehouse.stream_lifetime().is_some() => LOOKED_FOR,
                        // Here the ledger itself is in doubt.
                        AppendError::OutOfRange { .. } | AppendError::StreamGone(_) => "",
                        _ => KEPT,
                    };
                    return Err(DeliverError::Append { tier: entry.tier, error, advice });
                }
            }
        }
    }

    /// Makes sure that a target has a stream to bind rows to: made in the warehouse first, then recorded. A crash in
    /// between leaves an unused stream. One that was left alone for so long that the warehouse may forget it is replaced.
    /// Rows that are upserted need none.
    pub async fn ensure_stream(&self, tier: Tier) -> Result<(), DeliverError> {
        let mut used = self.making_streams.lock().await;
        let last = used.insert(tier, Instant::now());
        if let (Some(last), Some(lifetime)) = (last, self.warehouse.stream_lifetime())
            && last.elapsed() >= lifetime
        {
            self.retire_stream(tier).await?;
        }
        let missing = self.ledger.call(move |ledger| Ok(ledger.stream(tier).is_none())).await?;
        let wanted = |layout: &&Arc<Layout>| missing && layout.upsert.is_none();
        let Some(layout) = self.plan().layout(tier).filter(wanted).cloned() else { return Ok(()) };
        let name = self.ledger.retrying(&self.patience, move |ledger| ledger.new_stream_name(tier)).await?;
        let name = self.create_stream(tier, &name, &layout).await?;
        failpoint::pass(failpoint::STREAM_CREATED);
        let open = move |ledger: &mut Ledger| ledger.open_stream(tier, &name, Arc::clone(&layout));
        self.ledger.retrying(&self.patience, open).await?;
        failpoint::pass(failpoint::STREAM_RECORDED);
        Ok(())
    }
}

/// Ledger and warehouse count the rows of a stream differently.
fn diverged(stream: &str, rows: StreamRows, counted: &str) -> DeliverError {
    let has = match rows {
        StreamRows::Rows(rows) => format!("has {rows} rows"),
        StreamRows::Unknown | StreamRows::Missing => "is missing".to_owned(),
    };
    DeliverError::Diverged(format!("stream {stream} {has}, but the ledger counts {counted}"))
}

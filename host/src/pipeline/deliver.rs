//! Sending what the ledger promised, lowest commit first, until the warehouse confirms it.

use super::assemble::{Assembler, Judged};
use super::plan::{HostTable, Plan};
use super::retry::{Backoff, Patience, retrying};
use crate::failpoint;
use crate::ledger::{Frames, Ledger, LedgerError, Part, Refused, Seq};
use crate::telemetry::metrics::{Metrics, Retry};
use crate::telemetry::tally::{CountedVersion, Tally};
use crate::verdict::{Rejection, stage};
use crate::warehouse::events::Resolution;
use crate::warehouse::{AppendError, Entry, Sqlite, Tier, WarehouseError, quarantine_columns};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
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

fn refusal(why: &str) -> Rejection {
    Rejection::by_host(stage::SINK_REJECTED, "refused_by_table", why)
}

/// What the sides that send know of each other.
#[derive(Default)]
struct Sending {
    /// What tables refused of commits that the other side has sent.
    refused: BTreeMap<Seq, Tally>,
    /// Why it failed: it is over, and nobody is to wait as long again.
    failed: Option<String>,
}

/// Sends commits of a ledger to a warehouse.
#[derive(Clone)]
pub struct Delivery {
    /// What was promised.
    pub ledger: SharedLedger,
    /// Where it goes.
    pub warehouse: Sqlite,
    /// How quarantine rows are made of refused events.
    pub plan: Arc<Plan>,
    /// How long failures that may pass are waited for.
    pub patience: Patience,
    /// Held while a stream is made: the committing and the delivering side may both find one missing.
    making_streams: Arc<tokio::sync::Mutex<()>>,
    /// Held while commits are sent, by whoever waits for one: a micro-batch or a replay.
    sending: Arc<tokio::sync::Mutex<Sending>>,
    /// Counts and times what is sent.
    pub metrics: Metrics,
}

impl Delivery {
    /// A delivery of what this ledger promises.
    pub fn new(ledger: Ledger, warehouse: Sqlite, plan: Arc<Plan>, patience: Patience, metrics: Metrics) -> Self {
        let (making_streams, sending) = (Arc::default(), Arc::default());
        Self { ledger: SharedLedger::new(ledger), warehouse, plan, patience, making_streams, sending, metrics }
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
        let sent = self.send_up_to(last, &mut sending.refused).await;
        if let Err(error) = &sent {
            sending.failed = Some(error.to_string());
        }
        sent
    }

    async fn send_up_to(&self, last: Option<Seq>, refused: &mut BTreeMap<Seq, Tally>) -> Result<(), DeliverError> {
        loop {
            let first = self.ledger.call(|ledger| Ok(ledger.first_undone())).await?;
            match first {
                Some(seq) if last.is_none_or(|last| seq <= last) => self.deliver_one(seq, refused).await?,
                _ => return Ok(()),
            }
        }
    }

    async fn deliver_one(&self, seq: Seq, refused: &mut BTreeMap<Seq, Tally>) -> Result<(), DeliverError> {
        let mut backoff = Backoff::new(&self.patience);
        loop {
            let read = move |ledger: &mut Ledger| Ok((ledger.entries(seq)?, ledger.resolution(seq)));
            let (entries, resolution) = self.ledger.retrying(&self.patience, read).await?;
            let sending = Instant::now();
            let results = self.warehouse.append(Arc::clone(&entries)).await;
            self.metrics.sent(sending.elapsed());
            failpoint::pass(failpoint::ROWS_APPENDED);
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
                    failpoint::pass(failpoint::ENTRY_DONE);
                    self.metrics.confirmed(&entries);
                    return Ok(());
                }
                // Bronze and quarantine take every event: a table that refuses one of theirs stops the pipeline.
                Some((entry, AppendError::Rows(rows))) if entry.tier == Tier::Silver => {
                    let refused = refused.entry(seq).or_default();
                    match resolution {
                        Some(resolution) => self.withdraw(seq, entry, &rows, &resolution, refused).await?,
                        None => self.replace(seq, entry, &rows, refused).await?,
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
                    let advice = match &error {
                        // Here the ledger itself is in doubt.
                        AppendError::OutOfRange { .. } | AppendError::StreamGone(_) => "",
                        _ => KEPT,
                    };
                    return Err(DeliverError::Append { tier: entry.tier, error, advice });
                }
            }
        }
    }

    /// Takes refused rows out of the entry of a replay. Their events are in quarantine already, and stay there.
    async fn withdraw(
        &self,
        seq: Seq,
        entry: &Entry,
        rows: &[(usize, String)],
        resolution: &Resolution,
        refused: &mut Tally,
    ) -> Result<(), DeliverError> {
        let mut events = BTreeSet::new();
        for (row, why) in rows {
            let event = entry.rows.event(*row);
            events.insert(event);
            let resolved = resolution.rows.iter().find(|row| row.event == event);
            let version = resolved.and_then(|row| row.version.as_deref());
            // A silver row comes from a rule.
            refused.of(CountedVersion::new(version, true)).reject(&refusal(why));
            let message_id = resolved.map(|row| &row.message_id);
            tracing::warn!(message_id, "the table refused a replayed row, its event stays in quarantine: {why}");
        }
        let indexes: Vec<usize> = rows.iter().map(|(index, _)| *index).collect();
        let mut resolution = resolution.clone();
        resolution.rows.retain(|row| !events.contains(&row.event));
        let work = Arc::new((entry.rows.without(&indexes), resolution));
        let call = move |ledger: &mut Ledger| ledger.withdraw(seq, &work.0, work.1.clone());
        self.ledger.retrying(&self.patience, call).await?;
        failpoint::pass(failpoint::ENTRY_REPLACED);
        Ok(())
    }

    /// Takes refused rows out of an entry and promises their events to quarantine.
    async fn replace(
        &self,
        seq: Seq,
        entry: &Entry,
        rows: &[(usize, String)],
        refused: &mut Tally,
    ) -> Result<(), DeliverError> {
        let originals = self.ledger.retrying(&self.patience, move |ledger| ledger.originals(seq)).await?;
        self.ensure_stream(Tier::Quarantine).await?;
        let plan = self.plan_for_open_quarantine().await?;
        let mut assembler = Assembler::new(&plan);
        let mut events = Vec::new();
        for (row, why) in rows {
            let original = originals
                .get(entry.rows.event(*row) as usize)
                .ok_or_else(|| LedgerError::Damaged(format!("commit {seq} has no event for row {row}")))?;
            let rejection = refusal(why);
            let judged = Judged {
                index: u32::try_from(events.len()).expect("fewer rows are refused than were sent"),
                event: &original.event,
                version: original.version.as_deref(),
                rule: original.rule.as_ref().map(|(label, digest)| (label.as_ref(), digest.as_ref())),
            };
            assembler.quarantine(judged, &original.event.attributes_json(), &rejection);
            refused.of(CountedVersion::new(judged.version, judged.rule.is_some())).reject(&rejection);
            events.push(original.clone());
            tracing::warn!(message_id = original.event.message_id, "the table refused a row: {why}");
        }
        let indexes: Vec<usize> = rows.iter().map(|(index, _)| *index).collect();
        let kept = entry.rows.without(&indexes);
        let [_, _, quarantine] = assembler.rows;
        let tier = entry.tier;
        let (mut originals, mut frames) = (Frames::default(), Frames::default());
        originals.push(&events);
        frames.push(&quarantine);
        let layout = Arc::clone(&plan.quarantine.layout);
        let part = Part { tier: Tier::Quarantine, layout, rows: Arc::new(quarantine), frames };
        let work = Arc::new((kept, part, originals));
        let call = move |ledger: &mut Ledger| {
            let (kept, part, originals) = work.as_ref();
            ledger.replace(&Refused { seq, tier, kept, quarantine: part, originals })
        };
        self.ledger.retrying(&self.patience, call).await?;
        failpoint::pass(failpoint::ENTRY_REPLACED);
        Ok(())
    }

    /// The plan with the quarantine table that rows are bound to now. A stream that an earlier run opened keeps its
    /// table and columns, whatever the table or the pipeline file has become since.
    async fn plan_for_open_quarantine(&self) -> Result<Plan, DeliverError> {
        let mut plan = Plan::clone(&self.plan);
        let layout =
            self.ledger.call(|ledger| Ok(ledger.stream(Tier::Quarantine).map(|s| Arc::clone(&s.layout)))).await?;
        if let Some(layout) = layout.filter(|layout| *layout != plan.quarantine.layout) {
            let columns = layout.columns.iter().map(|name| {
                let known = quarantine_columns().iter().find(|column| column.name.eq_ignore_ascii_case(name));
                known.map(|column| column.host).ok_or_else(|| {
                    LedgerError::Damaged(format!(
                        "its quarantine stream has a column `{name}` that the host does not fill"
                    ))
                })
            });
            let columns = columns.collect::<Result<_, _>>()?;
            plan.quarantine = HostTable { layout, columns };
        }
        Ok(plan)
    }

    /// Makes sure that a target has a stream to bind rows to: made in the warehouse first, then recorded. A crash in
    /// between leaves an unused stream.
    pub async fn ensure_stream(&self, tier: Tier) -> Result<(), DeliverError> {
        let _making = self.making_streams.lock().await;
        let missing = self.ledger.call(move |ledger| Ok(ledger.stream(tier).is_none())).await?;
        let Some(layout) = self.plan.layout(tier).filter(|_| missing).cloned() else { return Ok(()) };
        let name = self.ledger.retrying(&self.patience, move |ledger| ledger.new_stream_name(tier)).await?;
        retrying(&self.patience, || self.warehouse.create_stream(&name, &layout.table)).await?;
        failpoint::pass(failpoint::STREAM_CREATED);
        let open = move |ledger: &mut Ledger| ledger.open_stream(tier, &name, Arc::clone(&layout));
        self.ledger.retrying(&self.patience, open).await?;
        failpoint::pass(failpoint::STREAM_RECORDED);
        Ok(())
    }

    /// What every start does first: sends what an earlier run promised, on its streams, then finalizes them, so that a
    /// worker that still thinks it owns them meets a closed door. Returns how many commits were sent.
    pub async fn resume(&self) -> Result<u64, DeliverError> {
        self.refuse_other_times().await?;
        let undone = self.ledger.call(|ledger| Ok(ledger.undone())).await? as u64;
        self.deliver_all().await?;
        // Their counts were an earlier run's.
        self.sending.lock().await.refused.clear();
        failpoint::pass(failpoint::UNDONE_SENT);
        // All of them before the first is finalized: what is found here leaves everything as it is.
        self.compare_open_streams().await?;
        for tier in Tier::ALL {
            let stream = self.ledger.call(move |ledger| Ok(ledger.stream(tier).cloned())).await?;
            let Some(stream) = stream else { continue };
            let rows = retrying(&self.patience, || self.warehouse.finalize_stream(&stream.name)).await?;
            failpoint::pass(failpoint::STREAM_FINALIZED);
            let rows = rows.unwrap_or(0);
            if rows != stream.next_offset {
                return Err(DeliverError::Diverged(format!(
                    "stream {} has {rows} rows, but the ledger counts {}",
                    stream.name, stream.next_offset
                )));
            }
            self.ledger.retrying(&self.patience, move |ledger| ledger.close_stream(tier)).await?;
            failpoint::pass(failpoint::STREAM_CLOSED);
        }
        self.forget_old_streams().await?;
        Ok(undone)
    }

    /// Of the streams of earlier runs only the last of each target is of use, to be compared at the next start.
    async fn forget_old_streams(&self) -> Result<(), DeliverError> {
        let call = |ledger: &mut Ledger| Ok((ledger.id().to_owned(), ledger.closed_streams()?));
        let (id, last) = self.ledger.retrying(&self.patience, call).await?;
        let keep: Vec<String> = last.into_iter().map(|(name, _)| name).collect();
        Ok(retrying(&self.patience, || self.warehouse.forget_streams(&id, keep.clone())).await?)
    }

    /// Before anything is sent: the warehouse must have what earlier runs wrote, and no stream of ours that we do not
    /// know.
    async fn refuse_other_times(&self) -> Result<(), DeliverError> {
        let id = self.ledger.call(|ledger| Ok(ledger.id().to_owned())).await?;
        for name in retrying(&self.patience, || self.warehouse.streams_with(&id)).await? {
            let stream = name.clone();
            if self.ledger.retrying(&self.patience, move |ledger| ledger.is_younger(&stream)).await? {
                return Err(DeliverError::Diverged(format!("the ledger does not know its own stream {name}")));
            }
        }
        for (name, counted) in self.ledger.retrying(&self.patience, |ledger| ledger.closed_streams()).await? {
            let rows = retrying(&self.patience, || self.warehouse.stream_rows(&name)).await?.unwrap_or(0);
            if rows != counted {
                let what = format!("stream {name} has {rows} rows, but the ledger counts {counted}");
                return Err(DeliverError::Diverged(what));
            }
        }
        self.compare_open_streams().await
    }

    /// An open stream has all rows that are confirmed, and none that was never bound.
    async fn compare_open_streams(&self) -> Result<(), DeliverError> {
        for (stream, least) in self.ledger.retrying(&self.patience, |ledger| ledger.open_streams()).await? {
            let (name, most) = (&stream.name, stream.next_offset);
            match retrying(&self.patience, || self.warehouse.stream_rows(name)).await? {
                Some(rows) if (least..=most).contains(&rows) => {}
                None if most == 0 => {}
                rows => {
                    let rows = rows.map_or_else(|| "is missing".to_owned(), |rows| format!("has {rows} rows"));
                    let counted = if least == most { most.to_string() } else { format!("{least} to {most}") };
                    return Err(DeliverError::Diverged(format!(
                        "stream {name} {rows}, but the ledger counts {counted}"
                    )));
                }
            }
        }
        Ok(())
    }
}

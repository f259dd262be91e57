//! Replaying quarantine: events are judged again from their original bytes and metadata, by the rules as they are now.
//!
//! What is accepted or ignored leaves quarantine: one ledger transaction holds the silver rows and the quarantine rows to
//! be marked; delivery appends the ones, then marks the others. What was promised is always delivered before anything
//! new is selected, so an event that was taken is not selected again. What is rejected again stays as it is.
//!
//! [`command`] is the command's side: it asks the worker that holds the ledger, or does it itself where there is none. The
//! worker's side is [`serve`](super::requests::serve). [`forecast`] says beforehand what will be late.

pub mod command;
pub mod forecast;
pub mod report;

use super::dedup::{Dedup, Settled};
use super::deliver::{DeliverError, Delivery};
use super::evaluate::{Context, EvaluateError, Evaluated, Evaluators};
use super::facts::Admitted;
use super::plan::Plan;
use super::windows::{Ahead, EventTime};
use crate::config::{BatchConfig, Config, WarehouseConfig};
use crate::event::Event;
use crate::failpoint;
use crate::ledger::{Ledger, LedgerError, Original, Part};
use crate::telemetry::tally::Tally;
use crate::time::{Clock, Micros};
use crate::warehouse::events::StoredEvents;
use crate::warehouse::events::{EventsError, Filter, NotReplayable, Page, Resolution, Resolved, RowId, StoredEvent};
use crate::warehouse::{self, Tier, WarehouseError};
use forecast::Forecast;
use report::ReplayReport;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// What is to be replayed, and who asks for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// Which rows.
    pub filter: Filter,
    /// What `resolved_by` says, before the digest of the rule.
    pub by: String,
    /// Where to go on, if it was begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<Progress>,
}

/// How far a replay came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// What it came to.
    pub report: ReplayReport,
    /// The last row that was looked at.
    pub after: RowId,
    /// The last row that is to be looked at.
    pub until: RowId,
}

/// Why a replay failed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The table does not hold what a replay needs.
    #[error("{0}")]
    NotReplayable(NotReplayable),
    /// A run that replaces silver is not over.
    #[error(
        "a run that replaces silver is not over, and what is replayed would go to a table that is replaced: replay when the run \
         is published, or drop it with `preflight run --restart`"
    )]
    Replacing,
    /// Its events cannot be read.
    #[error(transparent)]
    Events(#[from] EventsError),
    /// They cannot be judged.
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
    /// The ledger failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// What was judged cannot be written.
    #[error(transparent)]
    Deliver(#[from] DeliverError),
    /// A commit of windows failed before.
    #[error(transparent)]
    Ahead(#[from] Ahead),
}

impl ReplayError {
    /// Whether it is only this replay's failure: the worker that does it can go on.
    pub fn is_its_own(&self) -> bool {
        matches!(self, Self::NotReplayable(_) | Self::Events(_) | Self::Replacing)
    }

    /// Whether what was asked for is at fault.
    pub fn is_refusal(&self) -> bool {
        self.is_its_own() && !matches!(self, Self::Events(EventsError::Warehouse(_)))
    }
}

/// Where a pipeline's quarantine is, and how much of it is taken at once.
#[derive(Debug, Clone)]
pub struct Quarantine {
    warehouse: WarehouseConfig,
    table: String,
    pipeline: String,
    batch: BatchConfig,
}

impl Quarantine {
    /// That of a pipeline; none where rejects go to files only.
    pub fn of(config: &Config) -> Option<Self> {
        Some(Self {
            warehouse: config.warehouse.clone(),
            table: config.quarantine.table_name()?.to_owned(),
            pipeline: config.name.clone(),
            batch: config.batch,
        })
    }
}

/// What judges and what writes.
pub struct Means<'a> {
    /// The threads that judge.
    pub evaluators: &'a Evaluators,
    /// The rules and the plan of this turn.
    pub context: Context,
    /// Processing time.
    pub clock: &'a dyn Clock,
    /// Who writes; nobody, when it is only to be seen what would become of the events.
    pub writing: Option<Writing<'a>>,
}

/// Who writes what a replay comes to.
#[derive(Clone, Copy)]
pub struct Writing<'a> {
    /// Who delivers.
    pub delivery: &'a Delivery,
    /// What was seen before.
    pub dedup: &'a Dedup,
    /// The open windows, if anything is measured over windows.
    pub event_time: Option<&'a EventTime>,
}

/// A replay under way.
pub struct Replay {
    table: Arc<Mutex<Box<dyn StoredEvents>>>,
    name: String,
    pipeline: String,
    filter: Filter,
    by: String,
    page: Page,
    report: ReplayReport,
    /// What will be late; none unless it is asked for.
    forecast: Option<Forecast>,
}

impl Replay {
    /// Opens the quarantine and refuses what cannot be replayed. Rows that come later than its beginning are not taken.
    pub async fn open(quarantine: Option<Quarantine>, wanted: Wanted, dry_run: bool) -> Result<Self, ReplayError> {
        let quarantine = quarantine.ok_or(EventsError::NoQuarantine)?;
        let Quarantine { warehouse: config, table: name, pipeline, batch } = quarantine;
        let Wanted { filter, by, begun } = wanted;
        let filter = Filter { resolved: false, ..filter };
        blocking(move || {
            let table = warehouse::quarantine(&config, &name, &pipeline)?;
            if let Some(problem) = table.not_replayable() {
                return Err(ReplayError::NotReplayable(problem));
            }
            table.takes(&filter)?;
            let Progress { report, after, until } = match begun {
                Some(begun) => begun,
                None => Progress {
                    report: ReplayReport { dry_run, ..ReplayReport::default() },
                    after: RowId::MIN,
                    until: table.newest()?,
                },
            };
            let page = Page { after, until, rows: batch.max_events, bytes: batch.max_bytes };
            let name = warehouse::table_name(&config, &name);
            Ok(Self { table: Arc::new(Mutex::new(table)), name, pipeline, filter, by, page, report, forecast: None })
        })
        .await
    }

    /// What it came to so far.
    pub fn report(&self) -> &ReplayReport {
        &self.report
    }

    /// How far it came.
    pub fn progress(&self) -> Progress {
        Progress { report: self.report.clone(), after: self.page.after, until: self.page.until }
    }

    /// Goes on behind what another has done of the same replay.
    pub fn go_on(&mut self, Progress { report, after, until }: Progress) {
        self.report = report;
        self.page = Page { after, until, ..self.page };
    }

    /// What is left to be done of it, for another.
    pub fn rest(&self) -> Wanted {
        Wanted { filter: self.filter.clone(), by: self.by.clone(), begun: Some(self.progress()) }
    }

    /// Judges the next rows, and writes what becomes of them. False if none are left.
    pub async fn turn(&mut self, means: &Means<'_>) -> Result<bool, ReplayError> {
        let rows = self.next_rows().await?;
        let Some(last) = rows.last() else { return Ok(false) };
        self.page.after = last.id;
        self.report.selected += rows.len() as u64;
        let at = means.clock.now();
        let (mut taken, mut events) = (Vec::new(), Vec::new());
        for row in rows {
            if let Some(lack) = row.lacks {
                self.report.lacks(lack);
                continue;
            }
            taken.push((row.id, row.event.message_id.clone()));
            events.push(Event { received_time: at, ..row.event });
        }
        if events.is_empty() {
            return Ok(true);
        }
        // In bronze it is since it was received; and what was rejected once would not compare rules on the same traffic.
        let plan = Plan { bronze: None, rejects: None, ..Plan::clone(&means.context.plan) };
        let context = Context { plan: Arc::new(plan), pairs: Arc::default(), ..means.context.clone() };
        let admitted = match means.writing {
            Some(Writing { dedup, .. }) => dedup.again(events),
            None => Admitted { events, ..Admitted::default() },
        };
        let judged = means.evaluators.submit(admitted, &context).await?;
        failpoint::pass(failpoint::BATCH_JUDGED);
        let tally = if let Some(writing) = means.writing {
            self.write(judged, taken, writing, means.clock).await?
        } else {
            if let Some(forecast) = &mut self.forecast {
                forecast.note(&judged.plan, &judged.contributions);
            }
            judged.tally
        };
        self.report.judged(&tally);
        Ok(true)
    }

    async fn next_rows(&self) -> Result<Vec<StoredEvent>, ReplayError> {
        let (table, filter, page) = (Arc::clone(&self.table), self.filter.clone(), self.page);
        blocking(move || {
            // A panic in another call left nothing behind: it only reads.
            Ok(table.lock().unwrap_or_else(PoisonError::into_inner).page(&filter, page)?)
        })
        .await
    }

    /// Writes the silver rows of what was judged and marks what is resolved: also what turns out to be in silver already.
    /// Returns the counts.
    async fn write(
        &self,
        judged: Evaluated,
        taken: Vec<(RowId, String)>,
        Writing { delivery, dedup, event_time }: Writing<'_>,
        clock: &dyn Clock,
    ) -> Result<Tally, ReplayError> {
        // Nobody else commits from here on, until this is committed.
        let committing_alone = dedup.committing().await;
        // When they are replayed they are received.
        let at = judged.events.first().map_or_else(|| clock.now(), |event| event.received_time);
        let settled = dedup.settle_again(judged, delivery).await?;
        let Settled { parts, originals, mut tally, mut seen, duplicates, contributions, events, plan, .. } = settled;
        let rejected: BTreeSet<u32> = parts
            .iter()
            .filter(|part| part.tier == Tier::Quarantine)
            .flat_map(|part| (0..part.rows.len()).map(|row| part.rows.event(row)))
            .collect();
        let originals = originals.read::<Vec<Original<'static>>>()?.into_iter().flatten();
        let rows: Vec<Resolved> = (0..)
            .zip(taken.into_iter().zip(originals))
            .filter(|(event, _)| !rejected.contains(event))
            .map(|(event, ((id, message_id), original))| {
                let digest = original.rule.map_or_else(String::new, |(_, digest)| digest.into_owned());
                let digest = if duplicates.contains(&event) { format!("duplicate, {digest}") } else { digest };
                let version = original.version.map(Cow::into_owned);
                Resolved { event, id, message_id, digest, version }
            })
            .collect();
        if rows.is_empty() {
            return Ok(tally);
        }
        let (table, pipeline) = (self.name.clone(), self.pipeline.clone());
        let resolution = Resolution { table, pipeline, at, by: self.by.clone(), rows };
        let mut written: Vec<Part> = parts.into_iter().filter(|part| part.tier == Tier::Silver).collect();
        if let (Some(event_time), Some(windows)) = (event_time, &plan.windows) {
            // The watermark knows nothing of what is replayed. What it has passed fires with the next commit of the run.
            let step = event_time.step(windows, &contributions, &events, Micros::MIN, clock)?;
            written.extend(step.parts);
            seen.windows = Some(step.record);
            tally.windows.add(&step.counts);
        }
        for part in written.iter().filter(|part| !part.rows.is_empty()) {
            delivery.ensure_stream(part.tier).await?;
        }
        let work = Arc::new((written, resolution, seen, committing_alone));
        let call = move |ledger: &mut Ledger| ledger.commit_replay(&work.0, &work.1, &work.2);
        let seq = delivery.ledger.retrying(&delivery.patience, call).await?;
        if let Some(event_time) = event_time {
            event_time.committed();
        }
        failpoint::pass(failpoint::LEDGER_COMMITTED);
        tally.refuse(&delivery.deliver(seq).await?);
        Ok(tally)
    }
}

async fn blocking<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, ReplayError> + Send + 'static,
) -> Result<T, ReplayError> {
    let ended = tokio::task::spawn_blocking(call).await;
    ended.unwrap_or_else(|error| {
        let error = WarehouseError { text: format!("a call failed: {error}"), retryable: false };
        Err(EventsError::Warehouse(error).into())
    })
}

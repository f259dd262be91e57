//! Rebuilding windows of an aggregate from silver: a bounded run over the rows of a range of event time, under an epoch of its own,
//! whose panes supersede what the aggregate's table has of these windows.
//!
//! Only windows that are closed for good are rebuilt ([`range`]), so that no run writes to them any more. [`read`] measures the
//! silver rows anew and reads which windows the table shows; [`decide`] says what of both is written, or taken back; `write`
//! commits that to the ledger as every run does. Nothing is written before everything is read. What was killed in the middle is
//! done again under a later epoch, which supersedes all of it.
//!
//! [`command`] is the command's side, the worker's is [`serve`](super::requests::serve).

pub mod command;
pub mod decide;
pub mod range;
pub mod read;
pub mod report;
mod write;

use super::dedup::Dedup;
use super::deliver::{DeliverError, Delivery};
use super::plan::{AggregatePlan, Plan};
use super::retry::retrying;
use super::windows::Aggregate;
use crate::config::Config;
use crate::ledger::{Ledger, LedgerError};
use crate::time::{Clock, Micros};
use crate::warehouse::WarehouseError;
use crate::window::Span;
use range::Taking;
use read::{Found, Reader};
use report::RebuildReport;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// What is to be rebuilt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// The aggregate.
    pub aggregate: String,
    /// Windows that begin at this time or later.
    pub from: Micros,
    /// Windows that end at this time or before.
    pub to: Micros,
    /// Whether nothing is to be written.
    pub dry_run: bool,
}

/// Why a rebuild failed.
#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    /// What was asked for is at fault, or cannot be had now.
    #[error("{0}")]
    Refused(String),
    /// A table cannot be read.
    #[error(transparent)]
    Warehouse(#[from] WarehouseError),
    /// The ledger failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// What was promised cannot be written.
    #[error(transparent)]
    Deliver(#[from] DeliverError),
}

impl RebuildError {
    /// Whether what was asked for is at fault, or cannot be had now.
    pub const fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused(_))
    }

    /// Whether it is only this rebuild's failure: the worker that does it can go on.
    pub const fn is_its_own(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Warehouse(_))
    }
}

/// What a pipeline measures, where it stands, and how much of it may be held at once.
#[derive(Debug, Clone)]
pub struct Measured {
    pipeline: String,
    silver: String,
    /// The table of each aggregate, by its name in the pipeline file.
    tables: BTreeMap<String, String>,
    max_windows: u64,
}

impl Measured {
    /// Of a pipeline.
    pub fn of(config: &Config) -> Self {
        let tables = config.aggregates.iter().map(|aggregate| (aggregate.name.clone(), aggregate.tier.table.clone()));
        Self {
            pipeline: config.name.clone(),
            silver: config.silver.tier.table.clone(),
            tables: tables.collect(),
            max_windows: config.max_open_windows,
        }
    }

    /// Refuses an aggregate that there is not.
    pub fn refuse_unknown(&self, aggregate: &str) -> Result<(), RebuildError> {
        if self.tables.contains_key(aggregate) {
            return Ok(());
        }
        let known: Vec<&str> = self.tables.keys().map(String::as_str).collect();
        let what = match known.as_slice() {
            [] => "it has none".to_owned(),
            known => format!("its aggregates are {}", known.join(", ")),
        };
        Err(RebuildError::Refused(format!("pipeline {} has no aggregate {aggregate:?}: {what}", self.pipeline)))
    }
}

/// What rebuilds.
pub struct Rebuild<'a> {
    /// What may be rebuilt.
    pub measured: &'a Measured,
    /// Where values go at a moment.
    pub plan: &'a (dyn Fn() -> Arc<Plan> + Sync),
    /// Who delivers.
    pub delivery: &'a Delivery,
    /// Who lets one commit at a time.
    pub dedup: &'a Dedup,
    /// Processing time.
    pub clock: &'a Arc<dyn Clock>,
    /// Whether it is still to be done.
    pub goes_on: &'a (dyn Fn() -> bool + Sync),
}

impl Rebuild<'_> {
    /// Rebuilds. None if it is not to be done to its end. `taking` is asked while nobody commits.
    pub async fn run(
        &self,
        wanted: &Wanted,
        taking: impl FnOnce(&Aggregate) -> Taking,
    ) -> Result<Option<RebuildReport>, RebuildError> {
        let began = Instant::now();
        self.measured.refuse_unknown(&wanted.aggregate)?;
        let plan = (self.plan)();
        let Some(AggregatePlan { aggregate: measured, .. }) = plan.aggregate(&wanted.aggregate) else {
            return Err(RebuildError::Refused(format!("aggregate {} is not measured now", wanted.aggregate)));
        };
        let range = range::of(wanted)?;
        let taking = {
            let _alone = self.dedup.committing().await;
            let taking = taking(measured);
            range::refuse_open(&wanted.aggregate, range, measured.spec.allowed_lateness, taking)?;
            // What windows have counted is in silver before it is read.
            if !wanted.dry_run {
                self.delivery.deliver_all().await?;
            }
            taking
        };
        let (aggregate, dry_run) = (wanted.aggregate.as_str(), wanted.dry_run);
        tracing::info!(aggregate, dry_run, "rebuilding from silver");
        let reader = Reader::new(self.measured, measured, range)?;
        let warehouse = self.delivery.warehouse.as_ref();
        let read = retrying(&self.delivery.patience, || reader.read(warehouse, self.goes_on)).await?;
        let mut found = match read {
            Found::All(found) => found,
            Found::TooMany => return Err(self.too_many(&wanted.aggregate)),
            Found::Left => return Ok(None),
        };
        let (rows, newest) = (found.rows, found.newest_epoch);
        let (spec, now) = (measured.spec.clone(), self.clock.now());
        let deciding = tokio::task::spawn_blocking(move || decide::decide(&spec, range, found.panes(now), found.shown));
        let decided = deciding.await.map_err(|error| WarehouseError { text: error.to_string(), retryable: false })?;
        let mut report = RebuildReport::new(wanted, rows, &decided);
        if !wanted.dry_run && !decided.panes.is_empty() {
            let least = now.max(newest.saturating_add(1));
            // What is written is all there is: what a later run brings for these windows is late.
            let close = decided.panes.iter().map(|pane| pane.window.end).max().filter(|_| taking.leaves_open(range));
            let name = Arc::clone(&measured.name);
            let call = move |ledger: &mut Ledger| {
                close.map_or(Ok(()), |up_to| ledger.close_windows(&name, up_to))?;
                ledger.rebuild_epoch(least)
            };
            let epoch = self.delivery.ledger.retrying(&self.delivery.patience, call).await?;
            if !self.write(measured, &decided.panes, epoch).await? {
                return Ok(None);
            }
            report.epoch = Some(epoch);
        }
        report.millis = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let RebuildReport { written, retracted, left_alone, epoch, .. } = report;
        tracing::info!(aggregate, dry_run, rows, written, retracted, left_alone, epoch, "rebuilt from silver");
        Ok(Some(report))
    }

    fn too_many(&self, aggregate: &str) -> RebuildError {
        RebuildError::Refused(format!(
            "the range has more than {} windows of {aggregate} (limits.open_windows), which are held in memory at once: nothing was \
             written. Rebuild a narrower range, one after another, or raise the limit if there is memory for more",
            self.measured.max_windows
        ))
    }
}

/// The range as a span of event time.
impl From<&Wanted> for Span {
    fn from(wanted: &Wanted) -> Self {
        Self { start: wanted.from, end: wanted.to }
    }
}

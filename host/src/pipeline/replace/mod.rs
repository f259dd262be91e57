//! Runs that replace what tables have: [`fn@decide`] says at a start whether one is gone on with, [`Replacing::begin`] begins one,
//! [`Replacing::publish`] ends it.
//!
//! Rows go to staging tables by the same commit protocol as all rows. They are published when the source was read to its end and
//! every one of them is there: noted in the ledger before and behind, so that a crash in between repeats what is harmless to repeat.
//! Until then the tables have the rows that they had.

mod decide;
mod job;
mod publish;
mod staged;

pub(in crate::pipeline) use decide::decide;

use super::deliver::Delivery;
use super::error::RunError;
use super::plan::Plan;
use super::retry::retrying;
use crate::config::Config;
use crate::failpoint;
use crate::ledger::{Ledger, Run, RunState};
use crate::reject_files::RejectFiles;
use crate::telemetry::tally::Tally;
use crate::time::Clock;
use crate::warehouse::Warehouse;
use std::sync::Arc;

/// A run that replaces tables.
pub(super) struct Replacing {
    job: String,
    /// The run that is gone on with, or published first.
    found: Option<Run>,
}

/// How a run begins.
pub(super) enum Begins {
    /// With the source, from its start or from where it was read to.
    Reading,
    /// An earlier process has read all of it: what it had staged is published now.
    Published(Box<Run>),
}

impl Replacing {
    /// Whether the source is read from its start.
    pub fn is_anew(&self) -> bool {
        self.found.as_ref().is_none_or(|run| run.state != RunState::Reading)
    }

    /// The files of rejects of the run that is gone on with.
    pub fn files(&self) -> Option<RejectFiles> {
        self.found.as_ref().and_then(|run| run.staged.files.clone())
    }

    /// Where values go at first: to the staging tables of a run that is gone on with.
    pub fn plan_of_found(&self, plan: &Plan, config: &Config) -> Option<Plan> {
        let run = self.found.as_ref().filter(|_| !self.is_anew())?;
        Some(staged::staged(plan, config, &run.id).0)
    }

    /// Begins the run, when what was promised before is sent.
    pub async fn begin(
        &self,
        config: &Config,
        plan: &Plan,
        delivery: Delivery,
        clock: &dyn Clock,
    ) -> Result<(Delivery, Begins), RunError> {
        if let Some(run) = &self.found {
            if !self.is_anew() {
                tracing::info!(run = run.id, read = run.counts.read, "going on with a run that replaces tables");
                if let (Some(files), Some(file)) = (&run.staged.files, run.staged.file()) {
                    // A process that was killed while it made it may have made it without its header.
                    files.create(&file)?;
                }
                return Ok((delivery, Begins::Reading));
            }
            publish::conclude(&delivery, run).await?;
            // What stands on standard input or in a pipe is not what that run has read.
            if run.job == self.job && job::input(&config.source).is_some() {
                return Ok((delivery, Begins::Published(Box::new(run.clone()))));
            }
            tracing::info!(run = run.id, "published what an earlier run had staged; this one begins anew");
        }
        self.tell_of_leftovers(config, plan, delivery.warehouse.as_ref()).await;
        let id = format!("{}_{:04x}", clock.now(), fastrand::u16(..));
        let (plan, staged) = staged::staged(plan, config, &id);
        let delivery = delivery.with_files(staged.files.clone());
        let counts = Tally::default();
        let run = Arc::new(Run { id, job: self.job.clone(), state: RunState::Reading, staged, counts });
        tracing::info!(run = run.id, "a run begins that replaces tables");
        // Before its tables: of those that nobody knows nobody would ever drop one.
        let noted = Arc::clone(&run);
        delivery.ledger.retrying(&delivery.patience, move |ledger| ledger.begin_run(&noted)).await?;
        failpoint::pass(failpoint::RUN_BEGUN);
        for table in &run.staged.publication.tables {
            let (staging, like) = (table.staging.as_str(), table.table.as_str());
            retrying(&delivery.patience, || delivery.warehouse.create_staging(staging, like)).await?;
        }
        if let (Some(files), Some(file)) = (&run.staged.files, run.staged.file()) {
            files.create(&file)?;
        }
        failpoint::pass(failpoint::RUN_STAGED);
        delivery.replan(Arc::new(plan));
        Ok((delivery, Begins::Reading))
    }

    /// Publishes the run: its source was read to its end.
    pub async fn publish(delivery: &Delivery) -> Result<(), RunError> {
        publish::publish(delivery).await
    }

    /// Notes that too many events were rejected: the run is not gone on with.
    pub async fn fail(delivery: &Delivery) -> Result<(), RunError> {
        Ok(delivery.ledger.retrying(&delivery.patience, |ledger| ledger.run_is(RunState::Failed)).await?)
    }

    /// The run as it is now.
    pub async fn run(delivery: &Delivery) -> Result<Option<Run>, RunError> {
        Ok(delivery.ledger.call(|ledger: &mut Ledger| Ok(ledger.run().cloned())).await?)
    }

    /// Names what runs have left that no ledger here knows. Another worker may write to it, so it is left alone.
    async fn tell_of_leftovers(&self, config: &Config, plan: &Plan, warehouse: &dyn Warehouse) {
        let (_, staged) = staged::staged(plan, config, "");
        for replaced in &staged.publication.tables {
            match warehouse.staging_tables(&replaced.table).await {
                Ok(tables) if tables.is_empty() => {}
                Ok(tables) => tracing::warn!(
                    "left by runs that this ledger does not know: tables {}. Unless another worker writes to them, drop them",
                    tables.join(", ")
                ),
                Err(error) => tracing::warn!("whether earlier runs have left tables is not known: {error}"),
            }
        }
        let Some(files) = &staged.files else { return };
        // A directory that is not there has none.
        let left = files.staged_files().unwrap_or_default();
        if !left.is_empty() {
            let left: Vec<String> = left.iter().map(|path| path.display().to_string()).collect();
            tracing::warn!(
                "left by runs that this ledger does not know: {}. Unless another worker writes to them, delete them",
                left.join(", ")
            );
        }
    }
}

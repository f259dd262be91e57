//! What a start does about the run that its ledger holds.

use super::{Replacing, job};
use crate::config::{Config, Problem};
use crate::ledger::{Ledger, LedgerError, Run, RunState, Staged};
use crate::pipeline::error::RunError;
use crate::pipeline::options::Options;
use crate::pipeline::plan::Plan;
use crate::pipeline::retry::{Patience, retrying};
use crate::reject_files::RejectFiles;
use crate::rules::RuleSet;
use crate::warehouse::{Warehouse, WarehouseError};

/// Decides how a run begins that replaces tables; none of a pipeline that does not. What is not gone on with is dropped.
pub(in crate::pipeline) async fn decide(
    config: &Config,
    (rules, plan): (&RuleSet, &Plan),
    ledger: &mut Ledger,
    warehouse: &dyn Warehouse,
    patience: &Patience,
    options: &Options,
) -> Result<Option<Replacing>, RunError> {
    let found = ledger.run().cloned();
    if !config.replaces() {
        match found {
            Some(run) if run.state != RunState::Published && !options.restart => {
                return Err(RunError::Unfinished { run: run.id });
            }
            Some(run) => drop_run(&run, ledger, warehouse, patience).await?,
            None if options.restart => {
                let what = "silver.write is \"append\", and there is no run to be dropped: leave it out";
                return Err(RunError::Config(Problem::new("--restart", what).into()));
            }
            None => {}
        }
        return Ok(None);
    }
    let job = job::digest(config, rules, plan);
    let Some(run) = found else { return Ok(Some(Replacing { job, found: None })) };
    let why = match run.state {
        RunState::Published => None,
        _ if options.restart => Some("--restart was said".to_owned()),
        RunState::Publishing => return Ok(Some(Replacing { job, found: Some(run) })),
        RunState::Failed => Some("too many of its events were rejected".to_owned()),
        RunState::Reading => match unfit(&run, &job, ledger, warehouse, patience).await? {
            None => return Ok(Some(Replacing { job, found: Some(run) })),
            why => why,
        },
    };
    if let Some(why) = why {
        tracing::warn!(run = run.id, "a run is dropped that is not over: {why}");
    }
    drop_run(&run, ledger, warehouse, patience).await?;
    Ok(Some(Replacing { job, found: None }))
}

/// Why a run cannot be gone on with.
async fn unfit(
    run: &Run,
    job: &str,
    ledger: &Ledger,
    warehouse: &dyn Warehouse,
    patience: &Patience,
) -> Result<Option<String>, RunError> {
    if run.job != job {
        let what = "what decides its rows is another now: the pipeline file, the rules, the tables or the input";
        return Ok(Some(what.to_owned()));
    }
    if run.counts.read > 0 && !ledger.has_positions()? {
        return Ok(Some("its source cannot be read on from where it was".to_owned()));
    }
    for table in run.staged.tables() {
        if retrying(patience, || warehouse.columns(&table)).await?.is_none() {
            return Ok(Some(format!("table {table} is gone")));
        }
    }
    if let Some(file) = run.staged.file().filter(|file| !file.exists()) {
        return Ok(Some(format!("file {} is gone", file.display())));
    }
    Ok(None)
}

/// Drops a run: first what is staged, so that nothing is left that no ledger knows.
async fn drop_run(
    run: &Run,
    ledger: &mut Ledger,
    warehouse: &dyn Warehouse,
    patience: &Patience,
) -> Result<(), RunError> {
    let Staged { files, .. } = &run.staged;
    retrying(patience, || warehouse.drop_tables(run.staged.tables())).await.map_err(|error| WarehouseError {
        text: format!("what run {} has staged cannot be dropped: {error}", run.id),
        ..error
    })?;
    // What is published is no longer staged.
    if let (Some(_), Some(file)) = (files, run.staged.file()) {
        RejectFiles::discard(&file)?;
    }
    let forget = |ledger: &mut Ledger| match run.state {
        // Where its source was read to stays known: who appends from now on goes on behind it.
        RunState::Published => ledger.end_run(),
        _ => ledger.drop_run(),
    };
    Ok(forget(ledger).map_err(|error: LedgerError| error.at(ledger.directory()))?)
}

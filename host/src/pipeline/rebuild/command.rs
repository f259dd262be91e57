//! The command's side: the worker that holds the ledger is asked; where there is none, the command does it itself.

use super::range::Taking;
use super::report::RebuildReport;
use super::{Measured, Rebuild, Wanted, range};
use crate::config::Config;
use crate::ledger::inbox::Inbox;
use crate::ledger::look::closed;
use crate::ledger::{Ledger, LedgerError};
use crate::pipeline::dedup::Dedup;
use crate::pipeline::deliver::Delivery;
use crate::pipeline::error::RunError;
use crate::pipeline::prepare::{Prepared, inspect};
use crate::pipeline::reload::begin;
use crate::pipeline::requests::ask::{Answered, another_answer, ask};
use crate::pipeline::requests::{Answer, Request};
use crate::pipeline::retry::{Patience, retrying};
use crate::pipeline::windows::{Aggregate, damaged};
use crate::telemetry::status::Board;
use crate::time::Clock;
use crate::warehouse;
use crate::window::Span;
use crate::window::windows::LeftOpen;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Rebuilds windows of an aggregate of a pipeline. `waiting` is called once, with who holds the ledger, when a worker is asked.
pub async fn rebuild(
    config: &Config,
    wanted: Wanted,
    clock: &Arc<dyn Clock>,
    waiting: impl FnOnce(&str),
) -> Result<RebuildReport, RunError> {
    let board = Board::new([config.name.as_str()], clock);
    let (metrics, status) = &board.pipelines()[0];
    let dedup = Dedup::of(config);
    let patience = Patience::new(config.warehouse.give_up_after(), metrics, status).halting(dedup.running_time());
    let measured = Measured::of(config);
    // Refused at once, whoever would do it.
    measured.refuse_unknown(&wanted.aggregate)?;
    range::of(&wanted)?;
    let nothing_run = || RunError::NothingRun { ledger: config.ledger.display().to_string() };
    if !config.ledger.join("ledger.db").exists() {
        return Err(nothing_run());
    }
    let warehouse = retrying(&patience, || warehouse::open(&config.warehouse)).await?;
    let open = async || {
        let mut ledger = Ledger::open(&config.ledger, &config.name, warehouse.identity())?;
        ledger.keep_keys(dedup.retention())?;
        Ok(ledger)
    };
    let ledger = match retrying(&patience, open).await {
        Ok(ledger) => ledger,
        Err(LedgerError::Locked { holder, .. }) => {
            waiting(&holder);
            match by_worker(config, &wanted, holder, clock.as_ref(), open).await? {
                ControlFlow::Break(report) => return Ok(report),
                ControlFlow::Continue(ledger) => *ledger,
            }
        }
        Err(error) => return Err(error.into()),
    };
    if ledger.is_new() {
        return Err(nothing_run());
    }
    let live = match retrying(&patience, async || inspect(config)).await {
        Err(error) if error.retryable => return Err(error.into()),
        live => live,
    };
    let Prepared { plan, new_tables, .. } = begin(config, &live)?.0;
    let aggregate = &plan.aggregate(&wanted.aggregate).expect("what is in the pipeline file is planned").aggregate;
    let taking = taking(config, &ledger, aggregate)?;
    // Before anything is written.
    range::refuse_open(&wanted.aggregate, Span::from(&wanted), aggregate.spec.allowed_lateness, taking)?;
    let plan = Arc::new(plan);
    let delivery = Delivery::new(ledger, Arc::clone(&warehouse), Arc::clone(&plan), patience, metrics.clone());
    if !wanted.dry_run {
        for table in new_tables {
            retrying(&delivery.patience, || warehouse.create_table(table.clone())).await?;
        }
        for view in plan.views() {
            retrying(&delivery.patience, || warehouse.create_view(view.clone())).await?;
        }
        // What was promised is delivered before anything is read: it may be of an earlier rebuild.
        delivery.resume().await?;
    }
    let rebuild = Rebuild {
        measured: &measured,
        plan: &|| Arc::clone(&plan),
        delivery: &delivery,
        dedup: &dedup,
        clock,
        goes_on: &|| true,
    };
    let report = rebuild.run(&wanted, |_| taking).await?;
    Ok(report.expect("nobody asks it to end"))
}

/// What may take events while no worker runs.
fn taking(config: &Config, ledger: &Ledger, aggregate: &Aggregate) -> Result<Taking, LedgerError> {
    let mut left = LeftOpen::default();
    ledger.window_records(|_, record| left.read(record).map_err(damaged))?;
    let closed = closed(ledger.watermark()?, ledger.closed(&aggregate.name)?, aggregate.spec.allowed_lateness);
    // Of a subscription the next worker opens more.
    let open = config.source.is_bounded().then(|| left.of(&aggregate.name));
    Ok(Taking { closed, open })
}

/// Asks the worker that holds the ledger, and each that comes after it, until one has done it or the ledger is ours.
async fn by_worker(
    config: &Config,
    wanted: &Wanted,
    mut holder: String,
    clock: &dyn Clock,
    open: impl AsyncFn() -> Result<Ledger, LedgerError>,
) -> Result<ControlFlow<RebuildReport, Box<Ledger>>, RunError> {
    let (inbox, request) = (Inbox::of(&config.ledger), Request::Rebuild(wanted.clone()));
    loop {
        match ask(&inbox, &request, &mut holder, clock, &open).await? {
            Answered::Said(Answer::Rebuilt(report)) => return Ok(ControlFlow::Break(report)),
            Answered::Said(_) => return Err(RunError::Inbox(another_answer())),
            Answered::Left { ledger: Some(ledger), .. } => return Ok(ControlFlow::Continue(ledger)),
            Answered::Left { ledger: None, .. } => {}
        }
    }
}

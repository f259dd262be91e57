//! The command's side: the worker that holds the ledger is asked; where there is none, the command does it itself.

use super::forecast::{Forecast, Late};
use super::report::ReplayReport;
use super::{Means, Quarantine, Replay, ReplayError, Wanted, Writing};
use crate::config::Config;
use crate::ledger::inbox::Inbox;
use crate::ledger::look::{self, Seen};
use crate::ledger::{Ledger, LedgerError, RunState};
use crate::pipeline::dedup::Dedup;
use crate::pipeline::deliver::Delivery;
use crate::pipeline::error::RunError;
use crate::pipeline::evaluate::{Context, Evaluators};
use crate::pipeline::prepare::{Prepared, inspect};
use crate::pipeline::reload::begin;
use crate::pipeline::requests::ask::{Answered, another_answer, ask};
use crate::pipeline::requests::{Answer, Request};
use crate::pipeline::retry::{Patience, retrying};
use crate::pipeline::windows::EventTime;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::status::Board;
use crate::time::{Clock, Micros};
use crate::warehouse;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Replays quarantine rows of a pipeline. `waiting` is called once, with who holds the ledger, when a worker is asked.
pub async fn replay(
    config: &Config,
    wanted: Wanted,
    clock: &Arc<dyn Clock>,
    waiting: impl FnOnce(&str),
) -> Result<ReplayReport, RunError> {
    let board = Board::new([config.name.as_str()], clock);
    let (metrics, status) = &board.pipelines()[0];
    let dedup = Dedup::of(config);
    let patience = Patience::new(config.warehouse.give_up_after(), metrics, status).halting(dedup.running_time());
    // Refused at once, whoever would do it.
    let mut replay = Replay::open(Quarantine::of(config), wanted, false).await?;
    let warehouse = retrying(&patience, || warehouse::open(&config.warehouse)).await?;
    let open = async || {
        let mut ledger = Ledger::open(&config.ledger, &config.name, warehouse.identity())?;
        ledger.keep_keys(dedup.retention())?;
        Ok(ledger)
    };
    let mut ledger = match retrying(&patience, open).await {
        Ok(ledger) => ledger,
        Err(LedgerError::Locked { holder, .. }) => {
            waiting(&holder);
            let inbox = Inbox::of(&config.ledger);
            match by_worker(&inbox, &mut replay, holder, clock.as_ref(), open).await? {
                ControlFlow::Break(report) => return Ok(report),
                ControlFlow::Continue(ledger) => *ledger,
            }
        }
        Err(error) => return Err(error.into()),
    };
    if ledger.is_new() {
        return Err(RunError::NothingRun { ledger: ledger.directory().display().to_string() });
    }
    // Its rows, and streams that are open, are those of staging tables.
    if ledger.run().is_some_and(|run| run.state != RunState::Published) {
        return Err(ReplayError::Replacing.into());
    }
    let live = match retrying(&patience, async || inspect(config)).await {
        Err(error) if error.retryable => return Err(error.into()),
        live => live,
    };
    let mut prepared = begin(config, &live)?.0;
    for table in std::mem::take(&mut prepared.new_tables) {
        retrying(&patience, || warehouse.create_table(table.clone())).await?;
    }
    let windows = prepared.plan.windows.as_ref();
    let event_time = EventTime::of(config, windows, &mut ledger, false, clock.as_ref())?;
    let (evaluators, context) = judges(config, prepared, metrics)?;
    let delivery = Delivery::new(ledger, warehouse, Arc::clone(&context.plan), patience, metrics.clone());
    // What was promised is delivered before anything is selected: it may be of an earlier replay.
    delivery.resume().await?;
    let by = Writing { delivery: &delivery, dedup: &dedup, event_time: event_time.as_ref() };
    let means = Means { evaluators: &evaluators, context, clock: clock.as_ref(), writing: Some(by) };
    while replay.turn(&means).await? {}
    Ok(replay.report().clone())
}

/// What a replay would come to.
pub struct Rehearsal {
    /// What would become of the rows.
    pub report: ReplayReport,
    /// What would be late, by aggregate.
    pub late: BTreeMap<Arc<str>, Late>,
}

/// Judges the rows and writes nothing: what would become of them now, and what of it would be late, as far as the ledger
/// tells.
pub async fn rehearse(config: &Config, wanted: Wanted, clock: &Arc<dyn Clock>) -> Result<Rehearsal, RunError> {
    let mut replay = Replay::open(Quarantine::of(config), wanted, true).await?;
    replay.forecast = seen(config)?.map(Forecast::new);
    let board = Board::new([config.name.as_str()], clock);
    let (evaluators, context) = judges(config, begin(config, &inspect(config))?.0, &board.pipelines()[0].0)?;
    let means = Means { evaluators: &evaluators, context, clock: clock.as_ref(), writing: None };
    while replay.turn(&means).await? {}
    let late = replay.forecast.take().map(Forecast::late).unwrap_or_default();
    Ok(Rehearsal { report: replay.report().clone(), late })
}

/// What of a replay would be late: nothing, and nothing is judged, where nothing is measured or no window is closed yet.
pub async fn foresee(
    config: &Config,
    wanted: Wanted,
    clock: &Arc<dyn Clock>,
) -> Result<BTreeMap<Arc<str>, Late>, RunError> {
    match seen(config)? {
        Some(_) => Ok(rehearse(config, wanted, clock).await?.late),
        None => Ok(BTreeMap::new()),
    }
}

/// How far event time is, if anything is measured over windows and any is closed.
fn seen(config: &Config) -> Result<Option<Seen>, LedgerError> {
    if config.aggregates.is_empty() {
        return Ok(None);
    }
    let seen = look::event_time(&config.ledger)?;
    Ok((seen.watermark > Some(Micros::MIN) || !seen.closed.is_empty()).then_some(seen))
}

fn judges(config: &Config, prepared: Prepared, metrics: &Metrics) -> Result<(Evaluators, Context), RunError> {
    let Prepared { sandbox, rules, plan, .. } = prepared;
    let evaluators = Evaluators::start(&sandbox, &config.limits, config.rules.isolation, config.threads, None, metrics)
        .map_err(RunError::Thread)?;
    Ok((evaluators, Context { rules, plan: Arc::new(plan), pairs: Arc::default() }))
}

/// Asks the worker that holds the ledger, and each that comes after it, until one has done it or the ledger is ours.
async fn by_worker(
    inbox: &Inbox,
    replay: &mut Replay,
    mut holder: String,
    clock: &dyn Clock,
    open: impl AsyncFn() -> Result<Ledger, LedgerError>,
) -> Result<ControlFlow<ReplayReport, Box<Ledger>>, RunError> {
    loop {
        let request = Request::Replay(replay.rest());
        match ask(inbox, &request, &mut holder, clock, &open).await? {
            Answered::Said(Answer::Done(report)) => return Ok(ControlFlow::Break(report)),
            Answered::Said(_) => return Err(RunError::Inbox(another_answer())),
            Answered::Left { begun, ledger } => {
                if let Some(begun) = begun {
                    replay.go_on(begun);
                }
                if let Some(ledger) = ledger {
                    return Ok(ControlFlow::Continue(ledger));
                }
            }
        }
    }
}

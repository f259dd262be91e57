//! The command's side: the worker that holds the ledger is asked; where there is none, the command does it itself.

use super::report::ReplayReport;
use super::serve::{Answer, Request};
use super::{Means, Quarantine, Replay, Wanted};
use crate::config::{Config, WarehouseConfig};
use crate::ledger::inbox::{Asked, Inbox};
use crate::ledger::{Ledger, LedgerError};
use crate::pipeline::deliver::Delivery;
use crate::pipeline::evaluate::{Context, Evaluators};
use crate::pipeline::prepare::{Prepared, inspect};
use crate::pipeline::reload::begin;
use crate::pipeline::retry::{MayPass as _, Patience, retrying};
use crate::pipeline::run::RunError;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::status::Board;
use crate::time::Clock;
use crate::warehouse::Sqlite;
use crate::warehouse::events::RowId;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How often is looked whether the worker has answered, or has ended.
const LOOK: Duration = Duration::from_millis(50);

/// Replays quarantine rows of a pipeline. `waiting` is called once, with who holds the ledger, when a worker is asked.
pub async fn replay(
    config: &Config,
    wanted: Wanted,
    clock: &Arc<dyn Clock>,
    waiting: impl FnOnce(&str),
) -> Result<ReplayReport, RunError> {
    let WarehouseConfig::Sqlite { path, give_up_after } = &config.warehouse;
    let board = Board::new([config.name.as_str()], clock);
    let (metrics, status) = &board.pipelines()[0];
    let patience = Patience::new(*give_up_after, metrics, status);
    // Refused at once, whoever would do it.
    let mut replay = Replay::open(Quarantine::of(config), wanted.clone(), false).await?;
    let warehouse = retrying(&patience, async || Sqlite::open(path)).await?;
    let open = async || Ledger::open(&config.ledger, &config.name, warehouse.identity());
    let ledger = match retrying(&patience, open).await {
        Ok(ledger) => ledger,
        Err(LedgerError::Locked { holder, .. }) => {
            let asked = ask(config, &wanted, clock.as_ref()).map_err(RunError::Inbox)?;
            waiting(&holder);
            match answer(&asked, open).await? {
                Answered::Done(report) => return Ok(report),
                Answered::Free(ledger, begun) => {
                    if let Some((report, after)) = begun {
                        replay.go_on(report, after);
                    }
                    *ledger
                }
            }
        }
        Err(error) => return Err(error.into()),
    };
    if ledger.is_new() {
        return Err(RunError::NothingRun { ledger: ledger.directory().display().to_string() });
    }
    let live = match retrying(&patience, async || inspect(config)).await {
        Err(error) if error.retryable => return Err(error.into()),
        live => live,
    };
    let mut prepared = begin(config, &live)?.0;
    for table in std::mem::take(&mut prepared.new_tables) {
        retrying(&patience, || warehouse.create_table(table.clone())).await?;
    }
    let (evaluators, context) = judges(config, prepared, metrics)?;
    let delivery = Delivery::new(ledger, warehouse, Arc::clone(&context.plan), patience, metrics.clone());
    // What was promised is delivered before anything is selected: it may be of an earlier replay.
    delivery.resume().await?;
    let means = Means { evaluators: &evaluators, context, clock: clock.as_ref(), delivery: Some(&delivery) };
    while replay.turn(&means).await? {}
    Ok(replay.report().clone())
}

/// Judges the rows and writes nothing: what would become of them now.
pub async fn rehearse(config: &Config, wanted: Wanted, clock: &Arc<dyn Clock>) -> Result<ReplayReport, RunError> {
    let mut replay = Replay::open(Quarantine::of(config), wanted, true).await?;
    let board = Board::new([config.name.as_str()], clock);
    let (evaluators, context) = judges(config, begin(config, &inspect(config))?.0, &board.pipelines()[0].0)?;
    let means = Means { evaluators: &evaluators, context, clock: clock.as_ref(), delivery: None };
    while replay.turn(&means).await? {}
    Ok(replay.report().clone())
}

fn judges(config: &Config, prepared: Prepared, metrics: &Metrics) -> Result<(Evaluators, Context), RunError> {
    let Prepared { sandbox, rules, plan, .. } = prepared;
    let evaluators = Evaluators::start(&sandbox, &config.limits, config.rules.isolation, config.threads, None, metrics)
        .map_err(RunError::Thread)?;
    Ok((evaluators, Context { rules, plan: Arc::new(plan), pairs: Arc::default() }))
}

fn ask(config: &Config, wanted: &Wanted, clock: &dyn Clock) -> io::Result<Asked> {
    let id = format!("{:020}-{}", clock.now(), std::process::id());
    Inbox::of(&config.ledger).ask(&id, &Request::Replay(wanted.clone()))
}

enum Answered {
    /// The worker has done it.
    Done(ReplayReport),
    /// The worker has ended, and may have done the rows up to one: the ledger is ours.
    Free(Box<Ledger>, Option<(ReplayReport, RowId)>),
}

/// Waits until the worker has answered or has ended.
async fn answer(asked: &Asked, open: impl AsyncFn() -> Result<Ledger, LedgerError>) -> Result<Answered, RunError> {
    loop {
        // In this order: an answer that was written before the ledger became free is seen behind that.
        let ledger = match open().await {
            Ok(ledger) => Some(Box::new(ledger)),
            Err(error) if matches!(error, LedgerError::Locked { .. }) || error.may_pass() => None,
            Err(error) => return Err(error.into()),
        };
        let answer = asked.answer().map_err(RunError::Inbox)?;
        let answer = answer.map(|text| serde_json::from_str(&text)).transpose();
        match (answer.map_err(|error| RunError::Inbox(error.into()))?, ledger) {
            (Some(Answer::Done(report)), _) => return Ok(Answered::Done(report)),
            (Some(Answer::Failed(why)), _) => return Err(RunError::Worker(why)),
            (Some(Answer::Begun { report, after }), Some(ledger)) => {
                return Ok(Answered::Free(ledger, Some((report, after))));
            }
            (None, Some(ledger)) => {
                if asked.is_taken() {
                    tracing::warn!("the worker ended while it replayed: what it had done is not in these counts");
                }
                return Ok(Answered::Free(ledger, None));
            }
            (_, None) => tokio::time::sleep(LOOK).await,
        }
    }
}

//! The command's side: the worker that holds the ledger is asked; where there is none, the command does it itself.

use super::report::ReplayReport;
use super::serve::{Answer, Request};
use super::{Means, Progress, Quarantine, Replay, Wanted, Writing};
use crate::config::Config;
use crate::ledger::inbox::{Asked, Inbox};
use crate::ledger::{Ledger, LedgerError};
use crate::pipeline::dedup::Dedup;
use crate::pipeline::deliver::Delivery;
use crate::pipeline::error::RunError;
use crate::pipeline::evaluate::{Context, Evaluators};
use crate::pipeline::prepare::{Prepared, inspect};
use crate::pipeline::reload::begin;
use crate::pipeline::retry::{MayPass as _, Patience, retrying};
use crate::pipeline::windows::EventTime;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::status::Board;
use crate::time::Clock;
use crate::warehouse;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often is looked whether the worker has answered, or has ended.
const LOOK: Duration = Duration::from_millis(50);
/// How long whoever holds the ledger may leave a request where it is. A worker takes it within a second.
const UNTAKEN: Duration = Duration::from_secs(30);

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
    let live = match retrying(&patience, async || inspect(config)).await {
        Err(error) if error.retryable => return Err(error.into()),
        live => live,
    };
    let mut prepared = begin(config, &live)?.0;
    for table in std::mem::take(&mut prepared.new_tables) {
        retrying(&patience, || warehouse.create_table(table.clone())).await?;
    }
    let event_time = match &prepared.plan.windows {
        Some(windows) => Some(EventTime::restore(config, windows, &mut ledger, false, clock.as_ref())?),
        None => {
            EventTime::none(&mut ledger, false)?;
            None
        }
    };
    let (evaluators, context) = judges(config, prepared, metrics)?;
    let delivery = Delivery::new(ledger, warehouse, Arc::clone(&context.plan), patience, metrics.clone());
    // What was promised is delivered before anything is selected: it may be of an earlier replay.
    delivery.resume().await?;
    let by = Writing { delivery: &delivery, dedup: &dedup, event_time: event_time.as_ref() };
    let means = Means { evaluators: &evaluators, context, clock: clock.as_ref(), writing: Some(by) };
    while replay.turn(&means).await? {}
    Ok(replay.report().clone())
}

/// Judges the rows and writes nothing: what would become of them now.
pub async fn rehearse(config: &Config, wanted: Wanted, clock: &Arc<dyn Clock>) -> Result<ReplayReport, RunError> {
    let mut replay = Replay::open(Quarantine::of(config), wanted, true).await?;
    let board = Board::new([config.name.as_str()], clock);
    let (evaluators, context) = judges(config, begin(config, &inspect(config))?.0, &board.pipelines()[0].0)?;
    let means = Means { evaluators: &evaluators, context, clock: clock.as_ref(), writing: None };
    while replay.turn(&means).await? {}
    Ok(replay.report().clone())
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
        let id = format!("{:020}-{}", clock.now(), std::process::id());
        let asked = inbox.ask(&id, &Request::Replay(replay.rest())).map_err(RunError::Inbox)?;
        match answer(&asked, inbox, &mut holder, UNTAKEN, &open).await? {
            Answered::Done(report) => return Ok(ControlFlow::Break(report)),
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

enum Answered {
    /// The worker has done it.
    Done(ReplayReport),
    /// The worker has ended.
    Left {
        /// What it says to have done.
        begun: Option<Progress>,
        /// The ledger is ours now; or another worker has it already.
        ledger: Option<Box<Ledger>>,
    },
}

/// Waits until the worker has answered or has ended. `holder` is who held the ledger when it was looked at last.
async fn answer(
    asked: &Asked,
    inbox: &Inbox,
    holder: &mut String,
    untaken: Duration,
    open: &impl AsyncFn() -> Result<Ledger, LedgerError>,
) -> Result<Answered, RunError> {
    let mut since = Instant::now();
    loop {
        // In this order: an answer that was written before the ledger became free is seen behind that.
        let (ledger, held_by) = match open().await {
            Ok(ledger) => (Some(Box::new(ledger)), String::new()),
            Err(LedgerError::Locked { holder, .. }) => (None, holder),
            Err(error) if error.may_pass() => (None, String::new()),
            Err(error) => return Err(error.into()),
        };
        // A lock that was just taken does not say by whom yet.
        let another = !holder.is_empty() && !held_by.is_empty() && *holder != held_by;
        if !held_by.is_empty() {
            *holder = held_by;
        }
        let ended = another || ledger.is_some();
        let taken = asked.is_taken();
        let text = asked.answer().map_err(RunError::Inbox)?;
        let answer = text.map(|text| serde_json::from_str(&text)).transpose();
        match answer.map_err(|error| RunError::Inbox(error.into()))? {
            Some(Answer::Done(report)) => return Ok(Answered::Done(report)),
            Some(Answer::Failed(why)) => return Err(RunError::Worker(why)),
            Some(Answer::Begun(begun)) if ended => return Ok(Answered::Left { begun: Some(begun), ledger }),
            None if taken && ended => {
                tracing::warn!("the worker ended while it replayed: what it had done is not in these counts");
                return Ok(Answered::Left { begun: None, ledger });
            }
            None if ledger.is_some() => return Ok(Answered::Left { begun: None, ledger }),
            None if another => since = Instant::now(),
            None if !taken && since.elapsed() >= untaken => {
                let inbox = inbox.directory().display().to_string();
                return Err(RunError::NotTaken { inbox, holder: holder.clone(), seconds: untaken.as_secs() });
            }
            // It is at it, or at its end.
            Some(Answer::Begun(_)) | None => {}
        }
        tokio::time::sleep(LOOK).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = " (process 1)";
    const B: &str = " (process 2)";

    fn asked() -> (tempfile::TempDir, Inbox, Asked) {
        let ledger = tempfile::tempdir().unwrap();
        let inbox = Inbox::of(ledger.path());
        let asked = inbox.ask("1", &()).unwrap();
        (ledger, inbox, asked)
    }

    fn held_by(holder: &str) -> impl AsyncFn() -> Result<Ledger, LedgerError> {
        async move || Err(LedgerError::Locked { path: "ledger".into(), holder: holder.to_owned() })
    }

    #[tokio::test]
    async fn a_request_that_nobody_takes_is_given_up() {
        let (_ledger, inbox, asked) = asked();
        let answered = answer(&asked, &inbox, &mut A.into(), Duration::ZERO, &held_by(A)).await;
        let Err(error) = answered else { panic!("there is no answer") };
        let inbox = inbox.directory().to_owned();
        let text = error.to_string();
        assert!(text.contains(A) && text.contains(&inbox.display().to_string()), "{text}");
        drop(asked);
        assert_eq!(std::fs::read_dir(inbox).unwrap().count(), 0, "it is taken back");
    }

    /// It would be waited for without end: whoever took it is gone, and the next worker knows nothing of it.
    #[tokio::test]
    async fn what_a_worker_took_before_it_was_started_anew_is_asked_for_again() {
        let (_ledger, mut inbox, asked) = asked();
        inbox.take().unwrap().unwrap();
        let mut holder = A.to_owned();
        let answered = answer(&asked, &inbox, &mut holder, UNTAKEN, &held_by(B)).await.unwrap();
        assert!(matches!(answered, Answered::Left { begun: None, ledger: None }));
        assert_eq!(holder, B);
    }

    #[tokio::test]
    async fn what_a_worker_had_begun_before_it_was_started_anew_is_gone_on_with() {
        let (_ledger, mut inbox, asked) = asked();
        let progress = Progress { report: ReplayReport { selected: 7, ..Default::default() }, after: 9, until: 20 };
        inbox.take().unwrap().unwrap().answer(&Answer::Begun(progress.clone())).unwrap();
        let answered = answer(&asked, &inbox, &mut A.into(), UNTAKEN, &held_by(B)).await.unwrap();
        let Answered::Left { begun, ledger: None } = answered else { panic!("it is not done") };
        assert_eq!(begun, Some(progress));
    }
}

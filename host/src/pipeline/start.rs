//! The start of a run: checks, opens everything, and sends what an earlier run had left.

use super::bound::Bound;
use super::dedup::Dedup;
use super::deliver::Delivery;
use super::error::RunError;
use super::options::Options;
use super::prepare::{Prepared, inspect, source_exists};
use super::reload::{begin, report};
use super::replace::{Begins, Replacing, decide};
use super::retry::{Patience, retrying};
use super::serving::Serving;
use super::windows::EventTime;
use crate::config::{Config, Follows, MaxRejects, Problem, TierConfig, Write};
use crate::ledger::{Ledger, LedgerError, Run};
use crate::source::{self, Settings};
use crate::warehouse::{self, LiveTables, Warehouse, WarehouseError};
use std::io;
use std::sync::Arc;
use tokio::task::JoinError;

/// How a run starts.
#[expect(clippy::large_enum_variant, reason = "there is one of them")]
pub(super) enum Start {
    /// It is ready to read.
    Ready(Started),
    /// There is nothing to read: what an earlier run had staged is published.
    Published {
        /// That run.
        run: Box<Run>,
        /// Commits of it that were sent.
        resumed: u64,
    },
}

/// A pipeline that is ready to read.
pub(super) struct Started {
    pub source: source::Opened,
    pub serving: Serving,
    pub delivery: Delivery,
    pub dedup: Dedup,
    /// The open windows, if anything is measured over windows.
    pub event_time: Option<EventTime>,
    /// Commits of an earlier run that were sent.
    pub resumed: u64,
    /// How many events may be rejected, if that is bounded.
    pub bound: Option<Arc<Bound>>,
}

/// Checks, opens everything, and sends what an earlier run had left.
pub(super) async fn start(config: &Config, options: &Options) -> Result<Start, RunError> {
    let most = max_rejects(config, options)?;
    let dedup = Dedup::of(config);
    let patience = Patience::new(config.warehouse.give_up_after(), &options.metrics, &options.status);
    let patience = patience.halting(dedup.running_time());
    let looked_at = Arc::new(config.clone());
    let live = match retrying(&patience, || look(&looked_at)).await {
        // Another program holds it: that is no mistake in the pipeline file.
        Err(error) if error.retryable => return Err(error.into()),
        live => live,
    };
    tokio::task::spawn_blocking(move || source_exists(&looked_at)).await.map_err(thread)??;
    let (Prepared { sandbox, rules, plan, new_tables, .. }, begun) = begin(config, &live)?;
    let warehouse = retrying(&patience, || warehouse::open(&config.warehouse)).await?;
    let identity = warehouse.identity();
    let mut ledger = retrying(&patience, async || {
        let mut ledger = Ledger::open(&config.ledger, &config.name, identity)?;
        ledger.keep_keys(dedup.retention())?;
        Ok::<_, LedgerError>(ledger)
    })
    .await?;
    if ledger.is_new() && !options.new_ledger {
        refuse_old_rows(config, &ledger, warehouse.as_ref(), &patience).await?;
    }
    let (forget, clock) = (options.forget_windows, options.clock.as_ref());
    let event_time = EventTime::of(config, plan.windows.as_ref(), &mut ledger, forget, clock)?;
    ledger.begin()?;
    for table in new_tables {
        retrying(&patience, || warehouse.create_table(table.clone())).await?;
    }
    for view in plan.views() {
        retrying(&patience, || warehouse.create_view(view.clone())).await?;
    }
    let settings = || Settings {
        source: config.source.clone(),
        batch: config.batch,
        max_payload: config.max_payload,
        is_replacing: config.replaces(),
        is_recorded: !config.aggregates.is_empty() && config.watermark.follows == Follows::PublishTime,
        clock: Arc::clone(&options.clock),
        running_time: dedup.running_time().clone(),
    };
    let judging = (rules.as_ref(), &plan);
    let replacing = decide(config, judging, &mut ledger, warehouse.as_ref(), &patience, options).await?;
    let is_anew = replacing.as_ref().is_some_and(Replacing::is_anew);
    let position = |key: &str| if is_anew { Ok(None) } else { ledger.position(key) };
    let source = retrying(&patience, || source::open(settings(), position)).await?;
    let found = replacing.as_ref().and_then(|replacing| replacing.plan_of_found(&plan, config));
    // Before a run begins anew, what is left goes where it went.
    let at_first = Arc::new(found.unwrap_or_else(|| plan.clone()));
    let delivery = Delivery::new(ledger, warehouse, at_first, patience, options.metrics.clone());
    let (delivery, resumed) = resume(delivery, replacing.as_ref()).await?;
    let delivery = match &replacing {
        None => delivery,
        Some(replacing) => match replacing.begin(config, &plan, delivery, options.clock.as_ref()).await? {
            (delivery, Begins::Reading) => delivery,
            (_, Begins::Published(run)) => return Ok(Start::Published { run, resumed }),
        },
    };
    let run = Replacing::run(&delivery).await?;
    let bound = most.map(|most| Arc::new(Bound::new(most, config, run.as_ref())));
    options.status.serves(rules.revision(), report::serving(&rules));
    let serving = Serving::start(config, &sandbox, (rules, delivery.plan()), begun, &delivery, options).await?;
    Ok(Start::Ready(Started { source, serving, delivery, dedup, event_time, resumed, bound }))
}

/// Sends what an earlier run had left.
async fn resume(delivery: Delivery, replacing: Option<&Replacing>) -> Result<(Delivery, u64), RunError> {
    let delivery = delivery.with_files(replacing.and_then(Replacing::files));
    let resumed = delivery.resume().await?;
    if resumed > 0 {
        tracing::info!(commits = resumed, "sent what an earlier run had left");
    }
    Ok((delivery, resumed))
}

/// How many events may be rejected: the command line says it, or the pipeline file.
fn max_rejects(config: &Config, options: &Options) -> Result<Option<MaxRejects>, RunError> {
    if let Some(what) = options.max_rejects.and_then(|most| most.unfit(&config.source)) {
        return Err(RunError::Config(Problem::new("--max-rejects", what).into()));
    }
    Ok(options.max_rejects.or(config.max_rejects))
}

/// Looks at the tables on a thread that nobody has to wait for: BigQuery may be silent for long.
async fn look(config: &Arc<Config>) -> Result<LiveTables, WarehouseError> {
    let config = Arc::clone(config);
    let looked = tokio::task::spawn_blocking(move || inspect(&config)).await;
    looked.unwrap_or_else(|error| Err(WarehouseError { text: error.to_string(), retryable: false }))
}

/// A thread that did not come to its end.
pub(super) fn thread(error: JoinError) -> RunError {
    RunError::Thread(io::Error::other(error))
}

/// Rows that no ledger accounts for would be doubled by reading the source again. Those that are replaced are not.
async fn refuse_old_rows(
    config: &Config,
    ledger: &Ledger,
    warehouse: &dyn Warehouse,
    patience: &Patience,
) -> Result<(), RunError> {
    let stay = |tier: &&TierConfig| tier.write == Write::Append;
    for table in config.tiers().filter(stay).map(|tier| tier.table.as_str()) {
        let exists = retrying(patience, || warehouse.columns(table)).await?.is_some();
        if exists && retrying(patience, || warehouse.has_rows(table)).await? {
            return Err(RunError::NewLedger {
                ledger: ledger.directory().display().to_string(),
                table: table.to_owned(),
            });
        }
    }
    Ok(())
}

//! `preflight run`: pipelines until their sources end.

mod closing;

use super::{Ended, PipelineArgs, output};
use crate::admin::Endpoints;
use crate::config::{Config, Layers, MaxRejects, SourceConfig};
use crate::pipeline::{Options, Report, RunError, Stop, refusals, run as run_pipeline};
use crate::telemetry::progress::Bar;
use crate::telemetry::status::{Board, State};
use crate::time::{Clock, SystemClock};
use anyhow::anyhow;
use clap::Args;
use closing::closing;
use futures::future::join_all;
use indicatif::MultiProgress;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(super) struct RunArgs {
    /// Pipeline files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    pipeline: PipelineArgs,
    /// Start with a new ledger although the tables have rows: the rows of this run come on top of them
    #[arg(long)]
    new_ledger: bool,
    /// Leave the open windows that the ledger holds: what they hold is not written any more
    #[arg(long)]
    forget_windows: bool,
    /// Drop a run that replaces tables and is not over, and begin anew
    #[arg(long)]
    restart: bool,
    /// Fail when more events than that are rejected, before any table is replaced: a number, or a percentage of the events that
    /// are judged
    #[arg(long, value_name = "N|P%")]
    max_rejects: Option<MaxRejects>,
    /// Print the closing report as a line of JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &RunArgs) -> Ended {
    let mut configs = Vec::new();
    for file in &args.files {
        match args.pipeline.load(file) {
            Ok(loaded) => configs.push(loaded),
            Err(error) => return Ended::Refused(error.into()),
        }
    }
    if let Some(name) = repeated_name(&configs) {
        return Ended::Refused(anyhow!(
            "two of the pipelines are named {name}: the log and the metrics could not tell them apart"
        ));
    }
    if let Some(subscription) = repeated_subscription(&configs) {
        return Ended::Refused(anyhow!(
            "source.pubsub.subscription: two of the pipelines pull from {subscription}: each message would go to only one of them. \
             Give each a subscription of its own"
        ));
    }
    // Of several pipelines none begins while another would be refused.
    if configs.len() > 1 {
        let errors = configs.iter().filter_map(|(config, layers)| {
            let error = layers.locate(refusals(config)?);
            Some(anyhow::Error::from(error).context(config.name.clone()))
        });
        let mut errors: Vec<anyhow::Error> = errors.collect();
        if let Some(last) = errors.pop() {
            errors.iter().for_each(output::error);
            return Ended::Refused(last);
        }
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Ended::Broken(anyhow!("cannot start: {error}")),
    };
    let ended = runtime.block_on(async {
        let stop = Stop::default();
        if let Err(error) = stop_on_signals(stop.clone()) {
            return Ended::Broken(anyhow!("cannot listen for signals: {error}"));
        }
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let board = Arc::new(Board::new(configs.iter().map(|(config, _)| config.name.as_str()), &clock));
        let endpoints =
            match Endpoints::open(configs.iter().filter_map(|(config, _)| config.admin.as_ref()), &board).await {
                Ok(endpoints) => endpoints,
                Err(error) if error.is_configuration() => return Ended::Refused(error.into()),
                Err(error) => return Ended::Broken(error.into()),
            };
        let bars = MultiProgress::new();
        let (new_ledger, forget_windows) = (args.new_ledger, args.forget_windows);
        let (restart, max_rejects) = (args.restart, args.max_rejects);
        // Each on a thread of its own: what one loads or reads again at its start does not hold up the others.
        let runs = configs.iter().zip(board.pipelines()).map(|((config, _), (metrics, status))| {
            metrics.shows(config);
            let options = Options {
                new_ledger,
                forget_windows,
                restart,
                max_rejects,
                clock: Arc::clone(&clock),
                stop: stop.clone(),
                metrics: metrics.clone(),
                status: status.clone(),
            };
            let (config, bars, handle) = (config.clone(), bars.clone(), Handle::current());
            tokio::task::spawn_blocking(move || handle.block_on(one(&config, &options, &bars)))
        });
        let results = join_all(runs).await.into_iter();
        endpoints.stop().await;
        let results =
            results.map(|run| run.unwrap_or_else(|error| Err(RunError::Thread(std::io::Error::other(error)))));
        finish(args, &configs, results.collect())
    });
    // A look at a table that does not answer is nothing to wait for.
    runtime.shutdown_background();
    ended
}

/// A name that a second pipeline has, too.
fn repeated_name(configs: &[(Config, Layers)]) -> Option<&str> {
    let mut names = BTreeSet::new();
    configs.iter().map(|(config, _)| config.name.as_str()).find(|name| !names.insert(*name))
}

/// A subscription that a second pipeline has, too.
fn repeated_subscription(configs: &[(Config, Layers)]) -> Option<&str> {
    let mut subscriptions = BTreeSet::new();
    let all = configs.iter().filter_map(|(config, _)| match &config.source {
        SourceConfig::Pubsub(pubsub) => Some(pubsub.subscription.as_str()),
        SourceConfig::File { .. } | SourceConfig::Stdin { .. } => None,
    });
    all.into_iter().find(|subscription| !subscriptions.insert(*subscription))
}

async fn one(config: &Config, options: &Options, bars: &MultiProgress) -> Result<Report, RunError> {
    let bar = Bar::start(bars, &config.name, options.metrics.clone());
    let result = run_pipeline(config, options).await;
    options.status.state(State::Ended);
    drop(bar);
    if result.is_err() {
        // One pipeline of several failed: the others finish what they have read.
        options.stop.request();
    }
    result
}

fn finish(args: &RunArgs, configs: &[(Config, Layers)], results: Vec<Result<Report, RunError>>) -> Ended {
    let mut failure = None;
    for ((config, layers), result) in configs.iter().zip(results) {
        match result {
            Ok(report) if args.json => output::json(&report),
            Ok(report) => output::print(&closing(config, &report)),
            Err(error) => {
                let refused =
                    matches!(error, RunError::Config(_) | RunError::NewLedger { .. } | RunError::Unfinished { .. });
                let error = match error {
                    RunError::Config(error) => layers.locate(error).into(),
                    other => anyhow::Error::from(other),
                };
                let error = if configs.len() > 1 { error.context(config.name.clone()) } else { error };
                // The last is said by the caller; several pipelines may have failed.
                if let Some(Ended::Refused(earlier) | Ended::Broken(earlier)) = &failure {
                    output::error(earlier);
                }
                failure = Some(if refused { Ended::Refused(error) } else { Ended::Broken(error) });
            }
        }
    }
    failure.unwrap_or(Ended::Done)
}

/// The first SIGTERM or SIGINT asks to stop; the second to stop at once, giving back what is held; the third ends the process:
/// what is promised is in the ledger.
fn stop_on_signals(stop: Stop) -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        for asked in 0.. {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            match asked {
                0 => {
                    tracing::info!("asked to stop; finishing what was read");
                    stop.request();
                }
                1 => {
                    tracing::warn!("stopped by a second signal; the next run goes on from the ledger");
                    stop.hurry();
                }
                _ => std::process::exit(1),
            }
        }
    });
    Ok(())
}

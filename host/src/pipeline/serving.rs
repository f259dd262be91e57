//! What serves a run: the rules of now and the threads that judge with them; with a rule store also those that judge
//! beside and the one that follows the store.

use super::beside::{self, Besides, PairKey, Registry, differences};
use super::deliver::Delivery;
use super::error::RunError;
use super::evaluate::{Context, EvaluateError, Evaluated, Evaluators};
use super::facts::Admitted;
use super::options::Options;
use super::plan::Plan;
use super::reload::{Begun, Follower, Message, follow};
use super::tables;
use crate::config::Config;
use crate::rules::{RuleSet, Sandbox};
use std::sync::{Arc, mpsc};
use tokio::sync::{mpsc as channel, watch};
use tokio::task::JoinHandle;

/// Everything that judges.
pub(super) struct Serving {
    evaluators: Evaluators,
    current: watch::Receiver<Context>,
    following: Option<Following>,
    /// Who follows the tables, if they are followed.
    tables: Option<JoinHandle<()>>,
}

/// What a rule store needs.
struct Following {
    besides: Arc<Besides>,
    follower: Follower,
    differences: JoinHandle<()>,
}

impl Serving {
    /// Starts the threads.
    pub(super) async fn start(
        config: &Config,
        sandbox: &Arc<Sandbox>,
        (rules, plan): (Arc<RuleSet>, Arc<Plan>),
        begun: Option<Begun>,
        delivery: &Delivery,
        options: &Options,
    ) -> Result<Self, RunError> {
        let mut registry = Registry::default();
        let passed = |key: &PairKey| begun.as_ref().is_some_and(|begun| begun.has_passed(key));
        let pairs = registry.pairs(&rules, &config.rules.guard, passed, options.clock.now());
        let context = Context { rules, plan, pairs };
        let (sender, current) = watch::channel(context);
        // All rows of a run that replaces tables are judged by the same rules, and go to tables that nobody else knows.
        let is_fixed = config.replaces();
        let begun = begun.filter(|_| !is_fixed);
        let tables = tables::follow(config.clone(), delivery.clone(), options.status.clone(), sender.clone());
        let tables = (!is_fixed).then(|| tokio::spawn(tables));
        let following = match begun {
            None => None,
            Some(begun) => Some(Following::start(config, sandbox, begun, (sender, registry), delivery, options).await?),
        };
        let besides = following.as_ref().map(|following| &following.besides);
        let evaluators = Evaluators::start(
            sandbox,
            &config.limits,
            config.rules.isolation,
            config.threads,
            besides,
            &options.metrics,
        )
        .map_err(RunError::Thread)?;
        Ok(Self { evaluators, current, following, tables })
    }

    /// Hands a micro-batch to the threads, with the rules of now: it keeps them.
    pub(super) fn submit(&self, admitted: Admitted) -> impl Future<Output = Result<Evaluated, EvaluateError>> + use<> {
        let context = self.current.borrow().clone();
        self.evaluators.submit(admitted, &context)
    }

    /// The threads that judge, for events that come another way.
    pub(super) fn evaluators(&self) -> Evaluators {
        self.evaluators.clone()
    }

    /// The rules of now, whenever they are asked for.
    pub(super) fn context(&self) -> watch::Receiver<Context> {
        self.current.clone()
    }

    /// Where values go now.
    pub(super) fn plan(&self) -> Arc<Plan> {
        Arc::clone(&self.current.borrow().plan)
    }

    /// Ends the threads: what is compared by then counts, and a guard that trips on it still rolls back.
    pub(super) async fn finish(self) {
        if let Some(tables) = &self.tables {
            tables.abort();
        }
        let Some(Following { besides, follower, differences }) = self.following else { return };
        let ending = tokio::task::spawn_blocking(move || {
            besides.finish();
            follower.finish();
        });
        for ended in [ending.await, differences.await] {
            if let Err(error) = ended {
                tracing::error!("a task of the run failed at its end: {error}");
            }
        }
    }
}

impl Following {
    async fn start(
        config: &Config,
        sandbox: &Arc<Sandbox>,
        begun: Begun,
        (current, registry): (watch::Sender<Context>, Registry),
        delivery: &Delivery,
        options: &Options,
    ) -> Result<Self, RunError> {
        let (messages, inbox) = mpsc::channel();
        let (found, findings) = channel::unbounded_channel();
        let tripped = messages.clone();
        let besides = Besides::start(beside::Settings {
            sandbox: Arc::clone(sandbox),
            limits: config.limits.clone(),
            isolation: config.rules.isolation,
            clock: Arc::clone(&options.clock),
            keep: config.rules.shadow.keep,
            // Neither is awaited when the run ends by an error.
            on_finding: Box::new(move |finding| drop(found.send(finding))),
            on_trip: Box::new(move |pair, why| drop(tripped.send(Message::Tripped(Arc::clone(pair), why)))),
        })
        .map_err(RunError::Thread)?;
        let id = delivery.ledger.call(|ledger| Ok(ledger.id().to_owned())).await?;
        let settings = follow::Settings {
            config: config.clone(),
            sandbox: Arc::clone(sandbox),
            begun,
            registry,
            worker_id: format!("{}-{id}", config.name),
            clock: Arc::clone(&options.clock),
            metrics: options.metrics.clone(),
            status: options.status.clone(),
        };
        let follower = Follower::start(settings, (messages, inbox), current).map_err(RunError::Thread)?;
        let (pipeline, table) = (config.name.clone(), config.rules.shadow.table.clone());
        let writing = differences::write(Arc::clone(&delivery.warehouse), pipeline, table, findings);
        Ok(Self { besides: Arc::new(besides), follower, differences: tokio::spawn(writing) })
    }
}

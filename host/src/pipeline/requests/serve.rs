//! The worker's side: requests are taken from the ledger's inbox and carried out beside the micro-batches, one after another, a
//! chunk at a time.

use super::{Answer, Request};
use crate::failpoint;
use crate::ledger::LedgerError;
use crate::ledger::inbox::{Inbox, Taken};
use crate::pipeline::dedup::Dedup;
use crate::pipeline::deliver::Delivery;
use crate::pipeline::error::RunError;
use crate::pipeline::evaluate::{Context, Evaluators};
use crate::pipeline::rebuild::range::Taking;
use crate::pipeline::rebuild::{Measured, Rebuild, RebuildError};
use crate::pipeline::replay::{Means, Quarantine, Replay, ReplayError, Writing};
use crate::pipeline::windows::{Aggregate, EventTime};
use crate::pipeline::{rebuild, replay};
use crate::stop::Stop;
use crate::time::Clock;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// How often the inbox is looked into.
const LOOK: Duration = Duration::from_millis(200);
/// How many requests are taken beside the one that is carried out.
const WAITING: usize = 64;

/// A worker's part in the requests to it.
pub struct Server {
    /// Where requests come in.
    pub inbox: Arc<Mutex<Inbox>>,
    /// What may be replayed; none where rejects go to files only.
    pub quarantine: Option<Quarantine>,
    /// Whether it replaces silver: then nothing is replayed meanwhile.
    pub is_replacing: bool,
    /// What may be rebuilt.
    pub measured: Measured,
    /// Who judges.
    pub evaluators: Evaluators,
    /// The rules and the plan that the worker has at a moment.
    pub context: watch::Receiver<Context>,
    /// Who writes.
    pub delivery: Delivery,
    /// What was seen before.
    pub dedup: Dedup,
    /// The open windows, if anything is measured over windows.
    pub event_time: Option<EventTime>,
    /// Processing time.
    pub clock: Arc<dyn Clock>,
}

/// Requests to a worker, taken as they come.
pub struct Requests {
    ending: Stop,
    task: JoinHandle<Result<(), RunError>>,
}

impl Requests {
    /// Ends it now. What the ledger has of it is sent by the next run.
    pub fn abort(&self) {
        self.task.abort();
    }

    /// Ends it once the chunk that is under way is finished. An error is one that the worker cannot go on with.
    pub async fn end(&mut self) -> Result<(), RunError> {
        self.ending.request();
        let ended = (&mut self.task).await;
        ended.unwrap_or_else(|error| Err(LedgerError::Damaged(format!("a request to it failed: {error}")).into()))
    }
}

impl Server {
    /// Starts serving. A failure that the worker cannot go on with asks it to stop.
    pub fn start(self, worker: Stop) -> Requests {
        let ending = Stop::default();
        let ended = ending.clone();
        let task = tokio::spawn(async move {
            let served = self.serve(&ended).await;
            if served.is_err() {
                worker.request();
            }
            served
        });
        Requests { ending, task }
    }

    async fn serve(self, ending: &Stop) -> Result<(), RunError> {
        {
            let inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
            // Who asks makes it as well; a worker's is surely one that the worker can delete from.
            if let Err(error) = inbox.make() {
                tracing::warn!("the inbox of the ledger cannot be made: {error}");
            }
            if let Err(error) = inbox.tidy(self.clock.now()) {
                tracing::warn!("old answers cannot be deleted: {error}");
            }
        }
        let (taken, waiting) = mpsc::channel(WAITING);
        let (served, ()) = tokio::join!(self.carry_out_all(waiting, ending), self.take_all(taken, ending));
        served
    }

    /// Takes requests while others are carried out: by that their commands know that somebody looks.
    async fn take_all(&self, requests: mpsc::Sender<Taken>, ending: &Stop) {
        let mut failing = false;
        loop {
            tokio::select! {
                biased;
                () = ending.wait() => return,
                () = tokio::time::sleep(LOOK) => {}
            }
            while !ending.requested() {
                let Ok(room) = requests.reserve().await else { return };
                let Some(taken) = self.take(&mut failing).await else { break };
                failpoint::pass(failpoint::REQUEST_TAKEN);
                room.send(taken);
            }
        }
    }

    /// Carries out one after another. Those that are left when the worker ends are answered as well.
    async fn carry_out_all(&self, mut waiting: mpsc::Receiver<Taken>, ending: &Stop) -> Result<(), RunError> {
        let mut served = Ok(());
        while let Some(taken) = waiting.recv().await {
            if let Err(error) = self.carry_out(taken, ending).await {
                served = Err(error);
                ending.request();
            }
        }
        served
    }

    /// The next request. That the inbox cannot be read is said once, until it can.
    async fn take(&self, failing: &mut bool) -> Option<Taken> {
        let inbox = Arc::clone(&self.inbox);
        let look = move || inbox.lock().unwrap_or_else(PoisonError::into_inner).take();
        let looked = tokio::task::spawn_blocking(look).await;
        match looked.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok(taken) => {
                *failing = false;
                taken
            }
            Err(error) => {
                if !std::mem::replace(failing, true) {
                    tracing::warn!("the inbox of the ledger cannot be read: {error}");
                }
                None
            }
        }
    }

    async fn carry_out(&self, taken: Taken, ending: &Stop) -> Result<(), RunError> {
        let request = match &taken.text {
            Ok(text) => serde_json::from_str(text)
                .map_err(|error| format!("this is no request that this version knows: {error}")),
            Err(error) => Err(format!("the request cannot be read: {error}")),
        };
        let (answer, ends) = match request {
            Ok(Request::Replay(wanted)) => match self.replay(wanted, &taken, ending).await {
                Ok(answer) => (answer, Ok(())),
                Err(error) => (Some(Answer::Failed(error.to_string())), ends_with(error.is_its_own(), error)),
            },
            Ok(Request::Rebuild(wanted)) => match self.rebuild(&wanted, &taken, ending).await {
                Ok(answer) => (answer, Ok(())),
                Err(RebuildError::Refused(why)) => (Some(Answer::Refused(why)), Ok(())),
                Err(error) => (Some(Answer::Failed(error.to_string())), ends_with(error.is_its_own(), error)),
            },
            Err(why) => (Some(Answer::Failed(why)), Ok(())),
        };
        failpoint::pass(failpoint::REQUEST_DONE);
        let Some(answer) = answer else { return ends };
        if let Err(error) = taken.answer(&answer) {
            tracing::warn!("the answer to a request cannot be written: {error}");
        }
        ends
    }

    /// Replays until nothing is left, or the worker ends, or nobody waits for it any more: then there is no answer.
    async fn replay(
        &self,
        wanted: replay::Wanted,
        taken: &Taken,
        ending: &Stop,
    ) -> Result<Option<Answer>, ReplayError> {
        if self.is_replacing {
            return Err(ReplayError::Replacing);
        }
        tracing::info!(by = wanted.by, "replaying quarantine");
        let mut replay = Replay::open(self.quarantine.clone(), wanted, false).await?;
        loop {
            if !taken.is_waited_for() {
                tracing::info!("a request was left undone: the command that made it has ended");
                return Ok(None);
            }
            if ending.requested() {
                return Ok(Some(Answer::Begun(replay.progress())));
            }
            let means = Means {
                evaluators: &self.evaluators,
                context: self.context.borrow().clone(),
                clock: self.clock.as_ref(),
                writing: Some(Writing {
                    delivery: &self.delivery,
                    dedup: &self.dedup,
                    event_time: self.event_time.as_ref(),
                }),
            };
            if !replay.turn(&means).await? {
                let report = replay.report().clone();
                tracing::info!(selected = report.selected, accepted = report.accepted, "replayed quarantine");
                return Ok(Some(Answer::Done(report)));
            }
        }
    }

    /// Rebuilds, unless the worker ends or nobody waits for it any more: then there is no answer, and what was written of it is
    /// superseded by whoever does it again.
    async fn rebuild(
        &self,
        wanted: &rebuild::Wanted,
        taken: &Taken,
        ending: &Stop,
    ) -> Result<Option<Answer>, RebuildError> {
        let rebuild = Rebuild {
            measured: &self.measured,
            plan: &|| Arc::clone(&self.context.borrow().plan),
            delivery: &self.delivery,
            dedup: &self.dedup,
            clock: &self.clock,
            goes_on: &|| !ending.requested() && taken.is_waited_for(),
        };
        let state = |aggregate: &Aggregate| {
            let event_time = self.event_time.as_ref();
            let closed = event_time.and_then(|event_time| event_time.closed(&aggregate.name, &aggregate.spec));
            // A worker may open whatever window is not closed for good.
            Taking { closed, open: None }
        };
        let report = if (rebuild.goes_on)() { rebuild.run(wanted, state).await? } else { None };
        if report.is_none() {
            tracing::info!("a rebuild was left undone: the worker ends, or the command that asked for it has ended");
        }
        Ok(report.map(Answer::Rebuilt))
    }
}

/// What the worker ends with, where a request failed by what is not its own.
fn ends_with(is_its_own: bool, error: impl Into<RunError>) -> Result<(), RunError> {
    if is_its_own { Ok(()) } else { Err(error.into()) }
}

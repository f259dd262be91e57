//! Running a pipeline: source → judging → ledger → warehouse, with bounded queues between them.
//!
//! ```text
//! source thread ─2─► admission ─► judging threads ─3─► settling, commit to the ledger ─4─► delivery ─► ack
//! ```
//!
//! The numbers are how many micro-batches may wait: what is in memory is bounded by them, whatever the input.

use super::bound::Bound;
use super::commit::{Commit, Committer, Turn};
use super::dedup::Dedup;
use super::deliver::{DeliverError, Delivery};
use super::error::RunError;
use super::options::Options;
use super::rebuild::Measured;
use super::replace::Replacing;
use super::replay::Quarantine;
use super::report::{Course, Report};
use super::requests::serve::{Requests, Server};
use super::serving::Serving;
use super::start::{Start, Started, start, thread};
use super::watermark::WatermarkSource;
use super::windows::EventTime;
use crate::config::Config;
use crate::ledger::Ledger;
use crate::ledger::inbox::Inbox;
use crate::source;
use crate::stop::Stop;
use crate::telemetry::status::{State, Status};
use crate::telemetry::tally::Tally;
use futures::future::{Fuse, FusedFuture as _};
use futures::stream::FuturesOrdered;
use futures::{FutureExt as _, StreamExt};
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::MissedTickBehavior;

/// Micro-batches that are judged at the same time.
const JUDGING: usize = 3;
/// Commits that may wait for delivery.
const UNDELIVERED: usize = 4;

/// How often is looked whether time alone makes something due.
const TICK: Duration = Duration::from_millis(250);

/// Commits whose messages may wait for their ack to be confirmed.
const ACKS: usize = 16;

/// Runs a pipeline until its source ends or it is asked to stop.
pub async fn run(config: &Config, options: &Options) -> Result<Report, RunError> {
    let began = Instant::now();
    let started = tokio::select! {
        biased;
        // Nothing was taken yet, and what is on its way is as after a crash: the next start goes on from the ledger.
        () = options.stop.wait() => None,
        started = start(config, options) => Some(started?),
    };
    let report = |tally: &Tally, resumed, complete| {
        let bytes = options.metrics.progress().map(|progress| progress.bytes.load(Ordering::Relaxed));
        Report::new(
            config,
            tally,
            Course { read: options.metrics.tally().read, resumed, complete, bytes, took: began.elapsed() },
        )
    };
    let started = match started {
        None => return Ok(report(&Tally::default(), 0, false)),
        Some(Start::Published { run, resumed }) => return Ok(report(&run.counts, resumed, true).of_run(&run, true)),
        Some(Start::Ready(started)) => started,
    };
    let Started { source, serving, delivery, dedup, event_time, resumed, bound } = started;
    let mut requests = requests(config, &serving, &delivery, &dedup, event_time.as_ref(), options);
    let mut drained = pin!(drained(options.stop.clone(), config.drain_timeout).fuse());
    let means =
        Means { config, serving: &serving, delivery: &delivery, dedup: &dedup, event_time, bound: bound.clone() };
    let driven = drive(source, means, drained.as_mut(), options).await;
    // Where the time is over already, nothing is waited for.
    let requested = if drained.is_terminated() {
        Ok(())
    } else {
        tokio::select! {
            biased;
            requested = requests.end() => requested,
            given_up = &mut drained => Err(given_up),
            () = tokio::time::sleep(config.drain_timeout), if driven.is_err() => Ok(()),
        }
    };
    requests.abort();
    serving.finish().await;
    let ended = async {
        let (tally, complete) = driven?;
        requested?;
        let run = Replacing::run(&delivery).await?;
        // Of a run that replaces tables all that was ever read of it is told.
        let tally = run.as_ref().map_or(tally, |run| run.counts.clone());
        // What comes behind a source that was read to its end has keys of its own. A run forgets them as it is published.
        if complete && run.is_none() && dedup.ends_with_the_source() {
            delivery.ledger.retrying(&delivery.patience, Ledger::forget_claims).await?;
        }
        if let Some(bound) = bound.as_ref().filter(|_| complete) {
            bound.holds(&tally)?;
        }
        Ok::<_, RunError>((tally, complete, run))
    };
    let (tally, complete, run) = match ended.await {
        Err(RunError::TooManyRejects(error)) => {
            Replacing::fail(&delivery).await?;
            return Err(error.into());
        }
        ended => ended?,
    };
    if let Some(run) = run {
        if complete {
            // Each step may be repeated: who is told to stop may leave it to the next start.
            tokio::select! {
                biased;
                published = Replacing::publish(&delivery) => published?,
                given_up = &mut drained, if !drained.is_terminated() => return Err(given_up),
            }
        }
        return Ok(report(&tally, resumed, complete).of_run(&run, complete));
    }
    Ok(report(&tally, resumed, complete))
}

/// Takes requests to this worker as long as it runs.
fn requests(
    config: &Config,
    serving: &Serving,
    delivery: &Delivery,
    dedup: &Dedup,
    event_time: Option<&EventTime>,
    options: &Options,
) -> Requests {
    let server = Server {
        inbox: Arc::new(Mutex::new(Inbox::of(&config.ledger))),
        quarantine: Quarantine::of(config),
        is_replacing: config.replaces(),
        measured: Measured::of(config),
        evaluators: serving.evaluators(),
        context: serving.context(),
        delivery: delivery.clone(),
        dedup: dedup.clone(),
        event_time: event_time.cloned(),
        clock: Arc::clone(&options.clock),
    };
    server.start(options.stop.clone())
}

/// What moves micro-batches along.
struct Means<'a> {
    config: &'a Config,
    serving: &'a Serving,
    delivery: &'a Delivery,
    dedup: &'a Dedup,
    event_time: Option<EventTime>,
    bound: Option<Arc<Bound>>,
}

impl Means<'_> {
    /// Who commits, once the source has started.
    fn committer(&self, source: &source::Running, commits: mpsc::Sender<Commit>, options: &Options) -> Committer {
        let event_time = self.event_time.clone().map(|event_time| {
            for (aggregate, open) in event_time.open() {
                options.metrics.windows_open(&aggregate, open);
            }
            let (messages, within) = (source.progress.messages.clone(), source.comes_again_within);
            let clock = Arc::clone(&options.clock);
            let moves = WatermarkSource::new(&self.config.watermark, messages, within, event_time.watermark(), clock);
            (event_time, Mutex::new(moves))
        });
        Committer {
            delivery: self.delivery.clone(),
            dedup: self.dedup.clone(),
            event_time,
            is_bounded: self.config.source.is_bounded(),
            commits,
            status: options.status.clone(),
            bound: self.bound.clone(),
            clock: Arc::clone(&options.clock),
        }
    }
}

/// Moves micro-batches along until the source has ended and everything is delivered.
async fn drive(
    source: source::Opened,
    means: Means<'_>,
    mut drained: Pin<&mut Fuse<impl Future<Output = RunError>>>,
    options: &Options,
) -> Result<(Tally, bool), RunError> {
    let Means { config, serving, delivery, dedup, .. } = means;
    let stop_reading = Stop::default();
    let mut source = source.start(stop_reading.clone()).map_err(RunError::Thread)?;
    options.metrics.reading(Arc::clone(&source.progress));
    options.status.state(State::Running);
    let telling = source.trouble.take().map(|trouble| tokio::spawn(tell(trouble, options.status.clone())));
    let (commits, queue) = mpsc::channel::<Commit>(UNDELIVERED);
    let turns = means.committer(&source, commits.clone(), options);
    let has_windows = turns.event_time.is_some();
    let mut delivering = tokio::spawn(deliver_all(delivery.clone(), dedup.clone(), queue));
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut judging = FuturesOrdered::new();
    let (mut reading, mut stopping, mut cut_short, mut closed) = (true, false, false, false);
    let mut source_error = None;
    let outcome = {
        // Both may have to wait for long; being asked to stop is noticed meanwhile.
        let mut admitting = pin!(Fuse::terminated());
        let mut committing = pin!(Fuse::terminated());
        loop {
            if !reading && judging.is_empty() && admitting.is_terminated() && committing.is_terminated() {
                if stopping || source_error.is_some() || std::mem::replace(&mut closed, true) {
                    break Ok(());
                }
                committing.set(turns.turn(Turn::EndOfInput(serving.plan())).fuse());
            }
            tokio::select! {
                biased;
                () = options.stop.wait(), if !stopping => {
                    stopping = true;
                    options.status.state(State::Stopping);
                    cut_short = reading;
                    stop_reading.request();
                }
                given_up = &mut drained => break Err(given_up),
                committed = &mut committing => match committed {
                    Ok(true) => {}
                    // Delivery has failed and says why below.
                    Ok(false) => break Ok(()),
                    Err(error) => break Err(error),
                },
                admitted = &mut admitting => match admitted {
                    Ok(admitted) => judging.push_back(serving.submit(admitted)),
                    Err(error) => break Err(RunError::from(error)),
                },
                // Delivery has failed: without this a quiet source would keep it from being said.
                () = commits.closed() => break Ok(()),
                _ = ticks.tick(), if has_windows && committing.is_terminated() => {
                    committing.set(turns.turn(Turn::Tick(serving.plan())).fuse());
                }
                Some(judged) = judging.next(), if committing.is_terminated() => {
                    committing.set(turns.turn(Turn::Batch(Box::new(judged))).fuse());
                }
                batch = source.batches.recv(), if reading && admitting.is_terminated() && judging.len() < JUDGING => {
                    match batch {
                        Some(Ok(batch)) => admitting.set(dedup.admit(batch, delivery).fuse()),
                        Some(Err(error)) => {
                            // What was read before is good, and is finished first.
                            source_error = Some(error);
                            reading = false;
                        }
                        None => reading = false,
                    }
                }
            }
        }
    };
    // Delivery ends behind the last commit.
    drop((turns, commits));
    let failed = outcome.is_err() || source_error.is_some();
    let delivered = all_delivered(&mut delivering, drained, failed.then_some(config.drain_timeout)).await;
    // What is held is given back.
    delivering.abort();
    drop((judging, source.batches));
    if let Some(ending) = source.ending {
        ending.await;
    }
    if let Some(telling) = telling {
        telling.abort();
    }
    outcome?;
    delivered?;
    let complete = !cut_short && (closed || !has_windows);
    source_error.map_or(Ok((options.metrics.tally(), complete)), |error| Err(error.into()))
}

/// Waits until everything is delivered; after a failure only so long: what ends the run is not to be told only when the
/// warehouse is back. The next run sends the rest.
async fn all_delivered(
    delivering: &mut JoinHandle<Result<(), DeliverError>>,
    mut drained: Pin<&mut Fuse<impl Future<Output = RunError>>>,
    at_most: Option<Duration>,
) -> Result<(), RunError> {
    if drained.is_terminated() {
        return Ok(());
    }
    tokio::select! {
        biased;
        delivered = delivering => delivered.map_err(thread)?.map_err(RunError::from),
        given_up = &mut drained => Err(given_up),
        () = tokio::time::sleep(at_most.unwrap_or_default()), if at_most.is_some() => Ok(()),
    }
}

/// Returns when what was taken is not to be waited for any more: some time after it was asked to stop, or when it was asked
/// again.
async fn drained(stop: Stop, timeout: Duration) -> RunError {
    stop.wait().await;
    tokio::select! {
        () = tokio::time::sleep(timeout) => RunError::NotDrained(timeout),
        () = stop.hurried() => RunError::Hurried,
    }
}

/// Tells what keeps the source from getting events, as long as it does.
async fn tell(mut trouble: watch::Receiver<Option<String>>, status: Status) {
    let mut told = None;
    loop {
        match trouble.borrow_and_update().clone() {
            Some(why) => told.get_or_insert_with(|| status.no_events()).is(why),
            None => told = None,
        }
        if trouble.changed().await.is_err() {
            return;
        }
    }
}

/// Delivers commits as they come, and what refused rows added at the end.
async fn deliver_all(delivery: Delivery, dedup: Dedup, mut queue: mpsc::Receiver<Commit>) -> Result<(), DeliverError> {
    let mut acks = JoinSet::new();
    let delivered = deliver_each(&delivery, &dedup, &mut queue, &mut acks).await;
    // Also after a failure: what is durable need not come again.
    while acks.join_next().await.is_some() {}
    delivered?;
    delivery.deliver_all().await
}

/// Counts the events whose rows are durable, and only then lets go of the messages they came in. That may take a while to
/// be confirmed, and the next rows need not wait for it.
async fn deliver_each(
    delivery: &Delivery,
    dedup: &Dedup,
    queue: &mut mpsc::Receiver<Commit>,
    acks: &mut JoinSet<usize>,
) -> Result<(), DeliverError> {
    while let Some(Commit { seq, mut tally, leases }) = queue.recv().await {
        let refused = delivery.deliver(seq).await?;
        tally.refuse(&refused);
        delivery.metrics.durable(&tally);
        if !leases.is_empty() {
            let acking = dedup.acking(seq);
            acks.spawn(async move {
                let unconfirmed = leases.ack().await;
                acking.done();
                unconfirmed
            });
        }
        if acks.len() > ACKS {
            acks.join_next().await;
        }
    }
    Ok(())
}

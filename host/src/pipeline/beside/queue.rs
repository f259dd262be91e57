//! Judging beside: a thread of its own, of lower priority, with a bounded queue.

use super::super::evaluate::Context;
use super::super::plan::Plan;
use super::super::takes::outcome;
use super::super::threads;
use super::pair::Pair;
use crate::event::Event;
use crate::releases::worker::Sample;
use crate::rules::compare::{Difference, Opinion, column, compare, shown};
use crate::rules::judge::Isolation;
use crate::rules::set::{BesideKind, Served};
use crate::rules::{Judge, Limits, Rule, Sandbox};
use crate::time::{Clock, Micros};
use crate::verdict::clip;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Parts of micro-batches that may wait.
const WAITING: usize = 4;
/// Events of one part that a guard looks at: enough to find a bad rule within a part or two, and little of a busy core.
const GUARDED: usize = 256;
/// How long one part may take: then the rest of it is skipped, so that a slow rule still sees some of every part.
const PART: Duration = Duration::from_millis(250);
/// How long the end of a run waits for what is queued.
const DRAIN: Duration = Duration::from_secs(2);
/// What the thread's priority is below that of the serving ones (nice): on busy cores it is left a hundredth of one, enough
/// for thousands of events a second.
const NICE: i32 = 19;
/// Bytes of a verdict that is stored.
const STORED: usize = 64 << 10;

/// An event on which two rules differ, for the table of differences.
#[derive(Debug, Clone)]
pub struct Finding {
    /// When both had judged it.
    pub at: Micros,
    /// The event.
    pub message_id: String,
    /// Which pair.
    pub pair: Arc<Pair>,
    /// Every difference.
    pub differences: Vec<Difference>,
    /// The old rule's verdict.
    pub old: String,
    /// The new rule's verdict.
    pub new: String,
}

/// Called with a pair whose guard trips, and the reason.
pub type OnTrip = Box<dyn Fn(&Arc<Pair>, String) + Send>;

/// What the thread needs, and whom it tells.
pub struct Settings {
    /// Where rules run.
    pub sandbox: Arc<Sandbox>,
    /// What they may use.
    pub limits: Limits,
    /// How long instances live.
    pub isolation: Isolation,
    /// Processing time.
    pub clock: Arc<dyn Clock>,
    /// Events of a pair whose differences are stored.
    pub keep: u64,
    /// Called with what is to be stored.
    pub on_finding: Box<dyn Fn(Finding) + Send>,
    /// Called when a guard trips, with the reason.
    pub on_trip: OnTrip,
}

/// The judging beside.
pub struct Besides {
    jobs: mpsc::Sender<Message>,
    room: Arc<Semaphore>,
    hurry: Arc<AtomicBool>,
    is_gone: AtomicBool,
    thread: Mutex<Option<JoinHandle<()>>>,
}

enum Message {
    Job(Job),
    End,
}

struct Job {
    batch: Arc<Vec<Event>>,
    items: Vec<Item>,
    _room: OwnedSemaphorePermit,
}

struct Item {
    index: u32,
    pair: Arc<Pair>,
    serving: Arc<Rule>,
    beside: Arc<Rule>,
    plan: Arc<Plan>,
    opinion: Opinion,
}

/// Collects the events of one part of a micro-batch that are to be judged beside.
pub struct Collector {
    room: bool,
    items: Vec<Item>,
    guarded: usize,
}

impl Besides {
    /// Starts the thread.
    pub fn start(settings: Settings) -> io::Result<Self> {
        let (jobs, queue) = mpsc::channel();
        let hurry = Arc::new(AtomicBool::new(false));
        let hurried = Arc::clone(&hurry);
        let thread = thread::Builder::new()
            .name("beside".into())
            .stack_size(crate::rules::pool::STACK)
            .spawn(move || run(&settings, &queue, &hurried))?;
        Ok(Self {
            jobs,
            room: Arc::new(Semaphore::new(WAITING)),
            hurry,
            is_gone: AtomicBool::new(false),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// A collector for one part. If the queue is full it only counts what is skipped.
    pub fn collector(&self) -> Collector {
        Collector { room: self.room.available_permits() > 0, items: Vec::new(), guarded: 0 }
    }

    /// Hands a part over, if there is still room. Room is taken only now: judging threads do not hold it meanwhile.
    pub fn submit(&self, collector: Collector, batch: &Arc<Vec<Event>>) {
        let Collector { items, .. } = collector;
        if items.is_empty() {
            return;
        }
        let skip = |items: Vec<Item>| items.iter().for_each(|item| item.pair.skip(1));
        let Ok(room) = Arc::clone(&self.room).try_acquire_owned() else { return skip(items) };
        let job = Message::Job(Job { batch: Arc::clone(batch), items, _room: room });
        if let Err(mpsc::SendError(Message::Job(job))) = self.jobs.send(job) {
            if !self.is_gone.swap(true, Ordering::Relaxed) {
                tracing::error!("the thread that compares rules has ended: no guard watches any more");
            }
            skip(job.items);
        }
    }

    /// Ends the thread: what is queued is judged for a short while yet, the rest is skipped. Blocks.
    pub fn finish(&self) {
        let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        self.jobs.send(Message::End).ok();
        threads::ends_within(&thread, DRAIN);
        self.hurry.store(true, Ordering::Relaxed);
        if thread.join().is_err() {
            tracing::error!("the thread that compares rules panicked; serving was not affected");
        }
    }
}

impl Collector {
    /// Notes an event for every rule beside the one that serves it.
    pub fn note(&mut self, context: &Context, served: &Served, index: u32, event: &Event, opinion: &Opinion) {
        for beside in &served.beside {
            let pair = &context.pairs[beside.pair];
            if pair.is_over() || !beside.share.holds(beside.kind.as_str(), event.message_id.as_bytes()) {
                continue;
            }
            let guard = beside.kind != BesideKind::Shadow;
            if !self.room || guard && self.guarded >= GUARDED {
                pair.skip(1);
                continue;
            }
            self.guarded += usize::from(guard);
            self.items.push(Item {
                index,
                pair: Arc::clone(pair),
                serving: Arc::clone(&served.rule),
                beside: Arc::clone(&beside.rule),
                plan: Arc::clone(&context.plan),
                opinion: outcome(&context.plan, &served.rule.manifest, event, opinion.clone()),
            });
        }
    }
}

fn run(settings: &Settings, queue: &mpsc::Receiver<Message>, hurry: &AtomicBool) {
    threads::lower(NICE);
    let mut judge = Judge::new(Arc::clone(&settings.sandbox), settings.limits.clone(), settings.isolation);
    while let Ok(Message::Job(job)) = queue.recv() {
        let started = Instant::now();
        for item in &job.items {
            if item.pair.is_over() {
                continue;
            }
            if started.elapsed() > PART || hurry.load(Ordering::Relaxed) {
                item.pair.skip(1);
                continue;
            }
            one(settings, &mut judge, &job.batch[item.index as usize], item);
        }
        judge.end_batch();
    }
}

fn one(settings: &Settings, judge: &mut Judge, event: &Event, item: &Item) {
    let beside = match judge.judge(&item.beside, event) {
        Ok(judged) => outcome(&item.plan, &item.beside.manifest, event, judged.verdict),
        Err(error) => {
            tracing::warn!(message_id = event.message_id, "cannot judge beside, skipped: {error}");
            item.pair.skip(1);
            return;
        }
    };
    let (serving, other) = ((&item.serving.manifest, &item.opinion), (&item.beside.manifest, &beside));
    let (old, new) = if item.pair.key.kind.serving_is_new() { (other, serving) } else { (serving, other) };
    let differences = compare(old, new);
    let sample = |difference: &Difference| {
        let (old, new) = match difference {
            Difference::Column(name) => (column(old, name), column(new, name)),
            _ => (shown(old.0, old.1), shown(new.0, new.1)),
        };
        Sample { message_id: event.message_id.clone(), kind: String::new(), old, new }
    };
    let now = settings.clock.now();
    let recorded = item.pair.record(&differences, sample, settings.keep, now);
    if recorded.store {
        let verdict = |(manifest, opinion)| clip(&shown(manifest, opinion), STORED).into_owned();
        (settings.on_finding)(Finding {
            at: now,
            message_id: event.message_id.clone(),
            pair: Arc::clone(&item.pair),
            old: verdict(old),
            new: verdict(new),
            differences,
        });
    }
    if let Some(why) = recorded.tripped {
        (settings.on_trip)(&item.pair, why);
    }
}

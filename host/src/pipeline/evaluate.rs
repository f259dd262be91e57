//! Judging micro-batches on all cores. A micro-batch is cut into one part per thread, and the parts come back in
//! order: the rows are the same with one thread and with many.

use super::assemble::{Assembler, Judged};
use super::beside::{Besides, Pair};
use super::plan::Plan;
use super::report::Tally;
use crate::event::Event;
use crate::ledger::{Frames, Original, Part};
use crate::rules::compare::Opinion;
use crate::rules::judge::Isolation;
use crate::rules::{Judge, Limits, RuleSet, Sandbox, Served, fault::SandboxError};
use crate::source::Batch;
use crate::verdict::Rejection;
use crate::warehouse::{RowSet, Tier};
use futures::future::try_join_all;
use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Instant;
use tokio::sync::oneshot;

/// Native stack of a thread that runs guests: theirs is 512 KiB, the rest is the host's.
pub(super) const STACK: usize = 4 << 20;
/// Below this many events a part is not worth its thread.
const SMALLEST: usize = 64;

/// Threads that judge events; a clone has the same ones.
#[derive(Clone)]
pub struct Evaluators {
    jobs: mpsc::Sender<Job>,
    threads: NonZeroUsize,
}

/// What judging needs: fixed for a micro-batch from the moment it is submitted.
#[derive(Clone)]
pub struct Context {
    /// The rules.
    pub rules: Arc<RuleSet>,
    /// Where values go.
    pub plan: Arc<Plan>,
    /// What comparing the rules of the set shows, by number of the pair.
    pub pairs: Arc<[Arc<Pair>]>,
}

/// A micro-batch that was judged: rows by target, the original events, counts, and the position behind it.
pub struct Evaluated {
    /// The rows.
    pub parts: Vec<Part>,
    /// The original events.
    pub originals: Frames,
    /// The counts.
    pub tally: Tally,
    /// The source's position.
    pub position: Option<(String, String)>,
    /// When it was submitted.
    pub submitted: Instant,
    /// The revision of the rules that judged it, if they are from a store.
    pub revision: Option<u64>,
}

/// Why a micro-batch could not be judged. Nothing of it was written.
#[derive(Debug, thiserror::Error)]
pub enum EvaluateError {
    /// The sandbox itself failed.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// A thread is gone.
    #[error("a thread that judges events ended; its panic is in the log")]
    ThreadEnded,
}

struct Job {
    batch: Arc<Vec<Event>>,
    range: Range<usize>,
    context: Context,
    reply: oneshot::Sender<Result<Output, SandboxError>>,
}

struct Output {
    rows: [RowSet; 3],
    frames: [Frames; 3],
    originals: Frames,
    tally: Tally,
}

impl Evaluators {
    /// Starts the threads. They end when the last clone is dropped. Without `besides` nothing is compared.
    pub fn start(
        sandbox: &Arc<Sandbox>,
        limits: &Limits,
        isolation: Isolation,
        threads: NonZeroUsize,
        besides: Option<&Arc<Besides>>,
    ) -> std::io::Result<Self> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let queue = Arc::new(Mutex::new(queue));
        for number in 0..threads.get() {
            let mut judge = Judge::new(Arc::clone(sandbox), limits.clone(), isolation);
            let (queue, besides) = (Arc::clone(&queue), besides.map(Arc::clone));
            thread::Builder::new().name(format!("judge-{number}")).stack_size(STACK).spawn(move || {
                loop {
                    let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(job) = job else { return };
                    let output = evaluate(&mut judge, &job, besides.as_deref());
                    // Nobody waits for it when the pipeline has failed meanwhile.
                    job.reply.send(output).ok();
                }
            })?;
        }
        Ok(Self { jobs, threads })
    }

    /// Hands a micro-batch to the threads at once; the future gives the result.
    pub fn submit(
        &self,
        batch: Batch,
        context: &Context,
    ) -> impl Future<Output = Result<Evaluated, EvaluateError>> + use<> {
        let Batch { events, position } = batch;
        let size = events.len().div_ceil(self.threads.get()).max(SMALLEST);
        let events = Arc::new(events);
        let mut waiting = Vec::new();
        for start in (0..events.len()).step_by(size) {
            let (reply, output) = oneshot::channel();
            let range = start..events.len().min(start + size);
            let job = Job { batch: Arc::clone(&events), range, context: context.clone(), reply };
            // If every thread is gone the reply is dropped with the job, which the receiver sees.
            self.jobs.send(job).ok();
            waiting.push(output);
        }
        let (context, submitted) = (context.clone(), Instant::now());
        async move {
            let outputs = try_join_all(waiting).await.map_err(|_| EvaluateError::ThreadEnded)?;
            join(&context, outputs, position, submitted)
        }
    }
}

fn join(
    context: &Context,
    outputs: Vec<Result<Output, SandboxError>>,
    position: Option<(String, String)>,
    submitted: Instant,
) -> Result<Evaluated, EvaluateError> {
    let mut outputs = outputs.into_iter();
    let mut all = match outputs.next() {
        Some(first) => first?,
        None => Output {
            rows: Default::default(),
            frames: Default::default(),
            originals: Frames::default(),
            tally: Tally::default(),
        },
    };
    for output in outputs {
        let output = output?;
        for tier in Tier::ALL {
            all.rows[tier as usize].extend(&output.rows[tier as usize]);
            all.frames[tier as usize].extend(&output.frames[tier as usize]);
        }
        all.originals.extend(&output.originals);
        all.tally.add(&output.tally);
    }
    let parts = Tier::ALL
        .into_iter()
        .zip(all.rows.into_iter().zip(all.frames))
        .filter_map(|(tier, (rows, frames))| {
            // A tier without a layout has no rows: the pipeline does not write it.
            let layout = Arc::clone(context.plan.layout(tier)?);
            Some(Part { tier, layout, rows: Arc::new(rows), frames })
        })
        .collect();
    let revision = context.rules.revision();
    Ok(Evaluated { parts, originals: all.originals, tally: all.tally, position, submitted, revision })
}

fn evaluate(judge: &mut Judge, job: &Job, besides: Option<&Besides>) -> Result<Output, SandboxError> {
    let mut assembler = Assembler::new(&job.context.plan);
    let pairs = &job.context.pairs;
    let mut beside = besides.filter(|_| !pairs.is_empty()).map(Besides::collector);
    let mut originals = Vec::with_capacity(job.range.len());
    for index in job.range.clone() {
        let event = &job.batch[index];
        let (version, judged) = judge_one(judge, &job.context.rules, event, &mut assembler.tally)?;
        let index = u32::try_from(index).expect("a micro-batch is bounded far below 2^32 events");
        let (rule, outcome) = match judged {
            Ok((served, opinion)) => {
                if let Some(beside) = &mut beside {
                    beside.note(pairs, served, index, event, &opinion);
                }
                (Some(served.rule.as_ref()), opinion.map_err(Rejection::from))
            }
            Err(rejection) => (None, Err(rejection)),
        };
        let names = rule.map(|rule| (rule.label.as_str(), rule.digest_text.as_str()));
        assembler.add(Judged { index, event, version: version.as_deref(), rule: names }, rule, outcome);
        let rule = names.map(|(label, digest)| (label.into(), digest.into()));
        originals.push(Original { event: Cow::Borrowed(event), version, rule });
    }
    judge.end_batch();
    if let (Some(besides), Some(beside)) = (besides, beside) {
        besides.submit(beside, &job.batch);
    }
    let mut frames: [Frames; 3] = Default::default();
    for (frames, rows) in frames.iter_mut().zip(&assembler.rows) {
        if !rows.is_empty() {
            frames.push(rows);
        }
    }
    let mut kept = Frames::default();
    kept.push(&originals);
    Ok(Output { rows: assembler.rows, frames, originals: kept, tally: assembler.tally })
}

/// The event's version, and the rule that judged it with its opinion, or the host's rejection.
type Outcome<'a> = (Option<Cow<'a, str>>, Result<(&'a Served, Opinion), Rejection>);

/// Routes and judges one event.
fn judge_one<'a>(
    judge: &mut Judge,
    rules: &'a RuleSet,
    event: &'a Event,
    tally: &mut Tally,
) -> Result<Outcome<'a>, SandboxError> {
    if let Some(refused) = &event.refused {
        return Ok((None, Err(refused.clone())));
    }
    let (version, served) = match rules.route(event) {
        (version, Ok(served)) => (version, served),
        (version, Err(rejection)) => return Ok((version, Err(rejection))),
    };
    let judged = judge.judge(&served.rule, event)?;
    if let Some(fault) = judged.recovered {
        tally.recovered += 1;
        tracing::warn!(
            rule = served.rule.label,
            message_id = event.message_id,
            code = fault.code.as_str(),
            "a fault did not stand when the event was judged again alone: {}",
            fault.detail
        );
    }
    Ok((version, Ok((served, judged.verdict))))
}

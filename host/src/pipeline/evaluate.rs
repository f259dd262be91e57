//! Judging micro-batches: each part of one becomes rows and counts on its thread, and the parts are joined in order.

use super::assemble::{Assembler, Judged};
use super::beside::{Besides, Pair};
use super::facts::{Admitted, Fact, Facts, Mark};
use super::keys;
use super::keys::Compared;
use super::plan::Plan;
use super::takes::windows_take;
use super::windows::Contribution;
use crate::event::Event;
use crate::ledger::{Claim, Frames, Key, Original, Part};
use crate::rules::compare::Opinion;
use crate::rules::judge::Isolation;
use crate::rules::{Judge, JudgePool, Limits, Rule, RuleSet, Sandbox, Served, fault::SandboxError};
use crate::source::Leases;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::tally::{CountedVersion, Tally};
use crate::verdict::{Rejection, Verdict};
use crate::warehouse::{RowSet, Tier};
use futures::future::try_join_all;
use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// Threads that judge events; a clone has the same ones.
#[derive(Clone)]
pub struct Evaluators {
    pool: JudgePool,
    besides: Option<Arc<Besides>>,
    metrics: Metrics,
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
    /// Our hold on the messages.
    pub leases: Leases,
    /// When it was submitted.
    pub submitted: Instant,
    /// The revision of the rules that judged it, if they are from a store.
    pub revision: Option<u64>,
    /// What was known of each event before it was judged; none where nothing has to be.
    pub marks: Arc<[Mark]>,
    /// What was found out about each event that has a mark.
    pub facts: Vec<Fact>,
    /// The events.
    pub events: Arc<Vec<Event>>,
    /// Where values went.
    pub plan: Arc<Plan>,
    /// The messages that were left out before.
    pub left_out_ids: Vec<Key>,
    /// What accepted events add to aggregates, in their order.
    pub contributions: Vec<Contribution>,
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

#[derive(Default)]
struct Output {
    rows: [RowSet; Tier::JUDGED.len()],
    frames: [Frames; Tier::JUDGED.len()],
    originals: Frames,
    tally: Tally,
    facts: Vec<Fact>,
    contributions: Vec<Contribution>,
}

impl Evaluators {
    /// Starts the threads. They end when the last clone is dropped. Without `besides` nothing is compared.
    pub fn start(
        sandbox: &Arc<Sandbox>,
        limits: &Limits,
        isolation: Isolation,
        threads: NonZeroUsize,
        besides: Option<&Arc<Besides>>,
        metrics: &Metrics,
    ) -> std::io::Result<Self> {
        let pool = JudgePool::start(sandbox, limits, isolation, threads)?;
        Ok(Self { pool, besides: besides.map(Arc::clone), metrics: metrics.clone() })
    }

    /// Hands a micro-batch to the threads at once; the future gives the result.
    pub fn submit(
        &self,
        admitted: Admitted,
        context: &Context,
    ) -> impl Future<Output = Result<Evaluated, EvaluateError>> + use<> {
        let Admitted { events, marks, left_out, left_out_ids, position, leases } = admitted;
        let marks: Arc<[Mark]> = marks.into();
        let (context, submitted) = (context.clone(), Instant::now());
        // Ends with the last part.
        let timer = Arc::new(self.metrics.batch(&events));
        let events = Arc::new(events);
        let work = Work {
            context: context.clone(),
            marks: Arc::clone(&marks),
            besides: self.besides.clone(),
            metrics: self.metrics.clone(),
        };
        let waiting = self.pool.submit(Arc::clone(&events), move |judge, events, range| {
            let _timer = &timer;
            work.evaluate(judge, events, range)
        });
        async move {
            let outputs = try_join_all(waiting).await.map_err(|_| EvaluateError::ThreadEnded)?;
            let Output { rows, frames, originals, mut tally, facts, contributions } = join(outputs)?;
            tally.add(&left_out);
            let parts = Tier::JUDGED
                .into_iter()
                .zip(rows.into_iter().zip(frames))
                .filter_map(|(tier, (rows, frames))| {
                    // A tier without a layout has no rows: the pipeline does not write it.
                    let layout = Arc::clone(context.plan.layout(tier)?);
                    Some(Part { tier, layout, rows: Arc::new(rows), frames })
                })
                .collect();
            let (revision, plan) = (context.rules.revision(), context.plan);
            Ok(Evaluated {
                parts,
                originals,
                tally,
                position,
                leases,
                submitted,
                revision,
                marks,
                facts,
                events,
                plan,
                left_out_ids,
                contributions,
            })
        }
    }
}

fn join(outputs: Vec<Result<Output, SandboxError>>) -> Result<Output, SandboxError> {
    let mut outputs = outputs.into_iter();
    let mut all = outputs.next().unwrap_or_else(|| Ok(Output::default()))?;
    for output in outputs {
        let output = output?;
        for (all, rows) in all.rows.iter_mut().zip(&output.rows) {
            all.extend(rows);
        }
        for (all, frames) in all.frames.iter_mut().zip(&output.frames) {
            all.extend(frames);
        }
        all.originals.extend(&output.originals);
        all.tally.add(&output.tally);
        all.facts.extend(output.facts);
        all.contributions.extend(output.contributions);
    }
    Ok(all)
}

/// What the threads that judge a micro-batch share.
#[derive(Clone)]
struct Work {
    context: Context,
    marks: Arc<[Mark]>,
    besides: Option<Arc<Besides>>,
    metrics: Metrics,
}

impl Work {
    fn evaluate(
        &self,
        judge: &mut Judge,
        events: &Arc<Vec<Event>>,
        range: Range<usize>,
    ) -> Result<Output, SandboxError> {
        let Self { context, marks, besides, metrics } = self;
        let besides = besides.as_deref();
        let mut facts = Facts::default();
        let mut assembler = Assembler::new(&context.plan);
        let mut beside = besides.filter(|_| !context.pairs.is_empty()).map(Besides::collector);
        let mut originals = Vec::with_capacity(range.len());
        let mut contributions = Vec::new();
        for at in range {
            let _timer = metrics.sampled_event(at);
            let event = &events[at];
            let mark = marks.get(at);
            let index = u32::try_from(at).expect("a micro-batch is bounded far below 2^32 events");
            if mark.is_some_and(|mark| mark.is_duplicate) {
                let (version, served) = context.rules.route(event);
                let counted = CountedVersion::new(version.as_deref(), served.is_ok());
                let judged = Judged { index, event, version: version.as_deref(), rule: None };
                let fate = assembler.add_duplicate(judged, counted);
                facts.note(counted, None, fate, None, Claim::default());
                originals.push(Original { event: Cow::Borrowed(event), version, rule: None });
                continue;
            }
            let (version, judged) = judge_one(judge, &context.rules, event, &mut assembler.tally)?;
            let (rule, outcome) = match judged {
                Ok((served, opinion)) => {
                    if let Some(beside) = &mut beside {
                        beside.note(context, served, index, event, &opinion);
                    }
                    (Some(&served.rule), opinion.map_err(Rejection::from))
                }
                Err(rejection) => (None, Err(rejection)),
            };
            let (key, claim) = mark.map(|mark| context.identity(mark, event, rule, &outcome)).unwrap_or_default();
            let names = rule.map(|rule| (rule.label.as_str(), rule.digest_text.as_str()));
            let judged = Judged { index, event, version: version.as_deref(), rule: names };
            let before = contributions.len();
            context.contribute(index, rule, &outcome, &mut contributions);
            let refused = match &context.plan.windows {
                Some(windows) => windows_take(windows, &contributions[before..], event.received_time).err(),
                None => None,
            };
            let outcome = refused.map_or(outcome, Err);
            let fate = assembler.add(judged, rule.map(AsRef::as_ref), outcome);
            if !fate.is_accepted() {
                // The table would refuse its row.
                contributions.truncate(before);
            }
            if mark.is_some() {
                facts.note(CountedVersion::new(judged.version, rule.is_some()), rule, fate, key, claim);
            }
            let rule = names.map(|(label, digest)| (label.into(), digest.into()));
            originals.push(Original { event: Cow::Borrowed(event), version, rule });
        }
        if let (Some(besides), Some(beside)) = (besides, beside) {
            besides.submit(beside, events);
        }
        let mut frames: [Frames; Tier::JUDGED.len()] = Default::default();
        for (frames, rows) in frames.iter_mut().zip(&assembler.rows) {
            if !rows.is_empty() {
                frames.push(rows);
            }
        }
        let mut kept = Frames::default();
        kept.push(&originals);
        let Assembler { rows, tally, .. } = assembler;
        Ok(Output { rows, frames, originals: kept, tally, facts: facts.all(), contributions })
    }
}

impl Context {
    /// Notes what the row of an event adds to aggregates.
    fn contribute(
        &self,
        event: u32,
        rule: Option<&Arc<Rule>>,
        outcome: &Result<Verdict, Rejection>,
        contributions: &mut Vec<Contribution>,
    ) {
        let (Some(windows), Some(rule), Ok(Verdict::Accept(row))) = (&self.plan.windows, rule, outcome) else { return };
        let all = windows.aggregates.iter().enumerate();
        contributions
            .extend(all.filter_map(|(index, planned)| planned.aggregate.contribution(index, event, &rule.digest, row)));
    }

    /// The dedup key of an event that was judged, if it has one, and what it would claim it with.
    fn identity(
        &self,
        mark: &Mark,
        event: &Event,
        rule: Option<&Arc<Rule>>,
        outcome: &Result<Verdict, Rejection>,
    ) -> (Option<Key>, Claim) {
        if mark.compared == Compared::Nothing {
            return (None, Claim::default());
        }
        let row = match (outcome, rule.and_then(|rule| self.plan.row_keys.get(&rule.digest))) {
            (Ok(Verdict::Accept(row)), Some(keys)) => Some((keys, row)),
            _ => None,
        };
        let key = mark.key.or_else(|| row.and_then(|(keys, row)| keys.key(row)));
        if key.is_none() {
            return (None, Claim::default());
        }
        let row = row.map(|(keys, row)| keys.fingerprint(row)).unwrap_or_default();
        (key, Claim { content: keys::content(event, mark.compared), row })
    }
}

/// The event's version, and the rule that judged it with its opinion, or the host's rejection.
pub type Outcome<'a> = (Option<Cow<'a, str>>, Result<(&'a Served, Opinion), Rejection>);

/// Routes and judges one event.
pub fn judge_one<'a>(
    judge: &mut Judge,
    rules: &'a RuleSet,
    event: &'a Event,
    tally: &mut Tally,
) -> Result<Outcome<'a>, SandboxError> {
    if let Err(rejection) = event.document() {
        return Ok((None, Err(rejection.clone())));
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

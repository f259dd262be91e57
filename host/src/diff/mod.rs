//! What would change: two rules judge the same events, and their opinions are compared.
//!
//! [`input`] gives the events, [`selection`] says which of them are judged, [`report`] counts and keeps samples, and
//! [`columns`] compares the manifests. Nothing is written anywhere.

pub mod columns;
pub mod input;
pub mod report;
pub mod selection;

pub use columns::ColumnChange;
pub use input::{Input, InputError, Read};
pub use report::{Report, Sample};
pub use selection::Selection;

use crate::event::Event;
use crate::rules::compare::compare;
use crate::rules::fault::SandboxError;
use crate::rules::{Judge, JudgePool, Rule};
use report::Tally;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Micro-batches that are judged at the same time: one is read and waits while the other is judged.
const JUDGING: usize = 2;

/// The rules that are compared.
#[derive(Debug, Clone)]
pub struct Pair {
    /// The one that judges now.
    pub old: Arc<Rule>,
    /// The one that would.
    pub new: Arc<Rule>,
}

/// Why a comparison ended early.
#[derive(Debug, thiserror::Error)]
pub enum DiffError {
    /// The events cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The sandbox itself failed.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// A thread is gone.
    #[error("a thread that judges events ended; its panic is in the log")]
    ThreadEnded,
}

/// Compares the rules on all events of the micro-batches, keeping up to `samples` differences of each kind: the first
/// ones, in the order of the events. Holds a few micro-batches at a time.
pub fn run(
    pool: &JudgePool,
    pair: &Pair,
    batches: impl IntoIterator<Item = Result<Read, InputError>>,
    selection: Option<&Arc<Selection>>,
    samples: usize,
) -> Result<Report, DiffError> {
    let mut all = Tally::new(samples);
    let mut judging = VecDeque::new();
    for batch in batches {
        let Read { events, not_whole } = batch?;
        all.skip_not_whole(not_whole);
        let (pair, selection) = (pair.clone(), selection.cloned());
        judging.push_back(pool.submit(Arc::new(events), move |judge, events, range| {
            part(judge, &pair, selection.as_deref(), &events[range], samples)
        }));
        if judging.len() == JUDGING {
            judging.pop_front().into_iter().try_for_each(|parts| collect(&mut all, parts))?;
        }
    }
    judging.into_iter().try_for_each(|parts| collect(&mut all, parts))?;
    Ok(all.report())
}

fn collect(all: &mut Tally, parts: Vec<oneshot::Receiver<Result<Tally, SandboxError>>>) -> Result<(), DiffError> {
    for part in parts {
        all.merge(part.blocking_recv().map_err(|_| DiffError::ThreadEnded)??);
    }
    Ok(())
}

fn part(
    judge: &mut Judge,
    pair: &Pair,
    selection: Option<&Selection>,
    events: &[Event],
    samples: usize,
) -> Result<Tally, SandboxError> {
    let mut tally = Tally::new(samples);
    let (old, new) = (&pair.old, &pair.new);
    for event in events {
        if let Some(skip) = selection.and_then(|selection| selection.skips(event)) {
            tally.skip(skip);
            continue;
        }
        let before = judge.judge(old, event)?.verdict;
        let after = judge.judge(new, event)?.verdict;
        let (before, after) = ((&old.manifest, &before), (&new.manifest, &after));
        tally.judged(event, before, after, compare(before, after));
    }
    Ok(tally)
}

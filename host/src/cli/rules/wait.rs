//! What the workers make of a new revision.

use super::now;
use crate::cli::output::one_line;
use crate::releases::RuleStore;
use crate::releases::worker::{Life, Worker};
use crate::time::Micros;
use serde::Serialize;
use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

/// How often is looked.
const PAUSE: Duration = Duration::from_millis(50);

/// What a worker says to a revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Answer {
    /// The worker's id.
    worker: String,
    /// The revision that it serves.
    serves: u64,
    /// Its answer.
    #[serde(flatten)]
    word: Word,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "answer", rename_all = "lowercase")]
enum Word {
    /// It serves the revision, or a later one of the store.
    Taken,
    /// It cannot.
    Refused {
        /// Why.
        why: String,
    },
    /// Nothing yet.
    None,
    /// It ended meanwhile.
    Gone,
}

impl Answer {
    /// Whether the worker does not take the revision.
    pub(super) fn refuses(&self) -> bool {
        matches!(self.word, Word::Refused { .. })
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { worker, serves, word } = self;
        // Its file may hold anything.
        let worker = one_line(worker);
        match word {
            Word::Taken => write!(f, "worker {worker}: serves revision {serves}"),
            Word::Refused { why } => write!(f, "worker {worker}: stays with revision {serves}: {}", one_line(why)),
            Word::None => write!(f, "worker {worker}: has not answered yet, it serves revision {serves}"),
            Word::Gone => write!(f, "worker {worker}: has ended"),
        }
    }
}

/// The answers of all workers that run, once every one has answered or the time is up.
pub(super) fn answers(store: &RuleStore, revision: u64, patience: Duration) -> Vec<Answer> {
    let begun = Instant::now();
    let mut asked: Vec<String> = Vec::new();
    loop {
        // A store that cannot be read just now is no answer of anybody; nor is it a failure of the change.
        let newest = store.releases().map_or(revision, |releases| releases.revision);
        let workers = store.workers().map(|workers| workers.known).unwrap_or_default();
        let time = now();
        for (id, worker) in &workers {
            if worker.life(time) == Life::Running && worker.revision.is_some() && !asked.contains(id) {
                asked.push(id.clone());
            }
        }
        let known = workers.iter().filter(|(id, _)| asked.contains(id));
        let answers: Vec<Answer> =
            known.filter_map(|(id, worker)| answer(id, worker, revision, newest, time)).collect();
        let done = answers.iter().all(|answer| answer.word != Word::None);
        if done || begun.elapsed() >= patience {
            return answers;
        }
        thread::sleep(PAUSE);
    }
}

/// A store that was restored counts on from where it then was, so a worker may serve a revision above the `newest`: one
/// of a history that is no more, and no answer to this one.
fn answer(id: &str, worker: &Worker, revision: u64, newest: u64, now: Micros) -> Option<Answer> {
    let serves = worker.revision?;
    let taken = (revision..=newest).contains(&serves);
    let word = match &worker.refused {
        Some(refused) if refused.revision == revision || refused.revision > revision && !taken => {
            Word::Refused { why: refused.why.clone() }
        }
        _ if taken => Word::Taken,
        _ if worker.life(now) == Life::Running => Word::None,
        _ => Word::Gone,
    };
    Some(Answer { worker: id.to_owned(), serves, word })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::releases::worker::RefusedRevision;
    use crate::time::format_micros;

    fn word(change: impl FnOnce(&mut Worker)) -> Word {
        let mut worker = Worker { at: format_micros(0), running: true, revision: Some(6), ..Worker::default() };
        change(&mut worker);
        answer("w", &worker, 7, 8, 1_000_000).expect("it serves a revision").word
    }

    fn refused(revision: u64) -> RefusedRevision {
        RefusedRevision { revision, why: "no".into(), since: String::new() }
    }

    #[test]
    fn only_what_a_worker_says_to_this_revision_or_a_later_one_counts() {
        assert_eq!(word(|_| {}), Word::None);
        assert_eq!(word(|worker| worker.revision = Some(7)), Word::Taken);
        assert_eq!(word(|worker| worker.revision = Some(8)), Word::Taken, "it was overtaken by a later one");
        assert_eq!(word(|worker| (worker.revision, worker.refused) = (Some(7), Some(refused(8)))), Word::Taken);
        assert_eq!(word(|worker| worker.refused = Some(refused(7))), Word::Refused { why: "no".into() });
        assert_eq!(word(|worker| worker.refused = Some(refused(6))), Word::None);
        assert_eq!(word(|worker| worker.running = false), Word::Gone);
        assert_eq!(word(|worker| worker.at = format_micros(-5_000_000)), Word::Gone);
    }

    #[test]
    fn what_is_served_of_a_store_before_it_was_restored_is_no_answer() {
        assert_eq!(word(|worker| worker.revision = Some(9)), Word::None);
        let says = |serves| word(|worker| (worker.revision, worker.refused) = (Some(serves), Some(refused(7))));
        assert_eq!(says(9), Word::Refused { why: "no".into() });
        assert_eq!(says(7), Word::Refused { why: "no".into() }, "another seventh revision is served");
    }
}

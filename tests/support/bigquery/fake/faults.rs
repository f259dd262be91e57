//! What goes wrong, and when: scripted, or at random from a seed.

use super::refusal::Refusal;
use fastrand::Rng;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;
use tokio::sync::watch;
use tonic::Code;

/// The calls that can go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// One request of an `AppendRows` call.
    Append,
    /// `CreateWriteStream`
    Create,
    /// `GetWriteStream`
    Get,
    /// `FinalizeWriteStream`
    Finalize,
    /// `tables.get`
    Table,
    /// `jobs.query`
    Query,
    /// `jobs.insert`
    Begin,
    /// `jobs.get`
    Job,
}

/// How a call ends.
#[derive(Debug, Clone)]
pub enum Ending {
    /// The network connection is cut.
    Reset,
    /// The call ends without an error, as when the server has had enough of it.
    Close,
    /// Nothing more is said.
    Hang,
    /// The call ends with an error.
    Error(Refusal),
}

/// Why a row is refused, if it is.
pub type RowTest = Arc<dyn Fn(&Map<String, Value>) -> Option<String> + Send + Sync>;

/// What goes wrong.
#[derive(Clone)]
pub enum Fault {
    /// The call ends, and nothing was done.
    Before(Ending),
    /// What was asked for is done, and the call ends without an answer: a lost acknowledgement.
    After(Ending),
    /// What was asked for is done and answered, then the call ends.
    Behind(Ending),
    /// Nothing is done, the answer is an error, and the call goes on.
    Answer(Refusal),
    /// What was asked for is done, and the answer is an error all the same.
    AnswerAfter(Refusal),
    /// What was asked for is done. The answer comes when the rule is lifted.
    Held,
    /// These rows are refused, and so nothing of their request is written.
    Rows(RowTest),
    /// Another writer has appended so many rows to the stream just before.
    SomeoneWrites(u64),
    /// The stream is forgotten just before.
    StreamGone,
    /// Nothing is done, and a front end answers with a page of its own, with this HTTP status. Of REST only: a call of the other
    /// interface is cut.
    Page(u16),
}

impl Fault {
    /// The call ends with this status, and nothing was done.
    pub fn status(code: Code) -> Self {
        Self::Before(Ending::Error(Refusal::new(code, format!("the fake says {code:?}"))))
    }

    /// The answer is this error, and nothing was done.
    pub fn answer(code: Code) -> Self {
        Self::Answer(Refusal::new(code, format!("the fake says {code:?}")))
    }

    /// Rows are refused of which a column has this value.
    pub fn rows(column: &str, value: impl Into<Value>) -> Self {
        let (column, value) = (column.to_owned(), value.into());
        Self::Rows(Arc::new(move |row| {
            (row.get(&column) == Some(&value)).then(|| format!("Field {column}: {value} is refused"))
        }))
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Before(ending) => write!(f, "before: {ending:?}"),
            Self::After(ending) => write!(f, "after: {ending:?}"),
            Self::Behind(ending) => write!(f, "behind: {ending:?}"),
            Self::Answer(refusal) => write!(f, "answer: {refusal:?}"),
            Self::AnswerAfter(refusal) => write!(f, "answer after: {refusal:?}"),
            Self::Held => f.write_str("held"),
            Self::Rows(_) => f.write_str("rows"),
            Self::SomeoneWrites(rows) => write!(f, "someone writes {rows}"),
            Self::StreamGone => f.write_str("stream gone"),
            Self::Page(status) => write!(f, "page {status}"),
        }
    }
}

/// A rule that was made, to lift it and to ask how often it was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleId(usize);

/// When something goes wrong.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) call: Call,
    /// A table, by the path of its resource.
    pub(super) table: Option<String>,
    /// The first call that it holds for, counted from 1 among those that fit.
    pub(super) from: u64,
    /// How often; none is as long as it is not lifted.
    pub(super) times: Option<u64>,
    pub(super) fault: Fault,
    pub(super) seen: u64,
    pub(super) hits: u64,
    pub(super) lifted: watch::Sender<bool>,
}

/// A fault that is due, and how to learn that its rule is lifted.
pub(super) struct Due {
    pub(super) fault: Fault,
    pub(super) lifted: Option<watch::Receiver<bool>>,
}

struct Random {
    rng: Rng,
    rate: f64,
    faults: Vec<Fault>,
    calls: Vec<Call>,
    hits: u64,
}

/// All rules.
#[derive(Default)]
pub(super) struct Faults {
    rules: Vec<Rule>,
    random: Option<Random>,
}

impl Faults {
    pub(super) fn add(&mut self, rule: Rule) -> RuleId {
        self.rules.push(rule);
        RuleId(self.rules.len() - 1)
    }

    pub(super) fn lift(&mut self, RuleId(index): RuleId) {
        if let Some(rule) = self.rules.get_mut(index) {
            rule.times = Some(0);
            rule.lifted.send_replace(true);
        }
    }

    pub(super) fn hits(&self, RuleId(index): RuleId) -> u64 {
        self.rules.get(index).map_or(0, |rule| rule.hits)
    }

    pub(super) fn at_random(&mut self, seed: u64, rate: f64, calls: &[Call], faults: Vec<Fault>) {
        self.random = Some(Random { rng: Rng::with_seed(seed), rate, faults, calls: calls.to_vec(), hits: 0 });
    }

    pub(super) fn stop_random(&mut self) -> u64 {
        self.random.take().map_or(0, |random| random.hits)
    }

    /// What goes wrong with a call about a table.
    pub(super) fn due(&mut self, call: Call, table: &str) -> Option<Due> {
        let mut due = None;
        for rule in &mut self.rules {
            if rule.call != call || rule.table.as_ref().is_some_and(|wanted| wanted != table) {
                continue;
            }
            rule.seen += 1;
            if due.is_none() && rule.seen >= rule.from && rule.times.is_none_or(|times| rule.hits < times) {
                rule.hits += 1;
                due = Some(Due { fault: rule.fault.clone(), lifted: Some(rule.lifted.subscribe()) });
            }
        }
        due.or_else(|| {
            let random = self.random.as_mut().filter(|random| random.calls.contains(&call))?;
            if random.rng.f64() >= random.rate {
                return None;
            }
            random.hits += 1;
            Some(Due { fault: random.rng.choice(&random.faults)?.clone(), lifted: None })
        })
    }
}

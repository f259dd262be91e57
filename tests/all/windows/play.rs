//! Scripts through the engine, as a worker does it: commit by commit, each with a record for the ledger; now and then a process ends, and
//! the next goes on with the records that are left.

use super::script::{Commit, Script, Time};
use preflight::row::Value;
use preflight::time::Micros;
use preflight::window::windows::LeftOpen;
use preflight::window::{Element, Pane, Span, Spec, Windows};
use std::sync::Arc;

/// What a commit leads to, for one aggregate.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// Keys and windows that an event came too late for, in the order of events and windows.
    pub missed: Vec<(char, Span)>,
    /// In the order in which they fire.
    pub panes: Vec<Pane>,
    /// Windows that are open then.
    pub open: u64,
}

/// When the process ends and another begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    Never,
    /// Behind this commit.
    After(usize),
    /// Behind every commit, and behind every part of one that fires in parts.
    Always,
}

/// How a script is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    pub restart: Restart,
    /// Panes that fire at once.
    pub limit: usize,
    /// Whether the next commit comes before all panes have fired, as it does where a process ends in between. Only the last waits.
    pub hurries: bool,
}

impl Way {
    pub const STRAIGHT: Self = Self { restart: Restart::Never, limit: usize::MAX, hurries: false };

    /// One pane a commit, and a process for each.
    pub const PIECEMEAL: Self = Self { restart: Restart::Always, limit: 1, ..Self::STRAIGHT };

    /// A restart behind each of so many commits, and panes one by one.
    pub fn all(commits: usize) -> impl Iterator<Item = Self> {
        let after = (0..commits).map(|commit| Self { restart: Restart::After(commit), ..Self::STRAIGHT });
        after.chain([Self { limit: 1, ..Self::STRAIGHT }])
    }
}

/// What the engine makes of a script, for each of the aggregates.
pub fn play(specs: &[Spec], script: &Script, way: Way) -> Vec<Vec<Outcome>> {
    let mut worker = Worker::new(specs);
    let mut outcomes = vec![Vec::new(); specs.len()];
    for (number, commit) in script.0.iter().enumerate() {
        let hurries = way.hurries && number + 1 < script.0.len();
        let outcome = worker.commit(commit, Way { hurries, ..way });
        outcomes.iter_mut().zip(outcome).for_each(|(outcomes, outcome)| outcomes.push(outcome));
        if way.restart == Restart::After(number) {
            worker.restart();
        }
    }
    outcomes
}

/// A process with what it has written.
pub struct Worker<'a> {
    specs: &'a [Spec],
    pub windows: Windows,
    processing_time: Micros,
    /// The records that are not yet deleted.
    pub log: Vec<(u64, Vec<u8>)>,
    watermark: Micros,
    closed: Vec<(Arc<str>, Micros)>,
}

fn name(aggregate: usize) -> Arc<str> {
    aggregate.to_string().into()
}

fn windows(specs: &[Spec]) -> Windows {
    Windows::new(specs.iter().enumerate().map(|(number, spec)| (name(number), spec.clone())))
}

impl<'a> Worker<'a> {
    pub fn new(specs: &'a [Spec]) -> Self {
        Self {
            specs,
            windows: windows(specs),
            processing_time: 0,
            log: Vec::new(),
            watermark: Micros::MIN,
            closed: Vec::new(),
        }
    }

    /// Makes a commit: as many as it takes with so few panes in one.
    pub fn commit(&mut self, commit: &Commit, way: Way) -> Vec<Outcome> {
        let mut outcomes = vec![Outcome::default(); self.specs.len()];
        self.processing_time = commit.processing_time.unwrap_or(self.processing_time);
        for event in &commit.events {
            let value = event.value.map_or(Value::Null, Value::Int64);
            let inputs = vec![value; self.specs[0].measures.len()];
            let mut key = [0; 4];
            let key = event.key.encode_utf8(&mut key).as_bytes();
            let element = Element { key, event_time: event.happened, inputs: &inputs };
            for (number, outcome) in outcomes.iter_mut().enumerate() {
                let missed = self.windows.add(&name(number), element, self.processing_time);
                outcome.missed.extend(missed.into_iter().map(|span| (event.key, span)));
            }
        }
        let to = commit.watermark.unwrap_or(Micros::MIN);
        loop {
            let mut panes = Vec::new();
            let more = self.windows.fire(to, self.processing_time, way.limit, &mut panes);
            assert_eq!(more, self.windows.is_due(to, self.processing_time));
            for (name, pane) in panes {
                outcomes[name.parse::<usize>().unwrap()].panes.push(pane);
            }
            self.record();
            // The end of a source is no more than its end so far, and the next process begins it anew.
            if way.restart == Restart::Always && to < Micros::MAX {
                self.restart();
            }
            if !more || way.hurries {
                break;
            }
        }
        let open: Vec<u64> = self.windows.open_of_each().map(|(_, open)| open).collect();
        outcomes.iter_mut().zip(open).for_each(|(outcome, open)| outcome.open = open);
        outcomes
    }

    /// Writes what changed, as the ledger does.
    fn record(&mut self) {
        let record = self.windows.record();
        assert!(record.watermark >= self.watermark, "the watermark that is kept goes back");
        self.watermark = record.watermark;
        self.closed = record.closed;
        if !record.bytes.is_empty() {
            self.log.push((record.number, record.bytes));
            self.log.retain(|(number, _)| *number >= record.first_needed);
        }
    }

    /// Goes on with what was written.
    pub fn restart(&mut self) {
        let mut restored = windows(self.specs);
        let mut left = LeftOpen::default();
        for (number, bytes) in &self.log {
            restored.restore(*number, bytes).unwrap();
            left.read(bytes).unwrap();
        }
        for (name, closed) in &self.closed {
            restored.restore_closed(name, *closed);
        }
        restored.restore_watermark(self.watermark);
        assert_eq!(restored.open(), self.windows.open());
        for (name, open) in restored.open_of_each() {
            assert_eq!(left.of(name) as u64, open);
        }
        assert!(restored.watermark() == self.windows.watermark() || self.windows.watermark() == Micros::MAX);
        self.windows = restored;
    }
}

/// What a commit leads to, in words: `missed a [0,10)`, `a [0,10) 0 ON_TIME n=2 sum=3`.
pub fn words(outcome: &Outcome) -> Vec<String> {
    let span = |span: Span| format!("[{},{})", Time(span.start), Time(span.end));
    let missed = outcome.missed.iter().map(|(key, window)| format!("missed {key} {}", span(*window)));
    let panes = outcome.panes.iter().map(|pane| {
        let key = std::str::from_utf8(&pane.key).expect("keys are characters");
        let what = match &pane.values[2] {
            Value::Null if pane.timing == preflight::window::Timing::Retracted => String::new(),
            sum => format!(" n={} sum={}", pane.events, sum.to_json()),
        };
        format!("{key} {} {} {}{what}", span(pane.window), pane.index, pane.timing)
    });
    missed.chain(panes).collect()
}

/// A script with what it leads to, as the stories are written.
pub fn story(script: &Script, outcomes: &[Outcome]) -> String {
    let lines = script.0.iter().zip(outcomes).map(|(commit, outcome)| {
        let words = words(outcome).join(&format!("\n    {:30} | ", ""));
        format!("    {commit:30} | {words}\n")
    });
    lines.collect()
}

//! Scripts of commits, as text: one line a commit, such as `P5 a3=1 b-2=null W10`.
//!
//! First the clock of processing time is put to 5; then come two events, of key `a` that happened at 3 and has the value 1, and of key `b`; then
//! the watermark moves to 10. All of that is optional, and an empty line is a commit in which nothing but time passes. Times are in microseconds;
//! `first` and `last` are the ends of what a table can hold, `first+3` and `last-3` are near them. `Wend` is the end of a bounded source.

use preflight::row::ColumnType;
use preflight::time::{MAX_MICROS, MIN_MICROS, Micros};
use preflight::window::{Accumulation, Function, LateTrigger, Measure, Spec, Trigger, Windowing};
use std::fmt;

/// An event.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Event {
    pub key: char,
    pub happened: Micros,
    pub value: Option<i64>,
}

/// What one commit has.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Commit {
    pub processing_time: Option<Micros>,
    pub events: Vec<Event>,
    pub watermark: Option<Micros>,
}

/// Commits, one behind the other.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Script(pub Vec<Commit>);

impl Script {
    /// The watermark when a commit is done: the furthest so far.
    pub fn watermark(&self, commit: usize) -> Micros {
        self.0[..=commit].iter().filter_map(|commit| commit.watermark).max().unwrap_or(Micros::MIN)
    }

    /// The watermark that the events of a commit see.
    pub fn watermark_before(&self, commit: usize) -> Micros {
        if commit == 0 { Micros::MIN } else { self.watermark(commit - 1) }
    }

    /// Processing time in a commit; 0 until something is said.
    pub fn processing_time(&self, commit: usize) -> Micros {
        self.0[..=commit].iter().rev().find_map(|commit| commit.processing_time).unwrap_or(0)
    }
}

/// A time as it is written.
pub struct Time(pub Micros);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NEAR: Micros = 1 << 50;
        match self.0 {
            Micros::MAX => write!(f, "end"),
            MIN_MICROS => write!(f, "first"),
            MAX_MICROS => write!(f, "last"),
            time if time < MIN_MICROS + NEAR => write!(f, "first+{}", time - MIN_MICROS),
            time if time > MAX_MICROS - NEAR => write!(f, "last-{}", MAX_MICROS - time),
            time => write!(f, "{time}"),
        }
    }
}

fn time(text: &str) -> Micros {
    let behind = |rest: &str| if rest.is_empty() { 0 } else { rest.parse::<Micros>().expect("a number") };
    if text == "end" {
        Micros::MAX
    } else if let Some(rest) = text.strip_prefix("first") {
        MIN_MICROS + behind(rest)
    } else if let Some(rest) = text.strip_prefix("last") {
        MAX_MICROS + behind(rest)
    } else {
        text.parse().unwrap_or_else(|_| panic!("{text:?} is no time"))
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value.map_or_else(|| "null".to_owned(), |value| value.to_string());
        write!(f, "{}{}={value}", self.key, Time(self.happened))
    }
}

impl fmt::Display for Commit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words: Vec<String> = self.processing_time.iter().map(|time| format!("P{}", Time(*time))).collect();
        words.extend(self.events.iter().map(Event::to_string));
        words.extend(self.watermark.iter().map(|time| format!("W{}", Time(*time))));
        f.pad(&words.join(" "))
    }
}

impl Commit {
    /// As it is displayed.
    pub fn parse(text: &str) -> Self {
        let mut commit = Self::default();
        for word in text.split_whitespace() {
            let (kind, rest) = word.split_at(1);
            match kind {
                "P" => commit.processing_time = Some(time(rest)),
                "W" => commit.watermark = Some(time(rest)),
                key => {
                    let (at, value) = rest.split_once('=').expect("an event has a value");
                    let value = (value != "null").then(|| value.parse().expect("a value is a number or null"));
                    let key = key.chars().next().expect("it is one character");
                    commit.events.push(Event { key, happened: time(at), value });
                }
            }
        }
        commit
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|commit| write!(f, "\n    {commit} |"))
    }
}

/// What all aggregates of these tests measure.
pub fn measures() -> Vec<Measure> {
    let of = |function| Measure { function, input: Some(ColumnType::Int64) };
    let events = Measure { function: Function::Count, input: None };
    vec![events, of(Function::Count), of(Function::Sum), of(Function::Min), of(Function::Max), of(Function::Avg)]
}

/// An aggregate from words such as `session 10, lateness 20, early 5, late 7, discarding`.
pub fn spec(text: &str) -> Spec {
    let mut spec = Spec {
        windowing: Windowing::Session { gap: 0 },
        trigger: Trigger::default(),
        accumulation: Accumulation::Accumulating,
        allowed_lateness: 0,
        measures: measures(),
    };
    for part in text.split(", ") {
        match part.split(' ').collect::<Vec<_>>()[..] {
            ["fixed", size] => spec.windowing = Windowing::Fixed { size: time(size), offset: 0 },
            ["fixed", size, "from", offset] => {
                spec.windowing = Windowing::Fixed { size: time(size), offset: time(offset) };
            }
            ["sliding", size, "every", every] => {
                spec.windowing = Windowing::Sliding { size: time(size), every: time(every), offset: 0 };
            }
            ["sliding", size, "every", every, "from", offset] => {
                spec.windowing = Windowing::Sliding { size: time(size), every: time(every), offset: time(offset) };
            }
            ["session", gap] => spec.windowing = Windowing::Session { gap: time(gap) },
            ["lateness", lateness] => spec.allowed_lateness = time(lateness),
            ["early", early] => spec.trigger.early = Some(time(early)),
            ["late", late] => spec.trigger.late = LateTrigger::Every(time(late)),
            ["discarding"] => spec.accumulation = Accumulation::Discarding,
            _ => panic!("{part:?} is not known"),
        }
    }
    spec
}

//! Figures with their medians and ratios, as a table and as JSON.

use anyhow::Result;
use serde::Serialize;
use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;

/// All figures of a run.
#[derive(Serialize)]
pub(crate) struct Report {
    smoke: bool,
    cores: usize,
    figures: Vec<Figure>,
}

/// One line of the table.
#[derive(Serialize)]
struct Figure {
    name: Cow<'static, str>,
    unit: &'static str,
    /// One value a round.
    rounds: Vec<f64>,
    median: f64,
    /// The goal, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    goal: Option<&'static str>,
}

impl Report {
    pub(crate) fn new(smoke: bool) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self { smoke, cores, figures: Vec::new() }
    }

    /// Adds a figure.
    pub(crate) fn add(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        unit: &'static str,
        rounds: Vec<f64>,
        goal: Option<&'static str>,
    ) {
        let median = median(&rounds);
        self.figures.push(Figure { name: name.into(), unit, rounds, median, goal });
    }

    /// Adds the ratio of two figures, taken round by round.
    pub(crate) fn ratio(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        above: &[f64],
        below: &[f64],
        goal: Option<&'static str>,
    ) {
        let rounds = above.iter().zip(below).map(|(a, b)| a / b).collect();
        self.add(name, "ratio", rounds, goal);
    }

    /// The table for a person.
    pub(crate) fn table(&self) -> String {
        let mut text = format!("{:<58} {:>14} {:>12} {:>12}  goal\n", "", "median", "min", "max");
        for figure in &self.figures {
            let (min, max) = figure.rounds.iter().fold((f64::MAX, f64::MIN), |(a, b), x| (a.min(*x), b.max(*x)));
            writeln!(
                text,
                "{:<58} {:>14} {:>12} {:>12}  {}",
                figure.name,
                format!("{} {}", shown(figure.median), figure.unit),
                shown(min),
                shown(max),
                figure.goal.unwrap_or(""),
            )
            .expect("writing to a string cannot fail");
        }
        if self.smoke {
            text.push_str("a smoke run: the figures mean nothing\n");
        }
        text
    }

    /// Writes the JSON for a program.
    pub(crate) fn write(&self, file: &Path) -> Result<()> {
        Ok(std::fs::write(file, serde_json::to_string_pretty(self)?)?)
    }
}

/// The middle value.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn shown(value: f64) -> String {
    match value {
        v if v >= 1_000_000.0 => format!("{:.2} M", v / 1_000_000.0),
        v if v >= 10_000.0 => format!("{:.0} k", v / 1_000.0),
        v if v >= 100.0 => format!("{v:.0}"),
        v => format!("{v:.2}"),
    }
}

//! The benchmark: `cargo xtask bench`.
//!
//! Every figure is the median of several rounds, and every ratio is taken between figures of the same round, one after
//! the other on the same machine: speeds drift, ratios drift less. Nothing here passes or fails on a figure.

mod csv;
mod dedup;
mod payloads;
mod python;
mod report;
mod sandbox;
mod shopflow;
mod swap;
mod timed;
mod whole;
mod windows;

use anyhow::{Context, Result, bail, ensure};
use report::Report;
use std::path::PathBuf;
use std::time::Duration;

/// What can be measured by itself.
const PARTS: [&str; 7] = ["sandbox", "csv", "whole", "swap", "dedup", "windows", "shopflow"];

/// What the command line asks for.
struct Arguments {
    /// Short: shows that the bench works, measures nothing worth keeping.
    smoke: bool,
    json: Option<PathBuf>,
    python: String,
    /// Only this one of [`PARTS`].
    part: Option<String>,
}

/// How long and how often.
#[derive(Clone, Copy)]
pub(crate) struct Effort {
    /// Of one measurement.
    pub(crate) time: Duration,
    /// Measurements, of which the median counts.
    pub(crate) rounds: usize,
    /// Events of the whole-pipeline run.
    pub(crate) events: usize,
}

fn main() -> Result<()> {
    let arguments = parse(std::env::args().skip(1))?;
    let effort = if arguments.smoke {
        Effort { time: Duration::from_millis(200), rounds: 3, events: 20_000 }
    } else {
        Effort { time: Duration::from_secs(2), rounds: 5, events: 1_000_000 }
    };
    let mut report = Report::new(arguments.smoke);
    let wanted = |part: &str| arguments.part.as_deref().is_none_or(|only| only == part);
    if wanted("sandbox") {
        sandbox::measure(effort, &arguments.python, &mut report)?;
    }
    if wanted("csv") {
        csv::measure(effort, &mut report)?;
    }
    if wanted("whole") {
        whole::measure(effort, &mut report)?;
    }
    if wanted("swap") {
        swap::measure(effort, &mut report)?;
    }
    if wanted("dedup") {
        dedup::measure(effort, &mut report)?;
    }
    if wanted("windows") {
        windows::measure(effort, &mut report)?;
    }
    if wanted("shopflow") {
        shopflow::measure(effort, arguments.smoke, &mut report)?;
    }
    print!("{}", report.table());
    if let Some(file) = arguments.json {
        report.write(&file).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments> {
    let mut arguments = Arguments { smoke: false, json: None, python: "python3".to_owned(), part: None };
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word} needs a value"));
        match word.as_str() {
            "--smoke" => arguments.smoke = true,
            "--json" => arguments.json = Some(value()?.into()),
            "--python" => arguments.python = value()?,
            "--part" => {
                let part = value()?;
                ensure!(PARTS.contains(&part.as_str()), "--part is one of {}, not {part}", PARTS.join(", "));
                arguments.part = Some(part);
            }
            _ => {
                let parts = PARTS.join("|");
                bail!("unknown argument {word}: use --smoke, --json FILE, --python PROGRAM, --part {parts}")
            }
        }
    }
    Ok(arguments)
}

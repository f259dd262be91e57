//! What Apache Beam makes of the scripts of `tests/python/beam_scripts.py`.

use crate::paths;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::process::{Command, Stdio};

/// A script, and what Beam says.
#[derive(Debug, Deserialize)]
pub struct Script {
    /// Its number, and what it is about.
    pub name: String,
    /// The aggregate `parity`: a part of a pipeline file.
    pub aggregate: String,
    /// Whether panes have everything of their window.
    pub accumulating: bool,
    /// Its lines, for `preflight simulate`.
    pub script: Vec<String>,
    /// Beam's panes.
    pub panes: Vec<Pane>,
    /// Events that Beam has dropped.
    pub dropped: Vec<Late>,
}

/// A window.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Window {
    /// Its first microsecond.
    pub start: String,
    /// The first microsecond behind it.
    pub end: String,
}

/// A pane.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Pane {
    /// Its window.
    pub window: Window,
    /// The columns that events are grouped by.
    pub key: BTreeMap<String, Option<String>>,
    /// How many panes of the window came before.
    pub index: u32,
    /// `EARLY`, `ON_TIME`, `LATE`; ours also `RETRACTED`.
    pub timing: String,
    /// How many events it has.
    pub orders: i64,
    /// Their revenues, each a power of two: so which events.
    pub revenue: i64,
}

/// An event that was too late.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Late {
    /// Its name.
    pub message_id: String,
    /// The windows that it is missing from.
    pub missed_windows: Vec<Window>,
}

/// Other scripts than those of every day.
const SEED: &str = "PREFLIGHT_PARITY_SEED";

/// Runs all scripts, in one process of Python: half a second each.
pub fn scripts() -> Vec<Script> {
    let venv = paths::root().join("target/venv-beam");
    assert!(venv.join("installed.txt").exists(), "{} is missing: `cargo xtask test` makes it", venv.display());
    let output = Command::new(venv.join("bin/python"))
        .arg("-B")
        .arg(paths::root().join("tests/python/beam_panes.py"))
        .args(std::env::var(SEED).map(|seed| format!("--seed={seed}")))
        .stdin(Stdio::null())
        .output()
        .expect("Python can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("it prints JSON");
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"))).collect()
}

//! A pipeline in a temporary directory, run by the real command.

use crate::paths;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A pipeline file with an input file, a database and a ledger of its own.
pub struct Pipeline {
    directory: TempDir,
    /// Further `--set` arguments.
    pub settings: Vec<String>,
    /// Environment variables of the runs.
    pub environment: Vec<(String, String)>,
}

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    /// Exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Ended {
    /// From a finished process.
    pub fn from_output(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Asserts that it exited with a code, showing what it said.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {:?}", self.stdout))
    }
}

/// Offvia's pipeline, local; `RULES` is replaced.
const OFFVIA: &str = r#"
name = "test"
[source.file]
path = "input.ndjson"
[rules]
event_version = { attribute = "event_version", default = "1" }
cache = "code"
[rules.components]
RULES
[warehouse.sqlite]
path = "warehouse.db"
[bronze]
table = "offvia_bronze.raw_bookings"
create = "if_needed"
[silver]
table = "offvia_silver.fact_bookings"
create = "if_needed"
[silver.host_columns]
ingestion_timestamp = "received_time"
source_message_id = "message_id"
[quarantine]
table = "offvia_quarantine.poisoned_events"
create = "if_needed"
"#;

impl Pipeline {
    /// Offvia's pipeline with both of its rules, over this input.
    pub fn offvia(input: impl AsRef<[u8]>) -> Self {
        let (one, two) = (paths::rule("offvia-booking"), paths::rule("offvia-booking-v2"));
        let rules = format!("\"1\" = {:?}\n\"2\" = {:?}", one.display().to_string(), two.display().to_string());
        Self::with_file(&OFFVIA.replace("RULES", &rules), input)
    }

    /// The same tables and routing with one component for event version 1.
    pub fn with_rule(component: &Path, input: impl AsRef<[u8]>) -> Self {
        let rules = format!("\"1\" = {:?}", component.display().to_string());
        Self::with_file(&OFFVIA.replace("RULES", &rules), input)
    }

    /// A pipeline file of your own, over this input (`input.ndjson` beside it).
    pub fn with_file(toml: &str, input: impl AsRef<[u8]>) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        std::fs::write(directory.path().join("pipeline.toml"), toml).expect("it can be written to");
        let pipeline = Self { directory, settings: Vec::new(), environment: Vec::new() };
        pipeline.write_input(input);
        pipeline
    }

    /// Adds a `--set`.
    #[must_use]
    pub fn set(mut self, setting: impl Into<String>) -> Self {
        self.settings.push(setting.into());
        self
    }

    /// Adds an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Replaces the input file.
    pub fn write_input(&self, input: impl AsRef<[u8]>) {
        std::fs::write(self.input(), input).expect("the input can be written");
    }

    /// Its directory.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The input file.
    pub fn input(&self) -> PathBuf {
        self.directory().join("input.ndjson")
    }

    /// The database.
    pub fn database(&self) -> PathBuf {
        self.directory().join("warehouse.db")
    }

    /// The pipeline file.
    pub fn file(&self) -> PathBuf {
        self.directory().join("pipeline.toml")
    }

    /// A command on the pipeline file, not started: `run`, `check`.
    pub fn command(&self, name: &str) -> Command {
        let mut command = Command::new(paths::preflight());
        command.arg(name).arg(self.file());
        for setting in &self.settings {
            command.args(["--set", setting]);
        }
        for (name, value) in &self.environment {
            command.env(name, value);
        }
        command.current_dir(self.directory()).stdin(Stdio::null());
        command
    }

    /// Runs it to its end.
    pub fn run(&self) -> Ended {
        Ended::from_output(self.command("run").arg("--json").output().expect("preflight can be started"))
    }

    /// Checks it.
    pub fn check(&self) -> Ended {
        Ended::from_output(self.command("check").output().expect("preflight can be started"))
    }
}

/// Any `preflight` command.
pub fn preflight<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Ended {
    let output = Command::new(paths::preflight()).args(arguments).stdin(Stdio::null()).output();
    Ended::from_output(output.expect("preflight can be started"))
}

//! A pipeline in a temporary directory, run by the real command.

use crate::paths;
use serde_json::Value;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use tempfile::TempDir;

/// A pipeline file with an input file, a database and a ledger of its own.
pub struct Pipeline {
    directory: TempDir,
    /// Further `--set` arguments.
    pub settings: Vec<String>,
    /// Environment variables of the runs.
    pub environment: Vec<(String, String)>,
    /// A shell script that its commands are started through, as `"$@"`.
    pub wrapper: Option<String>,
}

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    /// Exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Ended {
    /// From a finished process.
    pub fn from_output(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Self::new(output.status, text(output.stdout), text(output.stderr))
    }

    /// From how a process ended and what it said.
    pub fn new(status: ExitStatus, stdout: String, stderr: String) -> Self {
        Self { code: status.code(), signal: status.signal(), stdout, stderr }
    }

    /// Whether `kill -9` ended it.
    pub fn was_killed(&self) -> bool {
        self.signal == Some(rustix::process::Signal::KILL.as_raw())
    }

    /// Asserts that it exited with a code, showing what it said.
    #[track_caller]
    #[expect(clippy::return_self_not_must_use, reason = "most tests want no more than the code")]
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

    /// The same with another source: the lines of its table.
    pub fn offvia_from(source: &str) -> Self {
        let pipeline = Self::offvia("");
        let file = std::fs::read_to_string(pipeline.file()).expect("the file was written");
        let with_source = file.replace("[source.file]\npath = \"input.ndjson\"", source);
        std::fs::write(pipeline.file(), with_source).expect("it can be written to");
        pipeline
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
        let pipeline = Self { directory, settings: Vec::new(), environment: Vec::new(), wrapper: None };
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

    /// Starts its commands through a shell script, as `"$@"`.
    #[must_use]
    pub fn through(mut self, script: &str) -> Self {
        self.wrapper = Some(script.into());
        self
    }

    /// Keeps compiled code where all tests share it, so that only the first run of a rule compiles it.
    #[must_use]
    pub fn warm(self) -> Self {
        let cache = format!("rules.cache={}", paths::scratch().join("code").display());
        self.set(cache)
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

    /// A command on the pipeline file, not started: `run`, `check`, `quarantine list`.
    pub fn command(&self, name: &str) -> Command {
        let mut command = match &self.wrapper {
            None => Command::new(paths::preflight()),
            Some(script) => {
                let mut command = Command::new("sh");
                command.args(["-c", script, "sh"]).arg(paths::preflight());
                command
            }
        };
        command.args(name.split(' ')).arg(self.file());
        for setting in &self.settings {
            command.args(["--set", setting]);
        }
        for (name, value) in &self.environment {
            command.env(name, value);
        }
        command.current_dir(self.directory()).stdin(Stdio::null());
        command
    }

    /// The ledger's directory.
    pub fn ledger(&self) -> PathBuf {
        self.directory().join("warehouse.db.test.ledger")
    }

    /// Runs it to its end.
    pub fn run(&self) -> Ended {
        Ended::from_output(self.command("run").arg("--json").output().expect("preflight can be started"))
    }

    /// A command on its quarantine: `list`, `show`, `replay`.
    pub fn quarantine(&self, name: &str, arguments: &[&str]) -> Ended {
        let mut command = self.command(&format!("quarantine {name}"));
        Ended::from_output(command.args(arguments).output().expect("preflight can be started"))
    }

    /// Rebuilds an aggregate from silver, for a range of event time.
    pub fn rebuild(&self, aggregate: &str, range: &str, arguments: &[&str]) -> Ended {
        let mut command = self.command("rebuild");
        command.args([aggregate, "--from", "silver", "--range", range]).args(arguments);
        Ended::from_output(command.output().expect("preflight can be started"))
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

//! The worker: a real `preflight run`.

use super::stage::Settings;
use crate::paths;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than a worker takes for what its input held when it ended.
const DRAINS: Duration = Duration::from_mins(1);
/// How often is looked whether it has ended.
const PAUSE: Duration = Duration::from_millis(20);

/// A started worker. Dropping it kills it.
pub(super) struct Process {
    child: Child,
    log: PathBuf,
    report: PathBuf,
}

impl Process {
    /// Starts it, with an input to be fed.
    pub(super) fn start(settings: &Settings) -> Result<(Self, ChildStdin)> {
        let (log, report) = (settings.directory.join("worker.log"), settings.directory.join("report.json"));
        let file = |path: &PathBuf| File::create(path).with_context(|| format!("cannot write {}", path.display()));
        let mut child = Command::new(paths::preflight())
            .current_dir(paths::root())
            .arg("run")
            .args(settings.pipeline())
            .arg("--json")
            .stdin(Stdio::piped())
            .stdout(file(&report)?)
            .stderr(file(&log)?)
            .spawn()
            .context("cannot start the worker")?;
        let stdin = child.stdin.take().context("the worker's input is not piped")?;
        Ok((Self { child, log, report }, stdin))
    }

    /// Fails if it has ended.
    pub(super) fn is_running(&mut self) -> Result<()> {
        match self.child.try_wait().context("cannot ask for the worker")? {
            None => Ok(()),
            Some(status) => bail!("the worker has ended ({status}): see {}", self.log.display()),
        }
    }

    /// What it logged.
    pub(super) fn logged(&self) -> Result<String> {
        std::fs::read_to_string(&self.log).with_context(|| format!("cannot read {}", self.log.display()))
    }

    /// Its report, once it has come to the end of its input.
    pub(super) fn finish(mut self) -> Result<Value> {
        let begun = Instant::now();
        let status = loop {
            match self.child.try_wait().context("cannot wait for the worker")? {
                Some(status) => break status,
                None if begun.elapsed() > DRAINS => bail!("the worker does not end: see {}", self.log.display()),
                None => thread::sleep(PAUSE),
            }
        };
        if !status.success() {
            bail!("the worker failed ({status}): see {}", self.log.display());
        }
        let report = std::fs::read_to_string(&self.report).context("the worker's report")?;
        serde_json::from_str(&report).with_context(|| format!("the worker's report: {report:?}"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended: then there is nothing to kill.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

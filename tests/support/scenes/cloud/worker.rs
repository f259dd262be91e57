//! The worker: a real `preflight run`.

use super::{Cloud, PIPELINE};
use crate::paths;
use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A started worker. Dropping it kills it.
pub(super) struct Worker {
    child: Child,
    log: PathBuf,
    report: PathBuf,
}

impl Worker {
    /// Starts one.
    pub(super) fn start(cloud: &Cloud<'_>) -> Result<Self> {
        let directory = &cloud.settings.directory;
        let (log, report) = (directory.join("worker.log"), directory.join("report.json"));
        let unwritable = |path: &Path| format!("cannot write {}", path.display());
        // What an earlier worker said stays.
        let log_file = OpenOptions::new().create(true).append(true).open(&log).with_context(|| unwritable(&log))?;
        let mut command = Command::new(paths::preflight());
        command.current_dir(paths::root()).arg("run").args(PIPELINE);
        for setting in cloud.pipeline_settings() {
            command.args(["--set", &setting]);
        }
        command
            .arg("--json")
            .envs(cloud.operator.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(File::create(&report).with_context(|| unwritable(&report))?)
            .stderr(log_file);
        let child = command.spawn().context("cannot start the worker")?;
        Ok(Self { child, log, report })
    }

    /// Fails if it has ended.
    pub(super) fn is_running(&mut self) -> Result<()> {
        match self.child.try_wait().context("cannot ask for the worker")? {
            None => Ok(()),
            Some(status) => bail!("the worker has ended ({status}): see {}", self.log.display()),
        }
    }

    /// `kill -9`.
    pub(super) fn kill(mut self) -> Result<()> {
        self.is_running()?;
        self.child.kill().context("cannot kill the worker")?;
        let status = self.child.wait().context("cannot wait for the worker")?;
        ensure!(status.code().is_none(), "the worker ended by itself ({status}): see {}", self.log.display());
        Ok(())
    }

    /// Asks it to stop, and waits for it. Its report.
    pub(super) fn stop(mut self) -> Result<Value> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).context("a child has an id")?;
        kill_process(pid, Signal::TERM).context("cannot signal the worker")?;
        let status = self.child.wait().context("cannot wait for the worker")?;
        ensure!(status.success(), "the worker failed ({status}): see {}", self.log.display());
        let report = std::fs::read_to_string(&self.report).context("the worker's report")?;
        serde_json::from_str(&report).with_context(|| format!("the worker's report: {report:?}"))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended: then there is nothing to kill.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

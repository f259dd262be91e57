//! `cargo xtask demo cloud`: Offvia's walk-through on emulators of Pub/Sub and BigQuery.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use super::clear;
use crate::project::{OUTPUT, Project};
use crate::{bigquery, exec, prerequisites, pubsub, rules};

pub(super) fn run(project: &Project) -> Result<ExitCode> {
    let python = prerequisites::check()?.python;
    pubsub::ensure()?;
    bigquery::ensure(&python)?;
    rules::ensure(project)?;
    let directory = Path::new(OUTPUT).join("demo").join("cloud");
    clear(&directory)?;
    let mut demo = exec::cargo();
    demo.args(["run", "--release", "-p", "preflight-tests", "--bin", "demo-cloud", "--"]);
    exec::run(demo.arg(&directory))?;
    print!("{}", what_next(project, &directory));
    Ok(ExitCode::SUCCESS)
}

fn what_next(project: &Project, directory: &Path) -> String {
    let preflight = project.host_binary();
    let (preflight, directory) = (preflight.display(), directory.display());
    format!(
        "\nThe emulators have ended, and with them what they held. What the worker logged is {directory}/worker.log.\n\
         \n  the same on Google Cloud, step by step:\n    \
         examples/offvia/README.md\n\
         \n  what would be made there, as commands, with the roles that everybody needs:\n    \
         {preflight} provision examples/offvia/pipeline.toml --set rules.store={directory}/rules --dry-run\n"
    )
}

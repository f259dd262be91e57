//! `cargo xtask demo`: what Preflight does, to look at. One module per demo.

mod cloud;
mod shopflow;
mod swap;
mod tiers;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::SetupError;
use crate::project::Project;

/// Runs the command.
pub(crate) fn run(project: &Project, arguments: &[String]) -> Result<ExitCode> {
    let Some((name, more)) = arguments.split_first() else {
        return tiers::run(project);
    };
    let demo: fn(&Project) -> Result<ExitCode> = match name.as_str() {
        "swap" => swap::run,
        "cloud" => cloud::run,
        "shopflow" => shopflow::run,
        other => {
            return refuse(&format!(
                "`cargo xtask demo` takes nothing, `swap`, `cloud` or `shopflow`, found `{other}`"
            ));
        }
    };
    match more.first() {
        None => demo(project),
        Some(more) => refuse(&format!("`cargo xtask demo {name}` takes no arguments, found `{more}`")),
    }
}

fn refuse(what: &str) -> Result<ExitCode> {
    Err(SetupError(what.to_owned()).into())
}

/// A demo's own directory is emptied at each start, so that every run shows the same.
fn clear(directory: &Path) -> Result<()> {
    if directory.exists() {
        std::fs::remove_dir_all(directory).with_context(|| format!("cannot remove {}", directory.display()))?;
    }
    std::fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))
}

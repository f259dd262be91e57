//! `cargo xtask demo`: what Preflight does, to look at. One module per demo.

mod cloud;
mod swap;
mod tiers;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::SetupError;
use crate::project::Project;

/// Runs the command.
pub(crate) fn run(project: &Project, arguments: &[String]) -> Result<ExitCode> {
    match arguments {
        [] => tiers::run(project),
        [name] if name == "swap" => swap::run(project),
        [name] if name == "cloud" => cloud::run(project),
        [name, more, ..] if name == "swap" || name == "cloud" => {
            refuse(&format!("`cargo xtask demo {name}` takes no arguments, found `{more}`"))
        }
        [other, ..] => refuse(&format!("`cargo xtask demo` takes nothing, `swap` or `cloud`, found `{other}`")),
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

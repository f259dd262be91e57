//! `cargo xtask demo swap`: rules staged, promoted and rolled back while a worker runs at full speed.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use super::clear;
use crate::project::{OUTPUT, Project};
use crate::{exec, prerequisites, rules};

pub(super) fn run(project: &Project) -> Result<ExitCode> {
    prerequisites::check()?;
    rules::ensure(project)?;
    let directory = Path::new(OUTPUT).join("demo").join("swap");
    clear(&directory)?;
    let mut demo = exec::cargo();
    demo.args(["run", "--release", "-p", "preflight-tests", "--bin", "demo-swap", "--"]);
    exec::run(demo.arg(&directory))?;
    print!("{}", what_next(project, &directory));
    Ok(ExitCode::SUCCESS)
}

fn what_next(project: &Project, directory: &Path) -> String {
    let (preflight, directory) = (project.host_binary(), directory.display());
    let preflight = preflight.display();
    format!(
        "\nEverything is in {directory}: the store, the database, the worker's log. What to try next:\n\
         \n  who changed what, when and why:\n    \
         {preflight} rules history --store {directory}/rules\n\
         \n  what serves, what is held, what the worker compared:\n    \
         {preflight} rules status --store {directory}/rules\n"
    )
}

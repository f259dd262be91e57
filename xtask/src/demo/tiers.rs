//! `cargo xtask demo`: the Offvia example from nothing to rows in three tables.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::Result;

use super::clear;
use crate::project::Project;
use crate::{exec, prerequisites, rules};

const DIRECTORY: &str = "target/demo";
const DATABASE: &str = "target/demo/offvia.db";
const PIPELINE: &str = "examples/offvia/pipeline.toml";
const OVERLAY: &str = "examples/offvia/local.toml";

pub(super) fn run(project: &Project) -> Result<ExitCode> {
    let python = prerequisites::check()?.python;
    rules::ensure(project)?;
    clear(Path::new(DIRECTORY))?;
    exec::run(
        Command::new(project.host_binary())
            .args(["run", PIPELINE, "--with", OVERLAY, "--set"])
            .arg(format!("warehouse.sqlite.path={DATABASE}")),
    )?;
    // Three events were published: one good, one that breaks a business rule, one that is no JSON.
    let expected = ["--bronze", "3", "--silver", "1", "--quarantine", "2"];
    exec::run(Command::new(python).args(["xtask/scripts/show_tiers.py", DATABASE]).args(expected))?;
    print!("{}", what_next(project));
    Ok(ExitCode::SUCCESS)
}

fn what_next(project: &Project) -> String {
    let preflight = project.host_binary();
    let preflight = preflight.display();
    format!(
        "\nThe database is {DATABASE}. What to try next:\n\
         \n  your own bookings, one JSON object a line:\n    \
         {preflight} run {PIPELINE} --with {OVERLAY} --set source.file.path=FILE\n\
         \n  what a pipeline file would refuse, before any event is read:\n    \
         {preflight} check {PIPELINE} --with {OVERLAY}\n\
         \n  a rule against its fixtures:\n    \
         {preflight} test examples/offvia/rules/offvia-booking.wasm guest-validators/offvia-booking/fixtures.ndjson\n\
         \n  what a rule says of itself:\n    \
         {preflight} inspect examples/offvia/rules/offvia-booking.wasm\n"
    )
}

//! `cargo xtask demo shopflow`: the shop's own number of orders, twice, and every count checked.

use std::fs::File;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use xtask::shopflow::{self, Request, Shape};

use super::clear;
use crate::project::Project;
use crate::{exec, prerequisites, rules};

const DIRECTORY: &str = "target/demo/shopflow";
const ORDERS: &str = "target/demo/shopflow/orders";
const DATABASE: &str = "target/demo/shopflow/shopflow.db";
const REJECTED: &str = "target/demo/shopflow/rejected/orders";
const REPORT: &str = "target/demo/shopflow/report.json";
const PIPELINE: &str = "examples/shopflow/pipeline.toml";
const OVERLAY: &str = "examples/shopflow/local.toml";

pub(super) fn run(project: &Project) -> Result<ExitCode> {
    let python = prerequisites::check()?.python;
    rules::ensure(project)?;
    clear(Path::new(DIRECTORY))?;
    shopflow::write(&Request { seed: 1, shape: Shape::default(), files: 2 }, Path::new(ORDERS))?;

    println!("\n== Two files of orders, once\n");
    exec::run(&mut preflight(project))?;
    exec::run(&mut check(&python))?;

    println!("\n== The same files again\n");
    let report = File::create(REPORT).with_context(|| format!("cannot create {REPORT}"))?;
    exec::run(preflight(project).arg("--json").stdout(report))?;
    exec::run(check(&python).args(["--report", REPORT]))?;
    print!("{}", what_next(project));
    Ok(ExitCode::SUCCESS)
}

fn preflight(project: &Project) -> Command {
    let mut command = Command::new(project.host_binary());
    command.args(["run", PIPELINE, "--with", OVERLAY]);
    let settings = [
        format!("source.file.path={ORDERS}/*.csv"),
        format!("warehouse.sqlite.path={DATABASE}"),
        format!("quarantine.files.path={REJECTED}"),
    ];
    for setting in settings {
        command.args(["--set", &setting]);
    }
    command
}

fn check(python: &Path) -> Command {
    let mut command = Command::new(python);
    command.args(["xtask/scripts/show_orders.py", ORDERS, DATABASE, REJECTED]);
    command
}

fn what_next(project: &Project) -> String {
    let preflight = project.host_binary();
    let preflight = preflight.display();
    format!(
        "\nEverything is in {DIRECTORY}. What to try next:\n\
         \n  as many orders as you like:\n    \
         cargo xtask generate shopflow --orders 2000000 --out target/orders\n    \
         {preflight} run {PIPELINE} --with {OVERLAY} --set source.file.path='target/orders/*.csv' \
         --set warehouse.sqlite.path=target/orders.db\n\
         \n  a limit to what may be rejected, above which nothing is replaced:\n    \
         {preflight} run {PIPELINE} --with {OVERLAY} --max-rejects 1%\n"
    )
}

//! ShopFlow's orders: generated files, the example pipeline over them, and the shop's own Beam pipeline over the same.

use crate::bigquery::Emulator;
use crate::bigquery::emulator::PROJECT;
use crate::{Ended, paths};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;
use xtask::shopflow::{self, Request};

/// Generated orders, and places for what is made of them.
pub struct Shop {
    directory: TempDir,
    /// What was generated.
    pub request: Request,
}

/// What the Beam pipeline says of itself.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Beam {
    /// Rows of silver.
    pub silver: u64,
    /// Rejected lines.
    pub rejected: u64,
    /// Seconds of the pipeline, without the start of Python.
    pub seconds: f64,
}

impl Shop {
    /// Generates what is asked for.
    pub fn new(request: Request) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        shopflow::write(&request, &directory.path().join("orders")).expect("orders can be generated");
        Self { directory, request }
    }

    /// The directory of the files, and of `expected/`.
    pub fn orders(&self) -> PathBuf {
        self.directory.path().join("orders")
    }

    /// The database, with the table `orders`.
    pub fn database(&self) -> PathBuf {
        self.directory.path().join("shopflow.db")
    }

    /// The lines that were to be rejected, in their order.
    pub fn expected_rejected(&self) -> Vec<String> {
        lines(&self.orders().join("expected/rejected.csv"))
    }

    /// The lines that the host has rejected.
    pub fn rejected(&self) -> Vec<String> {
        shards(&self.directory.path().join("rejected"), "orders-")
    }

    /// The example's pipeline over the files into the database, not started.
    pub fn command(&self) -> Command {
        self.laid_over("local.toml", [format!("warehouse.sqlite.path={}", self.database().display())])
    }

    /// The example's pipeline over the files into a dataset of an emulator, not started.
    pub fn emulated(&self, emulator: &Emulator, dataset: &str) -> Command {
        let settings = [
            format!("warehouse.bigquery.project={PROJECT}"),
            format!("silver.table={dataset}.orders"),
            format!("ledger.path={}", self.directory.path().join("ledger").display()),
        ];
        let mut command = self.laid_over("emulators.toml", settings);
        command.env("BIGQUERY_EMULATOR_HOST", emulator.rest());
        command.env("BIGQUERY_STORAGE_EMULATOR_HOST", emulator.storage());
        command
    }

    fn laid_over(&self, overlay: &str, settings: impl IntoIterator<Item = String>) -> Command {
        let directory = self.directory.path();
        let everywhere = [
            format!("source.file.path={}/*.csv", self.orders().display()),
            format!("quarantine.files.path={}/rejected/orders", directory.display()),
            format!("rules.cache={}", paths::scratch().join("code").display()),
        ];
        let example = paths::root().join("examples/shopflow");
        let mut command = Command::new(paths::preflight());
        command.arg("run").arg(example.join("pipeline.toml")).arg("--with").arg(example.join(overlay));
        for setting in everywhere.into_iter().chain(settings) {
            command.args(["--set", &setting]);
        }
        command.arg("--json").current_dir(directory).stdin(Stdio::null());
        command
    }

    /// Runs it to its end, for a report as JSON.
    pub fn run(&self) -> Ended {
        Ended::from_output(self.command().output().expect("preflight can be started"))
    }

    /// The Beam pipeline over the same files, not started. It answers on standard output, with a [`Beam`] as JSON.
    pub fn beam_command(&self) -> Command {
        let mut command = Command::new(beam_venv().join("bin/python"));
        let output = self.directory.path().join("beam");
        command.arg("-B").arg(paths::root().join("tests/python/shopflow_silver_orders.py"));
        command.arg("--input").arg(self.orders().join("orders-*.csv"));
        command.arg("--silver").arg(output.join("silver")).arg("--rejected").arg(output.join("rejected"));
        command.current_dir(self.directory.path()).stdin(Stdio::null());
        command
    }

    /// Lines of JSON that the Beam pipeline has written as silver.
    pub fn beam_silver(&self) -> Vec<String> {
        shards(&self.directory.path().join("beam"), "silver-")
    }

    /// Lines that the Beam pipeline has rejected.
    pub fn beam_rejected(&self) -> Vec<String> {
        shards(&self.directory.path().join("beam"), "rejected-")
    }
}

/// Where Beam is installed.
pub fn beam_venv() -> PathBuf {
    paths::root().join("target/venv-beam")
}

/// The lines of all files of a directory whose names begin so, in the order of their names; none where there is no such directory.
pub fn shards(directory: &Path, beginning: &str) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|file| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(beginning)));
    files.sort();
    files.iter().flat_map(|file| lines(file)).collect()
}

fn lines(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    text.split_inclusive('\n').map(str::to_owned).collect()
}

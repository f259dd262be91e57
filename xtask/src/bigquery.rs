//! The BigQuery emulator that the tests run against.
//!
//! The tests look for `venv-bigquery/bin/python`, and give the emulator `venv-bigquery/home` as its home: there are the files
//! that it would else look for in the user's.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::exec;
use crate::venv::{Venv, python_of};

pub(crate) const VENV: Venv = Venv {
    what: "the BigQuery emulator",
    directory: "venv-bigquery",
    requirements: "tests/python/bigquery-requirements.txt",
    cost: "half a minute and 700 MB",
};

/// Copies `DuckDB`'s extension files from the packages to where `DuckDB` looks for them below the home that it is given.
const COPY_EXTENSIONS: &str = "
import pathlib, shutil, site, sys
import duckdb
platform = duckdb.sql('PRAGMA platform').fetchone()[0]
for packages in map(pathlib.Path, site.getsitepackages()):
    for file in packages.glob('duckdb_extension_*/extensions/v*/*.duckdb_extension'):
        to = pathlib.Path(sys.argv[1], '.duckdb', 'extensions', file.parent.name, platform)
        to.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, to)
";

/// Makes the venv, unless it is there with these very packages.
pub(crate) fn ensure(python: &Path) -> Result<()> {
    VENV.ensure(python, |venv| {
        let copied = exec::probe(Command::new(python_of(venv)).args(["-c", COPY_EXTENSIONS]).arg(venv.join("home")));
        copied.map(drop).context("DuckDB's extension files cannot be copied from its packages")
    })
}

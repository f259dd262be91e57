//! Python packages that the tests run against, each in a venv of its own, below `target`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::project::OUTPUT;
use crate::version::Version;
use crate::{SetupError, exec};

/// Says in the venv what was installed. Written last, so that half a venv is no venv.
const INSTALLED: &str = "installed.txt";
/// The oldest Python that the pinned packages run on.
const PYTHON: Version = Version::new(3, 11, 0);

/// What a venv is for.
pub(crate) struct Venv {
    /// What it holds, as a sentence has it.
    pub(crate) what: &'static str,
    /// Where it is, seen from [`OUTPUT`].
    pub(crate) directory: &'static str,
    /// What is installed, with its versions.
    pub(crate) requirements: &'static str,
    /// How long it takes and how much space.
    pub(crate) cost: &'static str,
}

impl Venv {
    /// Makes the venv, unless it is there with these very packages. `finish` does what is left to do in it.
    pub(crate) fn ensure(&self, python: &Path, finish: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let requirements = self.requirements;
        let requirements =
            std::fs::read_to_string(requirements).with_context(|| format!("cannot read {requirements}"))?;
        let venv = Path::new(OUTPUT).join(self.directory);
        let installed = venv.join(INSTALLED);
        if std::fs::read_to_string(&installed).is_ok_and(|text| text == requirements) {
            return Ok(());
        }
        let python = self.new_enough(python)?;
        self.install(&python, &venv).and_then(|()| finish(&venv)).map_err(|error| SetupError(self.missing(&error)))?;
        std::fs::write(&installed, requirements).with_context(|| format!("cannot write {}", installed.display()))
    }

    fn install(&self, python: &Path, venv: &Path) -> Result<()> {
        eprintln!("The first run installs {}: {} below {OUTPUT}/.", self.what, self.cost);
        exec::run(Command::new(python).args(["-m", "venv", "--clear"]).arg(venv))?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", self.requirements];
        exec::run(Command::new(python_of(venv)).args(pip))
    }

    /// The Python that was found, or another on this machine that is new enough.
    fn new_enough(&self, python: &Path) -> Result<PathBuf> {
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
                    "this machine lacks\n  python3 {PYTHON} or newer, for {}. Install a newer `python3` package, \
                     or one named python3.11 beside it",
                    self.what
                );
                SetupError(what).into()
            })
    }

    fn missing(&self, error: &anyhow::Error) -> String {
        format!(
            "{}, which the tests run against, is missing and could not be installed\n  {error:#}\n\
             It needs Python's venv module (Debian: apt-get install python3-venv) and a way to a Python package index (PyPI, or \
             the one that pip is configured for). What it installs is in {}",
            self.what, self.requirements
        )
    }
}

/// The Python inside a venv.
pub(crate) fn python_of(venv: &Path) -> PathBuf {
    venv.join("bin/python")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{beam, bigquery};

    #[test]
    fn every_package_is_pinned() {
        for (venv, package) in [(beam::VENV, "apache-beam=="), (bigquery::VENV, "bqemulator==")] {
            let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(venv.requirements);
            let text = std::fs::read_to_string(file).unwrap();
            let packages: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
            assert!(packages.iter().any(|line| line.starts_with(package)), "{packages:?}");
            assert!(packages.iter().all(|line| line.contains("==")), "{packages:?}");
        }
    }

    #[test]
    fn what_is_missing_is_said_with_the_way_to_get_it() {
        let text = bigquery::VENV.missing(&anyhow::anyhow!("`python3 -m venv` failed"));
        for part in ["`python3 -m venv` failed", "apt-get install python3-venv", bigquery::VENV.requirements] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn a_python_that_is_not_there_or_too_old_is_passed_over() {
        // What is found depends on the machine; that it is new enough does not.
        if let Ok(python) = beam::VENV.new_enough(Path::new("preflight-no-such-python")) {
            let answer = exec::probe(Command::new(python).arg("--version")).unwrap();
            assert!(Version::find(&answer) >= Some(PYTHON), "{answer}");
        }
    }
}

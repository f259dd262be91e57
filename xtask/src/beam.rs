//! Apache Beam, whose panes the tests compare ours with.
//!
//! The tests look for `venv-beam/bin/python`.

use std::path::Path;

use anyhow::Result;

use crate::venv::Venv;

pub(crate) const VENV: Venv = Venv {
    what: "Apache Beam",
    directory: "venv-beam",
    requirements: "tests/python/beam-requirements.txt",
    cost: "a quarter of a minute and 500 MB",
};

/// Makes the venv, unless it is there with these very packages.
pub(crate) fn ensure(python: &Path) -> Result<()> {
    VENV.ensure(python, |_| Ok(()))
}

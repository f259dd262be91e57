//! What has to be on the machine before anything else makes sense: said at once and together, with the way to get it.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::version::Version;
use crate::{SetupError, exec};

/// The oldest Python whose standard library is enough for the demo's queries and the bench's baseline.
const PYTHON: Version = Version::new(3, 9, 0);

/// What the checks found and commands go on to use.
pub(crate) struct Prerequisites {
    /// The interpreter itself: shims in front of it cost a fifth of a second at each start.
    pub(crate) python: PathBuf,
}

/// Checks everything, and only then reports all that is missing.
pub(crate) fn check() -> Result<Prerequisites> {
    let mut missing = Vec::new();
    missing.extend(cargo());
    missing.extend(rustc(pinned_rust()?));
    missing.extend(git());
    let python = python().map_err(|problem| missing.push(problem)).ok();
    match python {
        Some(python) if missing.is_empty() => Ok(Prerequisites { python }),
        _ => Err(SetupError(format!("this machine lacks\n  {}", missing.join("\n  "))).into()),
    }
}

/// The compiler version that `rust-toolchain.toml` asks for.
pub(crate) fn pinned_rust() -> Result<Version> {
    let text = std::fs::read_to_string("rust-toolchain.toml").context("cannot read rust-toolchain.toml")?;
    Version::of_toolchain_file(&text).context("rust-toolchain.toml names no version as its channel")
}

fn cargo() -> Option<String> {
    exec::probe(exec::cargo().arg("--version"))
        .is_none()
        .then(|| "cargo: not found. Install Rust with rustup, https://rustup.rs".to_owned())
}

fn rustc(pin: Version) -> Option<String> {
    let found = exec::probe(Command::new("rustc").arg("--version"));
    rustc_problem(found.as_deref(), pin)
}

/// A newer compiler than the pinned one is fine: whoever asks for it with `+toolchain` means it.
fn rustc_problem(found: Option<&str>, pin: Version) -> Option<String> {
    let get = format!("rustup toolchain install {pin} --component clippy --component rustfmt");
    match found.and_then(Version::find) {
        Some(version) if version >= pin => None,
        Some(version) => Some(format!("rustc {pin} or newer: found {version}. Get it: {get}")),
        None => Some(format!("rustc {pin}: not found, or not installed for this project. Get it: {get}")),
    }
}

fn git() -> Option<String> {
    exec::probe(Command::new("git").arg("--version"))
        .is_none()
        .then(|| "git: not found. Install your system's `git` package".to_owned())
}

fn python() -> Result<PathBuf, String> {
    // One question answers three: is there a Python 3, how old is it, and was it built with sqlite3?
    const PROBE: &str = "import sys, sqlite3; print(sys.version.split()[0]); print(sys.executable)";
    let answer = ["python3", "python"]
        .iter()
        .find_map(|name| exec::probe(Command::new(name).args(["-c", PROBE])))
        .ok_or_else(|| {
            format!(
                "python3 {PYTHON} or newer with its sqlite3 module: not found. Install your system's `python3` package"
            )
        })?;
    python_answer(&answer)
}

fn python_answer(answer: &str) -> Result<PathBuf, String> {
    let mut lines = answer.lines();
    match (lines.next().and_then(Version::find), lines.next()) {
        (Some(version), Some(executable)) if version >= PYTHON => Ok(PathBuf::from(executable)),
        (Some(version), _) => {
            Err(format!("python3 {PYTHON} or newer: found {version}. Install a newer `python3` package"))
        }
        (None, _) => Err(format!("python3 {PYTHON} or newer: `{answer}` is no answer of a Python 3")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIN: Version = Version::new(1, 95, 0);

    #[test]
    fn the_pinned_compiler_and_newer_ones_are_accepted() {
        assert_eq!(rustc_problem(Some("rustc 1.95.0 (59807616e 2026-04-14)"), PIN), None);
        assert_eq!(rustc_problem(Some("rustc 1.97.0-nightly (abc 2026-07-01)"), PIN), None);
    }

    #[test]
    fn an_older_or_missing_compiler_is_named_with_the_way_to_get_the_right_one() {
        for found in [Some("rustc 1.63.0 (4b91a6ea7 2022-08-08)"), Some("error: no such toolchain"), None] {
            let problem = rustc_problem(found, PIN).unwrap();
            assert!(problem.contains("rustup toolchain install 1.95.0"), "{problem}");
        }
    }

    #[test]
    fn python_3_8_is_too_old_and_3_11_is_not() {
        assert_eq!(python_answer("3.11.7\n/opt/python3"), Ok(PathBuf::from("/opt/python3")));
        assert!(python_answer("3.8.20\n/opt/python3").unwrap_err().contains("found 3.8.20"));
        assert!(python_answer("").is_err());
    }
}

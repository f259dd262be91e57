//! `cargo xtask check`: everything that can be said about the code without running its tests.

use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};

use crate::project::Project;
use crate::report::{Outcome, Report};
use crate::rules::RULES;
use crate::wasm::WasmTarget;
use crate::{bench, exec, no_arguments, prerequisites, rules};

/// Runs the command.
pub(crate) fn run(project: &Project, arguments: &[String]) -> Result<ExitCode> {
    no_arguments("check", arguments)?;
    let python = prerequisites::check()?.python;

    let mut report = Report::default();
    report.step("fmt", || exec::run(exec::cargo().args(["fmt", "--all", "--check"])));
    report.step("lockfile", lockfile);
    report.step("rules", || rules::ensure(project));
    report.step("clippy", || {
        let arguments = ["clippy", "--release", "--workspace", "--all-targets", "--", "-D", "warnings"];
        exec::run(exec::cargo().args(arguments))
    });
    report.step_or_skip("clippy for rules", clippy_for_rules);
    report.step("docs", || {
        let arguments = ["doc", "--release", "--no-deps", "--workspace"];
        exec::run(exec::cargo().args(arguments).env("RUSTDOCFLAGS", "-D warnings"))
    });
    report.step("python baseline", || {
        // -B: no __pycache__ in the working tree.
        let arguments = "-B -m unittest discover -s tests/python".split(' ');
        exec::run(Command::new(&python).args(arguments))
    });
    report.step("bench smoke run", || bench::smoke(project));
    report.step_or_skip("cargo-deny", cargo_deny);
    report.step_or_skip("advisories", advisories);
    report.step_or_skip("typos", typos);

    println!("\n{report}");
    Ok(if report.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The host's lints see rules as native code; only this sees what they compile for wasm alone.
fn clippy_for_rules() -> Result<Outcome> {
    let Some(mut clippy) = WasmTarget::ensure()?.cargo_clippy() else {
        return Ok(Outcome::Skipped("clippy cannot use the standard library that Debian's compiler built".to_owned()));
    };
    clippy.args(["--lib", "--examples", "-p", "preflight-sdk"]);
    for rule in RULES {
        clippy.args(["-p", rule.package]);
    }
    exec::run(clippy.args(["--", "-D", "warnings"]))?;
    Ok(Outcome::Ok)
}

/// The lockfile must fit the manifests, as committed. Asking cargo is not enough: `cargo xtask` is itself a `cargo run`, which
/// has already brought a stale lockfile up to date. So a lockfile that changed while no manifest did was stale.
fn lockfile() -> Result<()> {
    exec::run(exec::cargo().args(["tree", "--locked", "--workspace", "--quiet"]).stdout(Stdio::null()))?;
    let changed = exec::probe(Command::new("git").args(["diff", "--name-only", "HEAD"]));
    // Outside of a git checkout there is nothing to compare with.
    if changed.is_some_and(|files| lockfile_was_stale(&files)) {
        bail!("Cargo.lock did not fit the committed Cargo.toml files: commit the one that is there now");
    }
    Ok(())
}

fn lockfile_was_stale(changed_files: &str) -> bool {
    let changed = |end: &str| changed_files.lines().any(|file| file == end || file.ends_with(&format!("/{end}")));
    changed_files.lines().any(|file| file == "Cargo.lock") && !changed("Cargo.toml")
}

fn cargo_deny() -> Result<Outcome> {
    if exec::probe(exec::cargo().args(["deny", "--version"])).is_none() {
        return Ok(Outcome::Skipped("not installed: cargo install --locked cargo-deny".to_owned()));
    }
    exec::run(exec::cargo().args(["deny", "--workspace", "check", "licenses", "bans", "sources"]))?;
    Ok(Outcome::Ok)
}

/// Known vulnerabilities, where their database can be had: a machine without a way out must be able to check all the rest.
fn advisories() -> Result<Outcome> {
    if exec::probe(exec::cargo().args(["deny", "--version"])).is_none() {
        return Ok(Outcome::Skipped("cargo-deny is not installed".to_owned()));
    }
    if exec::probe(exec::cargo().args(["deny", "fetch", "db"])).is_none() {
        return Ok(Outcome::Skipped("the advisory database cannot be reached".to_owned()));
    }
    exec::run(exec::cargo().args(["deny", "--workspace", "check", "advisories"]))
        .context("a dependency has a known problem")?;
    Ok(Outcome::Ok)
}

fn typos() -> Result<Outcome> {
    if exec::probe(Command::new("typos").arg("--version")).is_none() {
        return Ok(Outcome::Skipped("not installed: cargo install --locked typos-cli".to_owned()));
    }
    exec::run(&mut Command::new("typos"))?;
    Ok(Outcome::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lockfile_that_changed_alone_was_stale() {
        assert!(lockfile_was_stale("Cargo.lock\nREADME.md"));
        assert!(!lockfile_was_stale("Cargo.lock\nhost/Cargo.toml"));
        assert!(!lockfile_was_stale("Cargo.lock\nCargo.toml"));
        assert!(!lockfile_was_stale("examples/other/Cargo.lock"));
        assert!(!lockfile_was_stale(""));
    }
}

//! Who types `preflight …`: every command is shown as it is typed, with what it prints and how long it takes.

use crate::{Ended, paths};
use anyhow::{Context, Result, bail};
use preflight::digest::Digest;
use preflight::releases::RuleStore;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Where each builds' fixtures are; of a later build both count.
const FIRST_FIXTURES: &str = "guest-validators/offvia-booking/fixtures.ndjson";
const LATER_FIXTURES: &str = "guest-validators/offvia-booking-builds/fixtures.ndjson";
const VERSION_2_FIXTURES: &str = "guest-validators/offvia-booking-v2/fixtures.ndjson";

/// An operator with a rule store.
pub(super) struct Operator {
    pub(super) store: RuleStore,
    /// Environment variables of the commands.
    pub(super) environment: Vec<(&'static str, String)>,
    tell: fn(&str),
}

impl Operator {
    pub(super) fn new(store: &Path, tell: fn(&str)) -> Self {
        Self { store: RuleStore::at(store), environment: Vec::new(), tell }
    }

    /// Tells something, a paragraph.
    pub(super) fn tell(&self, text: &str) {
        for line in text.lines() {
            (self.tell)(line);
        }
    }

    /// Stages a packed rule with its fixtures. Its digest.
    pub(super) fn stage(&self, rule: &str, why: &str) -> Result<Digest> {
        self.staging(rule, why, 0)?;
        digest(rule)
    }

    /// Tries to stage a rule that does not hold to its fixtures. Its digest.
    pub(super) fn stage_in_vain(&self, rule: &str, why: &str) -> Result<Digest> {
        self.staging(rule, why, 1)?;
        digest(rule)
    }

    fn staging(&self, rule: &str, why: &str, code: i32) -> Result<Ended> {
        let component = format!("target/rules/{rule}.wasm");
        let mut arguments = vec!["stage", &component, "--fixtures"];
        arguments.extend(fixtures(rule));
        arguments.extend(["--why", why]);
        self.run(&arguments, code)
    }

    /// Runs `preflight rules` with these arguments, which must end with this exit code.
    pub(super) fn run(&self, arguments: &[&str], code: i32) -> Result<Ended> {
        self.preflight(&[&["rules"], arguments].concat(), code)
    }

    /// Runs `preflight` with these arguments, which must end with this exit code.
    pub(super) fn preflight(&self, arguments: &[&str], code: i32) -> Result<Ended> {
        let shown: Vec<String> = arguments.iter().map(|word| quoted(word)).collect();
        let line = format!("preflight {}", shown.join(" "));
        self.tell(&format!("\n$ {line}"));
        let begun = Instant::now();
        let output = Command::new(paths::preflight())
            .current_dir(paths::root())
            .args(arguments)
            .env("PREFLIGHT_RULE_STORE", self.store.directory())
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot start `{line}`"))?;
        let took = begun.elapsed();
        let ended = Ended::from_output(output);
        // Fixtures that hold are not worth a line each.
        for line in ended.stdout.lines().chain(ended.stderr.lines()).filter(|line| !line.starts_with("ok ")) {
            self.tell(&format!("  {line}"));
        }
        self.tell(&format!("  ({:.2} s)", took.as_secs_f64()));
        if ended.code != Some(code) {
            bail!("`{line}` ended with {:?}, not {code}:\n{}{}", ended.code, ended.stdout, ended.stderr);
        }
        Ok(ended)
    }

    /// Puts a component and its fixtures into the store as a tool does that judges nothing.
    pub(super) fn copy_past_stage(&self, rule: &str) -> Result<()> {
        let (component, hex) = (paths::rule(rule), digest(rule)?.hex());
        let directory = self.store.directory();
        let fixtures_directory = directory.join("fixtures").join(&hex);
        std::fs::create_dir_all(&fixtures_directory).context("cannot write to the store")?;
        let into = directory.join("components").join(format!("{hex}.wasm"));
        let mut copies: Vec<(PathBuf, PathBuf)> = vec![(component, into)];
        for (number, file) in fixtures(rule).iter().enumerate() {
            copies.push((paths::root().join(file), fixtures_directory.join(format!("{number}.ndjson"))));
        }
        for (from, to) in copies {
            std::fs::copy(&from, &to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
        }
        Ok(())
    }
}

fn fixtures(rule: &str) -> &'static [&'static str] {
    match rule {
        "offvia-booking" => &[FIRST_FIXTURES],
        "offvia-booking-v2" => &[VERSION_2_FIXTURES],
        _ => &[FIRST_FIXTURES, LATER_FIXTURES],
    }
}

fn digest(rule: &str) -> Result<Digest> {
    let path = paths::rule(rule);
    Ok(Digest::of(&std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?))
}

fn quoted(word: &str) -> String {
    if word.contains(' ') { format!("'{}'", word.replace('\'', r"'\''")) } else { word.to_owned() }
}

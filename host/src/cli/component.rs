//! A component outside a pipeline, with default limits: loaded, and judging fixtures.

use crate::fixtures::{self, Fixture, Outcome};
use crate::rules::cache::CodeCache;
use crate::rules::judge::Isolation;
use crate::rules::{Judge, Limits, Rule, Sandbox, load};
use anyhow::{Context, anyhow, bail};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Loads a component file.
pub(super) fn load(path: &Path) -> anyhow::Result<(Sandbox, Rule)> {
    let component = load::read_bounded(path, Limits::default().component);
    load_bytes(&component.map_err(|error| anyhow!("{}: {error}", path.display()))?, &path.display())
}

/// Loads a component in memory. `name` is what an error calls it.
pub(super) fn load_bytes(component: &[u8], name: &dyn std::fmt::Display) -> anyhow::Result<(Sandbox, Rule)> {
    let sandbox = sandbox()?;
    let cache = CodeCache::new(crate::config::default_cache());
    let rule =
        load::bytes(&sandbox, &Limits::default(), &cache, component).map_err(|error| anyhow!("{name}: {error}"))?;
    Ok((sandbox, rule))
}

/// Where components are loaded and judge.
pub(super) fn sandbox() -> anyhow::Result<Sandbox> {
    Sandbox::new().map_err(|error| anyhow!("the sandbox cannot start on this machine: {error:#}"))
}

/// The text of a file of fixtures, and what it holds.
pub(super) struct FixtureFile {
    /// As it is.
    pub(super) text: String,
    fixtures: Vec<Fixture>,
}

/// Reads the files themselves, and every `*.ndjson` in the directories, in order of name.
pub(super) fn read_fixtures(given: &[PathBuf]) -> anyhow::Result<Vec<FixtureFile>> {
    let files = files(given)?.into_iter().map(|file| {
        let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let fixtures = fixtures::parse(&text).map_err(|error| anyhow!("{}: {error}", file.display()))?;
        Ok(FixtureFile { text, fixtures })
    });
    files.collect()
}

fn files(given: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in given {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let mut inside: Vec<PathBuf> = std::fs::read_dir(path)
            .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect())
            .with_context(|| format!("cannot read {}", path.display()))?;
        inside.retain(|path: &PathBuf| path.extension() == Some(Path::new("ndjson").as_os_str()));
        if inside.is_empty() {
            bail!("{} holds no .ndjson file", path.display());
        }
        inside.sort();
        files.extend(inside);
    }
    Ok(files)
}

/// What judging fixtures showed.
pub(super) struct Judged {
    outcomes: Vec<Outcome>,
    /// So many hold.
    pub(super) passed: usize,
    /// So many do not.
    pub(super) failed: usize,
}

/// Judges fixtures in the sandbox, each alone in a fresh store.
pub(super) fn judge(sandbox: Sandbox, rule: &Arc<Rule>, files: &[FixtureFile]) -> anyhow::Result<Judged> {
    let mut judge = Judge::new(Arc::new(sandbox), Limits::default(), Isolation::Event);
    let mut outcomes = Vec::new();
    for file in files {
        outcomes.extend(fixtures::judge(&mut judge, rule, &file.fixtures)?);
    }
    let failed = outcomes.iter().filter(|outcome| !outcome.differences.is_empty()).count();
    Ok(Judged { passed: outcomes.len() - failed, failed, outcomes })
}

impl Judged {
    pub(super) fn json(&self) -> serde_json::Value {
        json!({ "passed": self.passed, "failed": self.failed, "fixtures": self.outcomes })
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for outcome in &self.outcomes {
            let mark = if outcome.differences.is_empty() { "ok  " } else { "FAIL" };
            text.push_str(&format!("{mark} {}\n", outcome.name));
            text.extend(outcome.differences.iter().map(|difference| format!("       {difference}\n")));
        }
        text.push_str(&format!("{} fixtures hold, {} do not\n", self.passed, self.failed));
        text
    }
}

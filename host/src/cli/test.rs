//! `preflight test`: fixtures, with a readable difference.

use super::{Ended, inspect, output};
use crate::fixtures::{self, Outcome};
use crate::rules::judge::Isolation;
use crate::rules::{Judge, Limits};
use anyhow::{Context, anyhow, bail};
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, Args)]
pub(super) struct TestArgs {
    /// The component
    component: PathBuf,
    /// Fixture files (NDJSON), or directories of them
    #[arg(required = true)]
    fixtures: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn test(args: &TestArgs) -> Ended {
    let judged = files(&args.fixtures).and_then(|files| judge(args, &files));
    let outcomes = match judged {
        Ok(outcomes) => outcomes,
        Err(error) => return Ended::Refused(error),
    };
    let failed = outcomes.iter().filter(|outcome| !outcome.differences.is_empty()).count();
    let passed = outcomes.len() - failed;
    if args.json {
        output::json(&json!({ "passed": passed, "failed": failed, "fixtures": outcomes }));
    } else {
        let mut text = String::new();
        for outcome in &outcomes {
            let mark = if outcome.differences.is_empty() { "ok  " } else { "FAIL" };
            text.push_str(&format!("{mark} {}\n", outcome.name));
            text.extend(outcome.differences.iter().map(|difference| format!("       {difference}\n")));
        }
        text.push_str(&format!("{passed} fixtures hold, {failed} do not\n"));
        output::print(&text);
    }
    if failed == 0 { Ended::Done } else { Ended::Failed }
}

fn judge(args: &TestArgs, files: &[PathBuf]) -> anyhow::Result<Vec<Outcome>> {
    let (sandbox, rule) = inspect::load_one(&args.component)?;
    let rule = Arc::new(rule);
    let mut judge = Judge::new(Arc::new(sandbox), Limits::default(), Isolation::Event);
    let mut outcomes = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let fixtures = fixtures::parse(&text).map_err(|error| anyhow!("{}: {error}", file.display()))?;
        outcomes.extend(fixtures::judge(&mut judge, &rule, &fixtures)?);
    }
    Ok(outcomes)
}

/// The files themselves, and every `*.ndjson` in the directories, in order of name.
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

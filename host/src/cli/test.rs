//! `preflight test`: fixtures, with a readable difference.

use super::{Ended, component, output};
use clap::Args;
use std::path::PathBuf;
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
    let judged = component::read_fixtures(&args.fixtures).and_then(|files| {
        let (sandbox, rule) = component::load(&args.component)?;
        component::judge(sandbox, &Arc::new(rule), &files)
    });
    let judged = match judged {
        Ok(judged) => judged,
        Err(error) => return Ended::Refused(error),
    };
    if args.json {
        output::json(&judged.json());
    } else {
        output::print(&judged.text());
    }
    if judged.failed == 0 { Ended::Done } else { Ended::Failed }
}

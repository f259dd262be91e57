//! `preflight quarantine replay`: rows are judged again, and what passes leaves quarantine.

use super::late::{self, ExpectedLate};
use super::{FilterArgs, Whose};
use crate::cli::operator::operator;
use crate::cli::{Ended, output};
use crate::pipeline::RunError;
use crate::pipeline::replay::command::Rehearsal;
use crate::pipeline::replay::report::ReplayReport;
use crate::pipeline::replay::{Wanted, command};
use crate::time::{Clock, SystemClock};
use anyhow::anyhow;
use clap::Args;
use serde::Serialize;
use std::sync::Arc;

#[derive(Debug, Args)]
pub(super) struct ReplayArgs {
    #[command(flatten)]
    whose: Whose,
    #[command(flatten)]
    filter: FilterArgs,
    /// Replay all rows
    #[arg(long)]
    all: bool,
    /// Judge the rows here and now, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn replay(args: &ReplayArgs) -> Ended {
    let filter = args.filter.filter(false);
    if filter.is_open() != args.all {
        return Ended::Refused(anyhow!(
            "say which rows (--stage, --code, --rule, --digest, --from, --to, --id), or --all"
        ));
    }
    let (config, layers) = match args.whose.pipeline.load(&args.whose.file) {
        Ok(loaded) => loaded,
        Err(error) => return Ended::Refused(error.into()),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Ended::Broken(anyhow!("cannot start: {error}")),
    };
    let wanted = Wanted { filter, by: format!("replay {}", operator()), begun: None };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let result = runtime.block_on(async {
        if args.dry_run {
            let Rehearsal { report, late } = command::rehearse(&config, wanted, &clock).await?;
            return Ok((report, late::expected(&args.whose, &late)));
        }
        let expected = match command::foresee(&config, wanted.clone(), &clock).await {
            Ok(late) => late::expected(&args.whose, &late),
            // What keeps the replay from being done is said by itself.
            Err(error) => {
                output::note(&format!("what will be late for its windows cannot be told beforehand: {error}"));
                Vec::new()
            }
        };
        if !expected.is_empty() {
            output::note(&late::as_text(&expected));
        }
        let waiting = |holder: &str| output::note(&format!("waiting for the worker that holds the ledger{holder}"));
        Ok((command::replay(&config, wanted, &clock, waiting).await?, expected))
    });
    match result {
        Ok((report, expected_late)) if args.json => output::json(&Told { report: &report, expected_late }),
        Ok((report, expected)) => {
            output::print(&as_text(&report));
            if args.dry_run && !expected.is_empty() {
                output::print(&format!("{}\n", late::as_text(&expected)));
            }
        }
        Err(RunError::Config(error)) => return Ended::Refused(layers.locate(error).into()),
        Err(error @ RunError::NothingRun { .. }) => return Ended::Refused(error.into()),
        Err(RunError::Replay(error)) if error.is_refusal() => return Ended::Refused(error.into()),
        Err(error) => return Ended::Broken(error.into()),
    }
    Ended::Done
}

/// The report, and what was said beforehand.
#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    report: &'a ReplayReport,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    expected_late: Vec<ExpectedLate>,
}

fn as_text(report: &ReplayReport) -> String {
    let mut rows = vec![["accepted".to_owned(), String::new(), report.accepted.to_string()]];
    for (aggregate, late) in &report.late {
        rows.push([String::new(), format!("late for {aggregate}"), late.to_string()]);
    }
    rows.push(["ignored".into(), String::new(), report.ignored.to_string()]);
    if report.duplicates > 0 {
        rows.push(["duplicates".into(), "in silver already".into(), report.duplicates.to_string()]);
    }
    rows.push(["still rejected".into(), String::new(), report.still_rejected().to_string()]);
    for rejected in report.rejected.iter() {
        let code = rejected.code.as_ref().map_or_else(String::new, |code| format!(" ({code})"));
        rows.push([String::new(), format!("{}{code}", rejected.stage), rejected.events.to_string()]);
    }
    rows.push(["not replayable".into(), String::new(), report.not_replayable.values().sum::<u64>().to_string()]);
    for (why, count) in &report.not_replayable {
        rows.push([String::new(), why.clone(), count.to_string()]);
    }
    let selected = report.selected;
    let what = if report.dry_run { "rows selected; nothing was written" } else { "rows selected" };
    format!("{selected} {what}\n{}\n", output::counts(["outcome", "", "rows"], rows))
}

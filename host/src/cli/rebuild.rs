//! `preflight rebuild`: windows of an aggregate, measured anew from silver.

use super::{Ended, PipelineArgs, output};
use crate::pipeline::RunError;
use crate::pipeline::rebuild::report::RebuildReport;
use crate::pipeline::rebuild::{Wanted, command};
use crate::time::{Clock, Micros, SystemClock, parse_rfc3339};
use anyhow::anyhow;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Debug, Args)]
pub(super) struct RebuildArgs {
    /// The pipeline file
    file: PathBuf,
    /// The aggregate
    aggregate: String,
    #[command(flatten)]
    pipeline: PipelineArgs,
    /// What it is measured from
    #[arg(long)]
    from: From,
    /// The range of event time, as 2026-01-31T12:00:00Z..2026-01-31T13:00:00Z: windows that lie wholly in it are rebuilt
    #[arg(long, value_name = "FROM..TO", value_parser = range)]
    range: (Micros, Micros),
    /// Count what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What an aggregate can be measured from.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum From {
    /// The accepted rows
    Silver,
}

pub(super) fn rebuild(args: &RebuildArgs) -> Ended {
    let From::Silver = args.from;
    let (config, layers) = match args.pipeline.load(&args.file) {
        Ok(loaded) => loaded,
        Err(error) => return Ended::Refused(error.into()),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Ended::Broken(anyhow!("cannot start: {error}")),
    };
    let (from, to) = args.range;
    let wanted = Wanted { aggregate: args.aggregate.clone(), from, to, dry_run: args.dry_run };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let waiting = |holder: &str| output::note(&format!("waiting for the worker that holds the ledger{holder}"));
    match runtime.block_on(command::rebuild(&config, wanted, &clock, waiting)) {
        Ok(report) if args.json => output::json(&report),
        Ok(report) => output::print(&as_text(&report)),
        Err(RunError::Config(error)) => return Ended::Refused(layers.locate(error).into()),
        Err(error @ RunError::NothingRun { .. }) => return Ended::Refused(error.into()),
        Err(RunError::Rebuild(error)) if error.is_refusal() => return Ended::Refused(error.into()),
        Err(error) => return Ended::Broken(error.into()),
    }
    Ended::Done
}

fn range(text: &str) -> Result<(Micros, Micros), String> {
    const FORM: &str = "write it as 2026-01-31T12:00:00Z..2026-01-31T13:00:00Z";
    let (from, to) = text.split_once("..").ok_or_else(|| format!("it has no \"..\": {FORM}"))?;
    let time = |text| parse_rfc3339(text).map_err(|error| format!("{text:?}: {error}: {FORM}"));
    Ok((time(from)?, time(to)?))
}

fn as_text(report: &RebuildReport) -> String {
    let RebuildReport { aggregate, from, to, dry_run, rows, written, retracted, left_alone, epoch, millis } = report;
    let row = |what: &str, note: &str, count: u64| [what.to_owned(), note.to_owned(), count.to_string()];
    let counted = [
        row("silver rows", "read", *rows),
        row("windows", "written", *written),
        row("", "retracted: silver has no rows for them", *retracted),
        row("", "left alone: not wholly in the range", *left_alone),
    ];
    let table = output::counts([aggregate, "", "count"], counted);
    let ended = match (dry_run, epoch) {
        (true, _) => "nothing was written".to_owned(),
        (false, Some(epoch)) => format!("epoch {epoch}"),
        (false, None) => "there was nothing to write".to_owned(),
    };
    format!("{from} to {to}\n{table}\n{ended}, {}.{:03} s\n", millis / 1_000, millis % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_two_times() {
        assert_eq!(range("1970-01-01T00:00:01Z..1970-01-01T01:00:02+01:00"), Ok((1_000_000, 2_000_000)));
        for (text, says) in
            [("1970-01-01T00:00:01Z", "no \"..\""), ("today..1970-01-01T00:00:01Z", "\"today\""), ("..", "write it as")]
        {
            let error = range(text).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}

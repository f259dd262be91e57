//! `preflight quarantine`: what was rejected, and replaying it with today's rules.

mod late;
mod list;
mod replay;
mod show;

use super::{Ended, PipelineArgs};
use crate::config::Config;
use crate::time::{Micros, parse_rfc3339};
use crate::warehouse;
use crate::warehouse::events::{EventsError, Filter, NotReplayable, RowId, StoredEvents};
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(super) struct QuarantineArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show how many events were rejected where and why, and the newest of them
    List(list::ListArgs),
    /// Show one row whole
    Show(show::ShowArgs),
    /// Judge rows again with today's rules: what passes goes to silver, once, and its row is marked as resolved
    Replay(replay::ReplayArgs),
}

pub(super) fn quarantine(args: &QuarantineArgs) -> Ended {
    match &args.command {
        Command::List(args) => list::list(args),
        Command::Show(args) => show::show(args),
        Command::Replay(args) => replay::replay(args),
    }
}

/// The pipeline whose quarantine is meant.
#[derive(Debug, Args)]
struct Whose {
    /// The pipeline file
    file: PathBuf,
    #[command(flatten)]
    pipeline: PipelineArgs,
}

impl Whose {
    /// The quarantine table of the pipeline.
    fn table(&self) -> Result<Box<dyn StoredEvents>, Ended> {
        let (config, _) = self.pipeline.load(&self.file).map_err(|error| Ended::Refused(error.into()))?;
        open(&config).map_err(ended)
    }
}

fn open(config: &Config) -> Result<Box<dyn StoredEvents>, EventsError> {
    let table = config.quarantine.table_name().ok_or(EventsError::NoQuarantine)?;
    warehouse::quarantine(&config.warehouse, table, &config.name)
}

/// Why the events of a pipeline's quarantine cannot be replayed. None as well where there is no table that could be asked.
pub(super) fn not_replayable(config: &Config) -> Option<NotReplayable> {
    match open(config) {
        Ok(table) => table.not_replayable(),
        Err(EventsError::NoRowIds(table)) => Some(NotReplayable {
            why: vec![EventsError::NoRowIds(table.clone()).to_string()],
            table,
            statements: Vec::new(),
        }),
        Err(_) => None,
    }
}

/// Of a table that is not there or not fit, what was asked for is at fault.
fn ended(error: EventsError) -> Ended {
    match error {
        EventsError::Warehouse(_) => Ended::Broken(error.into()),
        _ => Ended::Refused(error.into()),
    }
}

/// Which rows are meant: everything that is given must fit.
#[derive(Debug, Args)]
struct FilterArgs {
    /// Rows of this stage
    #[arg(long)]
    stage: Option<String>,
    /// Rows of this code
    #[arg(long)]
    code: Option<String>,
    /// Rows of this rule, as name@version
    #[arg(long)]
    rule: Option<String>,
    /// Rows of the rule with this digest, as sha256:…
    #[arg(long)]
    digest: Option<String>,
    /// Rows received at this time or later, as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = time)]
    from: Option<Micros>,
    /// Rows received before this time
    #[arg(long, value_name = "TIME", value_parser = time)]
    to: Option<Micros>,
    /// These rows, by their ids
    #[arg(long = "id", value_name = "ID", num_args = 1.., value_delimiter = ',', allow_negative_numbers = true)]
    ids: Vec<RowId>,
}

impl FilterArgs {
    fn filter(&self, resolved: bool) -> Filter {
        Filter {
            stage: self.stage.clone(),
            code: self.code.clone(),
            rule: self.rule.clone(),
            digest: self.digest.clone(),
            from: self.from,
            to: self.to,
            ids: self.ids.clone(),
            resolved,
        }
    }
}

fn time(text: &str) -> Result<Micros, String> {
    parse_rfc3339(text).map_err(|error| format!("{error}: write it as 2026-01-31T12:00:00Z"))
}

//! `preflight rules`: the rule store's commands.

mod change;
mod gc;
mod history;
mod stage;
mod status;
mod wait;

use super::Ended;
use crate::releases::{ChangeError, RuleStore, StoreError};
use crate::time::{Clock, Micros, SystemClock};
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};

/// The variable that names the store where no `--store` does.
const VARIABLE: &str = "PREFLIGHT_RULE_STORE";

#[derive(Debug, Args)]
pub(super) struct RulesArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check a component, judge its fixtures, and put both into the store
    Stage(stage::StageArgs),
    /// Make a staged component the one that judges an event version
    Promote(change::PromoteArgs),
    /// Go back to the component that judged an event version before
    Rollback(change::EventsArgs),
    /// Run a staged component beside the one that judges, and record its differences
    Shadow(change::ShadowArgs),
    /// Let a staged component judge a share of the events
    Canary(change::CanaryArgs),
    /// Serve an event version no longer: its events go to quarantine
    Retire(change::EventsArgs),
    /// Show the releases, and what every worker says of itself
    Status(status::StatusArgs),
    /// Show who changed what, when and why
    History(history::HistoryArgs),
    /// List, or delete, components that nobody needs
    Gc(gc::GcArgs),
}

/// What every command has.
#[derive(Debug, Args)]
struct StoreArgs {
    /// The rule store [default: `$PREFLIGHT_RULE_STORE`, else `rules`]
    #[arg(long, value_name = "DIRECTORY")]
    store: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl StoreArgs {
    fn store(&self) -> RuleStore {
        store(self.store.as_deref())
    }
}

/// The rule store that was named, or the one that is meant without a name.
pub(super) fn store(named: Option<&Path>) -> RuleStore {
    let variable = || std::env::var_os(VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from);
    RuleStore::at(named.map(Path::to_owned).or_else(variable).unwrap_or_else(|| "rules".into()))
}

pub(super) fn rules(args: &RulesArgs) -> Ended {
    match &args.command {
        Command::Stage(args) => stage::stage(args),
        Command::Promote(args) => change::promote(args),
        Command::Rollback(args) => change::rollback(args),
        Command::Shadow(args) => change::shadow(args),
        Command::Canary(args) => change::canary(args),
        Command::Retire(args) => change::retire(args),
        Command::Status(args) => status::status(args),
        Command::History(args) => history::history(args),
        Command::Gc(args) => gc::gc(args),
    }
}

fn now() -> Micros {
    SystemClock.now()
}

/// A store that is not usable is a failure at run time.
fn broken(error: StoreError) -> Ended {
    Ended::Broken(error.into())
}

/// A change that the releases do not allow is a wrong request; one that came too late, or that the store's disk does
/// not take, is a failure at run time.
fn not_changed(error: ChangeError) -> Ended {
    match error {
        ChangeError::Refused(_) | ChangeError::NotStaged { .. } => Ended::Refused(error.into()),
        ChangeError::Moved { .. } | ChangeError::Store(_) => Ended::Broken(error.into()),
    }
}

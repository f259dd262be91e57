//! The command line.
//!
//! Exit codes: 0 done, 1 a failure at run time (or fixtures that do not hold), 2 wrong usage or configuration, 3 rules
//! that do not say the same (`diff`).

mod check;
mod component;
mod diff;
mod inspect;
mod operator;
mod output;
mod pack;
mod provision;
mod quarantine;
mod rebuild;
mod rules;
mod run;
mod simulate;
mod test;

use crate::VERSION;
use crate::config::{Config, ConfigError, Layers};
use clap::{Args, CommandFactory, Parser, Subcommand};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXIT_CODES: &str = "Exit codes: 0 done, 1 a failure at run time (or fixtures that do not hold), \
                          2 wrong usage or configuration, 3 rules that do not say the same (diff).";

/// Runs validation rules, as sandboxed WebAssembly components, over streams and files.
#[derive(Debug, Parser)]
#[command(name = "preflight", version = VERSION, arg_required_else_help = true, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run pipelines until their sources end, or until SIGTERM or Ctrl-C
    Run(run::RunArgs),
    /// Make every check a run makes before its first event, and read no event
    Check(check::CheckArgs),
    /// Turn a core module into a component
    Pack(pack::PackArgs),
    /// Show what a component says of itself: name, version, columns, imports, size, digest
    Inspect(inspect::InspectArgs),
    /// Judge fixtures with a component and show what differs
    Test(test::TestArgs),
    /// Judge events with two components and show what would change
    Diff(Box<diff::DiffArgs>),
    /// Run a script of events and clocks through a pipeline's rules and windows, and print its panes
    Simulate(simulate::SimulateArgs),
    /// Stage rules in a rule store, and say which serves which event version
    Rules(rules::RulesArgs),
    /// Make what a pipeline needs on Google Cloud: datasets, tables, topics, subscriptions
    Provision(provision::ProvisionArgs),
    /// Look into quarantine, and replay what was rejected with today's rules
    Quarantine(quarantine::QuarantineArgs),
    /// Measure windows of an aggregate anew from silver: what comes of it supersedes what its table has
    Rebuild(rebuild::RebuildArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// What every command that takes a pipeline file has.
#[derive(Debug, Args)]
struct PipelineArgs {
    /// Lay this file over the pipeline file; can be given several times
    #[arg(long = "with", value_name = "OVERLAY")]
    overlays: Vec<PathBuf>,
    /// Set one key, as key.path=value; can be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
}

impl PipelineArgs {
    /// The pipeline, and the layers it came from: they know the file and line of a key.
    fn load(&self, file: &Path) -> Result<(Config, Layers), ConfigError> {
        let layers = Layers::load(file, &self.overlays, &self.settings)?;
        Ok((Config::from_layers(&layers)?, layers))
    }
}

/// How a command ended.
enum Ended {
    /// As wished.
    Done,
    /// Not as wished, and that was said.
    Failed,
    /// With rules that do not say the same, and that was said.
    Differs,
    /// With an error of usage or configuration, not said yet.
    Refused(anyhow::Error),
    /// With an error at run time, not said yet.
    Broken(anyhow::Error),
}

/// Parses the arguments and runs the command.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    crate::telemetry::log::start();
    let ended = match cli.command {
        Command::Run(args) => run::run(&args),
        Command::Check(args) => check::check(&args),
        Command::Pack(args) => pack::pack(&args),
        Command::Inspect(args) => inspect::inspect(&args),
        Command::Test(args) => test::test(&args),
        Command::Diff(args) => diff::diff(&args),
        Command::Simulate(args) => simulate::simulate(&args),
        Command::Rules(args) => rules::rules(&args),
        Command::Provision(args) => provision::provision(&args),
        Command::Quarantine(args) => quarantine::quarantine(&args),
        Command::Rebuild(args) => rebuild::rebuild(&args),
        Command::Completions { shell } => {
            // Not straight to standard output: it panics where a reader has gone away.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "preflight", &mut script);
            output::print(&String::from_utf8_lossy(&script));
            Ended::Done
        }
    };
    let (error, code) = match ended {
        Ended::Done => return ExitCode::SUCCESS,
        Ended::Failed => return ExitCode::from(1),
        Ended::Differs => return ExitCode::from(3),
        Ended::Refused(error) => (error, 2),
        Ended::Broken(error) => (error, 1),
    };
    output::error(&error);
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_version_carries_the_commit() {
        assert!(VERSION.contains('('));
    }
}

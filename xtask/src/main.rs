//! The project's own commands: `cargo xtask COMMAND`.
//!
//! One module per command, and one per thing that several commands need. Everything runs from the root of the project and in
//! the `release` profile, so that one build of wasmtime serves the demo, the tests, the lints and the bench.

mod beam;
mod bench;
mod bigquery;
mod check;
mod demo;
mod exec;
mod generate;
mod prerequisites;
mod project;
mod pubsub;
mod report;
mod rules;
mod soak;
mod test;
mod totals;
mod venv;
mod version;
mod wasm;

use std::fmt;
use std::process::ExitCode;

use anyhow::Result;

use crate::project::Project;

/// Something that the user has to provide or to write differently: exit code 2 instead of 1.
#[derive(Debug)]
pub(crate) struct SetupError(pub(crate) String);

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SetupError {}

/// One `cargo xtask` command.
struct Command {
    name: &'static str,
    arguments: &'static str,
    summary: &'static str,
    run: fn(&Project, &[String]) -> Result<ExitCode>,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "demo",
        arguments: "[swap | cloud | shopflow]",
        summary: "build everything, run the Offvia example on SQLite and show its three tiers; or swap rules under load, or run \
                  it on emulators of Google Cloud, or clean ShopFlow's 40,150 orders",
        run: demo::run,
    },
    Command {
        name: "rules",
        arguments: "",
        summary: "build the host and every rule, and pack the rules as components",
        run: rules::run,
    },
    Command {
        name: "test",
        arguments: "[FILTER]",
        summary: "run all tests and doc tests, or those whose name contains FILTER",
        run: test::run,
    },
    Command {
        name: "check",
        arguments: "",
        summary: "formatting, lints, docs, lockfile, a bench smoke run, licences, spelling",
        run: check::run,
    },
    Command {
        name: "bench",
        arguments: "[--smoke] [--part NAME] [--json FILE]",
        summary: "measure rules, pipeline and the Python baseline (FILE: target/bench/bench.json)",
        run: bench::run,
    },
    Command {
        name: "generate",
        arguments: "shopflow --out DIR [--seed N] [--orders N] [--files N]",
        summary: "write CSV files of orders, duplicates and bad lines among them, with what is to come of them",
        run: generate::run,
    },
    Command {
        name: "soak",
        arguments: "[--minutes N] [--seed N]",
        summary: "kill workers and fail their warehouse at random for 5 minutes or N, and count every event in the end",
        run: soak::run,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(if error.is::<SetupError>() { 2 } else { 1 })
        }
    }
}

fn dispatch(arguments: &[String]) -> Result<ExitCode> {
    let Some((name, rest)) = arguments.split_first() else {
        print!("{}", help());
        return Ok(ExitCode::SUCCESS);
    };
    if matches!(name.as_str(), "help" | "--help" | "-h") {
        print!("{}", help());
        return Ok(ExitCode::SUCCESS);
    }
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        eprint!("error: there is no command `{name}`\n\n{}", help());
        return Ok(ExitCode::from(2));
    };
    if rest.iter().any(|argument| matches!(argument.as_str(), "--help" | "-h")) {
        println!("cargo xtask {} {}\n    {}", command.name, command.arguments, command.summary);
        return Ok(ExitCode::SUCCESS);
    }
    let project = Project::enter()?;
    (command.run)(&project, rest)
}

fn help() -> String {
    let lines = COMMANDS.iter().map(|command| {
        let call = format!("{} {}", command.name, command.arguments);
        // What does not fit beside its summary stands above it.
        let gap = if call.len() > 30 { format!("\n{:33}", "") } else { " ".repeat(31 - call.len()) };
        format!("  {call}{gap}{}\n", command.summary)
    });
    std::iter::once("usage: cargo xtask COMMAND\n\n".to_owned()).chain(lines).collect()
}

/// Refuses arguments for a command that takes none.
pub(crate) fn no_arguments(command: &str, arguments: &[String]) -> Result<()> {
    match arguments.first() {
        None => Ok(()),
        Some(first) => Err(SetupError(format!("`cargo xtask {command}` takes no arguments, found `{first}`")).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_has_one_line_for_each_command() {
        let text = help();
        for command in COMMANDS {
            let lines = text.lines().filter(|line| line.trim_start().starts_with(command.name));
            assert_eq!(lines.count(), 1, "{}", command.name);
        }
    }

    #[test]
    fn arguments_where_none_are_taken_are_an_error_of_the_user() {
        let error = no_arguments("rules", &["now".to_owned()]).unwrap_err();
        assert!(error.is::<SetupError>());
        assert!(error.to_string().contains("`now`"));
    }
}

//! `cargo xtask soak`: the soak of the test package, for as long as is asked for. No part of CI, whose tests run it briefly.

use std::process::ExitCode;

use anyhow::Result;

use crate::project::Project;
use crate::{SetupError, exec, prerequisites, pubsub, rules};

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    minutes: u64,
    seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { minutes: 5, seed: 1 }
    }
}

/// Runs the command.
pub(crate) fn run(project: &Project, arguments: &[String]) -> Result<ExitCode> {
    let options = parse(arguments)?;
    prerequisites::check()?;
    pubsub::ensure()?;
    rules::ensure(project)?;
    let mut soak = exec::cargo();
    soak.args(["run", "--release", "-p", "preflight-tests", "--bin", "soak", "--"]);
    exec::run(soak.args([options.minutes.to_string(), options.seed.to_string()]))?;
    Ok(ExitCode::SUCCESS)
}

fn parse(arguments: &[String]) -> Result<Options> {
    let mut options = Options::default();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let value = match word.as_str() {
            "--minutes" => &mut options.minutes,
            "--seed" => &mut options.seed,
            other => {
                let what = format!("`cargo xtask soak` takes --minutes N and --seed N, found `{other}`");
                return Err(SetupError(what).into());
            }
        };
        let number = words.next().and_then(|number| number.parse().ok()).filter(|number| *number > 0);
        *value = number.ok_or_else(|| SetupError(format!("`{word}` needs a number above 0")))?;
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(words: &[&str]) -> Result<Options> {
        parse(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn minutes_and_seed_have_defaults_and_come_in_any_order() {
        assert_eq!(parse_words(&[]).unwrap(), Options { minutes: 5, seed: 1 });
        let both = Options { minutes: 60, seed: 7 };
        assert_eq!(parse_words(&["--seed", "7", "--minutes", "60"]).unwrap(), both);
    }

    #[test]
    fn unknown_and_incomplete_options_are_errors_of_the_user() {
        for words in [&["--minutes"][..], &["--minutes", "few"], &["--minutes", "0"], &["--hours", "1"], &["5"]] {
            assert!(parse_words(words).unwrap_err().is::<SetupError>(), "{words:?}");
        }
    }
}

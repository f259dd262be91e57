//! `cargo xtask bench`: runs the bench binary of the test package with everything that it measures in place.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;

use crate::project::{OUTPUT, Project};
use crate::{SetupError, beam, exec, prerequisites, rules};

/// What the command line asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    smoke: bool,
    json: Option<String>,
    /// Only this part.
    part: Option<String>,
}

/// Runs the command.
pub(crate) fn run(project: &Project, arguments: &[String]) -> Result<ExitCode> {
    let options = parse(arguments)?;
    let json = match &options.json {
        Some(file) => project.user_path(file),
        None => Path::new(OUTPUT).join("bench/bench.json"),
    };
    measure(project, options.smoke, options.part.as_deref(), json)?;
    Ok(ExitCode::SUCCESS)
}

/// A run that is too short to measure anything: it shows that the bench works. Its figures stay away from real ones.
pub(crate) fn smoke(project: &Project) -> Result<()> {
    measure(project, true, None, Path::new(OUTPUT).join("bench/smoke.json"))
}

fn measure(project: &Project, smoke: bool, part: Option<&str>, json: PathBuf) -> Result<()> {
    let python = prerequisites::check()?.python;
    // 500 MB: a smoke run does without Beam where it is not there.
    if !smoke {
        beam::ensure(&python)?;
    }
    rules::ensure(project)?;
    rules::create_parent(&json)?;
    let mut command = exec::cargo();
    command.args(["run", "--release", "-p", "preflight-tests", "--bin", "bench", "--"]);
    if smoke {
        command.arg("--smoke");
    }
    if let Some(part) = part {
        command.args(["--part", part]);
    }
    exec::run(command.arg("--json").arg(json).arg("--python").arg(python))
}

fn parse(arguments: &[String]) -> Result<Options> {
    let mut options = Options::default();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--smoke" => options.smoke = true,
            "--json" | "--part" => {
                let value = words.next().ok_or_else(|| SetupError(format!("`{word}` needs a value")))?.clone();
                *(if word == "--json" { &mut options.json } else { &mut options.part }) = Some(value);
            }
            other => {
                let takes = "`cargo xtask bench` takes --smoke, --part NAME and --json FILE";
                return Err(SetupError(format!("{takes}, found `{other}`")).into());
            }
        }
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
    fn options_come_in_any_order() {
        let all = Options { smoke: true, json: Some("a.json".to_owned()), part: Some("shopflow".to_owned()) };
        assert_eq!(parse_words(&["--smoke", "--part", "shopflow", "--json", "a.json"]).unwrap(), all);
        assert_eq!(parse_words(&["--json", "a.json", "--smoke", "--part", "shopflow"]).unwrap(), all);
        assert_eq!(parse_words(&[]).unwrap(), Options::default());
    }

    #[test]
    fn unknown_and_incomplete_options_are_errors_of_the_user() {
        for words in [&["--json"][..], &["--part"], &["--fast"], &["a.json"]] {
            assert!(parse_words(words).unwrap_err().is::<SetupError>(), "{words:?}");
        }
    }
}

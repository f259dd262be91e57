//! `cargo xtask test`: every test of the workspace, and how many there were.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result};

use crate::project::Project;
use crate::totals::{Reader, Totals};
use crate::{SetupError, beam, bigquery, exec, prerequisites, pubsub, rules};

/// Runs the command.
pub(crate) fn run(project: &Project, arguments: &[String]) -> Result<ExitCode> {
    let filter = parse(arguments)?;
    let python = prerequisites::check()?.python;
    pubsub::ensure()?;
    bigquery::ensure(&python)?;
    beam::ensure(&python)?;
    rules::ensure(project)?;

    // Without --no-fail-fast the first failing binary would hide how the others fare.
    let mut command = exec::cargo();
    command.args(["test", "--release", "--workspace", "--no-fail-fast"]).args(filter);
    let (totals, succeeded) = stream(&mut command)?;

    // Reasons go before the closing line, which is the last thing on either stream.
    if totals.ran() == 0 {
        eprintln!("error: no test ran");
    } else if !succeeded && totals.failed == 0 {
        eprintln!("error: cargo test failed although no test did: see above");
    }
    println!("{totals}");
    let good = succeeded && totals.failed == 0 && totals.ran() > 0;
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn parse(arguments: &[String]) -> Result<Option<&str>> {
    match arguments {
        [] => Ok(None),
        [filter] if !filter.starts_with('-') => Ok(Some(filter)),
        [option] => Err(SetupError(format!("`cargo xtask test` has no option `{option}`")).into()),
        _ => Err(SetupError("`cargo xtask test` takes one filter at most".to_owned()).into()),
    }
}

/// Passes the command's output on line by line while counting, and says whether it succeeded.
fn stream(command: &mut Command) -> Result<(Totals, bool)> {
    let line = exec::shown(command);
    eprintln!("$ {line}");
    let mut child = command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start `{line}`"))?;
    let output = child.stdout.take().context("the output of cargo test is not piped")?;
    let totals = count(BufReader::new(output), &mut std::io::stdout().lock())?;
    let status = child.wait().with_context(|| format!("cannot wait for `{line}`"))?;
    Ok((totals, status.success()))
}

/// Lines are bytes here: a test may print anything.
fn count(mut input: impl BufRead, copy: &mut impl Write) -> Result<Totals> {
    let mut reader = Reader::default();
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line).context("cannot read the output of cargo test")? > 0 {
        copy.write_all(&line).and_then(|()| copy.flush()).context("cannot print")?;
        reader.read(&String::from_utf8_lossy(&line));
        line.clear();
    }
    Ok(reader.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_passed_on_byte_for_byte_while_it_is_counted() {
        let output =
            b"\xff\xfe\ntest result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\nno newline";
        let mut copy = Vec::new();
        let totals = count(&output[..], &mut copy).unwrap();
        assert_eq!(totals.passed, 4);
        assert_eq!(copy, output);
    }

    #[test]
    fn one_filter_is_taken_and_options_are_refused() {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        assert_eq!(parse(&[]).unwrap(), None);
        assert_eq!(parse(&words(&["hostile"])).unwrap(), Some("hostile"));
        assert!(parse(&words(&["--nocapture"])).unwrap_err().is::<SetupError>());
        assert!(parse(&words(&["a", "b"])).unwrap_err().is::<SetupError>());
    }
}

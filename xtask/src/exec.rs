//! Running other programs: shown before they run, and named in the error when they fail.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The cargo that runs us, so that a `+toolchain` on the command line holds for everything that follows from it.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").as_deref().unwrap_or(OsStr::new("cargo")))
}

/// Runs a program with its output on the terminal; a failure is an error that names the command.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = shown(command);
    eprintln!("$ {line}");
    let status = command.status().with_context(|| format!("cannot start `{line}`"))?;
    if !status.success() {
        bail!("`{line}` failed ({status})");
    }
    Ok(())
}

/// Runs a program silently and gives what it printed, or `None` when it is not there or fails.
pub(crate) fn probe(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The command as it could be typed, variables that we set included.
pub(crate) fn shown(command: &Command) -> String {
    let mut words = Vec::new();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            words.push(format!("{}={}", name.to_string_lossy(), quoted(value)));
        }
    }
    let program = command.get_program();
    let is_cargo = std::env::var_os("CARGO").is_some_and(|cargo| cargo == program);
    words.push(if is_cargo { "cargo".to_owned() } else { quoted(program) });
    words.extend(command.get_args().map(quoted));
    words.join(" ")
}

fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_command_can_be_typed_into_a_shell() {
        let mut command = Command::new("prog");
        command.env("FLAGS", "-D warnings").args(["--set", "a.b=c", "it's"]);
        assert_eq!(shown(&command), r"FLAGS='-D warnings' prog --set a.b=c 'it'\''s'");
    }

    #[test]
    fn a_failing_command_is_named_in_the_error() {
        let error = run(&mut Command::new("false")).unwrap_err();
        assert!(error.to_string().starts_with("`false` failed"), "{error}");
    }

    #[test]
    fn a_program_that_is_not_there_has_no_answer() {
        assert_eq!(probe(&mut Command::new("preflight-no-such-program")), None);
        assert_eq!(probe(Command::new("echo").arg("yes")), Some("yes".to_owned()));
    }
}

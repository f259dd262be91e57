//! `cargo xtask generate`: input to try things with.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use xtask::shopflow::{self, Request, Shape};

use crate::SetupError;
use crate::project::Project;

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    request: Request,
    out: String,
}

/// Runs the command.
pub(crate) fn run(project: &Project, arguments: &[String]) -> Result<ExitCode> {
    let Options { request, out } = parse(arguments)?;
    let directory: PathBuf = project.user_path(&out);
    shopflow::write(&request, &directory)?;
    let Request { shape, files, .. } = request;
    let files = if files == 1 { "orders-1.csv".to_owned() } else { format!("orders-1.csv to orders-{files}.csv") };
    println!(
        "{}: {} lines in {files}, {} of them duplicates and {} to be rejected; what is to come of them is in expected/",
        directory.display(),
        shape.lines,
        shape.duplicates,
        shape.rejected
    );
    Ok(ExitCode::SUCCESS)
}

fn parse(arguments: &[String]) -> Result<Options> {
    let refuse = |what: String| SetupError(format!("`cargo xtask generate`: {what}"));
    let mut words = arguments.iter();
    match words.next() {
        Some(what) if what == "shopflow" => {}
        Some(other) => return Err(refuse(format!("there is `shopflow` to generate, no `{other}`")).into()),
        None => return Err(refuse("say what: `shopflow`".to_owned()).into()),
    }
    let mut request = Request { seed: 1, shape: Shape::default(), files: 1 };
    let mut out = None;
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| refuse(format!("`{word}` needs a value")))?;
        let number = || value.parse::<u64>().map_err(|_| refuse(format!("`{word}` is a whole number, not `{value}`")));
        match word.as_str() {
            "--seed" => request.seed = number()?,
            "--orders" => request.shape = Shape::of(number()?),
            "--files" => request.files = number()?,
            "--out" => out = Some(value.clone()),
            _ => return Err(refuse(format!("there is no option `{word}`")).into()),
        }
    }
    if !(1..=1_000).contains(&request.files) {
        return Err(refuse(format!("`--files` is 1 to 1,000, not {}", request.files)).into());
    }
    let out = out.ok_or_else(|| refuse("`--out` names the directory for the files".to_owned()))?;
    Ok(Options { request, out })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(words: &str) -> Result<Options> {
        parse(&words.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_come_in_any_order_and_have_defaults() {
        let options = parse_words("shopflow --out d").unwrap();
        let request = Request { seed: 1, shape: Shape::default(), files: 1 };
        assert_eq!(options, Options { request, out: "d".to_owned() });
        let options = parse_words("shopflow --files 3 --orders 400 --out d --seed 7").unwrap();
        assert_eq!(options.request, Request { seed: 7, shape: Shape::of(400), files: 3 });
    }

    #[test]
    fn what_cannot_be_made_is_an_error_of_the_user() {
        for (words, named) in [
            ("", "`shopflow`"),
            ("bookings --out d", "`bookings`"),
            ("shopflow", "--out"),
            ("shopflow --out", "needs a value"),
            ("shopflow --out d --orders many", "`many`"),
            ("shopflow --out d --orders -1", "`-1`"),
            ("shopflow --out d --files 0", "--files"),
            ("shopflow --out d --rows 3", "`--rows`"),
        ] {
            let error = parse_words(words).unwrap_err();
            assert!(error.is::<SetupError>() && error.to_string().contains(named), "{words}: {error}");
        }
    }
}

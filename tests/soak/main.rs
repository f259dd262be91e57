//! `cargo xtask soak`: workers are killed at random and their warehouse fails at random, for as long as is asked for.

use anyhow::{Context, Result};
use preflight_tests::soak;
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    match soak() {
        Ok(report) => {
            println!("\n{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Arguments: minutes and a seed.
fn soak() -> Result<soak::Report> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |name: &str| -> Result<u64> {
        let text = arguments.next().with_context(|| format!("give {name}"))?;
        text.parse().with_context(|| format!("{text:?} is not {name}"))
    };
    let (minutes, seed) = (number("minutes")?, number("a seed")?);
    println!("{minutes} minutes, seed {seed}");
    soak::run(Duration::from_mins(minutes), seed, |line| println!("{line}"))
}

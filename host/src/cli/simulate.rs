//! `preflight simulate`: windows and late data, deterministically.

use super::{Ended, PipelineArgs, output};
use crate::simulate::{Simulation, script};
use anyhow::{Context as _, anyhow};
use clap::Args;
use std::io::{self, Write as _};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    after_help = "A script has a step a line: {\"event\": PAYLOAD}, {\"watermark\": TIME}, {\"processing_time\": TIME} or \
                        {\"end\": true}. What comes out is a line of JSON each: panes, late events, events without a row."
)]
pub(super) struct SimulateArgs {
    /// The pipeline file
    file: PathBuf,
    /// The script (NDJSON), `-` for standard input
    script: PathBuf,
    #[command(flatten)]
    pipeline: PipelineArgs,
}

pub(super) fn simulate(args: &SimulateArgs) -> Ended {
    let (config, _) = match args.pipeline.load(&args.file) {
        Ok(loaded) => loaded,
        Err(error) => return Ended::Refused(error.into()),
    };
    if config.aggregates.is_empty() {
        return Ended::Refused(anyhow!("{}: it has no aggregates, so nothing would come out", args.file.display()));
    }
    let mut simulation = match Simulation::new(&config) {
        Ok(simulation) => simulation,
        Err(error) => return Ended::Refused(error.into()),
    };
    let read = if args.script.as_os_str() == "-" {
        io::read_to_string(io::stdin())
    } else {
        std::fs::read_to_string(&args.script)
    };
    let text = match read.with_context(|| format!("cannot read {}", args.script.display())) {
        Ok(text) => text,
        Err(error) => return Ended::Refused(error),
    };
    let mut said = String::new();
    for (line, number) in text.lines().zip(1..) {
        let step = match script::read(line, number) {
            Ok(Some(step)) => step,
            Ok(None) => continue,
            Err(error) => return refused(args, number, &said, &error),
        };
        match simulation.step(step) {
            Ok(lines) => said.extend(lines.iter().map(|line| format!("{line}\n"))),
            Err(error) => return refused(args, number, &said, &error.to_string()),
        }
    }
    output::print(&said);
    Ended::Done
}

/// What came out before is said all the same.
fn refused(args: &SimulateArgs, number: usize, said: &str, error: &str) -> Ended {
    output::print(said);
    io::stdout().flush().ok();
    Ended::Refused(anyhow!("{}:{number}: {error}", args.script.display()))
}

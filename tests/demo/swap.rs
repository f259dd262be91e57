//! `cargo xtask demo swap`: rules swapped under load, told as a story. The scenes are in the library, and the tests play them too.

use anyhow::{Context, Result};
use preflight_tests::scenes::{self, Settings, Stage};
use std::path::PathBuf;
use std::process::ExitCode;

/// Events a second: a fifth of what two cores can do, so that there is room for a second rule beside the one that serves.
const RATE: u64 = 20_000;

type Scene = fn(&mut Stage) -> Result<()>;

const SCENES: [(&str, Scene); 6] = [
    ("The next version: beside, then in service", scenes::next_version),
    ("A broken build: refused by its fixtures", scenes::refused_by_fixtures),
    ("A rule that rejects too much: rolled back by its guard", scenes::rejects_too_much),
    ("A rule that panics: rolled back by its guard", scenes::faults),
    ("An event version nobody serves", scenes::unknown_version),
    ("What was wrongly rejected comes to silver", scenes::repair),
];

fn main() -> ExitCode {
    match play() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn play() -> Result<()> {
    let directory = std::env::args_os().nth(1).map(PathBuf::from).context("give an empty directory")?;
    title("A rule goes live");
    let tell: fn(&str) = |line| println!("{line}");
    let mut stage = Stage::begin(Settings { directory, rate: RATE, pairs: 100_000, guard_time: "5 s", tell })?;
    for (name, scene) in SCENES {
        title(name);
        scene(&mut stage)?;
    }
    title("The counts add up");
    scenes::end(stage)
}

fn title(name: &str) {
    println!("\n== {name}\n");
}

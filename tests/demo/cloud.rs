//! `cargo xtask demo cloud`: Offvia's walk-through on emulators, told as a story. The scenes are in the library, and a test
//! plays them too.

use anyhow::{Context, Result};
use preflight_tests::scenes::cloud::{Cloud, Settings};
use preflight_tests::{bigquery, pubsub};
use std::path::PathBuf;
use std::process::ExitCode;

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
    let tell: fn(&str) = |line| println!("{line}");
    title("A project on this machine");
    // They end with this process, whatever becomes of it.
    let (bigquery, pubsub) = (bigquery::Emulator::start(), pubsub::Emulator::start());
    let settings = Settings { directory, bigquery: &bigquery, pubsub: &pubsub, bookings: 2_000, tell };
    let mut cloud = Cloud::begin(settings)?;
    title("Datasets, tables, topics, subscriptions");
    cloud.provision()?;
    title("The seed's three events");
    cloud.three_events()?;
    title("An event that is published twice");
    cloud.published_twice()?;
    title("A worker is killed");
    cloud.killed_worker()?;
    title("The end");
    cloud.end()
}

fn title(name: &str) {
    println!("\n== {name}\n");
}

//! Runs that replace what tables have: all of it at once at the end of the source, or nothing.

mod bigquery;
mod bounds;
mod crash;
mod files;
mod kept;
mod leftovers;
mod quarantine;
mod runs;

use preflight::failpoint;
use preflight_tests::tables::{self, Tiers};
use preflight_tests::{Ended, Pipeline, bookings};
use std::fs;
use std::path::PathBuf;

/// Offvia's pipeline, which replaces all of its tables and writes rejects to a file, too. Small micro-batches: many commits.
fn pipeline(input: &str) -> Pipeline {
    let pipeline = Pipeline::offvia(input).warm().set("batch.max_events=50").set("run.threads=2");
    let tiers = ["bronze", "silver", "quarantine"];
    let pipeline = tiers.into_iter().fold(pipeline, |pipeline, tier| pipeline.set(format!("{tier}.write=replace")));
    pipeline.set("quarantine.files.path=rejected/bookings")
}

/// One whose tables have the rows of another input by now.
fn published(old: usize, input: &str) -> Pipeline {
    let pipeline = pipeline(&bookings::lines(old));
    pipeline.run().expect(0);
    pipeline.write_input(input);
    pipeline
}

/// What an input comes to.
struct Expected {
    tiers: Tiers,
    rejects: String,
}

impl Expected {
    fn of(input: &str) -> Self {
        let pipeline = pipeline(input);
        pipeline.run().expect(0);
        Self { tiers: tables::tiers(&pipeline.database()), rejects: rejected(input) }
    }

    /// Tables and file have these rows and no others.
    #[track_caller]
    fn expect(&self, pipeline: &Pipeline, when: &str) {
        tables::tiers(&pipeline.database()).expect(&self.tiers, when);
        assert_eq!(fs::read_to_string(rejects(pipeline)).unwrap(), self.rejects, "{when}");
    }
}

/// The file of rejects.
fn rejects(pipeline: &Pipeline) -> PathBuf {
    pipeline.directory().join("rejected/bookings-00000-of-00001.csv")
}

/// The lines of `bookings::lines` that are not good, as they came.
fn rejected(input: &str) -> String {
    let bad = |line: &&str| line.ends_with("cut off\n") || line.contains("\"-1.00\"");
    input.split_inclusive('\n').filter(bad).collect()
}

/// Whatever a run has staged: tables, and files.
fn staged(pipeline: &Pipeline) -> Vec<String> {
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE '%__run_%' ORDER BY name";
    let tables = tables::query(&pipeline.database(), sql).into_iter();
    let mut staged: Vec<String> = tables.map(|row| row["name"].as_str().unwrap().to_owned()).collect();
    let files = fs::read_dir(pipeline.directory().join("rejected")).into_iter().flatten();
    let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    staged.extend(files.filter(|name| name.contains(".run_")));
    staged
}

/// A run that is killed when it passes a point for the `pass`-th time.
#[track_caller]
fn crash_at(pipeline: &mut Pipeline, point: &str, pass: u32) {
    let ended = run_into(pipeline, point, pass);
    assert!(ended.was_killed(), "{point}={pass} was not passed: {ended:?}");
}

fn run_into(pipeline: &mut Pipeline, point: &str, pass: u32) -> Ended {
    pipeline.environment = vec![(failpoint::VARIABLE.into(), format!("{point}={pass}"))];
    let ended = pipeline.run();
    pipeline.environment.clear();
    ended
}

/// Runs with more arguments.
fn run_with(pipeline: &Pipeline, arguments: &[&str]) -> Ended {
    let mut command = pipeline.command("run");
    Ended::from_output(command.arg("--json").args(arguments).output().expect("preflight can be started"))
}

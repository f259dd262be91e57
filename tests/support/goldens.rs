//! Golden cases: a folder with an input, a pipeline and the rows that it should give.

use crate::{Ended, paths, tables};
use preflight::digest::Digest;
use preflight::time::{Clock, SystemClock, format_micros, from_system};
use preflight::verdict::clip;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The tiers with the tables that every case uses.
const TABLES: [(&str, &str); 3] =
    [("bronze", "raw_bookings"), ("silver", "fact_bookings"), ("quarantine", "poisoned_events")];
/// Columns whose value is the time of the run.
const NOW: [&str; 3] = ["ingestion_timestamp", "received_timestamp", "loaded_at"];
/// Columns whose value is the time of the input file, unless the event has its own.
const PUBLISHED: [&str; 2] = ["publish_time", "publish_timestamp"];

/// A golden case.
pub struct Case {
    directory: PathBuf,
}

type Row = Map<String, Value>;

/// Where the cases are.
pub fn directory() -> PathBuf {
    paths::root().join("tests/goldens")
}

/// The names of all cases there are.
pub fn names() -> BTreeSet<String> {
    let entries = std::fs::read_dir(directory()).expect("the folder of the golden cases can be read");
    entries.map(|entry| entry.expect("it can be listed").file_name().to_string_lossy().into_owned()).collect()
}

impl Case {
    /// The case of that name.
    pub fn new(name: &str) -> Self {
        Self { directory: directory().join(name) }
    }

    /// Runs the case and compares all tiers; with `UPDATE_GOLDENS=1` it writes what came out as expected.
    #[track_caller]
    pub fn check(&self) {
        if let Ok(refused) = std::fs::read_to_string(self.directory.join("refused.txt")) {
            return self.refused(&refused);
        }
        let mut differences = String::new();
        for (tier, rows) in self.run() {
            let expected = self.directory.join("expected").join(format!("{tier}.ndjson"));
            if std::env::var_os("UPDATE_GOLDENS").is_some_and(|update| update == "1") {
                update(&expected, rows.as_deref());
                continue;
            }
            match (read(&expected), rows) {
                (None, None) => {}
                (None, Some(_)) => writeln!(differences, "{} is missing", expected.display()).expect("a string grows"),
                (Some(_), None) => writeln!(differences, "{tier}: there is no table").expect("a string grows"),
                (Some(expected), Some(rows)) => differences += &difference(tier, &expected, &rows),
            }
        }
        assert!(
            differences.is_empty(),
            "{}:\n{differences}If this is right, run the tests with UPDATE_GOLDENS=1 and read what changed.",
            self.directory.display()
        );
    }

    /// Runs a case that is refused: nothing is written, and what it says has each line of `lines` in it.
    fn refused(&self, lines: &str) {
        let temporary = tempfile::tempdir().expect("a temporary directory can be made");
        let database = temporary.path().join("warehouse.db");
        for command in ["check", "run"] {
            let ended =
                Ended::from_output(self.command(command, &database).output().expect("it can be started")).expect(2);
            for line in lines.lines() {
                assert!(ended.stderr.contains(line), "{command} does not say {line:?}: {}", ended.stderr);
            }
        }
        assert!(!database.exists(), "there is a database");
    }

    fn command(&self, name: &str, database: &Path) -> Command {
        let mut command = Command::new(paths::preflight());
        command.arg(name).arg(self.directory.join("pipeline.toml")).arg("--json").stdin(Stdio::null());
        command.args(["--set", &format!("warehouse.sqlite.path={}", database.display())]);
        command.args(["--set", &format!("rules.cache={}", paths::scratch().join("code").display())]);
        command
    }

    /// The rows by tier; none where there is no such table.
    fn run(&self) -> Vec<(&'static str, Option<Vec<Row>>)> {
        let temporary = tempfile::tempdir().expect("a temporary directory can be made");
        let database = temporary.path().join("warehouse.db");
        if let Ok(sql) = std::fs::read_to_string(self.directory.join("setup.sql")) {
            let connection = rusqlite::Connection::open(&database).expect("a database can be made");
            connection.execute_batch(&sql).unwrap_or_else(|error| panic!("setup.sql: {error}"));
        }
        let started = now();
        let mut command = self.command("run", &database);
        let report = Ended::from_output(command.output().expect("preflight can be started")).expect(0).json();
        let run = started..=now();

        let existing: Vec<String> = tables::query(&database, "SELECT name FROM sqlite_schema")
            .iter()
            .filter_map(|row| row["name"].as_str().map(str::to_owned))
            .collect();
        let mut all = Vec::new();
        for (tier, table) in TABLES {
            let rows = existing.iter().any(|name| name == table).then(|| tables::rows(&database, table));
            assert_eq!(
                report[tier],
                rows.as_ref().map_or(Value::Null, |rows| rows.len().into()),
                "{tier} in the report"
            );
            let rows = rows.map(|rows| rows.into_iter().map(|row| self.stable(row, &run)).collect());
            all.push((tier, rows));
        }
        all
    }

    /// Puts words for what differs from run to run, and from build to build.
    fn stable(&self, mut row: Row, run: &std::ops::RangeInclusive<String>) -> Row {
        for (column, value) in &mut row {
            let Some(text) = value.as_str() else { continue };
            if NOW.contains(&column.as_str()) {
                assert!(run.contains(&text.to_owned()), "{column} {text} is not within the run, {run:?}");
                *value = "(the time of the run)".into();
            } else if PUBLISHED.contains(&column.as_str()) && self.input_times().contains(text) {
                *value = "(the time of the input file)".into();
            } else if column == "rule_digest" {
                *value = rule_of(text).into();
            }
        }
        row
    }

    /// When the files of the case were changed.
    fn input_times(&self) -> BTreeSet<String> {
        let mut times = BTreeSet::new();
        let mut directories = vec![self.directory.clone()];
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).expect("it can be listed") {
                let entry = entry.expect("it can be listed");
                let metadata = entry.metadata().expect("it is there");
                if metadata.is_dir() {
                    directories.push(entry.path());
                } else {
                    times.insert(format_micros(from_system(metadata.modified().expect("the file system keeps times"))));
                }
            }
        }
        times
    }
}

fn now() -> String {
    format_micros(SystemClock.now())
}

/// A digest differs from build to build: which rule's it is does not.
fn rule_of(digest: &str) -> String {
    let names = ["offvia-booking", "offvia-booking-v2"];
    let found = names.into_iter().find(|name| {
        let component = std::fs::read(paths::rule(name)).expect("a rule can be read");
        Digest::of(&component).to_string() == digest
    });
    format!("(the digest of {}.wasm)", found.unwrap_or_else(|| panic!("{digest} is no rule's")))
}

fn read(path: &Path) -> Option<Vec<Row>> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(
        text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect(),
    )
}

fn update(path: &Path, rows: Option<&[Row]>) {
    let Some(rows) = rows else {
        std::fs::remove_file(path).ok();
        return;
    };
    std::fs::create_dir_all(path.parent().expect("it is in the folder of the case")).expect("a folder can be made");
    let lines: String = rows.iter().map(|row| format!("{}\n", Value::Object(row.clone()))).collect();
    std::fs::write(path, lines).expect("expected rows can be written");
}

/// How many differences are shown: one row that is missing makes all after it differ.
const SHOWN: usize = 12;

/// What differs, row by row and column by column.
pub fn difference(tier: &str, expected: &[Row], got: &[Row]) -> String {
    let whole = |row: &Row| clip(&Value::Object(row.clone()).to_string(), 300).into_owned();
    let mut lines = Vec::new();
    let mut differs = |row: usize, what: String| lines.push(format!("  {tier}, row {}: {what}\n", row + 1));
    for index in 0..expected.len().max(got.len()) {
        match (expected.get(index), got.get(index)) {
            (Some(expected), None) => differs(index, format!("missing: {}", whole(expected))),
            (None, Some(got)) => differs(index, format!("not expected: {}", whole(got))),
            (Some(expected), Some(got)) => {
                let columns: BTreeSet<&String> = expected.keys().chain(got.keys()).collect();
                for column in columns.into_iter().filter(|column| expected.get(*column) != got.get(*column)) {
                    let shown = |row: &Row| {
                        let value = row.get(column).map_or_else(|| "no such column".to_owned(), Value::to_string);
                        clip(&value, 300).into_owned()
                    };
                    differs(index, format!("{column}\n    expected {}\n    got      {}", shown(expected), shown(got)));
                }
            }
            (None, None) => {}
        }
    }
    if lines.len() > SHOWN {
        let more = format!("  {tier}: and {} more differences\n", lines.len() - SHOWN);
        lines.truncate(SHOWN);
        lines.push(more);
    }
    lines.concat()
}

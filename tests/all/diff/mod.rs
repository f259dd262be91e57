//! `preflight diff`: what would change if another rule judged the same events.

mod input;
mod judged;
mod load;
mod report;
mod routing;
mod store;
mod tables;

use preflight_tests::booking::envelope;
use preflight_tests::pipeline::preflight;
use preflight_tests::{Booking, Ended, paths};
use serde_json::Value;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn v1() -> PathBuf {
    paths::rule("offvia-booking")
}

fn v2() -> PathBuf {
    paths::rule("offvia-booking-v2")
}

fn hostile() -> PathBuf {
    paths::rule("hostile-rule")
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A directory with `input.ndjson` in it.
fn input(lines: impl AsRef<[u8]>) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("input.ndjson");
    std::fs::write(&path, lines).unwrap();
    (directory, path)
}

fn diff(old: &Path, new: &Path, input: &Path, further: &[&str]) -> Ended {
    preflight([&["diff", text(old), text(new), "--input", text(input)], further].concat())
}

/// Compares two rules on these lines.
fn on(lines: impl AsRef<[u8]>, old: &Path, new: &Path, further: &[&str]) -> Ended {
    let (_directory, path) = input(lines);
    diff(old, new, &path, further)
}

/// Another build of the first booking rule, in which a text has become another of the same length.
fn rebuilt(directory: &Path, from: &str, to: &str) -> PathBuf {
    let mut component = std::fs::read(v1()).unwrap();
    let places: Vec<usize> =
        component.windows(from.len()).enumerate().filter(|(_, w)| *w == from.as_bytes()).map(|(at, _)| at).collect();
    let [at] = places[..] else { panic!("{from} stands {} times in the rule", places.len()) };
    component[at..at + from.len()].copy_from_slice(to.as_bytes());
    let path = directory.join("rebuilt.wasm");
    std::fs::write(&path, component).unwrap();
    path
}

/// The kinds with their counts, as the report lists them.
fn kinds(report: &Value) -> Vec<(&str, u64)> {
    let differences = report["differences"].as_array().unwrap().iter();
    differences.map(|kind| (kind["kind"].as_str().unwrap(), kind["events"].as_u64().unwrap())).collect()
}

#[track_caller]
fn refused(ended: Ended, texts: &[&str]) {
    ended_with(ended, 2, texts);
}

/// A failure at run time, before anything was judged.
#[track_caller]
fn broken(ended: Ended, texts: &[&str]) {
    ended_with(ended, 1, texts);
}

#[track_caller]
fn ended_with(ended: Ended, code: i32, texts: &[&str]) {
    let ended = ended.expect(code);
    for text in texts {
        assert!(ended.stderr.contains(text), "{text:?} is not in: {}", ended.stderr);
    }
    assert_eq!(ended.stdout, "");
}

/// Two events of version 1, one of 2, one of 3, one that does not say.
fn versions() -> String {
    let one = |attributes: &[(&str, &str)]| envelope(Booking::v1("BK-1").json(), attributes);
    let of = |version| one(&[("event_version", version)]);
    [of("1"), of("1"), of("2"), of("3"), one(&[])].concat()
}

fn skipped(report: &Value) -> (u64, u64, u64) {
    let count = |value: &Value| value.as_u64().unwrap();
    let skipped = &report["skipped"];
    (count(&report["judged"]), count(&skipped["other_version"]), count(&skipped["no_version"]))
}

//! The code cache: it saves time, and nothing that is wrong with it changes a verdict.

use preflight::rules::cache::{CodeCache, Source};
use preflight::rules::{Limits, Rule, Sandbox, load};
use preflight_tests::{Pipeline, paths, tables};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A cache of its own.
struct Cache {
    sandbox: Sandbox,
    directory: TempDir,
}

impl Cache {
    fn new() -> Self {
        Self { sandbox: Sandbox::new().unwrap(), directory: tempfile::tempdir().unwrap() }
    }

    /// A cache that holds the code of the hostile rule, and where it lies.
    fn warm() -> (Self, PathBuf) {
        let cache = Self::new();
        assert_eq!(cache.load("hostile-rule").code, Source::Compiled);
        let entries: Vec<PathBuf> = cache.entries();
        assert_eq!(entries.len(), 1);
        (cache, entries[0].clone())
    }

    fn load(&self, rule: &str) -> Rule {
        let cache = CodeCache::new(self.directory.path());
        load::file(&self.sandbox, &Limits::default(), &cache, &paths::rule(rule)).unwrap()
    }

    fn entries(&self) -> Vec<PathBuf> {
        fs::read_dir(self.directory.path()).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    /// Asserts that the entry as it is now is not loaded, and that a good one takes its place.
    #[track_caller]
    fn expect_replaced(&self) {
        assert_eq!(self.load("hostile-rule").code, Source::Compiled, "it was loaded");
        assert_eq!(self.load("hostile-rule").code, Source::Cached, "it was not replaced");
    }
}

/// Changes an entry's bytes. Its mode stays.
fn change(entry: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(entry).unwrap();
    change(&mut bytes);
    fs::write(entry, bytes).unwrap();
}

#[test]
fn a_second_start_does_not_compile() {
    let (cache, entry) = Cache::warm();
    assert_eq!(cache.load("hostile-rule").code, Source::Cached);
    assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_flipped_byte_is_not_loaded() {
    let (cache, entry) = Cache::warm();
    let size = fs::read(&entry).unwrap().len();
    // In the digest, at the start of the code, in its middle, at its end.
    for at in [20, 48, size / 2, size - 1] {
        change(&entry, |bytes| bytes[at] ^= 1);
        cache.expect_replaced();
    }
}

#[test]
fn a_truncated_or_longer_entry_is_not_loaded() {
    let (cache, entry) = Cache::warm();
    for size in [0, 10, 47, 48, 10_000] {
        change(&entry, |bytes| bytes.truncate(size));
        cache.expect_replaced();
    }
    change(&entry, |bytes| bytes.push(0));
    cache.expect_replaced();
}

#[test]
fn a_file_of_somebody_else_is_not_loaded() {
    let (cache, entry) = Cache::warm();
    change(&entry, |bytes| bytes[..16].copy_from_slice(b"other-programs-1"));
    cache.expect_replaced();
    change(&entry, |bytes| *bytes = vec![0x5a; 100_000]);
    cache.expect_replaced();
}

#[test]
fn an_entry_that_others_may_touch_is_not_loaded() {
    let (cache, entry) = Cache::warm();
    for mode in [0o640, 0o604, 0o620, 0o602, 0o666] {
        fs::set_permissions(&entry, Permissions::from_mode(mode)).unwrap();
        cache.expect_replaced();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "replaced with its own mode");
    }
}

#[test]
fn a_link_is_not_followed_and_a_directory_is_no_entry() {
    let (cache, entry) = Cache::warm();
    let elsewhere = cache.directory.path().join("elsewhere");
    fs::rename(&entry, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &entry).unwrap();
    cache.expect_replaced();
    fs::remove_file(&entry).unwrap();
    fs::create_dir(&entry).unwrap();
    assert_eq!(cache.load("hostile-rule").code, Source::Compiled);
    assert_eq!(cache.load("hostile-rule").code, Source::Compiled, "it cannot be replaced");
}

#[test]
fn a_named_pipe_does_not_hang_a_start() {
    let (cache, entry) = Cache::warm();
    fs::remove_file(&entry).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&entry).status().unwrap().success());
    cache.expect_replaced();
}

/// An entry was bound to its component by its name alone: renamed, it judged in the place of another rule.
#[test]
fn the_code_of_another_component_is_not_loaded() {
    let (cache, hostile) = Cache::warm();
    cache.load("offvia-booking");
    let offvia = cache.entries().into_iter().find(|entry| *entry != hostile).unwrap();
    fs::copy(&offvia, &hostile).unwrap();
    let rule = cache.load("hostile-rule");
    assert_eq!((rule.code, rule.label.as_str()), (Source::Compiled, "hostile-rule@0.1.0"));
    assert_eq!(cache.load("hostile-rule").code, Source::Cached);
}

/// Runs a pipeline twice with something done to the cache in between; the second run must warn and be right.
fn warns(spoil: impl FnOnce(&Path), warning: &str) {
    let pipeline = Pipeline::with_rule(&paths::rule("hostile-rule"), "ok\nspin\n");
    pipeline.run().expect(0);
    let expected = tables::tiers(&pipeline.database());
    spoil(&pipeline.directory().join("code"));
    let again = Pipeline::with_rule(&paths::rule("hostile-rule"), "ok\nspin\n");
    let again = again.set(format!("rules.cache={}", pipeline.directory().join("code").display()));
    let ended = again.run().expect(0);
    assert!(ended.stderr.contains(warning), "{warning:?} is not in: {}", ended.stderr);
    tables::tiers(&again.database()).expect(&expected, warning);
}

fn entry_in(directory: &Path) -> PathBuf {
    fs::read_dir(directory).unwrap().next().unwrap().unwrap().path()
}

#[test]
fn a_run_warns_of_a_corrupt_entry_and_judges_as_before() {
    warns(|code| change(&entry_in(code), |bytes| bytes[5_000] ^= 0x80), "cached code refused, compiling");
}

#[test]
fn a_run_warns_of_an_entry_that_others_may_read() {
    warns(
        |code| fs::set_permissions(entry_in(code), Permissions::from_mode(0o640)).unwrap(),
        "its mode is 640, others may touch it",
    );
}

#[test]
fn a_cache_directory_that_is_a_file_costs_a_warning() {
    warns(
        |code| {
            fs::remove_dir_all(code).unwrap();
            fs::write(code, "a file").unwrap();
        },
        "cannot keep compiled code",
    );
}

#[test]
fn a_cache_directory_that_cannot_be_written_costs_a_warning() {
    // Where not even root may make a file.
    let pipeline = Pipeline::with_rule(&paths::rule("hostile-rule"), "ok\n").set("rules.cache=/proc/self");
    let ended = pipeline.run().expect(0);
    assert!(ended.stderr.contains("cannot keep compiled code"), "{}", ended.stderr);
    assert_eq!(tables::count(&pipeline.database(), "fact_bookings"), 1);
}

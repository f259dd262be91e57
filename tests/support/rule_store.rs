//! A rule store in a temporary directory, changed by the real commands and by the library.

use crate::{Ended, paths};
use preflight::digest::Digest;
use preflight::releases::{Change, Releases, RuleStore};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// What every variant of the hostile rule holds to.
pub const FIXTURES: &str = "{\"name\":\"ok\",\"payload\":\"ok\",\"expect\":{\"accept\":{\"n\":1}}}\n";

/// A rule store that is not there until something is staged.
pub struct Store {
    directory: TempDir,
    /// Environment variables of its commands.
    pub environment: Vec<(String, String)>,
}

impl Store {
    /// A store without anything.
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a temporary directory can be made"), environment: Vec::new() }
    }

    /// A store with some variants of the hostile rule, which judges event versions 1 and 2, staged in it.
    pub fn with<const N: usize>(tags: [&str; N]) -> (Self, [Digest; N]) {
        let store = Self::new();
        let digests = tags.map(|tag| store.stage(tag));
        (store, digests)
    }

    /// Its directory.
    pub fn path(&self) -> PathBuf {
        self.directory.path().join("rules")
    }

    /// The library's view of it.
    pub fn open(&self) -> RuleStore {
        RuleStore::at(self.path())
    }

    /// The releases of now.
    pub fn releases(&self) -> Releases {
        self.open().releases().expect("the releases can be read")
    }

    /// Puts a variant of the hostile rule into it.
    pub fn stage(&self, tag: &str) -> Digest {
        stage(&self.open(), tag)
    }

    /// Promotes for event version 1.
    pub fn promote(&self, digest: Digest) -> Releases {
        promote(&self.open(), digest)
    }

    /// A file beside it.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.directory.path().join(name);
        std::fs::write(&path, content).expect("a file can be written");
        path
    }

    /// The file of a component in it.
    pub fn component(&self, digest: &Digest) -> PathBuf {
        self.path().join("components").join(format!("{}.wasm", digest.hex()))
    }

    /// A command on it, not started: the words after `preflight rules`.
    pub fn command(&self, words: &str) -> Command {
        let mut command = Command::new(paths::preflight());
        command.arg("rules").args(words.split_whitespace()).arg("--store").arg(self.path());
        // Compiled code is shared by all tests.
        command.env("XDG_CACHE_HOME", paths::scratch()).env("USER", "ana").env("HOSTNAME", "here");
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.current_dir(self.directory.path()).stdin(Stdio::null());
        command
    }

    /// Runs a command on it.
    pub fn run(&self, words: &str) -> Ended {
        Ended::from_output(self.command(words).output().expect("preflight can be started"))
    }
}

impl Default for Store {
    fn default() -> Self {
        Self::new()
    }
}

/// Puts a variant of the hostile rule into a store.
pub fn stage(store: &RuleStore, tag: &str) -> Digest {
    let staged = store.stage(&hostile(tag), FIXTURES, "hostile-rule@0.1.0", "test", "", 0);
    staged.expect("it can be staged")
}

/// Promotes for event version 1.
pub fn promote(store: &RuleStore, digest: Digest) -> Releases {
    let change = Change::Promote { digest, events: "1".into(), expect_rejects: false, force: false };
    store.change(&change, None, "test", "", 0).expect("it can be promoted")
}

/// A variant of the hostile rule.
pub fn hostile(tag: &str) -> Vec<u8> {
    variant(&paths::rule("hostile-rule"), tag)
}

/// The same rule with another digest: with a custom section of this name at its end.
pub fn variant(component: &Path, tag: &str) -> Vec<u8> {
    let mut bytes = std::fs::read(component).expect("the rule is built");
    let name = u8::try_from(tag.len()).ok().filter(|length| *length < 127).expect("a tag is short");
    bytes.extend([0, name + 1, name]);
    bytes.extend(tag.bytes());
    bytes
}

/// What the guard of event version 1 does when it trips.
pub fn trip(releases: &Releases) -> Change {
    let roles = &releases.release["1"].validator;
    let since = roles.guard.as_ref().expect("it was promoted over another").promoted_at.clone();
    Change::Trip { digest: roles.active, events: "1".into(), since }
}

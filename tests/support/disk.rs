//! A disk that is full when a test wants it to be.

use crate::Pipeline;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Room for files that may together have so many bytes. A root user gets a file system of that size; anybody else
/// gets a limit on the size of every file a run writes, which SQLite meets as a failing write.
pub struct SmallDisk {
    directory: TempDir,
    bytes: usize,
    mounted: bool,
}

impl SmallDisk {
    /// A disk of `bytes`.
    pub fn new(bytes: usize) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let mounted = mount(directory.path(), &format!("size={bytes}"));
        Self { directory, bytes, mounted }
    }

    /// Whether only what lies on it meets its end. A limit on every file stops the ledger and the warehouse alike.
    pub fn is_separate(&self) -> bool {
        self.mounted
    }

    /// A path on it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Makes a pipeline's runs meet the limit where there is no file system of our own.
    #[must_use]
    pub fn limit(&self, pipeline: Pipeline) -> Pipeline {
        if self.mounted {
            return pipeline;
        }
        // A write above the limit then fails instead of killing: an ignored signal stays ignored across `exec`.
        pipeline.through(&format!("trap '' XFSZ; ulimit -S -f {}; exec \"$@\"", self.bytes / 1024))
    }

    /// Makes room for a run that waits for it.
    pub fn make_room(&self, run: u32) {
        if self.mounted {
            assert!(mount(self.directory.path(), "remount,size=1g"), "a mounted tmpfs can grow");
        } else {
            let pid = i32::try_from(run).ok().and_then(rustix::process::Pid::from_raw);
            let unlimited = rustix::process::Rlimit { current: None, maximum: None };
            rustix::process::prlimit(pid, rustix::process::Resource::Fsize, unlimited).expect("a soft limit can grow");
        }
    }

    /// Makes it read-only. False where that cannot be done: a root user that may not mount can write anywhere.
    pub fn freeze(&self) -> bool {
        let directory = self.directory.path();
        if self.mounted {
            return mount(directory, "remount,ro");
        }
        Command::new("chmod").args(["-R", "a-w"]).arg(directory).status().expect("chmod can be started");
        std::fs::write(self.path("probe"), "").is_err()
    }

    /// Makes room for later runs of a pipeline.
    #[must_use]
    pub fn emptied(&self, mut pipeline: Pipeline) -> Pipeline {
        if self.mounted {
            assert!(mount(self.directory.path(), "remount,size=1g"), "a mounted tmpfs can grow");
        }
        pipeline.wrapper = None;
        pipeline
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        if self.mounted {
            // A directory that stays mounted cannot be deleted, which the temporary directory does not report.
            Command::new("umount").arg(self.directory.path()).status().ok();
        } else {
            Command::new("chmod").args(["-R", "u+w"]).arg(self.directory.path()).status().ok();
        }
    }
}

fn mount(directory: &Path, options: &str) -> bool {
    let mut command = Command::new("mount");
    command.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(directory);
    command.output().is_ok_and(|output| output.status.success())
}

//! Puts the commit into `--version`.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=../.git/HEAD");
    println!("cargo::rerun-if-changed=../.git/refs/heads");
    let commit = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
    // A build from a source archive has no commit.
    let commit = commit.ok().filter(|output| output.status.success()).map_or_else(
        || "unknown commit".to_owned(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    );
    println!("cargo::rustc-env=PREFLIGHT_COMMIT={commit}");
}

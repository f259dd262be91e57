//! The seed's Python function over the same payloads.

use anyhow::{Context, Result, ensure};
use preflight_tests::paths;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Events a second of the Python function in a bare loop.
pub(crate) fn events_per_second(python: &str, payloads: &Path, time: Duration) -> Result<f64> {
    let output = Command::new(python)
        .arg("-B")
        .arg(paths::root().join("tests/python/offvia_baseline.py"))
        .arg(payloads)
        .args(["--seconds", &time.as_secs_f64().to_string()])
        .output()
        .with_context(|| format!("cannot start {python}"))?;
    ensure!(output.status.success(), "the Python baseline failed: {}", String::from_utf8_lossy(&output.stderr));
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).context("the Python baseline's answer")?;
    answer["events_per_second"].as_f64().context("the Python baseline gave no rate")
}

//! Where the project's parts are. What is not built says how to build it.

use std::path::{Path, PathBuf};

/// The project's root.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are one folder below the root")
}

/// A packed rule: `offvia-booking`, `offvia-booking-v2`, `hostile-rule`.
pub fn rule(name: &str) -> PathBuf {
    built(&root().join("target/rules").join(format!("{name}.wasm")))
}

/// The `preflight` command, beside the running test binary.
pub fn preflight() -> PathBuf {
    let test = std::env::current_exe().expect("a running program has a path");
    let directory = test.parent().expect("it lies in a folder");
    // Tests run from `release/deps`, the benchmark from `release`.
    let profile =
        if directory.ends_with("deps") { directory.parent().expect("deps lies in a folder") } else { directory };
    built(&profile.join("preflight"))
}

/// A directory for what tests share between runs.
pub fn scratch() -> PathBuf {
    root().join("target/tmp")
}

fn built(path: &Path) -> PathBuf {
    assert!(
        path.exists(),
        "{} is missing: `cargo xtask rules` builds it (`cargo xtask test` does that first)",
        path.display()
    );
    path.to_owned()
}

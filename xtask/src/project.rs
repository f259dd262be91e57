//! Where the project is, and where cargo puts what it builds.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The directory for what xtask itself writes: packed rules, the demo's database, bench results. Tests look for rules here, so
/// it stays in the project even when `CARGO_TARGET_DIR` moves cargo's own output elsewhere.
pub(crate) const OUTPUT: &str = "target";

/// The project as seen from its root, which is the current directory once [`Project::enter`] has returned.
pub(crate) struct Project {
    invoked_from: PathBuf,
    cargo_target: PathBuf,
}

impl Project {
    /// Makes the project's root the current directory, so that every path printed can be copied into a shell there.
    pub(crate) fn enter() -> Result<Self> {
        let invoked_from = std::env::current_dir().context("cannot tell the current directory")?;
        // `cargo run` says where the package is now; the path at build time only serves an xtask started by hand.
        let package = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = package.parent().context("xtask is not inside the project")?;
        std::env::set_current_dir(root).with_context(|| format!("cannot enter the project at {}", root.display()))?;
        let cargo_target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
        Ok(Self { invoked_from, cargo_target })
    }

    /// A path that the user wrote, seen from the project's root.
    pub(crate) fn user_path(&self, path: &str) -> PathBuf {
        self.invoked_from.join(path)
    }

    /// The `preflight` binary of the release profile.
    pub(crate) fn host_binary(&self) -> PathBuf {
        self.cargo_target.join("release").join("preflight")
    }

    /// The core module that cargo makes of a rule: of a package's library, or of an example.
    pub(crate) fn rule_module(&self, name: &str, is_library: bool) -> PathBuf {
        let file = format!("{}.wasm", name.replace('-', "_"));
        let directory = self.cargo_target.join(crate::wasm::TARGET).join("rule");
        if is_library { directory.join(file) } else { directory.join("examples").join(file) }
    }

    /// The component that `preflight pack` makes of a rule.
    pub(crate) fn component(name: &str) -> PathBuf {
        Path::new(OUTPUT).join("rules").join(format!("{name}.wasm"))
    }
}

//! Where the standard library for rules comes from.
//!
//! Rules are built for `wasm32-unknown-unknown`, which not every machine has. In this order: the toolchain already has it;
//! rustup fetches it; Debian's second compiler (`rustc-web`) builds it from its own sources (`rust-web-src`).

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::version::Version;
use crate::{SetupError, exec, prerequisites};

/// The target of every rule: no operating system, so no import that a rule must not have can slip in.
pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_PACKAGES: [&str; 2] = ["rustc-web", "rust-web-src"];

/// The way to a rule's module on this machine.
#[derive(Debug)]
pub(crate) enum WasmTarget {
    /// The active toolchain has the target's libraries.
    Installed,
    /// Debian's compiler builds them along with the rule; the active toolchain lends its linker.
    Debian { linker: PathBuf },
}

impl WasmTarget {
    /// Finds the target or installs it. The error says what was tried and what would help.
    pub(crate) fn ensure() -> Result<Self> {
        if installed() {
            return Ok(Self::Installed);
        }
        // Where Debian's compiler is already there, rustup was tried before, and each new try could wait for a network.
        if let Ok(target) = debian() {
            return Ok(target);
        }
        let mut tried = vec!["rustc: the active toolchain has no libraries for it".to_owned()];
        match rustup_add() {
            Ok(()) => return Ok(Self::Installed),
            Err(error) => tried.push(format!("rustup: {error:#}")),
        }
        // Without a linker the packages would be of no use, so that is asked first.
        match linker().and_then(|_| apt_install()).and_then(|()| debian()) {
            Ok(target) => Ok(target),
            Err(error) => {
                tried.push(format!("Debian: {error:#}"));
                Err(SetupError(missing(&tried)).into())
            }
        }
    }

    /// `cargo build` for packages that become modules.
    pub(crate) fn cargo_build(&self) -> Command {
        let mut command = exec::cargo();
        command.args(["build", "--profile", "rule", "--target", TARGET]);
        if let Self::Debian { linker } = self {
            command
                .arg("-Zbuild-std=std,panic_abort")
                .env("RUSTC", DEBIAN_RUSTC)
                .env("RUSTC_BOOTSTRAP", "1")
                .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
        }
        command
    }

    /// `cargo clippy` for the same packages; `None` where the standard library is another compiler's than clippy's.
    pub(crate) fn cargo_clippy(&self) -> Option<Command> {
        match self {
            Self::Installed => {
                let mut command = exec::cargo();
                command.args(["clippy", "--profile", "rule", "--target", TARGET]);
                Some(command)
            }
            Self::Debian { .. } => None,
        }
    }
}

fn installed() -> bool {
    let Some(directory) = exec::probe(Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]))
    else {
        return false;
    };
    // The directory can be there without the library, so look for the library.
    std::fs::read_dir(directory).is_ok_and(|entries| {
        entries.flatten().any(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("libstd-") && Path::new(&*name).extension().is_some_and(|end| end == "rlib")
        })
    })
}

/// Without a toolchain argument rustup takes the one that runs us: the pinned one, or what `+toolchain` asked for.
fn rustup_add() -> Result<()> {
    if exec::probe(Command::new("rustup").arg("--version")).is_none() {
        bail!("not found");
    }
    exec::run(Command::new("rustup").args(["target", "add", TARGET]))?;
    if !installed() {
        bail!("added the target to another toolchain than the one that runs this");
    }
    Ok(())
}

/// Debian's compiler, if it is there, new enough and has its sources.
fn debian() -> Result<WasmTarget> {
    let rustc = || Command::new(DEBIAN_RUSTC);
    let version = exec::probe(rustc().arg("--version"))
        .and_then(|text| Version::find(&text))
        .with_context(|| format!("{DEBIAN_RUSTC} is not there"))?;
    let pin = prerequisites::pinned_rust()?;
    if version < pin {
        bail!("{DEBIAN_RUSTC} is {version}, the project needs {pin} or newer");
    }
    let sysroot = exec::probe(rustc().args(["--print", "sysroot"])).context("no sysroot")?;
    let sources = Path::new(&sysroot).join("lib/rustlib/src/rust/library/std/Cargo.toml");
    if !sources.is_file() {
        bail!("the library sources of {DEBIAN_RUSTC} are not there");
    }
    Ok(WasmTarget::Debian { linker: linker()? })
}

/// Debian's compiler brings no linker for this target; every rustup toolchain has one.
fn linker() -> Result<PathBuf> {
    let sysroot = exec::probe(Command::new("rustc").args(["--print", "sysroot"])).context("no rustc")?;
    let host = exec::probe(Command::new("rustc").args(["--print", "host-tuple"])).context("no host tuple")?;
    let linker = Path::new(&sysroot).join("lib/rustlib").join(host).join("bin/rust-lld");
    if !linker.is_file() {
        bail!("the active toolchain has no rust-lld, which this way needs as linker");
    }
    Ok(linker)
}

fn apt_install() -> Result<()> {
    if exec::probe(Command::new("apt-get").arg("--version")).is_none() {
        bail!("no apt-get");
    }
    if exec::probe(Command::new("id").arg("-u")).as_deref() != Some("0") {
        bail!("apt-get needs root");
    }
    let install = || {
        exec::run(
            Command::new("apt-get")
                .args(["install", "--yes", "--no-install-recommends"])
                .args(DEBIAN_PACKAGES)
                .env("DEBIAN_FRONTEND", "noninteractive"),
        )
    };
    // Package lists that are old or absent are the usual reason for a failure, and refreshing them is slow: only then.
    install().or_else(|_| {
        exec::run(Command::new("apt-get").arg("update"))?;
        install()
    })
}

fn missing(tried: &[String]) -> String {
    let packages = DEBIAN_PACKAGES.join(" ");
    format!(
        "the target {TARGET}, which rules are built for, is missing and could not be installed\n  {}\n\
         Get it in one of these ways, then try again:\n  \
         rustup target add {TARGET}\n  \
         apt-get install --no-install-recommends {packages}    (Debian, as root)",
        tried.join("\n  ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installed_target_needs_no_special_flags() {
        let line = exec::shown(&WasmTarget::Installed.cargo_build());
        assert!(line.ends_with("build --profile rule --target wasm32-unknown-unknown"), "{line}");
    }

    #[test]
    fn debians_compiler_builds_the_standard_library_and_is_not_mixed_with_clippy() {
        let target = WasmTarget::Debian { linker: PathBuf::from("/toolchain/rust-lld") };
        let line = exec::shown(&target.cargo_build());
        for part in ["RUSTC=/usr/bin/rustc", "-Zbuild-std=std,panic_abort", "_LINKER=/toolchain/rust-lld"] {
            assert!(line.contains(part), "{line}");
        }
        assert!(target.cargo_clippy().is_none());
    }

    #[test]
    fn a_missing_target_is_reported_with_what_was_tried_and_what_would_help() {
        let text = missing(&["rustup: not found".to_owned(), "Debian: apt-get needs root".to_owned()]);
        for part in ["rustup: not found", "apt-get needs root", "rustup target add", "rustc-web rust-web-src"] {
            assert!(text.contains(part), "{text}");
        }
    }
}

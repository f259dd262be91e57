//! `cargo xtask rules`: from rule crates to components.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::project::Project;
use crate::wasm::WasmTarget;
use crate::{exec, no_arguments, prerequisites};

/// A rule of this workspace.
pub(crate) struct Rule {
    /// The packed component. The package's name if its library is the rule; else the rule is the package's example of this name.
    name: &'static str,
    /// The package.
    pub(crate) package: &'static str,
    /// The example pipeline that uses it, if one does: its `rules/` gets a copy of the component.
    example: Option<&'static str>,
}

/// Every rule there is. A new rule needs one line here.
pub(crate) const RULES: &[Rule] = &[
    Rule { name: "offvia-booking", package: "offvia-booking", example: Some("examples/offvia") },
    Rule { name: "offvia-booking-v2", package: "offvia-booking-v2", example: Some("examples/offvia") },
    Rule { name: "offvia-booking-upper-case", package: "offvia-booking-builds", example: None },
    Rule { name: "offvia-booking-cents", package: "offvia-booking-builds", example: None },
    Rule { name: "offvia-booking-three-digits", package: "offvia-booking-builds", example: None },
    Rule { name: "offvia-booking-currencies", package: "offvia-booking-builds", example: None },
    Rule { name: "lumen-loom-orders", package: "lumen-loom-orders", example: Some("examples/lumen-loom") },
    Rule { name: "shopflow-orders", package: "shopflow-orders", example: Some("examples/shopflow") },
    Rule { name: "hostile-rule", package: "hostile-rule", example: None },
];

impl Rule {
    fn is_library(&self) -> bool {
        self.name == self.package
    }
}

/// Runs the command.
pub(crate) fn run(project: &Project, arguments: &[String]) -> Result<ExitCode> {
    no_arguments("rules", arguments)?;
    prerequisites::check()?;
    ensure(project)?;
    Ok(ExitCode::SUCCESS)
}

/// Builds the host and every rule, and packs the rules. With nothing to do it takes a second or two.
pub(crate) fn ensure(project: &Project) -> Result<()> {
    build_modules()?;
    build_host(project)?;
    for rule in RULES {
        pack(project, rule).with_context(|| format!("cannot pack the rule {}", rule.name))?;
    }
    Ok(())
}

/// Rules first: they build in seconds, so what is wrong with them is known before the host's minutes begin.
fn build_modules() -> Result<()> {
    let target = WasmTarget::ensure()?;
    let mut libraries = target.cargo_build();
    for rule in RULES.iter().filter(|rule| rule.is_library()) {
        libraries.args(["-p", rule.package]);
    }
    exec::run(&mut libraries)?;
    // By themselves: asked for an example, cargo also builds what the tests of all the packages need.
    let mut examples = target.cargo_build();
    for rule in RULES.iter().filter(|rule| !rule.is_library()) {
        examples.args(["-p", rule.package, "--example", rule.name]);
    }
    exec::run(&mut examples)
}

fn build_host(project: &Project) -> Result<()> {
    if !project.host_binary().exists() {
        eprintln!("The first build of the host compiles wasmtime: several minutes. Later ones take seconds.");
    }
    exec::run(exec::cargo().args(["build", "--release", "-p", "preflight"]))
}

/// Always packs, since packing takes milliseconds and asking whether it is needed could be answered wrongly.
fn pack(project: &Project, rule: &Rule) -> Result<()> {
    let component = Project::component(rule.name);
    create_parent(&component)?;
    let module = project.rule_module(rule.name, rule.is_library());
    exec::run(Command::new(project.host_binary()).arg("pack").arg(module).arg("-o").arg(&component))?;
    if let Some(example) = rule.example {
        let copy = Path::new(example).join("rules").join(format!("{}.wasm", rule.name));
        create_parent(&copy)?;
        install(&component, &copy)?;
    }
    Ok(())
}

/// Copies by rename, and only what differs: a worker may be running on the example's rules right now.
fn install(from: &Path, to: &Path) -> Result<()> {
    let bytes = std::fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    if std::fs::read(to).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let aside = to.with_extension("wasm.new");
    std::fs::write(&aside, bytes).with_context(|| format!("cannot write {}", aside.display()))?;
    std::fs::rename(&aside, to).with_context(|| format!("cannot replace {}", to.display()))
}

/// Makes the directory that a file is about to be written to.
pub(crate) fn create_parent(file: &Path) -> Result<()> {
    let Some(directory) = file.parent() else {
        return Ok(());
    };
    std::fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))
}

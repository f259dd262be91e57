//! `preflight pack`: a core module becomes a component.

use super::{Ended, output};
use crate::digest::Digest;
use crate::rules::{Limits, load, pack as packing};
use anyhow::{Context, anyhow};
use clap::Args;
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(super) struct PackArgs {
    /// The module, built for wasm32-unknown-unknown
    module: PathBuf,
    /// Where the component goes [default: the module's name with .component.wasm]
    #[arg(short, long)]
    output: Option<PathBuf>,
}

pub(super) fn pack(args: &PackArgs) -> Ended {
    let shown = args.module.display();
    let module = match load::read_bounded(&args.module, Limits::default().component) {
        Ok(module) => module,
        Err(error) => return Ended::Refused(anyhow!("{shown}: {error}")),
    };
    let component = match packing::pack(&module) {
        Ok(component) => component,
        Err(error) => return Ended::Refused(anyhow!("{shown}: {error}")),
    };
    let target = args.output.clone().unwrap_or_else(|| args.module.with_extension("component.wasm"));
    if let Err(error) = write(&target, &component) {
        return Ended::Broken(error);
    }
    output::print(&format!("{} ({} bytes, {})\n", target.display(), component.len(), Digest::of(&component)));
    Ended::Done
}

/// Replaces the file whole: a worker never sees half a component.
fn write(target: &Path, component: &[u8]) -> anyhow::Result<()> {
    let directory = target.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let context = || format!("cannot write {}", target.display());
    let mut file = tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .tempfile_in(directory)
        .with_context(context)?;
    file.write_all(component).with_context(context)?;
    file.as_file().sync_all().with_context(context)?;
    file.persist(target).with_context(context)?;
    Ok(())
}

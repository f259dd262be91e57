//! `preflight pack`: a core module becomes a component.

use super::{Ended, output};
use crate::digest::Digest;
use crate::files;
use crate::rules::{Limits, load, pack as packing};
use anyhow::anyhow;
use clap::Args;
use std::path::PathBuf;

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
    if let Err(error) = files::replace(&target, &component) {
        return Ended::Broken(anyhow!("cannot write {}: {error}", target.display()));
    }
    output::print(&format!("{} ({} bytes, {})\n", target.display(), component.len(), Digest::of(&component)));
    Ended::Done
}

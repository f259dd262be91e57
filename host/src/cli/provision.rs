//! `preflight provision`: what a pipeline needs on Google Cloud.

mod report;

use super::{Ended, PipelineArgs, output};
use crate::config::{Config, ConfigError, Layers, SourceConfig};
use crate::files;
use crate::pipeline;
use crate::provision::apply::{Done, apply};
use crate::provision::look::Google;
use crate::provision::shards::{self, Overlay};
use crate::provision::{Options, Wanted, compare, script, wanted};
use anyhow::anyhow;
use clap::Args;
use std::io::ErrorKind;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(super) struct ProvisionArgs {
    /// The pipeline file
    file: PathBuf,
    #[command(flatten)]
    pipeline: PipelineArgs,
    /// Also make the optional columns, and add them, and those that the rules have gained, to tables that are there
    #[arg(long)]
    extended: bool,
    /// Ask nobody and change nothing: print the commands and the roles that each identity needs
    #[arg(long)]
    dry_run: bool,
    /// Make N filtered subscriptions (at most 9), and one for the rest, each with an overlay of the pipeline file
    #[arg(long, value_name = "N")]
    shards: Option<NonZeroU32>,
    /// Where the overlays are written [default: beside the pipeline file]
    #[arg(long, value_name = "DIRECTORY", requires = "shards")]
    out: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn provision(args: &ProvisionArgs) -> Ended {
    let (config, layers) = match args.pipeline.load(&args.file) {
        Ok(loaded) => loaded,
        Err(error) => return Ended::Refused(error.into()),
    };
    let (wanted, overlays) = match plan(args, &config, &layers) {
        Ok(planned) => planned,
        Err(error) => return Ended::Refused(error.into()),
    };
    if args.dry_run {
        if args.json {
            output::json(&report::planned(&config, &wanted, &overlays));
        } else {
            output::print(&script::script(&config.name, &wanted, config.provision.worker.as_deref()));
            output::print(&report::overlays_to_come(&overlays));
        }
        return Ended::Done;
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Ended::Broken(anyhow!("cannot start: {error}")),
    };
    let (done, notes) = match runtime.block_on(make(&config, &wanted, args.extended)) {
        Ok(made) => made,
        Err(error) => return Ended::Broken(anyhow!("{error}; nothing was changed")),
    };
    let written: Vec<(Overlay, Written)> = overlays.into_iter().map(write).collect();
    if args.json {
        output::json(&report::made(&config, &done, &notes, &written));
    } else {
        output::print(&report::text(&config, &done, &notes, &written));
    }
    let not_written = written.iter().any(|(_, written)| matches!(written, Written::Failed(_)));
    let failed = not_written || done.iter().any(|done| done.result.is_err());
    let blocked = done.iter().any(|done| done.step.differences.iter().any(|difference| difference.blocks));
    if failed || blocked { Ended::Failed } else { Ended::Done }
}

/// What is wanted, and the overlays of the shards.
fn plan(args: &ProvisionArgs, config: &Config, layers: &Layers) -> Result<(Wanted, Vec<Overlay>), ConfigError> {
    let planned = || {
        let rules = pipeline::rules(config)?;
        wanted(config, &rules, Options { extended: args.extended, shards: args.shards })
    };
    let wanted = planned().map_err(|error| layers.locate(error))?;
    let overlays = match (args.shards, &config.source) {
        (Some(count), SourceConfig::Pubsub(source)) => {
            let beside = args.file.parent().unwrap_or(Path::new(""));
            let directory = args.out.as_deref().unwrap_or(beside);
            let shards = shards::plan(&source.subscription, &config.name, count).unwrap_or_default();
            shards::overlays(config, &args.file, directory, &shards)
        }
        _ => Vec::new(),
    };
    Ok((wanted, overlays))
}

async fn make(config: &Config, wanted: &Wanted, extended: bool) -> Result<(Vec<Done>, Vec<String>), String> {
    let google = Google::new(config).await?;
    let found = google.look(wanted).await?;
    let steps = compare(wanted, &found, extended);
    let notes = wanted.notes.iter().cloned().chain(google.emulator_notes(wanted, &steps)).collect();
    Ok((apply(&google, steps).await, notes))
}

/// What became of an overlay.
enum Written {
    Made,
    Kept,
    /// One that says something else is there, and stays: somebody may have added to it.
    Differs,
    Failed(String),
}

/// Writes an overlay, unless a file of that name is there.
fn write(overlay: Overlay) -> (Overlay, Written) {
    let written = match std::fs::read_to_string(&overlay.path) {
        Ok(there) if there == overlay.text => Written::Kept,
        Ok(_) => Written::Differs,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let directory = overlay.path.parent().filter(|directory| !directory.as_os_str().is_empty());
            let made = directory.map_or(Ok(()), files::ensure_directory);
            match made.and_then(|()| files::replace(&overlay.path, overlay.text.as_bytes())) {
                Ok(()) => Written::Made,
                Err(error) => Written::Failed(format!("cannot write it: {error}")),
            }
        }
        Err(error) => Written::Failed(format!("cannot read what is there: {error}")),
    };
    (overlay, written)
}

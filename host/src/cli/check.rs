//! `preflight check`: all refusals, no event read.

use super::quarantine::not_replayable;
use super::{Ended, PipelineArgs, output};
use crate::config::Config;
use crate::pipeline::{Prepared, SourceFound, prepare};
use crate::rules::Served;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// The pipeline file
    file: PathBuf,
    #[command(flatten)]
    pipeline: PipelineArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn check(args: &CheckArgs) -> Ended {
    let checked = args.pipeline.load(&args.file).and_then(|(config, layers)| {
        let prepared = prepare(&config).map_err(|error| layers.locate(error))?;
        Ok((prepared, config))
    });
    match checked {
        Ok((prepared, config)) => {
            passed(args, &config, &prepared);
            Ended::Done
        }
        Err(error) if args.json => {
            let problems: Vec<_> =
                error.0.iter().map(|p| json!({ "origin": p.origin, "key": p.key, "problem": p.what })).collect();
            output::json(&json!({ "ok": false, "problems": problems }));
            Ended::Refused(error.into())
        }
        Err(error) => Ended::Refused(error.into()),
    }
}

fn passed(args: &CheckArgs, config: &Config, prepared: &Prepared) {
    let rules = prepared.rules.served();
    let not_replayable = not_replayable(config);
    let subscription = match &prepared.source {
        SourceFound::Subscription(found) => Some(found),
        SourceFound::Bytes | SourceFound::Away(_) => None,
    };
    if args.json {
        let rules: Vec<_> = rules
            .map(|(version, Served { rule, .. })| {
                json!({ "event_version": version, "rule": rule.label, "digest": rule.digest })
            })
            .collect();
        let tables: Vec<_> = prepared.new_tables.iter().map(|table| &table.name).collect();
        output::json(&json!({
            "ok": true,
            "pipeline": config.name,
            "rules": rules,
            "subscription": subscription,
            "tables_to_make": tables,
            "not_replayable": not_replayable,
        }));
        return;
    }
    let mut text = format!("{}: every check passed\n", config.name);
    for (version, Served { rule, .. }) in rules {
        text.push_str(&format!("  event version {version}: {} ({})\n", rule.label, rule.digest));
    }
    if let Some(found) = subscription {
        text.push_str(&format!("  subscription {found}\n"));
        for note in found.notes() {
            text.push_str(&format!("note: {note}\n"));
        }
    }
    for table in &prepared.new_tables {
        let statement = config.warehouse.create_statement(table).expect("tables to be made are checked with the plan");
        text.push_str(&format!("a run will make this table:\n{statement};\n"));
    }
    if let Some(note) = not_replayable {
        text.push_str(&format!("note: {note}\n"));
    }
    output::print(&text);
}

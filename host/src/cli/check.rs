//! `preflight check`: all refusals, no event read.

mod aggregates;

use super::quarantine::not_replayable;
use super::{Ended, PipelineArgs, output};
use crate::config::{Config, Write};
use crate::ledger::KeyNeed;
use crate::pipeline::dedup::{DedupNeed, Needs, needs};
use crate::pipeline::{Prepared, SourceFound, prepare};
use crate::rules::Served;
use crate::warehouse::{self, NewView};
use clap::Args;
use serde_json::{Value, json};
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
            "aggregates": aggregates::json(config),
            "tables_to_make": tables,
            "tables_to_replace": replaced(config),
            "not_replayable": not_replayable,
            "keys": keys_json(&needs(config)),
        }));
        return;
    }
    let mut text = format!("{}: every check passed\n", config.name);
    for (version, Served { rule, .. }) in rules {
        text.push_str(&format!("  event version {version}: {} ({})\n", rule.label, rule.digest));
    }
    text.push_str(&aggregates::text(config));
    if let Some(found) = subscription {
        text.push_str(&format!("  subscription {found}\n"));
        for note in found.notes() {
            text.push_str(&format!("note: {note}\n"));
        }
    }
    for table in &prepared.new_tables {
        let statement =
            warehouse::create_statement(&config.warehouse, table).expect("tables to be made are checked with the plan");
        text.push_str(&format!("a run will make this table:\n{statement};\n"));
    }
    let is_new = |view: &&NewView| prepared.new_tables.iter().any(|table| table.name == view.table);
    for view in prepared.plan.views().filter(is_new) {
        let statement = warehouse::create_view_statement(&config.warehouse, view)
            .expect("views to be made are checked with the plan");
        text.push_str(&format!("a run will make this view:\n{statement};\n"));
    }
    let replaced = replaced(config);
    if !replaced.is_empty() {
        text.push_str(&format!("a run will replace all rows of: {}\n", replaced.join(", ")));
    }
    text.push_str(&keys_text(config, &needs(config)));
    if let Some(note) = not_replayable {
        text.push_str(&format!("note: {note}\n"));
    }
    output::print(&text);
}

/// The tables whose rows a run replaces.
fn replaced(config: &Config) -> Vec<String> {
    let replaced = config.tiers().filter(|tier| tier.write == Write::Replace);
    replaced.map(|tier| warehouse::table_name(&config.warehouse, &tier.table)).collect()
}

/// What recognising events takes, for a person.
fn keys_text(config: &Config, needs: &Needs) -> String {
    let rate = format!(
        "at {} events/s ({})",
        needs.rate,
        match (needs.is_assumed, needs.dedup) {
            (false, _) => "dedup.expected_rate",
            (true, Some(_)) => "assumed: say dedup.expected_rate",
            (true, None) => "assumed",
        }
    );
    let need = |KeyNeed { keys, disk, memory }: KeyNeed| {
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        format!("{rate} up to {keys} keys: {} MiB of disk, {} MiB of memory\n", mib(disk), mib(memory))
    };
    let mut text = String::new();
    if let Some(redelivery) = needs.redelivery {
        text.push_str(&format!("messages that are delivered again are known by {}", need(redelivery)));
    }
    let by = config.dedup.as_ref().map_or_else(String::new, |dedup| dedup.by.to_string());
    match needs.dedup {
        Some(DedupNeed::Horizon(horizon)) => text.push_str(&format!("duplicates are known by {by}, {}", need(horizon))),
        Some(DedupNeed::Run(disk, memory)) => text.push_str(&format!(
            "duplicates are known by {by}, until the source is read to its end: {disk} bytes of disk and {memory} of \
             memory for each key\n"
        )),
        None => {}
    }
    text
}

/// The same for a program.
fn keys_json(needs: &Needs) -> Value {
    let need =
        |KeyNeed { keys, disk, memory }: KeyNeed| json!({ "keys": keys, "disk_bytes": disk, "memory_bytes": memory });
    let dedup = needs.dedup.map(|dedup| match dedup {
        DedupNeed::Horizon(horizon) => need(horizon),
        DedupNeed::Run(disk, memory) => json!({ "disk_bytes_per_key": disk, "memory_bytes_per_key": memory }),
    });
    json!({
        "events_per_second": needs.rate,
        "assumed": needs.is_assumed,
        "redelivery": needs.redelivery.map(need),
        "dedup": dedup,
    })
}

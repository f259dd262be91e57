//! `preflight diff`: what would change if another rule judged the same events.

mod text;

use super::{Ended, PipelineArgs, component, output, rules};
use crate::config::{
    BatchConfig, DEFAULT_MAX_PAYLOAD, Format, RulesFrom, SourceConfig, default_cache, default_threads,
};
use crate::diff::{self, ColumnChange, Input, Pair, Report, Selection, columns, input::Batches};
use crate::releases::{FindError, RuleStore};
use crate::rules::cache::CodeCache;
use crate::rules::judge::Isolation;
use crate::rules::load::{self, LoadError};
use crate::rules::set::{By, Pointer, Routing};
use crate::rules::{JudgePool, Limits, Rule, Sandbox};
use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 the rules say the same of every event, 3 they do not, \
                        1 a failure at run time, or no event was judged, 2 wrong usage or configuration.")]
pub(super) struct DiffArgs {
    /// The component that judges now: a file, or the digest of one in the rule store, or its beginning
    old: String,
    /// The component that would judge: likewise
    new: String,
    /// The rule store [default: the pipeline's, else as for `preflight rules`]
    #[arg(long, value_name = "DIRECTORY")]
    store: Option<PathBuf>,
    /// The events: a file, `-` for standard input, or with --table a SQLite database
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// A quarantine or bronze table of the database
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// How events stand in the file: lines, envelope, csv or json-array [default: the pipeline's, else lines]
    #[arg(long, conflicts_with = "table")]
    format: Option<Format>,
    /// Judge only events of this version [default: of the versions that both serve]
    #[arg(long, value_name = "VERSION", requires = "routing")]
    events: Option<String>,
    /// The attribute that holds an event's version
    #[arg(long, value_name = "NAME", groups = ["routing", "by"], conflicts_with = "event_version_field")]
    event_version_attribute: Option<String>,
    /// The field of the payload that holds an event's version, as a JSON pointer
    #[arg(long, value_name = "POINTER", value_parser = Pointer::parse, groups = ["routing", "by"])]
    event_version_field: Option<Pointer>,
    /// The version of an event that does not say
    #[arg(long, value_name = "VERSION", requires = "by")]
    default: Option<String>,
    /// Take routing, limits, format, threads and rule store from a pipeline file
    #[arg(long, value_name = "FILE", group = "routing", conflicts_with = "by")]
    pipeline: Option<PathBuf>,
    #[command(flatten)]
    layers: PipelineArgs,
    /// Show up to so many events of each kind of difference
    #[arg(long, value_name = "N", default_value_t = 3)]
    samples: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What a pipeline file says, or would say by default.
struct Settings {
    store: Option<PathBuf>,
    routing: Option<Routing>,
    format: Format,
    limits: Limits,
    max_payload: usize,
    batch: BatchConfig,
    threads: NonZeroUsize,
    isolation: Isolation,
    cache: PathBuf,
}

/// What is compared, on what.
struct Prepared {
    pool: JudgePool,
    pair: Pair,
    selection: Option<Arc<Selection>>,
    batches: Batches,
}

pub(super) fn diff(args: &DiffArgs) -> Ended {
    let Prepared { pool, pair, selection, batches } = match prepare(args) {
        Ok(prepared) => prepared,
        Err(ended) => return ended,
    };
    let report = match diff::run(&pool, &pair, batches, selection.as_ref(), args.samples) {
        Ok(report) => report,
        Err(error) => return Ended::Broken(error.into()),
    };
    let columns = columns::changes(&pair.old.manifest, &pair.new.manifest);
    if args.json {
        output::json(&as_json(&pair, &columns, &report));
    } else {
        output::print(&text::as_text(&pair, &columns, &report));
    }
    if report.judged == 0 {
        // Nobody shall take this for two rules that say the same.
        return Ended::Broken(anyhow!(text::nothing_judged(&report.skipped)));
    }
    if report.different == 0 { Ended::Done } else { Ended::Differs }
}

fn prepare(args: &DiffArgs) -> Result<Prepared, Ended> {
    let settings = settings(args).map_err(Ended::Refused)?;
    let sandbox = Arc::new(component::sandbox().map_err(Ended::Broken)?);
    let cache = CodeCache::new(&settings.cache);
    let store = rules::store(args.store.as_deref().or(settings.store.as_deref()));
    let rule = |name: &str| load_rule(&sandbox, &settings.limits, &cache, &store, name).map(Arc::new);
    let pair = Pair { old: rule(&args.old)?, new: rule(&args.new)? };
    let selection = selection(args, &pair, settings.routing).map_err(Ended::Refused)?.map(Arc::new);
    let input = input(args, settings.format).map_err(Ended::Refused)?;
    let batches = input.open(settings.batch, settings.max_payload).map_err(|error| {
        if error.is_of_run_time() { Ended::Broken(error.into()) } else { Ended::Refused(error.into()) }
    })?;
    let pool = JudgePool::start(&sandbox, &settings.limits, settings.isolation, settings.threads)
        .context("cannot start the threads that judge")
        .map_err(Ended::Broken)?;
    Ok(Prepared { pool, pair, selection, batches })
}

fn settings(args: &DiffArgs) -> anyhow::Result<Settings> {
    let Some(file) = &args.pipeline else {
        if !args.layers.overlays.is_empty() || !args.layers.settings.is_empty() {
            bail!("--with and --set change a pipeline file: say which with --pipeline");
        }
        let by = match (&args.event_version_attribute, &args.event_version_field) {
            (Some(name), _) => Some(By::Attribute(name.clone())),
            (_, Some(pointer)) => Some(By::Field(pointer.clone())),
            (None, None) => None,
        };
        return Ok(Settings {
            store: None,
            routing: by.map(|by| Routing { by, default: args.default.clone() }),
            format: args.format.clone().unwrap_or(Format::Lines),
            limits: Limits::default(),
            max_payload: DEFAULT_MAX_PAYLOAD,
            batch: BatchConfig::default(),
            threads: default_threads(),
            isolation: Isolation::Batch,
            cache: default_cache(),
        });
    };
    let (config, _) = args.layers.load(file)?;
    Ok(Settings {
        store: match config.rules.from {
            RulesFrom::Store(store) => Some(store),
            RulesFrom::Components(_) => None,
        },
        format: format(args.format.as_ref(), config.source.format()),
        routing: Some(config.rules.routing),
        limits: config.limits,
        max_payload: config.max_payload,
        batch: config.batch,
        threads: config.threads,
        isolation: config.rules.isolation,
        cache: config.rules.cache,
    })
}

/// The format that is asked for, else the pipeline's; where both are CSV, as the pipeline has it.
fn format(asked: Option<&Format>, pipeline: &Format) -> Format {
    match (asked, pipeline) {
        (Some(Format::Csv(_)), Format::Csv(_)) | (None, _) => pipeline.clone(),
        (Some(asked), _) => asked.clone(),
    }
}

/// A component file, or one of the store by the beginning of its digest.
fn load_rule(
    sandbox: &Sandbox,
    limits: &Limits,
    cache: &CodeCache,
    store: &RuleStore,
    name: &str,
) -> Result<Rule, Ended> {
    let loaded = if is_digest(name) {
        let digest = store.find(name).map_err(|error| {
            let of_run_time = matches!(error, FindError::Store(_));
            let error = anyhow!(error).context(format!("{name} in rule store {}", store.directory().display()));
            if of_run_time { Ended::Broken(error) } else { Ended::Refused(error) }
        })?;
        let bytes = store.component(&digest, limits.component).map_err(|error| Ended::Broken(error.into()))?;
        load::bytes(sandbox, limits, cache, &bytes)
    } else {
        load::file(sandbox, limits, cache, Path::new(name))
    };
    loaded.map_err(|error| match error {
        LoadError::Sandbox(_) => Ended::Broken(anyhow!("{name}: {error}")),
        _ => Ended::Refused(anyhow!("{name}: {error}")),
    })
}

/// Whether a name looks like a digest or the beginning of one. A file that does too can be named with its folder.
fn is_digest(name: &str) -> bool {
    let hex = name.strip_prefix("sha256:").unwrap_or(name);
    hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The events to judge; none if all of them are.
fn selection(args: &DiffArgs, pair: &Pair, routing: Option<Routing>) -> anyhow::Result<Option<Selection>> {
    let Some(routing) = routing else { return Ok(None) };
    if let Some(version) = &args.events {
        return Ok(Some(Selection::of(version.clone(), routing)));
    }
    let (old, new) = (&pair.old.manifest, &pair.new.manifest);
    match Selection::served_by_both(old, new, routing) {
        None => bail!(
            "no event version is served by both rules ({} serves {}, {} serves {}): say with --events which events to judge",
            pair.old.label,
            old.event_versions.join(", "),
            pair.new.label,
            new.event_versions.join(", ")
        ),
        served => Ok(served),
    }
}

fn input(args: &DiffArgs, format: Format) -> anyhow::Result<Input> {
    let (path, stdin) = (args.input.clone(), args.input == Path::new("-"));
    Ok(match &args.table {
        Some(_) if stdin => bail!("--table is read from a SQLite database: name its file with --input"),
        Some(table) => Input::Table { path, table: table.clone() },
        None if stdin => Input::Source(SourceConfig::Stdin { format }),
        None => Input::Source(SourceConfig::File { path, format }),
    })
}

fn as_json(pair: &Pair, columns: &[ColumnChange], report: &Report) -> Value {
    let rule = |rule: &Rule| json!({ "rule": rule.label, "digest": rule.digest, "event_versions": rule.manifest.event_versions });
    let mut object = serde_json::to_value(report).expect("reports are plain data");
    object["old"] = rule(&pair.old);
    object["new"] = rule(&pair.new);
    object["columns"] = json!(columns);
    object
}

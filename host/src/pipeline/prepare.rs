//! Everything that can be refused is refused here, before the first event is read.

use super::plan::{Plan, plan};
use crate::config::{Config, ConfigError, Problem, SourceConfig, WarehouseConfig, key_path};
use crate::rules::cache::CodeCache;
use crate::rules::{LoadError, Rule, RuleSet, Sandbox, load};
use crate::warehouse::sqlite::table_name;
use crate::warehouse::{LiveTable, NewTable, Sqlite, TableColumn, WarehouseError};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

/// A pipeline that passed every check.
pub struct Prepared {
    /// The sandbox the rules were loaded into.
    pub sandbox: Arc<Sandbox>,
    /// The rules.
    pub rules: Arc<RuleSet>,
    /// Where values go.
    pub plan: Plan,
    /// Tables to be made first.
    pub new_tables: Vec<NewTable>,
}

/// Loads the rules and holds them against the live tables. Changes nothing but the code cache.
pub fn prepare(config: &Config) -> Result<Prepared, ConfigError> {
    prepare_for(config, inspect(config))
}

/// What a run of this pipeline would refuse, as far as it can be told now: a database that another program holds is
/// waited for by the run itself.
pub fn refusals(config: &Config) -> Option<ConfigError> {
    match inspect(config) {
        Err(error) if error.retryable => None,
        live => prepare_for(config, live).err(),
    }
}

/// The live tables, or why they cannot be read.
pub(super) fn inspect(config: &Config) -> Result<Option<Vec<LiveTable>>, WarehouseError> {
    let WarehouseConfig::Sqlite { path, .. } = &config.warehouse;
    Sqlite::inspect(path)
}

/// The same for live tables that were read already.
pub(super) fn prepare_for(
    config: &Config,
    live: Result<Option<Vec<LiveTable>>, WarehouseError>,
) -> Result<Prepared, ConfigError> {
    source_exists(config)?;
    prepare_without_source(config, live)
}

/// The same for who reads nothing from the source.
pub(super) fn prepare_without_source(
    config: &Config,
    live: Result<Option<Vec<LiveTable>>, WarehouseError>,
) -> Result<Prepared, ConfigError> {
    let sandbox = Sandbox::new()
        .map_err(|error| Problem::new("", format!("the sandbox cannot start on this machine: {error:#}")))?;
    let sandbox = Arc::new(sandbox);
    let rules = load_rules(config, &sandbox)?;
    let live = live.map_err(|error| Problem::new("warehouse.sqlite.path", error.to_string()))?;
    let tables: HashMap<String, Vec<TableColumn>> =
        live.into_iter().flatten().map(|(name, columns)| (name.to_ascii_lowercase(), columns)).collect();
    let find = |name: &str| tables.get(&table_name(name).to_ascii_lowercase()).cloned();
    let (plan, new_tables) = plan(config, &rules, find).map_err(ConfigError)?;
    Ok(Prepared { sandbox, rules: Arc::new(rules), plan, new_tables })
}

/// A file that cannot be opened is told before anything else is done.
fn source_exists(config: &Config) -> Result<(), ConfigError> {
    let SourceConfig::File { path, .. } = &config.source else { return Ok(()) };
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => {
            Err(Problem::new("source.file.path", format!("{} is a directory", path.display())).into())
        }
        Ok(_) => Ok(()),
        Err(error) => Err(Problem::new("source.file.path", format!("{}: {error}", path.display())).into()),
    }
}

/// Loads every component of the pipeline file. Event versions that name the same file share the rule.
fn load_rules(config: &Config, sandbox: &Arc<Sandbox>) -> Result<RuleSet, ConfigError> {
    let cache = CodeCache::new(&config.rules.cache);
    let mut by_path: BTreeMap<&Path, Result<Arc<Rule>, String>> = BTreeMap::new();
    let mut rules = BTreeMap::new();
    let mut problems = Vec::new();
    for (version, path) in &config.rules.components {
        let loaded = by_path.entry(path).or_insert_with(|| {
            let loaded = load::file(sandbox, &config.limits, &cache, path);
            loaded.map(Arc::new).map_err(|error: LoadError| error.to_string())
        });
        let key = key_path(&["rules", "components", version]);
        match loaded {
            Err(error) => problems.push(Problem::new(key, format!("{}: {error}", path.display()))),
            Ok(rule) if !rule.manifest.event_versions.contains(version) => {
                let what = format!(
                    "{}: rule {} judges event versions {}, not {version:?}",
                    path.display(),
                    rule.label,
                    rule.manifest.event_versions.join(", ")
                );
                problems.push(Problem::new(key, what));
            }
            Ok(rule) => {
                rules.insert(version.clone(), Arc::clone(rule));
            }
        }
    }
    if problems.is_empty() { Ok(RuleSet::new(config.rules.routing.clone(), rules)) } else { Err(ConfigError(problems)) }
}

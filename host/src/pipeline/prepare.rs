//! Everything that can be refused is refused here, before the first event is read.

use super::beside::differences;
use super::dedup::Dedup;
use super::loading;
use super::plan::{Plan, plan};
use crate::config::{Config, ConfigError, Problem, PubsubConfig, RulesFrom, SourceConfig};
use crate::reject_files::RejectFiles;
use crate::releases::{Releases, RuleStore};
use crate::rules::{RuleSet, Sandbox};
use crate::source;
use crate::source::pubsub::{self, Unfit};
use crate::warehouse::{self, LiveTables, NewTable, WarehouseError};
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
    /// The source, as far as it was looked at.
    pub source: SourceFound,
}

/// What is known of the live tables.
pub(super) type Live = Result<LiveTables, WarehouseError>;

/// Loads the rules and holds them against the live tables. Changes nothing but the code cache.
pub fn prepare(config: &Config) -> Result<Prepared, ConfigError> {
    let source = source_exists(config)?;
    // A run waits for it; who checks wants to know.
    if let (SourceFound::Away(why), SourceConfig::Pubsub(subscription)) = (&source, &config.source) {
        return Err(subscription_problem(subscription, why));
    }
    let prepared = prepare_for(config, &inspect(config), current_releases(config)?.as_ref())?;
    Ok(Prepared { source, ..prepared })
}

/// What a run of this pipeline would refuse, as far as it can be told now: a database that another program holds is
/// waited for by the run itself.
pub fn refusals(config: &Config) -> Option<ConfigError> {
    match inspect(config) {
        Err(error) if error.retryable => None,
        live => {
            let prepared = source_exists(config)
                .and_then(|_| current_releases(config))
                .and_then(|releases| prepare_for(config, &live, releases.as_ref()));
            prepared.err()
        }
    }
}

/// The live tables, or why they cannot be read.
pub(super) fn inspect(config: &Config) -> Live {
    let mut tables: Vec<&str> = config.tiers().map(|tier| tier.table.as_str()).collect();
    if let RulesFrom::Store(_) = config.rules.from {
        tables.push(&config.rules.shadow.table);
    }
    warehouse::inspect(&config.warehouse, &tables)
}

/// The releases of the rule store, if the rules are from one.
pub(super) fn current_releases(config: &Config) -> Result<Option<Releases>, ConfigError> {
    let RulesFrom::Store(store) = &config.rules.from else { return Ok(None) };
    match RuleStore::at(store).releases() {
        Ok(releases) => Ok(Some(releases)),
        Err(error) => Err(Problem::new("rules.store", error.to_string()).into()),
    }
}

/// The same for live tables that were read already, and for these releases of the store. The source is not looked for: a
/// replay needs none.
pub(super) fn prepare_for(config: &Config, live: &Live, releases: Option<&Releases>) -> Result<Prepared, ConfigError> {
    Dedup::refuse_absurd(config)?;
    let (sandbox, rules) = load_rules(config, releases)?;
    let (plan, new_tables) = plan_for(config, &rules, live)?;
    Ok(Prepared { sandbox, rules: Arc::new(rules), plan, new_tables, source: SourceFound::Bytes })
}

/// The rules that the pipeline file names, or that its store releases now. No table is looked at.
pub fn rules(config: &Config) -> Result<RuleSet, ConfigError> {
    load(config).map(|(_, rules)| rules)
}

/// The same, with the sandbox they were loaded into.
pub fn load(config: &Config) -> Result<(Arc<Sandbox>, RuleSet), ConfigError> {
    load_rules(config, current_releases(config)?.as_ref())
}

fn load_rules(config: &Config, releases: Option<&Releases>) -> Result<(Arc<Sandbox>, RuleSet), ConfigError> {
    let sandbox = Sandbox::new()
        .map_err(|error| Problem::new("", format!("the sandbox cannot start on this machine: {error:#}")))?;
    let sandbox = Arc::new(sandbox);
    let rules = match (&config.rules.from, releases) {
        (RulesFrom::Components(components), _) => loading::components(config, &sandbox, components)?,
        (RulesFrom::Store(store), releases) => {
            let nothing = Releases::default();
            loading::releases(config, &sandbox, &RuleStore::at(store), releases.unwrap_or(&nothing), None)?
        }
    };
    Ok((sandbox, rules))
}

/// Holds rules against the live tables.
pub(super) fn plan_for(config: &Config, rules: &RuleSet, live: &Live) -> Result<(Plan, Vec<NewTable>), ConfigError> {
    let live = live.as_ref().map_err(|error| Problem::new(config.warehouse.key(), error.to_string()))?;
    if let RulesFrom::Store(_) = config.rules.from
        && let Some(columns) = live.get(&config.rules.shadow.table)
        && let Some(problem) = differences::unfit(&config.rules.shadow.table, columns)
    {
        return Err(problem.into());
    }
    plan(config, rules, |name| live.get(name).cloned()).map_err(ConfigError)
}

/// What is known of the source before it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceFound {
    /// A file, or standard input.
    Bytes,
    /// A subscription.
    Subscription(pubsub::Found),
    /// A subscription that does not answer now, and why.
    Away(String),
}

/// A file that cannot be opened, a subscription that is not there or cannot be pulled: that is told before anything else
/// is done.
pub(super) fn source_exists(config: &Config) -> Result<SourceFound, ConfigError> {
    match &config.source {
        SourceConfig::File { path, format } => {
            let looked = source::look_for(path, format, config.max_payload);
            looked.map_err(|error| Problem::new("source.file.path", error.to_string()))?;
            rejects_lie_elsewhere(config, path)?;
            Ok(SourceFound::Bytes)
        }
        SourceConfig::Stdin { .. } => Ok(SourceFound::Bytes),
        SourceConfig::Pubsub(subscription) => subscription_exists(subscription),
    }
}

/// Refuses to put rejects in the place of what is read.
fn rejects_lie_elsewhere(config: &Config, path: &Path) -> Result<(), ConfigError> {
    let Some(files) = &config.quarantine.files else { return Ok(()) };
    let files = RejectFiles::new(files, "");
    let read = source::files(path).unwrap_or_default();
    let Some(replaced) = read.iter().find(|path| files.replaces(path)) else { return Ok(()) };
    let what = format!("{} is read, and would be replaced by rejects: give them another path", replaced.display());
    Err(Problem::new("quarantine.files.path", what).into())
}

/// Asks Pub/Sub, on a thread of its own: a caller that runs on a runtime may not wait on another.
fn subscription_exists(config: &PubsubConfig) -> Result<SourceFound, ConfigError> {
    let ask = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Unfit::Away(format!("cannot ask for it: {error}")))?;
        runtime.block_on(pubsub::look(config))
    };
    let asked = std::thread::scope(|scope| scope.spawn(ask).join());
    match asked.unwrap_or_else(|_| Err(Unfit::Away("asking for it failed; the panic is in the log".to_owned()))) {
        Ok(found) => Ok(SourceFound::Subscription(found)),
        Err(Unfit::Away(why)) => Ok(SourceFound::Away(why)),
        Err(unfit) => Err(subscription_problem(config, &unfit.to_string())),
    }
}

fn subscription_problem(config: &PubsubConfig, what: &str) -> ConfigError {
    Problem::new("source.pubsub.subscription", format!("{}: {what}", config.subscription)).into()
}

//! From the file as written to [`Config`]: every value checked, every problem reported.

use super::layers::{Layers, join};
use super::problem::{ConfigError, Problem};
use super::raw::{self, RawConfig, RawEventVersion, RawSource, RawTier, RawWarehouse};
use super::{
    BatchConfig, Config, Create, Format, RulesConfig, SilverConfig, SourceConfig, TierConfig, WarehouseConfig, units,
};
use crate::rules::judge::Isolation;
use crate::rules::set::{By, Pointer, Routing};
use crate::rules::{Limits, manifest::is_column_name};
use crate::warehouse::HostColumn;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

impl Config {
    /// Reads a pipeline file with overlays and `key.path=value` settings.
    pub fn load(file: &Path, overlays: &[PathBuf], settings: &[String]) -> Result<Self, ConfigError> {
        Self::from_layers(&Layers::load(file, overlays, settings)?)
    }

    /// Validates merged layers.
    pub fn from_layers(layers: &Layers) -> Result<Self, ConfigError> {
        let raw = raw::parse(layers)?;
        let mut check = Check::default();
        let config = check.config(raw);
        match config {
            Some(config) if check.problems.is_empty() => Ok(config),
            _ => {
                for problem in &mut check.problems {
                    problem.origin = layers.origin(&problem.key).map(str::to_owned);
                }
                Err(ConfigError(check.problems))
            }
        }
    }
}

/// More threads than this help nobody, and starting them ends the process on most machines.
const MAX_THREADS: usize = 1_024;

/// Collects problems while the parts are checked.
#[derive(Default)]
struct Check {
    problems: Vec<Problem>,
}

impl Check {
    fn refuse<T>(&mut self, key: &str, what: impl Into<String>) -> Option<T> {
        self.problems.push(Problem::new(key, what));
        None
    }

    fn config(&mut self, raw: RawConfig) -> Option<Config> {
        let name = self.name(raw.name);
        let source = self.source(raw.source);
        let max_payload = self.size("limits.payload", raw.limits.payload.as_deref(), 10 << 20);
        let max_row = self.size("limits.row", raw.limits.row.as_deref(), 8 << 20);
        let limits = self.limits(&raw.limits);
        let cache = raw.rules.cache.clone();
        let rules = self.rules(raw.rules);
        let batch = BatchConfig {
            max_events: self.positive("batch.max_events", raw.batch.max_events, 4_096),
            max_bytes: self.size("batch.max_bytes", raw.batch.max_bytes.as_deref(), 8 << 20),
            max_age: self.duration("batch.max_age", raw.batch.max_age.as_deref(), Duration::from_millis(500)),
        };
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let threads = self.positive("run.threads", raw.run.threads, cores);
        if threads > MAX_THREADS {
            self.refuse::<()>("run.threads", format!("must be at most {MAX_THREADS}"));
        }
        let warehouse = self.warehouse(raw.warehouse);
        let bronze = raw.bronze.map(|tier| self.tier("bronze", tier));
        let quarantine = self.tier("quarantine", raw.quarantine);
        let silver_tier = self.tier("silver", RawTier { table: raw.silver.table, create: raw.silver.create });
        if let Some(write) = raw.silver.write.filter(|write| write != "append") {
            self.refuse::<()>("silver.write", format!("{write:?} is not served; this version writes \"append\""));
        }
        let partition_by = raw.silver.partition_by.and_then(|column| self.column("silver.partition_by", column));
        let host_columns = self.host_columns(raw.silver.host_columns);
        self.distinct(bronze.as_ref().and_then(Option::as_ref), silver_tier.as_ref(), quarantine.as_ref());
        for (key, path) in [("ledger.path", &raw.ledger.path), ("rules.cache", &cache)] {
            if let Some(path) = path {
                self.path(key, path);
            }
        }
        let name = name?;
        let warehouse = warehouse?;
        let ledger = raw.ledger.path.map_or_else(|| default_ledger(&warehouse, &name), PathBuf::from);
        Some(Config {
            ledger,
            name,
            source: source?,
            rules: rules?,
            limits,
            max_payload,
            max_row,
            batch,
            threads: NonZeroUsize::new(threads)?,
            warehouse,
            bronze: match bronze {
                Some(tier) => Some(tier?),
                None => None,
            },
            silver: SilverConfig { tier: silver_tier?, partition_by, host_columns },
            quarantine: quarantine?,
        })
    }

    fn name(&mut self, name: String) -> Option<String> {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.len() <= 63 && name.chars().all(fits) && name.starts_with(|c: char| c != '-') {
            return Some(name);
        }
        self.refuse("name", format!("{name:?} is not a pipeline name: use a-z, 0-9 and -, at most 63"))
    }

    fn source(&mut self, raw: RawSource) -> Option<SourceConfig> {
        match (raw.file, raw.stdin, raw.pubsub) {
            (Some(file), None, None) => {
                self.path("source.file.path", &file.path);
                let format = self.format("source.file.format", file.format.as_deref());
                Some(SourceConfig::File { path: file.path.into(), format: format? })
            }
            (None, Some(stdin), None) => {
                let format = self.format("source.stdin.format", stdin.format.as_deref());
                Some(SourceConfig::Stdin { format: format? })
            }
            (None, None, Some(pubsub)) => self.refuse(
                "source.pubsub",
                format!(
                    "this version reads files and standard input, not {}: lay an overlay with [source.file] over the \
                     pipeline (--with local.toml)",
                    pubsub.subscription
                ),
            ),
            _ => self.refuse("source", "give exactly one of source.file, source.stdin, source.pubsub"),
        }
    }

    fn format(&mut self, key: &str, format: Option<&str>) -> Option<Format> {
        match format {
            None | Some("lines") => Some(Format::Lines),
            Some("envelope") => Some(Format::Envelope),
            Some(other) => self.refuse(key, format!("{other:?} is not a format: use \"lines\" or \"envelope\"")),
        }
    }

    fn rules(&mut self, raw: raw::RawRules) -> Option<RulesConfig> {
        if raw.components.is_empty() {
            self.refuse::<()>("rules.components", "name at least one component: \"1\" = \"rules/my-rule.wasm\"");
        }
        let mut components = BTreeMap::new();
        for (version, path) in raw.components {
            if version.is_empty() {
                self.refuse::<()>(
                    &join(&["rules".into(), "components".into(), version]),
                    "an event version is not empty",
                );
            } else {
                components.insert(version, PathBuf::from(path));
            }
        }
        let isolation = match raw.isolation.as_deref() {
            None | Some("batch") => Isolation::Batch,
            Some("event") => Isolation::Event,
            Some(other) => {
                self.refuse("rules.isolation", format!("{other:?} is not an isolation: use \"batch\" or \"event\""))?
            }
        };
        let routing = self.routing(raw.event_version, &components)?;
        Some(RulesConfig { routing, components, cache: raw.cache.map_or_else(default_cache, PathBuf::from), isolation })
    }

    /// Without `event_version` every event goes to the only component.
    fn routing(&mut self, raw: Option<RawEventVersion>, components: &BTreeMap<String, PathBuf>) -> Option<Routing> {
        let key = "rules.event_version";
        let Some(raw) = raw else {
            return match components.len() {
                0 => None,
                1 => Some(Routing { by: By::Default, default: components.keys().next().cloned() }),
                _ => self.refuse(key, "with several components, say where an event's version is: { attribute = \"…\" } or { field = \"/…\" }"),
            };
        };
        let by = match (raw.attribute, raw.field) {
            (Some(attribute), None) if !attribute.is_empty() => By::Attribute(attribute),
            (None, Some(field)) => match Pointer::parse(&field) {
                Ok(pointer) => By::Field(pointer),
                Err(what) => return self.refuse("rules.event_version.field", what),
            },
            (None, None) if raw.default.is_some() => By::Default,
            _ => return self.refuse(key, "give exactly one of attribute and field, with or without default"),
        };
        if let Some(default) = raw.default.as_ref().filter(|version| !components.contains_key(*version)) {
            return self
                .refuse("rules.event_version.default", format!("no component serves event version {default:?}"));
        }
        Some(Routing { by, default: raw.default })
    }

    fn limits(&mut self, raw: &raw::RawLimits) -> Limits {
        let default = Limits::default();
        let limits = Limits {
            fuel_base: raw.fuel_base.unwrap_or(default.fuel_base),
            fuel_per_byte: raw.fuel_per_byte.unwrap_or(default.fuel_per_byte),
            memory: self.size("limits.memory", raw.memory.as_deref(), default.memory),
            table_elements: raw.table_elements.unwrap_or(default.table_elements),
            wall_clock: self.duration("limits.wall_clock", raw.wall_clock.as_deref(), default.wall_clock),
            result: self.size("limits.result", raw.result.as_deref(), default.result),
            log: self.size("limits.log", raw.log.as_deref(), default.log),
            events_per_instance: raw.events_per_instance.unwrap_or(default.events_per_instance),
            component: self.size("limits.component", raw.component.as_deref(), 64 << 20) as u64,
        };
        if limits.events_per_instance == 0 {
            self.refuse::<()>("limits.events_per_instance", "must be at least 1");
        }
        if limits.fuel_base == 0 {
            self.refuse::<()>("limits.fuel_base", "must be at least 1");
        }
        limits
    }

    fn warehouse(&mut self, raw: RawWarehouse) -> Option<WarehouseConfig> {
        match (raw.sqlite, raw.bigquery) {
            (Some(sqlite), None) => {
                self.path("warehouse.sqlite.path", &sqlite.path);
                let key = "warehouse.sqlite.give_up_after";
                let give_up_after = self.duration(key, sqlite.give_up_after.as_deref(), Duration::from_mins(5));
                Some(WarehouseConfig::Sqlite { path: sqlite.path.into(), give_up_after })
            }
            (None, Some(bigquery)) => self.refuse(
                "warehouse.bigquery",
                format!(
                    "this version writes to SQLite, not to project {}: lay an overlay with [warehouse.sqlite] over the \
                     pipeline (--with local.toml)",
                    bigquery.project
                ),
            ),
            _ => self.refuse("warehouse", "give exactly one of warehouse.sqlite, warehouse.bigquery"),
        }
    }

    fn tier(&mut self, tier: &str, raw: RawTier) -> Option<TierConfig> {
        let create = match raw.create.as_deref() {
            None | Some("never") => Create::Never,
            Some("if_needed") => Create::IfNeeded,
            Some(other) => {
                let key = format!("{tier}.create");
                self.refuse(&key, format!("{other:?} is not known: use \"never\" or \"if_needed\""))?
            }
        };
        let last = raw.table.rsplit('.').next().unwrap_or_default();
        let reserved = last.to_ascii_lowercase();
        if raw.table.split('.').any(str::is_empty) || raw.table.split('.').count() > 3 {
            let key = format!("{tier}.table");
            return self.refuse(&key, format!("{:?} is not a table: write [[project.]dataset.]table", raw.table));
        }
        if reserved.starts_with("preflight_") || reserved.starts_with("sqlite_") {
            return self.refuse(&format!("{tier}.table"), "names that start with preflight_ or sqlite_ are taken");
        }
        Some(TierConfig { table: raw.table, create })
    }

    /// Two tiers in one table would mix their rows.
    fn distinct(&mut self, bronze: Option<&TierConfig>, silver: Option<&TierConfig>, quarantine: Option<&TierConfig>) {
        let mut seen: Vec<String> = Vec::new();
        for (tier, config) in [("bronze", bronze), ("silver", silver), ("quarantine", quarantine)] {
            let Some(config) = config else { continue };
            let name = config.table.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
            if seen.contains(&name) {
                self.refuse::<()>(&format!("{tier}.table"), format!("{name:?} is another tier's table already"));
            }
            seen.push(name);
        }
    }

    fn column(&mut self, key: &str, column: String) -> Option<String> {
        if is_column_name(&column) {
            Some(column)
        } else {
            self.refuse(key, format!("{column:?} is not a column name"))
        }
    }

    fn host_columns(&mut self, raw: BTreeMap<String, String>) -> BTreeMap<String, HostColumn> {
        let mut columns = BTreeMap::new();
        for (column, value) in raw {
            let key = join(&["silver".into(), "host_columns".into(), column.clone()]);
            match HostColumn::SILVER.iter().find(|(name, _)| *name == value) {
                Some((_, host)) if is_column_name(&column) => {
                    columns.insert(column, *host);
                }
                Some(_) => {
                    self.refuse::<()>(&key, format!("{column:?} is not a column name"));
                }
                None => {
                    let known: Vec<&str> = HostColumn::SILVER.iter().map(|(name, _)| *name).collect();
                    self.refuse::<()>(&key, format!("the host knows no {value:?}; it knows {}", known.join(", ")));
                }
            }
        }
        columns
    }

    fn positive(&mut self, key: &str, value: Option<usize>, default: usize) -> usize {
        match value {
            Some(0) => {
                self.refuse::<()>(key, "must be at least 1");
                default
            }
            value => value.unwrap_or(default),
        }
    }

    fn size(&mut self, key: &str, text: Option<&str>, default: usize) -> usize {
        match self.unit(key, text, default, units::size) {
            // A micro-batch of nothing would never hold an event: the run would end, well, without having read any.
            0 => {
                self.refuse::<()>(key, "must be at least 1 B");
                default
            }
            size => size,
        }
    }

    /// SQLite takes an empty path for a database that is gone at the end of the run.
    fn path(&mut self, key: &str, path: &str) {
        if path.is_empty() {
            self.refuse::<()>(key, "a path is not empty");
        }
    }

    fn duration(&mut self, key: &str, text: Option<&str>, default: Duration) -> Duration {
        self.unit(key, text, default, units::duration)
    }

    fn unit<T>(&mut self, key: &str, text: Option<&str>, default: T, parse: fn(&str) -> Result<T, String>) -> T {
        match text.map(parse) {
            None => default,
            Some(Ok(value)) => value,
            Some(Err(what)) => {
                self.refuse::<()>(key, what);
                default
            }
        }
    }
}

/// Beside the SQLite file, named for the pipeline: several pipelines may share a warehouse.
fn default_ledger(warehouse: &WarehouseConfig, name: &str) -> PathBuf {
    match warehouse {
        WarehouseConfig::Sqlite { path, .. } => {
            let mut file = path.clone().into_os_string();
            file.push(format!(".{name}.ledger"));
            file.into()
        }
    }
}

/// The user's cache directory for compiled code, by the XDG base directory specification.
pub fn default_cache() -> PathBuf {
    let xdg = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    xdg.or_else(home).unwrap_or_else(std::env::temp_dir).join("preflight").join("code")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
name = "offvia-bookings"
[source.file]
path = "events.ndjson"
[rules]
event_version = { attribute = "event_version", default = "1" }
[rules.components]
"1" = "one.wasm"
"2" = "two.wasm"
[warehouse.sqlite]
path = "d.db"
[bronze]
table = "offvia_bronze.raw_bookings"
[silver]
table = "offvia_silver.fact_bookings"
[silver.host_columns]
ingestion_timestamp = "received_time"
[quarantine]
table = "offvia_quarantine.poisoned_events"
"#;

    fn load(sets: &[&str]) -> Result<Config, String> {
        let mut layers = Layers::default();
        layers.lay_file(GOOD, "p.toml", Path::new("base")).unwrap();
        for set in sets {
            layers.set(set).unwrap();
        }
        Config::from_layers(&layers).map_err(|error| error.to_string())
    }

    #[test]
    fn defaults_fill_what_is_left_out() {
        let config = load(&[]).unwrap();
        assert_eq!(config.ledger, Path::new("base/d.db.offvia-bookings.ledger"));
        assert_eq!(config.limits, Limits::default());
        assert_eq!(config.rules.components["2"], Path::new("base/two.wasm"));
        assert_eq!(config.silver.host_columns["ingestion_timestamp"], HostColumn::ReceivedTime);
        assert_eq!(config.rules.routing.by, By::Attribute("event_version".into()));
    }

    #[test]
    fn each_wrong_value_is_refused_with_its_key_and_line() {
        let refused = |set: &str, key: &str, what: &str| {
            let error = load(&[set]).unwrap_err();
            assert!(error.contains(key) && error.contains(what), "{set}: {error}");
        };
        refused("name=Bad Name", "--set: name:", "a-z, 0-9");
        refused("source.file.format=xml", "source.file.format", "\"lines\" or \"envelope\"");
        refused("source.pubsub.subscription=s", "source.pubsub", "--with local.toml");
        refused("warehouse.bigquery.project=p", "warehouse.bigquery", "--with local.toml");
        refused("rules.isolation=none", "rules.isolation", "\"batch\" or \"event\"");
        refused("rules.event_version.default=9", "rules.event_version.default", "no component serves");
        refused("rules.event_version.field=/v", "rules.event_version", "exactly one of");
        refused("limits.memory=64", "limits.memory", "unit");
        refused("limits.wall_clock=fast", "limits.wall_clock", "unit");
        refused("limits.events_per_instance=0", "limits.events_per_instance", "at least 1");
        refused("limits.fuel_base=0", "limits.fuel_base", "at least 1");
        refused("batch.max_events=0", "batch.max_events", "at least 1");
        refused("run.threads=0", "run.threads", "at least 1");
        refused("run.threads=200000", "run.threads", "at most 1024");
        refused("run.threads=-1", "run.threads", "expected a whole number");
        refused("batch.max_bytes=0 B", "batch.max_bytes", "at least 1 B");
        refused("limits.payload=0 kB", "limits.payload", "at least 1 B");
        refused("bronze=1", "--set: bronze", "expected a table");
        for key in ["source.file.path", "warehouse.sqlite.path", "ledger.path", "rules.cache"] {
            refused(&format!("{key}="), &format!("--set: {key}: "), "not empty");
        }
        refused("silver.write=replace", "silver.write", "append");
        refused("silver.create=maybe", "silver.create", "if_needed");
        refused("silver.table=a..b", "silver.table", "dataset");
        refused("silver.table=preflight_streams", "silver.table", "taken");
        refused("silver.table=x.raw_bookings", "silver.table", "another tier's table");
        refused("silver.partition_by=a-b", "silver.partition_by", "column name");
        refused("silver.host_columns.x=now", "silver.host_columns.x", "received_time");
        refused("rules.components.\"\"=x", "rules.components", "not empty");
    }

    #[test]
    fn several_problems_are_reported_at_once() {
        let error = load(&["name=Bad", "limits.memory=64", "silver.create=maybe"]).unwrap_err();
        assert_eq!(error.lines().count(), 3, "{error}");
    }

    #[test]
    fn one_component_needs_no_event_version() {
        let text = GOOD.replace("event_version = { attribute = \"event_version\", default = \"1\" }", "");
        let one = text.replace("\"2\" = \"two.wasm\"", "");
        let mut layers = Layers::default();
        layers.lay_file(&one, "p.toml", Path::new("")).unwrap();
        let routing = Config::from_layers(&layers).unwrap().rules.routing;
        assert_eq!(routing, Routing { by: By::Default, default: Some("1".into()) });
        let mut layers = Layers::default();
        layers.lay_file(&text, "p.toml", Path::new("")).unwrap();
        assert!(Config::from_layers(&layers).unwrap_err().to_string().contains("several components"));
    }
}

//! From the file as written to [`Config`]: every value checked, every problem reported.

mod admin;
mod aggregates;
mod check;
mod dedup;
mod google;
mod provision;
mod replace;
mod rules;
mod source;
mod tables;
#[cfg(test)]
mod tests;
mod watermark;
mod window;

use super::layers::Layers;
use super::problem::ConfigError;
use super::raw::{self, RawConfig, RawSilver, RawTier, RawWarehouse};
use super::{BatchConfig, Config, DEFAULT_MAX_PAYLOAD, SilverConfig, TierConfig, WarehouseConfig, default_threads};
use crate::rules::Limits;
use crate::rules::metering::TICK;
use check::Check;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tables::{Target, beside};

impl Config {
    /// Validates merged layers.
    pub fn from_layers(layers: &Layers) -> Result<Self, ConfigError> {
        let raw = raw::parse(layers)?;
        let mut check = Check::default();
        let config = check.config(raw);
        match config {
            Some(config) if check.problems.is_empty() => Ok(config),
            _ => Err(layers.locate(ConfigError(check.problems))),
        }
    }
}

/// More threads than this help nobody, and starting them ends the process on most machines.
const MAX_THREADS: usize = 1_024;
/// A micro-batch is held in memory and committed as a whole.
const MAX_EVENTS: usize = 1_000_000;
/// Windows that are open at the same time unless the pipeline file says otherwise.
const OPEN_WINDOWS: u64 = 1_000_000;
/// Time is looked at no more often than that.
const MIN_WALL_CLOCK: Duration = TICK;

impl Check {
    fn config(&mut self, mut raw: RawConfig) -> Option<Config> {
        let name = self.name(raw.name);
        let source = self.source(raw.source);
        let max_payload = self.bounded_size("limits.payload", raw.limits.payload.as_deref(), DEFAULT_MAX_PAYLOAD);
        let max_open_windows = self.open_windows(raw.limits.open_windows);
        let max_row = self.max_row(raw.limits.row.as_deref(), raw.warehouse.bigquery.is_some());
        let limits = self.limits(&raw.limits);
        let cache = raw.rules.cache.clone();
        let shadow_named = raw.rules.shadow.table.is_some();
        let mut rules = self.rules(raw.rules);
        let batch = self.batch(&raw.batch, raw.warehouse.bigquery.as_ref());
        let threads = self.positive("run.threads", raw.run.threads, default_threads().get());
        if threads > MAX_THREADS {
            self.refuse::<()>("run.threads", format!("must be at most {MAX_THREADS}"));
        }
        let warehouse = self.warehouse(raw.warehouse);
        let dedup = raw.dedup.and_then(|dedup| self.dedup(dedup));
        let watermark = self.watermark(&raw.watermark, source.as_ref());
        let windowed = !raw.aggregates.is_empty();
        let aggregates = self.aggregates(raw.aggregates);
        self.one_worker(source.as_ref(), dedup.is_some(), windowed);
        self.horizon_of_windows(source.as_ref(), dedup.as_ref(), &aggregates, watermark.out_of_orderness);
        let drain_timeout =
            self.duration("run.drain_timeout", raw.run.drain_timeout.as_deref(), Duration::from_secs(30));
        let admin = raw.admin.and_then(|admin| self.admin(&admin));
        let bronze = raw.bronze.map(|tier| self.tier("bronze", tier));
        let quarantine = self.quarantine(raw.quarantine);
        let max_rejects = raw.run.max_rejects.and_then(|bound| self.max_rejects(&bound, source.as_ref()));
        if raw.late_data.is_none() && windowed {
            let what =
                "events that are too late for a window have a table of their own: give [late_data] table = \"…\"";
            self.refuse::<()>("aggregates", what);
        }
        let late_data = raw.late_data.map(|tier| self.late_data(tier));
        let host_columns = self.host_columns(std::mem::take(&mut raw.silver.host_columns));
        let count_by = raw.silver.count_by.take();
        let silver_tier = self.silver(raw.silver);
        if let (Some(WarehouseConfig::Bigquery(_)), Some(rules), Some(silver), false) =
            (&warehouse, &mut rules, &silver_tier, shadow_named)
        {
            rules.shadow.table = beside(&silver.table, &rules.shadow.table);
        }
        let tiers = [
            ("bronze", bronze.as_ref().and_then(Option::as_ref)),
            ("silver", silver_tier.as_ref()),
            ("quarantine", quarantine.as_ref().and_then(|quarantine| quarantine.table.as_ref())),
            ("late_data", late_data.as_ref().and_then(Option::as_ref)),
        ];
        let differences = rules.as_ref().map(|rules| rules.shadow.table.as_str());
        let targets = Target::all(tiers, &aggregates, differences);
        // The table of differences is silver's neighbour where none is named.
        self.datasets(warehouse.as_ref(), &targets[..targets.len() - usize::from(!shadow_named && rules.is_some())]);
        self.distinct(warehouse.as_ref(), &targets, &aggregates);
        for (key, path) in [("ledger.path", &raw.ledger.path), ("rules.cache", &cache)] {
            if let Some(path) = path {
                self.path(key, path);
            }
        }
        self.replacing(source.as_ref(), tiers, quarantine.as_ref(), windowed);
        let provision = self.provision(raw.provision, source.as_ref(), warehouse.as_ref(), &targets, &aggregates);
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
            dedup,
            drain_timeout,
            admin,
            bronze: match bronze {
                Some(tier) => Some(tier?),
                None => None,
            },
            silver: SilverConfig { tier: silver_tier?, host_columns, count_by },
            quarantine: quarantine?,
            max_rejects,
            watermark,
            aggregates,
            late_data: match late_data {
                Some(tier) => Some(tier?),
                None => None,
            },
            max_open_windows,
            provision: provision?,
        })
    }

    fn open_windows(&mut self, given: Option<u64>) -> u64 {
        match given {
            Some(0) => self.refuse("limits.open_windows", "must be at least 1").unwrap_or(OPEN_WINDOWS),
            given => given.unwrap_or(OPEN_WINDOWS),
        }
    }

    fn silver(&mut self, raw: RawSilver) -> Option<TierConfig> {
        let tier = RawTier {
            table: raw.table,
            create: raw.create,
            write: raw.write,
            partition_by: raw.partition_by,
            cluster_by: raw.cluster_by,
            description: raw.description,
        };
        self.tier("silver", tier)
    }

    fn name(&mut self, name: String) -> Option<String> {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.len() <= 63 && name.chars().all(fits) && name.starts_with(|c: char| c != '-') {
            return Some(name);
        }
        self.refuse("name", format!("{name:?} is not a pipeline name: use a-z, 0-9 and -, at most 63"))
    }

    fn batch(&mut self, raw: &raw::RawBatch, bigquery: Option<&raw::RawBigquery>) -> BatchConfig {
        let default = BatchConfig::default();
        let max_age = self.max_age(raw, bigquery);
        let max_events = self.positive("batch.max_events", raw.max_events, default.max_events);
        let max_bytes = self.bounded_size("batch.max_bytes", raw.max_bytes.as_deref(), default.max_bytes);
        if max_events > MAX_EVENTS {
            self.refuse::<()>("batch.max_events", format!("must be at most {MAX_EVENTS}"));
        }
        BatchConfig { max_events, max_bytes, max_age }
    }

    fn limits(&mut self, raw: &raw::RawLimits) -> Limits {
        let default = Limits::default();
        let limits = Limits {
            fuel_base: raw.fuel_base.unwrap_or(default.fuel_base),
            fuel_per_byte: raw.fuel_per_byte.unwrap_or(default.fuel_per_byte),
            memory: self.size("limits.memory", raw.memory.as_deref(), default.memory),
            table_elements: raw.table_elements.unwrap_or(default.table_elements),
            wall_clock: self.duration("limits.wall_clock", raw.wall_clock.as_deref(), default.wall_clock),
            result: self.bounded_size("limits.result", raw.result.as_deref(), default.result),
            log: self.size("limits.log", raw.log.as_deref(), default.log),
            events_per_instance: raw.events_per_instance.unwrap_or(default.events_per_instance),
            component: self.size("limits.component", raw.component.as_deref(), 64 << 20) as u64,
        };
        if limits.events_per_instance == 0 {
            self.refuse::<()>("limits.events_per_instance", "must be at least 1");
        }
        if limits.wall_clock < MIN_WALL_CLOCK {
            self.refuse::<()>("limits.wall_clock", format!("must be at least {} ms", MIN_WALL_CLOCK.as_millis()));
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
            (None, Some(bigquery)) => Some(WarehouseConfig::Bigquery(self.bigquery(bigquery)?)),
            _ => self.refuse("warehouse", "give exactly one of warehouse.sqlite, warehouse.bigquery"),
        }
    }
}

/// Beside the SQLite file, named for the pipeline: several pipelines may share a warehouse. Of BigQuery in the working
/// directory.
fn default_ledger(warehouse: &WarehouseConfig, name: &str) -> PathBuf {
    match warehouse {
        WarehouseConfig::Sqlite { path, .. } => {
            let mut file = path.clone().into_os_string();
            file.push(format!(".{name}.ledger"));
            file.into()
        }
        WarehouseConfig::Bigquery(_) => Path::new(".preflight").join(name),
    }
}

/// The user's cache directory for compiled code, by the XDG base directory specification.
pub fn default_cache() -> PathBuf {
    let xdg = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    xdg.or_else(home).unwrap_or_else(std::env::temp_dir).join("preflight").join("code")
}

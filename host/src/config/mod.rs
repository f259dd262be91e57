//! The pipeline file: read in layers, parsed once into [`Config`], refused whole if anything in it is wrong.
//!
//! `layers` lays overlays and `--set` over the file and remembers where each key came from; `raw` is the file as
//! written, unknown keys refused; `validate` turns it into types that need no further checks.

mod aggregates;
mod dedup;
mod google;
mod layers;
mod max_rejects;
mod problem;
mod provision;
mod quarantine;
mod raw;
mod source;
pub(crate) mod units;
mod validate;

pub use aggregates::{AggregateConfig, Follows, MeasureConfig, PANE_COLUMNS, WatermarkConfig, WriteMode};
pub use dedup::{DedupBy, DedupConfig, OnConflict};
pub use google::{BigqueryConfig, PubsubConfig};
pub use layers::{Layers, key_path};
pub use max_rejects::{Counted, MaxRejects};
pub use problem::{ConfigError, Problem};
pub use provision::{Backoff, BronzeSubscription, DeadLetter, ProvisionConfig, PubsubProvision, SubscriptionSettings};
pub use quarantine::{QuarantineConfig, RejectFilesConfig};
pub use source::{CsvOptions, Format, SourceConfig};
pub use validate::default_cache;

use crate::rules::guard::GuardLimits;
use crate::rules::set::{By, Routing};
use crate::rules::{Limits, judge::Isolation};
use crate::warehouse::HostColumn;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

/// A pipeline, validated. Paths are absolute or relative to the working directory.
#[derive(Debug, Clone)]
pub struct Config {
    /// The pipeline's name: `[a-z0-9][a-z0-9-]*`.
    pub name: String,
    /// Where events come from.
    pub source: SourceConfig,
    /// Who judges them.
    pub rules: RulesConfig,
    /// What a guest may use.
    pub limits: Limits,
    /// A payload above this is quarantined unjudged, bytes.
    pub max_payload: usize,
    /// A row above this is not sent, bytes as encoded.
    pub max_row: usize,
    /// When a micro-batch is full.
    pub batch: BatchConfig,
    /// Threads that run rules.
    pub threads: NonZeroUsize,
    /// Where rows go.
    pub warehouse: WarehouseConfig,
    /// The ledger's directory.
    pub ledger: PathBuf,
    /// What is done about events that a producer sent twice; none without `[dedup]`.
    pub dedup: Option<DedupConfig>,
    /// How long what was taken may take to be finished after the worker was asked to stop.
    pub drain_timeout: Duration,
    /// The admin endpoint, if there is one.
    pub admin: Option<AdminConfig>,
    /// Raw events, if they are written here.
    pub bronze: Option<TierConfig>,
    /// Accepted rows.
    pub silver: SilverConfig,
    /// Rejected events.
    pub quarantine: QuarantineConfig,
    /// How many events may be rejected.
    pub max_rejects: Option<MaxRejects>,
    /// How the watermark moves.
    pub watermark: WatermarkConfig,
    /// Values that are measured over windows of event time, by name.
    pub aggregates: Vec<AggregateConfig>,
    /// Events that came too late for a window; there whenever there are aggregates.
    pub late_data: Option<TierConfig>,
    /// Windows that are open at the same time, of all aggregates together; at least 1.
    pub max_open_windows: u64,
    /// What `preflight provision` makes beside the tables.
    pub provision: ProvisionConfig,
}

impl Config {
    /// The tables it writes to.
    pub fn tiers(&self) -> impl Iterator<Item = &TierConfig> {
        let late = self.late_data.as_ref().filter(|_| !self.aggregates.is_empty());
        let aggregates = self.aggregates.iter().map(|aggregate| &aggregate.tier);
        let judged = [self.bronze.as_ref(), Some(&self.silver.tier), self.quarantine.table.as_ref()];
        judged.into_iter().flatten().chain(late).chain(aggregates)
    }

    /// Whether a run replaces the rows of silver; only then may it replace those of other tables.
    pub fn replaces(&self) -> bool {
        self.silver.tier.write == Write::Replace
    }
}

/// Rules and routing.
#[derive(Debug, Clone, PartialEq)]
pub struct RulesConfig {
    /// How an event's version is told.
    pub routing: Routing,
    /// Where the components are.
    pub from: RulesFrom,
    /// Where compiled code is kept.
    pub cache: PathBuf,
    /// How long instances live.
    pub isolation: Isolation,
    /// What a canary's share of the events is chosen by; by default the message id.
    pub canary_by: By,
    /// When a promotion or a canary is taken back.
    pub guard: GuardLimits,
    /// What becomes of differences between rules that judge the same events.
    pub shadow: ShadowConfig,
}

impl RulesConfig {
    /// The key that says which rule serves an event version.
    pub fn key(&self, event_version: &str) -> String {
        match self.from {
            RulesFrom::Components(_) => key_path(&["rules", "components", event_version]),
            RulesFrom::Store(_) => key_path(&["rules", "store"]),
        }
    }
}

/// Where the components are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RulesFrom {
    /// A file per event version, fixed for the run.
    Components(BTreeMap<String, PathBuf>),
    /// A rule store, whose releases are followed while the pipeline runs.
    Store(PathBuf),
}

/// What becomes of differences between rules that judge the same events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShadowConfig {
    /// The table they are written to; made when the first is written.
    pub table: String,
    /// Rows kept of a pair of components, 0 for none.
    pub keep: u64,
}

/// When a micro-batch is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchConfig {
    /// Events.
    pub max_events: usize,
    /// Bytes in memory.
    pub max_bytes: usize,
    /// Age of its oldest event.
    pub max_age: Duration,
}

impl Default for BatchConfig {
    fn default() -> Self {
        Self { max_events: 4_096, max_bytes: 8 << 20, max_age: Duration::from_millis(500) }
    }
}

/// A payload above this is quarantined unjudged unless the pipeline file says otherwise, bytes.
pub const DEFAULT_MAX_PAYLOAD: usize = 10 << 20;

/// Threads that run rules unless the pipeline file says otherwise: one for each core.
pub fn default_threads() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Where rows go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WarehouseConfig {
    /// A SQLite file.
    Sqlite {
        /// Its path.
        path: PathBuf,
        /// How long retryable failures are retried before the run gives up.
        give_up_after: Duration,
    },
    /// BigQuery.
    Bigquery(BigqueryConfig),
}

impl WarehouseConfig {
    /// How long retryable failures are retried before the run gives up.
    pub const fn give_up_after(&self) -> Duration {
        match self {
            Self::Sqlite { give_up_after, .. } => *give_up_after,
            Self::Bigquery(config) => config.give_up_after,
        }
    }

    /// The key that problems with it as a whole are told of.
    pub const fn key(&self) -> &'static str {
        match self {
            Self::Sqlite { .. } => "warehouse.sqlite.path",
            Self::Bigquery(_) => "warehouse.bigquery",
        }
    }
}

/// The admin endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdminConfig {
    /// Where it listens; port 0 is any free one.
    pub listen: SocketAddr,
}

/// Whether a missing table is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Create {
    /// Never: a missing table is refused.
    Never,
    /// If it is missing.
    IfNeeded,
}

/// What a run does to the rows that a table has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Write {
    /// They stay, new rows come on top of them.
    #[default]
    Append,
    /// At the end of the source new rows take their place.
    Replace,
}

/// A target table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TierConfig {
    /// Its name, `[[project.]dataset.]table`.
    pub table: String,
    /// Whether it is made if missing.
    pub create: Create,
    /// What becomes of the rows that it has.
    pub write: Write,
    /// The TIMESTAMP or DATE column it is partitioned by. Values of silver's must lie between 10 years ago and a year ahead.
    pub partition_by: Option<String>,
    /// The columns its rows are sorted by where the warehouse sorts them, at most four.
    pub cluster_by: Vec<String>,
    /// What a table that is made says of itself.
    pub description: Option<String>,
}

/// The table of accepted rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SilverConfig {
    /// The table.
    pub tier: TierConfig,
    /// Columns the host fills.
    pub host_columns: BTreeMap<String, HostColumn>,
    /// The column by whose values the report counts rows.
    pub count_by: Option<String>,
}

#[cfg(test)]
impl Config {
    /// A pipeline file that is good.
    pub(crate) fn of_text(text: &str) -> Self {
        let mut layers = Layers::default();
        layers.lay_file(text, "pipeline.toml", std::path::Path::new("")).expect("it is TOML");
        Self::from_layers(&layers).unwrap_or_else(|error| panic!("{error}"))
    }

    /// A pipeline with these aggregates, one window a minute each.
    pub(crate) fn with_aggregates(names: &[&str]) -> Self {
        let mut text = r#"
            name = "p"
            source.file.path = "in"
            rules.components = { "1" = "one.wasm" }
            warehouse.sqlite.path = "p.db"
            silver.table = "silver"
            quarantine.table = "quarantine"
        "#
        .to_owned();
        for name in names {
            text.push_str(&format!("aggregates.{name} = {{ table = \"gold_{name}\", window = {{ fixed = \"1 m\" }}, measures = {{ n = \"count\" }} }}\n"));
        }
        if !names.is_empty() {
            text.push_str(
                "late_data.table = \"late_events\"\nlimits.open_windows = 500\nwatermark.out_of_orderness = \"30 s\"\n",
            );
        }
        Self::of_text(&text)
    }
}

//! The pipeline file as written.

mod aggregates;
mod parse;

pub(super) use aggregates::{RawAggregate, RawMeasure, RawWatermark, RawWindow};
pub(super) use parse::parse;

use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawConfig {
    pub name: String,
    pub source: RawSource,
    pub rules: RawRules,
    #[serde(default)]
    pub limits: RawLimits,
    #[serde(default)]
    pub batch: RawBatch,
    #[serde(default)]
    pub run: RawRun,
    pub warehouse: RawWarehouse,
    #[serde(default)]
    pub ledger: RawLedger,
    pub dedup: Option<RawDedup>,
    pub admin: Option<RawAdmin>,
    pub bronze: Option<RawTier>,
    pub silver: RawSilver,
    pub quarantine: RawQuarantine,
    pub late_data: Option<RawTier>,
    #[serde(default)]
    pub watermark: RawWatermark,
    #[serde(default)]
    pub aggregates: BTreeMap<String, RawAggregate>,
    #[serde(default)]
    pub provision: RawProvision,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawSource {
    pub file: Option<RawFile>,
    pub stdin: Option<RawStdin>,
    pub pubsub: Option<RawPubsub>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawFile {
    pub path: String,
    pub format: Option<String>,
    pub csv: Option<RawCsv>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawStdin {
    pub format: Option<String>,
    pub csv: Option<RawCsv>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawCsv {
    pub delimiter: Option<String>,
    pub quote: Option<String>,
    pub header: Option<bool>,
    pub columns: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawPubsub {
    pub subscription: String,
    pub streams: Option<usize>,
    pub workers: Option<usize>,
    pub max_outstanding_messages: Option<usize>,
    pub max_outstanding_bytes: Option<String>,
    pub endpoint: Option<String>,
    pub credentials: Option<String>,
    #[serde(default)]
    pub allow_plaintext: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawRules {
    pub event_version: Option<RawEventVersion>,
    pub components: Option<BTreeMap<String, String>>,
    pub store: Option<String>,
    pub cache: Option<String>,
    pub isolation: Option<String>,
    pub canary_by: Option<RawKey>,
    #[serde(default)]
    pub guard: RawGuard,
    #[serde(default)]
    pub shadow: RawShadow,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawKey {
    pub attribute: Option<String>,
    pub field: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawGuard {
    pub min_pairs: Option<u64>,
    pub margin_percent: Option<f64>,
    pub faults: Option<u64>,
    pub time: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawShadow {
    pub table: Option<String>,
    pub keep: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawEventVersion {
    pub attribute: Option<String>,
    pub field: Option<String>,
    pub default: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawLimits {
    pub fuel_base: Option<u64>,
    pub fuel_per_byte: Option<u64>,
    pub memory: Option<String>,
    pub table_elements: Option<usize>,
    pub wall_clock: Option<String>,
    pub result: Option<String>,
    pub log: Option<String>,
    pub events_per_instance: Option<u32>,
    pub component: Option<String>,
    pub payload: Option<String>,
    pub row: Option<String>,
    pub open_windows: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
#[expect(clippy::struct_field_names, reason = "these are the keys of the file")]
pub(super) struct RawBatch {
    pub max_events: Option<usize>,
    pub max_bytes: Option<String>,
    pub max_age: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawRun {
    pub threads: Option<usize>,
    pub drain_timeout: Option<String>,
    pub max_rejects: Option<RawMaxRejects>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a number of events, or a percentage as in \"0.5%\"")]
pub(super) enum RawMaxRejects {
    Events(u64),
    Text(String),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawWarehouse {
    pub sqlite: Option<RawSqlite>,
    pub bigquery: Option<RawBigquery>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawSqlite {
    pub path: String,
    pub give_up_after: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawBigquery {
    pub project: String,
    pub commit_interval: Option<String>,
    pub request_timeout: Option<String>,
    pub give_up_after: Option<String>,
    pub endpoint: Option<String>,
    pub storage_endpoint: Option<String>,
    pub credentials: Option<String>,
    #[serde(default)]
    pub allow_plaintext: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawDedup {
    pub by: RawDedupBy,
    pub horizon: Option<String>,
    pub on_conflict: Option<String>,
    pub expected_rate: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "\"payload\", \"message_id\", { attribute = \"…\" }, { field = \"/…\" } or { columns = [\"…\"] }"
)]
pub(super) enum RawDedupBy {
    Name(String),
    Key(RawDedupKey),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawDedupKey {
    pub attribute: Option<String>,
    pub field: Option<String>,
    pub columns: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawLedger {
    pub path: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawAdmin {
    pub listen: String,
    #[serde(default)]
    pub allow_remote: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawTier {
    pub table: String,
    pub create: Option<String>,
    pub write: Option<String>,
    pub partition_by: Option<String>,
    #[serde(default)]
    pub cluster_by: Vec<String>,
    pub description: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawSilver {
    pub table: String,
    pub create: Option<String>,
    pub write: Option<String>,
    pub partition_by: Option<String>,
    #[serde(default)]
    pub cluster_by: Vec<String>,
    pub description: Option<String>,
    #[serde(default)]
    pub host_columns: BTreeMap<String, String>,
    pub count_by: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawQuarantine {
    pub table: Option<String>,
    pub create: Option<String>,
    pub write: Option<String>,
    pub partition_by: Option<String>,
    #[serde(default)]
    pub cluster_by: Vec<String>,
    pub description: Option<String>,
    pub files: Option<RawRejectFiles>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawRejectFiles {
    pub path: String,
    #[serde(default)]
    pub header: bool,
    pub suffix: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawProvision {
    pub location: Option<String>,
    pub topic: Option<String>,
    pub ack_deadline: Option<String>,
    pub retention: Option<String>,
    #[serde(default)]
    pub retain_acked: bool,
    #[serde(default)]
    pub ordering: bool,
    #[serde(default)]
    pub exactly_once: bool,
    pub min_backoff: Option<String>,
    pub max_backoff: Option<String>,
    pub dead_letter_topic: Option<String>,
    pub dead_letter_subscription: Option<String>,
    pub max_delivery_attempts: Option<u32>,
    pub worker: Option<String>,
    pub bronze: Option<RawBronzeSubscription>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawBronzeSubscription {
    pub subscription: String,
    pub table: String,
    pub partition_by: Option<String>,
    #[serde(default)]
    pub cluster_by: Vec<String>,
    pub description: Option<String>,
}

//! What is written of the watermark and of aggregates.

use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(in crate::config) struct RawWatermark {
    pub follows: Option<String>,
    pub out_of_orderness: Option<String>,
    pub backlog: Option<String>,
    pub idle: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(in crate::config) struct RawAggregate {
    pub table: String,
    pub create: Option<String>,
    pub partition_by: Option<String>,
    #[serde(default)]
    pub cluster_by: Vec<String>,
    pub description: Option<String>,
    pub event_time: Option<String>,
    pub window: RawWindow,
    pub allowed_lateness: Option<String>,
    pub accumulation: Option<String>,
    pub early: Option<String>,
    pub late: Option<String>,
    #[serde(default)]
    pub group_by: Vec<String>,
    pub write: Option<String>,
    #[serde(default)]
    pub measures: BTreeMap<String, RawMeasure>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, such as { fixed = \"1 m\" }")]
pub(in crate::config) struct RawWindow {
    pub fixed: Option<String>,
    pub sliding: Option<String>,
    pub session: Option<String>,
    pub every: Option<String>,
    pub offset: Option<String>,
}

/// The functions of a measure are checked later: then all that are unknown are told at once.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "write \"count\", or a function and its column, such as { sum = \"price\" }")]
pub(in crate::config) enum RawMeasure {
    Name(String),
    Columns(BTreeMap<String, String>),
}

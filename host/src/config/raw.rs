//! The pipeline file as written. Unknown keys are refused here, all of them at once, with the nearest known key.

use super::layers::{Layers, join};
use super::problem::{ConfigError, Problem};
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::{Table, Value};

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
    pub quarantine: RawTier,
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
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawStdin {
    pub format: Option<String>,
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

/// Parses the merged layers. Every unknown key is reported; then the first value of the wrong type.
pub(super) fn parse(layers: &Layers) -> Result<RawConfig, ConfigError> {
    let mut table = layers.table.clone();
    let mut problems = Vec::new();
    loop {
        let error = match serde_path_to_error::deserialize::<_, RawConfig>(Value::Table(table.clone())) {
            Ok(raw) if problems.is_empty() => return Ok(raw),
            Ok(_) => return Err(ConfigError(problems)),
            Err(error) => error,
        };
        let mut path: Vec<String> = error
            .path()
            .iter()
            .filter_map(|segment| match segment {
                serde_path_to_error::Segment::Map { key } => Some(key.clone()),
                _ => None,
            })
            .collect();
        let message = error.inner().message();
        if message.ends_with("expected a string")
            && let Some(text) = layers.set_texts.get(&join(&path))
            && replace(&mut table, &path, Value::String(text.clone()))
        {
            // `--set name=1` means the text 1 where a text is wanted.
            continue;
        }
        let Some((unknown, known)) = unknown_field(message) else {
            // Rust's names for numbers say nothing to whoever writes the file.
            let what = ["usize", "u64", "u32"].iter().fold(message.to_owned(), |what, kind| {
                what.replace(&format!("expected {kind}"), "expected a whole number that is not negative")
            });
            problems.push(problem(layers, &path, what));
            return Err(ConfigError(problems));
        };
        if path.last().map(String::as_str) != Some(unknown.as_str()) {
            path.push(unknown.clone());
        }
        problems.push(problem(layers, &path, unknown_key(&unknown, &known)));
        if !remove(&mut table, &path) {
            return Err(ConfigError(problems));
        }
    }
}

fn problem(layers: &Layers, path: &[String], what: String) -> Problem {
    let key = join(path);
    Problem { origin: layers.origin(&key).map(str::to_owned), key, what }
}

/// The unknown field and the known ones, from serde's message; its form is fixed by a test.
fn unknown_field(message: &str) -> Option<(String, Vec<String>)> {
    let rest = message.strip_prefix("unknown field `")?;
    let mut names = rest.split('`').step_by(2).map(str::to_owned);
    let unknown = names.next()?;
    Some((unknown, names.filter(|name| !name.is_empty()).collect()))
}

fn unknown_key(unknown: &str, known: &[String]) -> String {
    let nearest = known.iter().map(|name| (strsim::damerau_levenshtein(unknown, name), name)).min();
    match nearest {
        Some((distance, name)) if distance <= 1 + unknown.len() / 4 => format!("unknown key; did you mean `{name}`?"),
        _ => format!("unknown key; known here: {}", known.join(", ")),
    }
}

/// Puts another value in the place of one that is not that already.
fn replace(table: &mut Table, path: &[String], value: Value) -> bool {
    match path {
        [key] => table.get_mut(key).is_some_and(|old| std::mem::replace(old, value.clone()) != value),
        [key, rest @ ..] => {
            table.get_mut(key).and_then(Value::as_table_mut).is_some_and(|inner| replace(inner, rest, value))
        }
        [] => false,
    }
}

fn remove(table: &mut Table, path: &[String]) -> bool {
    match path {
        [key] => table.remove(key).is_some(),
        [key, rest @ ..] => table.get_mut(key).and_then(Value::as_table_mut).is_some_and(|inner| remove(inner, rest)),
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn error(text: &str) -> String {
        let mut layers = Layers::default();
        layers.lay_file(text, "p.toml", Path::new("")).unwrap();
        parse(&layers).unwrap_err().to_string()
    }

    #[test]
    fn every_unknown_key_is_named_with_its_line_and_the_nearest_key() {
        let text = "nmae = 'x'\n[silver]\ntabel = 't'\ntable = 't'\n[limits]\nspeed = 1\n";
        let lines = error(text);
        assert!(lines.contains("p.toml:1: nmae: unknown key; did you mean `name`?"), "{lines}");
        assert!(lines.contains("p.toml:3: silver.tabel: unknown key; did you mean `table`?"), "{lines}");
        assert!(lines.contains("p.toml:6: limits.speed: unknown key; known here: fuel_base"), "{lines}");
    }

    #[test]
    fn a_wrong_type_and_a_missing_key_are_named() {
        assert!(error("name = 1\n").contains("p.toml:1: name: invalid type: integer `1`, expected a string"));
        assert!(error("name = 'x'\n").contains("missing field `source`"));
    }
}

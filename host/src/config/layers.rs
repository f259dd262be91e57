//! A pipeline file with overlays and `--set` laid over it, and where each key came from.
//!
//! A later layer wins key by key; tables are merged. Of some things exactly one kind can be: a layer that names another
//! kind replaces the one below (`one_of`). Paths in a file are relative to that file; on the command line,
//! to the working directory.

mod one_of;

use super::problem::{ConfigError, Problem};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

/// Keys whose values are paths; `*` stands for any key.
const PATHS: [&[&str]; 7] = [
    &["source", "file", "path"],
    &["warehouse", "sqlite", "path"],
    &["rules", "components", "*"],
    &["rules", "store"],
    &["rules", "cache"],
    &["ledger", "path"],
    &["quarantine", "files", "path"],
];

/// The merged layers.
#[derive(Debug, Default)]
pub struct Layers {
    pub(super) table: Table,
    origins: BTreeMap<String, String>,
    /// The values of `--set` as they were written, by key.
    pub(super) set_texts: BTreeMap<String, String>,
}

impl Layers {
    /// A pipeline file, then overlays, then `key.path=value` settings.
    pub fn load(file: &Path, overlays: &[impl AsRef<Path>], settings: &[String]) -> Result<Self, ConfigError> {
        let mut layers = Self::default();
        for path in std::iter::once(file).chain(overlays.iter().map(AsRef::as_ref)) {
            let shown = path.display().to_string();
            let text =
                fs::read_to_string(path).map_err(|error| file_problem(&shown, &format!("cannot read it: {error}")))?;
            layers.lay_file(&text, &shown, path.parent().unwrap_or(Path::new("")))?;
        }
        for setting in settings {
            layers.set(setting)?;
        }
        Ok(layers)
    }

    /// Lays a file's text over what is there.
    pub(super) fn lay_file(&mut self, text: &str, shown: &str, directory: &Path) -> Result<(), ConfigError> {
        let syntax = |error: &toml::de::Error| {
            let line = error.span().map_or(1, |span| line_of(text, span.start));
            file_problem(&format!("{shown}:{line}"), &format!("not TOML: {}", error.message()))
        };
        let mut table: Table = text.parse().map_err(|error| syntax(&error))?;
        let spans = DeTable::parse(text).map_err(|error| syntax(&error))?;
        let mut origins = BTreeMap::new();
        collect_origins(spans.get_ref(), &mut Vec::new(), &mut |path, start| {
            origins.insert(path, format!("{shown}:{}", line_of(text, start)));
        });
        for pattern in PATHS {
            each_path(&mut table, pattern, &mut |value| {
                if let Value::String(path) = value {
                    *path = directory.join(&*path).to_string_lossy().into_owned();
                }
            });
        }
        self.lay(table, origins);
        Ok(())
    }

    /// Lays one `key.path=value` over what is there. The value is TOML; what is not TOML is text, and so is a path.
    pub(super) fn set(&mut self, setting: &str) -> Result<(), ConfigError> {
        let refused = |what: &str| file_problem(&format!("--set {setting}"), what);
        let (key, text) = setting.split_once('=').ok_or_else(|| refused("write it as key.path=value"))?;
        let text = text.trim();
        let mut table: Table = format!("{key} = 0").parse().map_err(|_| refused("the key is not a TOML key path"))?;
        let path = leaf_path(&table);
        let is_path = PATHS.iter().any(|pattern| matches(pattern, &path));
        let parsed = format!("value = {text}").parse::<Table>().ok().and_then(|mut t| t.remove("value"));
        let value = match parsed {
            Some(value) if !is_path || value.is_str() => value,
            _ => Value::String(text.to_owned()),
        };
        *leaf_mut(&mut table) = value;
        self.set_texts.insert(join(&path), text.to_owned());
        let origin = "--set".to_owned();
        let origins = (1..=path.len()).map(|n| (join(&path[..n]), origin.clone())).collect();
        self.lay(table, origins);
        Ok(())
    }

    fn lay(&mut self, table: Table, origins: BTreeMap<String, String>) {
        for gone in one_of::replace(&mut self.table, &table) {
            let within = format!("{gone}.");
            self.origins.retain(|key, _| *key != gone && !key.starts_with(&within));
        }
        merge(&mut self.table, table);
        self.origins.extend(origins);
    }

    /// Gives problems the file and line of their keys.
    #[must_use]
    pub fn locate(&self, mut error: ConfigError) -> ConfigError {
        for problem in &mut error.0 {
            problem.origin = self.origin(&problem.key).map(str::to_owned);
        }
        error
    }

    /// Where a key was given; where its nearest parent was, for a key that is missing.
    pub fn origin(&self, key: &str) -> Option<&str> {
        let mut key = key;
        loop {
            if let Some(origin) = self.origins.get(key) {
                return Some(origin);
            }
            key = &key[..key.rfind('.')?];
        }
    }
}

fn file_problem(origin: &str, what: &str) -> ConfigError {
    ConfigError(vec![Problem { origin: Some(origin.to_owned()), key: String::new(), what: what.to_owned() }])
}

fn merge(below: &mut Table, above: Table) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge(below, above),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

fn collect_origins(table: &DeTable<'_>, path: &mut Vec<String>, found: &mut impl FnMut(String, usize)) {
    for (key, value) in table {
        path.push(key.get_ref().to_string());
        found(join(path), key.span().start);
        if let DeValue::Table(inner) = value.get_ref() {
            collect_origins(inner, path, found);
        }
        path.pop();
    }
}

/// The path of a key that is not in the file's own hands, such as an event version's component.
pub fn key_path(parts: &[&str]) -> String {
    join(&parts.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>())
}

/// A key path as TOML writes it: parts that are not bare keys are quoted, and so are version numbers.
pub(super) fn join(path: &[String]) -> String {
    let quoted: Vec<String> = path
        .iter()
        .map(|part| {
            let bare = part.starts_with(|c: char| c.is_ascii_alphabetic())
                && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
            if bare { part.clone() } else { format!("{part:?}") }
        })
        .collect();
    quoted.join(".")
}

fn line_of(text: &str, offset: usize) -> usize {
    memchr::memchr_iter(b'\n', &text.as_bytes()[..offset.min(text.len())]).count() + 1
}

fn matches(pattern: &[&str], path: &[String]) -> bool {
    pattern.len() == path.len() && pattern.iter().zip(path).all(|(p, key)| *p == "*" || p == key)
}

fn each_path(table: &mut Table, pattern: &[&str], change: &mut impl FnMut(&mut Value)) {
    let Some((first, rest)) = pattern.split_first() else { return };
    for (key, value) in table.iter_mut() {
        if *first != "*" && first != key {
            continue;
        }
        match value {
            Value::Table(inner) if !rest.is_empty() => each_path(inner, rest, change),
            leaf if rest.is_empty() => change(leaf),
            _ => {}
        }
    }
}

/// The path to the only leaf of a table made from one dotted key.
fn leaf_path(table: &Table) -> Vec<String> {
    let mut path = Vec::new();
    let mut level = table.iter().next();
    while let Some((key, value)) = level {
        path.push(key.clone());
        level = value.as_table().and_then(|inner| inner.iter().next());
    }
    path
}

fn leaf_mut(table: &mut Table) -> &mut Value {
    let (_, value) = table.iter_mut().next().expect("a table made from a dotted key has one entry on every level");
    if value.is_table() { leaf_mut(value.as_table_mut().expect("it was just looked at")) } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn layered(base: &str, overlay: &str, sets: &[&str]) -> Layers {
        let mut layers = Layers::default();
        layers.lay_file(base, "base.toml", Path::new("dir")).unwrap();
        layers.lay_file(overlay, "over.toml", Path::new("other")).unwrap();
        for set in sets {
            layers.set(set).unwrap();
        }
        layers
    }

    #[test]
    fn the_same_kind_is_merged_key_by_key() {
        let layers = layered(
            "[source.file]\npath = 'e'\nformat = 'lines'\n",
            "[source.file]\nformat = 'envelope'\n",
            &["source.file.path=/abs/f"],
        );
        assert_eq!(layers.table["source"]["file"]["format"].as_str(), Some("envelope"));
        assert_eq!(layers.table["source"]["file"]["path"].as_str(), Some("/abs/f"));
    }

    #[test]
    fn a_setting_is_toml_and_else_text_and_a_path_is_always_text() {
        let sets = ["limits.fuel_base=5_000", "name=offvia", "source.file.path=123", "rules.components.2=x.wasm"];
        let layers = layered("", "", &sets);
        assert_eq!(layers.table["limits"]["fuel_base"].as_integer(), Some(5_000));
        assert_eq!(layers.table["name"].as_str(), Some("offvia"));
        assert_eq!(layers.table["source"]["file"]["path"].as_str(), Some("123"));
        assert_eq!(layers.table["rules"]["components"]["2"].as_str(), Some("x.wasm"));
    }

    #[test]
    fn a_key_knows_its_file_and_line_and_a_missing_one_its_parents() {
        let layers = layered("name = 'a'\n[silver]\ntable = 't'\n", "[silver]\n\ntable = 'u'\n", &["name=b"]);
        assert_eq!(layers.origin("silver.table"), Some("over.toml:3"));
        assert_eq!(layers.origin("silver.create"), Some("over.toml:1"));
        assert_eq!(layers.origin("name"), Some("--set"));
        assert_eq!(layers.origin("bronze.table"), None);
    }

    #[test]
    fn broken_toml_is_reported_with_file_and_line() {
        let error = Layers::default().lay_file("a = 1\nb =\n", "p.toml", Path::new("")).unwrap_err();
        assert!(error.to_string().starts_with("p.toml:2: not TOML"), "{error}");
        assert!(Layers::default().set("no-equals").unwrap_err().to_string().contains("key.path=value"));
    }
}

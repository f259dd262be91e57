//! What a component says of itself, checked: names that tables can hold, types that are served, no contradiction.

use super::bindings::preflight::rules::types as wit;
use crate::row::{Column, ColumnType};
use serde::Serialize;
use std::fmt;

/// A checked manifest of a validator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Manifest {
    /// The rule's name.
    pub name: String,
    /// The rule's semantic version.
    pub version: String,
    /// Event versions it can judge.
    pub event_versions: Vec<String>,
    /// Attributes it reads; no other is passed to it.
    pub attributes: Vec<String>,
    /// Columns it produces, in the order of its rows.
    pub columns: Vec<Column>,
    /// The index in `columns` of the event time.
    pub event_time: Option<usize>,
}

/// Longest name of anything, bytes. BigQuery's limit for a column name.
pub const NAME: usize = 300;

impl Manifest {
    /// Checks what `describe` returned. Every contradiction is named, not only the first.
    pub(super) fn check(raw: wit::Manifest) -> Result<Self, ManifestError> {
        let mut problems = Vec::new();
        let columns: Vec<Column> =
            raw.columns.into_iter().map(|c| Column::new(c.name, kind(c.kind), c.nullable)).collect();
        if raw.name.is_empty() || raw.name.len() > NAME || raw.name.chars().any(char::is_control) {
            problems.push("its name is empty, longer than 300 bytes or holds control characters".to_owned());
        }
        if !is_semver(&raw.version) {
            problems.push(format!("its version {:?} is not a semantic version such as 1.2.0", raw.version));
        }
        check_names("event version", &raw.event_versions, &mut problems);
        if raw.event_versions.is_empty() {
            problems.push("it declares no event version".to_owned());
        }
        check_names("attribute", &raw.attributes, &mut problems);
        check_columns(&columns, &mut problems);
        let event_time = raw.event_time.and_then(|name| match columns.iter().position(|c| c.name == name) {
            Some(index) if columns[index].kind == ColumnType::Timestamp => Some(index),
            Some(_) => {
                problems.push(format!("its event-time column `{name}` is not a TIMESTAMP"));
                None
            }
            None => {
                problems.push(format!("its event-time column `{name}` is not among its columns"));
                None
            }
        });
        if !raw.inputs.is_empty() {
            problems.push("it declares inputs, which only enrichers have".to_owned());
        }
        if let Some(table) = raw.tables.first() {
            problems.push(format!("it reads look-up table `{}`: this version of the host serves none", table.name));
        }
        if !problems.is_empty() {
            return Err(ManifestError(problems));
        }
        Ok(Self {
            name: raw.name,
            version: raw.version,
            event_versions: raw.event_versions,
            attributes: raw.attributes,
            columns,
            event_time,
        })
    }

    /// `name@version`, as rows and reports show it.
    pub fn label(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }

    /// The index of a column, names compared without regard to case.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name.eq_ignore_ascii_case(name))
    }
}

/// A manifest that contradicts itself or asks for what is not served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ManifestError(pub Vec<String>);

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "its manifest is not usable: {}", self.0.join("; "))
    }
}

fn kind(kind: wit::ColumnType) -> ColumnType {
    match kind {
        wit::ColumnType::Boolean => ColumnType::Boolean,
        wit::ColumnType::Int64 => ColumnType::Int64,
        wit::ColumnType::Float64 => ColumnType::Float64,
        wit::ColumnType::Numeric => ColumnType::Numeric,
        wit::ColumnType::Text => ColumnType::Text,
        wit::ColumnType::Bytes => ColumnType::Bytes,
        wit::ColumnType::Timestamp => ColumnType::Timestamp,
        wit::ColumnType::Date => ColumnType::Date,
        wit::ColumnType::Json => ColumnType::Json,
    }
}

/// Names of versions and attributes: not empty, not repeated.
fn check_names(what: &str, names: &[String], problems: &mut Vec<String>) {
    for (index, name) in names.iter().enumerate() {
        if name.is_empty() || name.len() > NAME {
            problems.push(format!("{what} number {} is empty or longer than {NAME} bytes", index + 1));
        }
        if names[..index].contains(name) {
            problems.push(format!("{what} `{name}` is declared twice"));
        }
    }
}

/// Column names as BigQuery takes them: `[A-Za-z_][A-Za-z0-9_]*`, unique without regard to case.
fn check_columns(columns: &[Column], problems: &mut Vec<String>) {
    if columns.is_empty() {
        problems.push("it declares no columns".to_owned());
    }
    for (index, column) in columns.iter().enumerate() {
        let name = column.name.as_str();
        if !is_column_name(name) {
            problems.push(format!("column name {name:?} is not [A-Za-z_][A-Za-z0-9_]* of at most {NAME} bytes"));
        }
        if columns[..index].iter().any(|c| c.name.eq_ignore_ascii_case(name)) {
            problems.push(format!("column `{name}` is declared twice"));
        }
    }
}

/// Whether a name can be a column's.
pub fn is_column_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    name.len() <= NAME
        && bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// `MAJOR.MINOR.PATCH`, then perhaps `-pre` and `+build` (semver.org 2.0.0, leading zeros refused).
fn is_semver(version: &str) -> bool {
    let core = version.split_once('+').map_or(version, |(core, _)| core);
    let core = core.split_once('-').map_or(core, |(core, _)| core);
    let parts: Vec<&str> = core.split('.').collect();
    parts.len() == 3
        && parts.iter().all(|p| {
            !p.is_empty() && p.len() < 20 && p.bytes().all(|b| b.is_ascii_digit()) && (*p == "0" || !p.starts_with('0'))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw() -> wit::Manifest {
        wit::Manifest {
            name: "r".into(),
            version: "1.0.0".into(),
            event_versions: vec!["1".into()],
            attributes: vec![],
            inputs: vec![],
            columns: vec![wit::Column { name: "at".into(), kind: wit::ColumnType::Timestamp, nullable: false }],
            event_time: Some("at".into()),
            tables: vec![],
        }
    }

    fn problems(change: impl FnOnce(&mut wit::Manifest)) -> String {
        let mut manifest = raw();
        change(&mut manifest);
        Manifest::check(manifest).unwrap_err().to_string()
    }

    #[test]
    fn a_good_manifest_keeps_its_event_time_as_an_index() {
        assert_eq!(Manifest::check(raw()).unwrap().event_time, Some(0));
    }

    #[test]
    fn each_contradiction_is_named() {
        assert!(problems(|m| m.version = "1.0".into()).contains("semantic version"));
        assert!(problems(|m| m.version = "01.0.0".into()).contains("semantic version"));
        assert!(problems(|m| m.name = String::new()).contains("its name"));
        assert!(problems(|m| m.event_versions.clear()).contains("no event version"));
        assert!(problems(|m| m.event_versions.push("1".into())).contains("declared twice"));
        assert!(problems(|m| m.attributes.push(String::new())).contains("attribute number 1"));
        assert!(problems(|m| m.columns.clear()).contains("no columns"));
        assert!(problems(|m| m.event_time = Some("when".into())).contains("not among its columns"));
        assert!(problems(|m| m.columns[0].kind = wit::ColumnType::Text).contains("not a TIMESTAMP"));
        assert!(problems(|m| m.columns[0].name = "a-b".into()).contains("column name"));
        let twin = |m: &mut wit::Manifest| {
            m.columns.push(wit::Column { name: "AT".into(), kind: wit::ColumnType::Text, nullable: true });
        };
        assert!(problems(twin).contains("`AT` is declared twice"));
        let inputs = |m: &mut wit::Manifest| m.inputs = m.columns.clone();
        assert!(problems(inputs).contains("only enrichers"));
        let tables = |m: &mut wit::Manifest| {
            m.tables.push(wit::Table { name: "t".into(), key: wit::ColumnType::Text, columns: vec![] });
        };
        assert!(problems(tables).contains("look-up table `t`"));
    }
}

//! How the columns of two manifests differ: what a table may have to be changed for before the new rule is promoted.

use crate::row::Column;
use crate::rules::Manifest;
use serde::Serialize;
use std::fmt;

/// A column that only one of two manifests has, or that they declare differently. Names are compared without regard to
/// case, and the order of columns does not matter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "lowercase")]
pub enum ColumnChange {
    /// Only the new manifest has it.
    Added {
        /// As it declares it.
        new: Column,
    },
    /// Only the old manifest has it.
    Removed {
        /// As it declares it.
        old: Column,
    },
    /// Both have it, with another type, or it may be null with only one of them.
    Changed {
        /// As the old manifest declares it.
        old: Column,
        /// As the new manifest declares it.
        new: Column,
    },
}

impl fmt::Display for ColumnChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added { new } => write!(f, "added {new}"),
            Self::Removed { old } => write!(f, "removed {old}"),
            Self::Changed { old, new } => write!(f, "changed {old} to {new}"),
        }
    }
}

/// Every column that differs: those of the old manifest in its order, then those that the new one adds.
pub fn changes(old: &Manifest, new: &Manifest) -> Vec<ColumnChange> {
    let mut changes = Vec::new();
    for column in &old.columns {
        match new.column(&column.name).map(|index| &new.columns[index]) {
            None => changes.push(ColumnChange::Removed { old: column.clone() }),
            Some(other) if (other.kind, other.nullable) != (column.kind, column.nullable) => {
                changes.push(ColumnChange::Changed { old: column.clone(), new: other.clone() });
            }
            Some(_) => {}
        }
    }
    let added = new.columns.iter().filter(|column| old.column(&column.name).is_none());
    changes.extend(added.map(|column| ColumnChange::Added { new: column.clone() }));
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::ColumnType::{Int64, Numeric, Text};

    fn manifest(columns: Vec<Column>) -> Manifest {
        Manifest {
            name: "r".into(),
            version: "1.0.0".into(),
            event_versions: vec!["1".into()],
            attributes: vec![],
            columns,
            event_time: None,
        }
    }

    #[test]
    fn columns_are_added_removed_and_changed_whatever_their_order_and_case() {
        let old = manifest(vec![
            Column::new("same", Text, false),
            Column::new("gone", Int64, true),
            Column::new("fare", Numeric, false),
            Column::new("note", Text, false),
        ]);
        let new = manifest(vec![
            Column::new("note", Text, true),
            Column::new("tier", Text, true),
            Column::new("FARE", Text, false),
            Column::new("Same", Text, false),
        ]);
        let shown: Vec<String> = changes(&old, &new).iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "removed gone INT64",
                "changed fare NUMERIC NOT NULL to FARE STRING NOT NULL",
                "changed note STRING NOT NULL to note STRING",
                "added tier STRING",
            ]
        );
        assert_eq!(changes(&old, &old), []);
        let json = serde_json::to_value(&changes(&old, &new)[0]).unwrap();
        let gone = serde_json::json!({ "name": "gone", "type": "int64", "nullable": true });
        assert_eq!(json, serde_json::json!({ "change": "removed", "old": gone }));
    }
}

//! The three tiers' tables and the columns the host fills.

use super::check::Check;
use crate::config::layers::join;
use crate::config::raw::RawTier;
use crate::config::{Create, TierConfig, WarehouseConfig};
use crate::rules::manifest::is_column_name;
use crate::warehouse::HostColumn;
use crate::warehouse::bigquery::TableName;
use std::collections::BTreeMap;

/// A table in the dataset of another.
pub(super) fn beside(other: &str, table: &str) -> String {
    other.rsplit_once('.').map_or_else(|| table.to_owned(), |(dataset, _)| format!("{dataset}.{table}"))
}

/// What is the same for two names of one table, and for no others. In BigQuery names have a case, and a table without a
/// project is in that of the warehouse; in SQLite only the last part counts, in any case.
pub(super) fn resolved(warehouse: Option<&WarehouseConfig>, table: &str) -> String {
    match warehouse {
        Some(WarehouseConfig::Bigquery(config)) => {
            // What cannot be read is refused elsewhere.
            TableName::parse(table, &config.project).map_or_else(|_| table.to_owned(), |name| name.to_string())
        }
        Some(WarehouseConfig::Sqlite { .. }) => table.rsplit('.').next().unwrap_or_default().to_ascii_lowercase(),
        None => table.to_owned(),
    }
}

impl Check {
    pub(super) fn tier(&mut self, tier: &str, raw: RawTier) -> Option<TierConfig> {
        let create = match raw.create.as_deref() {
            None | Some("never") => Create::Never,
            Some("if_needed") => Create::IfNeeded,
            Some(other) => {
                let key = format!("{tier}.create");
                self.refuse(&key, format!("{other:?} is not known: use \"never\" or \"if_needed\""))?
            }
        };
        self.table(&format!("{tier}.table"), &raw.table)?;
        let partition_by = raw.partition_by.and_then(|column| self.column(&format!("{tier}.partition_by"), column));
        let key = format!("{tier}.cluster_by");
        if raw.cluster_by.len() > 4 {
            self.refuse::<()>(&key, "at most four columns");
        }
        let cluster_by = raw.cluster_by.into_iter().filter_map(|column| self.column(&key, column)).collect();
        Some(TierConfig { table: raw.table, create, partition_by, cluster_by, description: raw.description })
    }

    /// Whether a name can be a table's.
    pub(super) fn table(&mut self, key: &str, name: &str) -> Option<()> {
        if name.split('.').any(str::is_empty) || name.split('.').count() > 3 {
            return self.refuse(key, format!("{name:?} is not a table: write [[project.]dataset.]table"));
        }
        let last = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
        if last.starts_with("preflight_") || last.starts_with("sqlite_") {
            return self.refuse(key, "names that start with preflight_ or sqlite_ are taken");
        }
        Some(())
    }

    /// In BigQuery a table is in a dataset.
    pub(super) fn datasets<'a>(&mut self, tables: impl IntoIterator<Item = (&'static str, Option<&'a str>)>) {
        for (key, table) in tables {
            if let Some(table) = table.filter(|table| !table.contains('.')) {
                self.refuse::<()>(key, format!("{table:?} has no dataset: for BigQuery write [project.]dataset.table"));
            }
        }
    }

    /// Two tiers in one table would mix their rows.
    pub(super) fn distinct(
        &mut self,
        warehouse: Option<&WarehouseConfig>,
        [bronze, silver, quarantine]: [Option<&TierConfig>; 3],
        differences: Option<&str>,
    ) {
        let mut seen: Vec<String> = Vec::new();
        let tables = [
            ("bronze", bronze.map(|tier| tier.table.as_str())),
            ("silver", silver.map(|tier| tier.table.as_str())),
            ("quarantine", quarantine.map(|tier| tier.table.as_str())),
            ("rules.shadow", differences),
        ];
        for (tier, table) in tables {
            let Some(table) = table else { continue };
            let name = resolved(warehouse, table);
            if seen.contains(&name) {
                self.refuse::<()>(&format!("{tier}.table"), format!("{name:?} is another tier's table already"));
            }
            seen.push(name);
        }
    }

    pub(super) fn column(&mut self, key: &str, column: String) -> Option<String> {
        if is_column_name(&column) {
            Some(column)
        } else {
            self.refuse(key, format!("{column:?} is not a column name"))
        }
    }

    pub(super) fn host_columns(&mut self, raw: BTreeMap<String, String>) -> BTreeMap<String, HostColumn> {
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
}

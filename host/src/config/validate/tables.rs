//! The tables that rows go to, and the columns the host fills.

use super::check::Check;
use crate::config::layers::join;
use crate::config::raw::RawTier;
use crate::config::{AggregateConfig, Create, TierConfig, WarehouseConfig, Write};
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

/// A table that rows go to.
pub(super) struct Target<'a> {
    /// The key that names it.
    pub(super) key: String,
    /// Its name.
    pub(super) table: &'a str,
}

impl<'a> Target<'a> {
    /// The tables of a pipeline; that of the differences between rules is the last.
    pub(super) fn all(
        tiers: [(&str, Option<&'a TierConfig>); 4],
        aggregates: &'a [AggregateConfig],
        differences: Option<&'a str>,
    ) -> Vec<Self> {
        let tier = |(name, tier): (&str, Option<&'a TierConfig>)| {
            tier.map(|tier| Self { key: format!("{name}.table"), table: &tier.table })
        };
        let aggregate =
            |aggregate: &'a AggregateConfig| Self { key: aggregate.key("table"), table: &aggregate.tier.table };
        let differences = differences.map(|table| Self { key: "rules.shadow.table".to_owned(), table });
        tiers.into_iter().filter_map(tier).chain(aggregates.iter().map(aggregate)).chain(differences).collect()
    }
}

/// The views that aggregates have.
pub(super) fn views(aggregates: &[AggregateConfig]) -> impl Iterator<Item = (&AggregateConfig, String)> {
    aggregates.iter().filter_map(|aggregate| aggregate.view().map(|view| (aggregate, view)))
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
        let write = match raw.write.as_deref() {
            None | Some("append") => Write::Append,
            Some("replace") => Write::Replace,
            Some(other) => {
                let key = format!("{tier}.write");
                self.refuse(&key, format!("{other:?} is not known: use \"append\" or \"replace\""))?
            }
        };
        self.table(&format!("{tier}.table"), &raw.table)?;
        let partition_by = raw.partition_by.and_then(|column| self.column(&format!("{tier}.partition_by"), column));
        let key = format!("{tier}.cluster_by");
        if raw.cluster_by.len() > 4 {
            self.refuse::<()>(&key, "at most four columns");
        }
        let cluster_by = raw.cluster_by.into_iter().filter_map(|column| self.column(&key, column)).collect();
        Some(TierConfig { table: raw.table, create, write, partition_by, cluster_by, description: raw.description })
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
    pub(super) fn datasets(&mut self, warehouse: Option<&WarehouseConfig>, targets: &[Target<'_>]) {
        if !matches!(warehouse, Some(WarehouseConfig::Bigquery(_))) {
            return;
        }
        for Target { key, table } in targets.iter().filter(|target| !target.table.contains('.')) {
            self.refuse::<()>(key, format!("{table:?} has no dataset: for BigQuery write [project.]dataset.table"));
        }
    }

    /// Two tiers in one table would mix their rows, and a view has the name of no table.
    pub(super) fn distinct(
        &mut self,
        warehouse: Option<&WarehouseConfig>,
        targets: &[Target<'_>],
        aggregates: &[AggregateConfig],
    ) {
        let mut seen: Vec<String> = Vec::new();
        for Target { key, table } in targets {
            let name = resolved(warehouse, table);
            if seen.contains(&name) {
                self.refuse::<()>(key, format!("{name:?} is another tier's table already"));
            }
            seen.push(name);
        }
        for (aggregate, view) in views(aggregates) {
            let name = resolved(warehouse, &view);
            if seen.contains(&name) {
                let what = format!("its view would be {name:?}, which is another tier's table already");
                self.refuse::<()>(&aggregate.key("table"), what);
            }
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

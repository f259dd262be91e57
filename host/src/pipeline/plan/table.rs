//! Tables as they are or will be made, and what of them is filled.

use super::{HostColumn, HostTableColumn, Planner};
use crate::config::{Create, TierConfig, WarehouseConfig};
use crate::row::Column;
use crate::warehouse::{Encoding, Layout, NewTable, TableColumn, Upsert, create_statement, table_name};

/// A column that we know how to fill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known<T> {
    /// The column as a new table has it.
    pub column: Column,
    /// Whether not every row has a value for it.
    pub may_be_null: bool,
    /// Whether a table without it is refused.
    pub required: bool,
    /// What fills it.
    pub filled_by: T,
}

impl From<&HostTableColumn> for Known<HostColumn> {
    fn from(known: &HostTableColumn) -> Self {
        Self {
            column: known.created(),
            may_be_null: known.host.nullable(),
            required: known.required,
            filled_by: known.host,
        }
    }
}

impl Planner<'_> {
    /// The layout of a table, without columns yet.
    pub(super) fn layout(&self, table: &str) -> Layout {
        let encoding = match self.warehouse {
            WarehouseConfig::Sqlite { .. } => Encoding::Cells,
            WarehouseConfig::Bigquery(_) => Encoding::Proto(Vec::new()),
        };
        Layout { table: table_name(self.warehouse, table), columns: Vec::new(), encoding, upsert: None }
    }

    /// The columns of a tier's table: as it is, or as it will be made, with a primary key if there is to be one.
    pub(super) fn table(
        &mut self,
        tier: &str,
        config: &TierConfig,
        wanted: impl FnOnce(&mut Self) -> Vec<Column>,
        key: Option<&str>,
        live: impl Fn(&str) -> Option<Vec<TableColumn>>,
    ) -> Option<Vec<TableColumn>> {
        if let Some(columns) = live(&config.table) {
            return Some(columns);
        }
        if config.create == Create::Never {
            let what = format!(
                "table {} does not exist: make it, by `preflight provision` or by hand, or let it be made with create = \"if_needed\"",
                table_name(self.warehouse, &config.table)
            );
            self.refuse(format!("{tier}.table"), what);
            return None;
        }
        let columns = wanted(self);
        let made = columns
            .iter()
            .map(|column| TableColumn {
                name: column.name.clone(),
                declared: column.kind.to_string(),
                holds: vec![column.kind],
                limit: None,
                nullable: column.nullable,
                has_default: false,
                is_key: key.is_some_and(|key| key.eq_ignore_ascii_case(&column.name)),
            })
            .collect();
        let new = NewTable {
            name: config.table.clone(),
            columns,
            partition_by: config.partition_by.clone(),
            // Where rows are found by their key.
            cluster_by: match key {
                Some(key) if config.cluster_by.is_empty() => vec![key.to_owned()],
                _ => config.cluster_by.clone(),
            },
            primary_key: key.map(str::to_owned),
            description: config.description.clone(),
        };
        if let Err(what) = create_statement(self.warehouse, &new) {
            self.refuse(format!("{tier}.table"), what);
        }
        self.new.push(new);
        Some(made)
    }

    /// A table that the host fills, and what fills each column of its layout. Of the columns that we know those are filled that
    /// it has. The `empty` columns of a table that is made are null in what is written. With `upsert`
    /// rows replace others.
    pub(super) fn known_table<T: Copy>(
        &mut self,
        tier: &str,
        config: &TierConfig,
        known: &[Known<T>],
        (empty, upsert): (&[Column], Option<Upsert>),
        live: impl Fn(&str) -> Option<Vec<TableColumn>>,
    ) -> Option<(Layout, Vec<T>)> {
        let key = format!("{tier}.table");
        let made = known.iter().map(|known| &known.column).chain(empty).cloned();
        let row_key = upsert.as_ref().map(|upsert| upsert.key.as_str());
        let table = self.table(tier, config, |_| made.collect(), row_key, live)?;
        if let Some(row_key) = row_key
            && table.iter().any(|column| column.name.eq_ignore_ascii_case(row_key) && !column.is_key)
        {
            let what = format!("column `{row_key}` is not its primary key: rows cannot replace others by it");
            self.refuse(&key, what);
        }
        let mut layout = Layout { upsert: upsert.clone(), ..self.layout(&config.table) };
        let mut filled = Vec::new();
        for column in &table {
            let Some(ours) = known.iter().find(|ours| ours.column.name.eq_ignore_ascii_case(&column.name)) else {
                if !column.nullable && !column.has_default {
                    self.refuse(&key, format!("column `{}` is NOT NULL and nothing fills it", column.name));
                }
                continue;
            };
            if column.holds.is_empty() && column.nullable && !ours.required {
                // Such as an array: it stays empty.
                continue;
            }
            self.fits(&key, column, ours.column.kind, "the host");
            if column.limit.is_some() {
                let what = "which what the host writes may break: declare it without a limit";
                self.refuse(&key, format!("column `{}` is declared {}, {what}", column.name, column.declared));
            }
            if !column.nullable && ours.may_be_null {
                let what = format!("column `{}` is NOT NULL, but not every row has a value for it", column.name);
                self.refuse(&key, what);
            }
            layout.add(column);
            filled.push(ours.filled_by);
        }
        for Known { column: Column { name, kind, .. }, .. } in known.iter().filter(|ours| ours.required) {
            if !table.iter().any(|column| column.name.eq_ignore_ascii_case(name)) {
                self.refuse(&key, format!("it lacks column `{name}` ({kind})"));
            }
        }
        Some((layout, filled))
    }
}

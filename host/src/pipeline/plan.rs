//! Which value goes into which column of which table, and whether rules and tables fit each other.
//!
//! Rows are laid out for the table, not for a rule's manifest: rules of several event versions share one table and one
//! stream. A column that no rule fills is left out of the rows, so the table's own default holds.

mod aggregates;
mod table;

pub use aggregates::{
    AggregatePlan, LateColumn, LatePlan, PaneColumn, WindowsPlan, late_columns, latest_view, pane_columns, upsert,
};
pub use table::Known;

use super::keys::RowKeys;
use crate::config::{Config, Problem, TierConfig, WarehouseConfig, key_path};
use crate::digest::Digest;
use crate::row::{Column, ColumnType};
use crate::rules::{Manifest, Rule, RuleSet, Served};
use crate::warehouse::{
    HostColumn, HostTableColumn, Layout, Limit, NewTable, NewView, Source, TableColumn, Tier, bronze_columns,
    quarantine_columns, resolution_columns, table_name,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The optional host column of silver, written where the table has it.
const RULE_DIGEST: &str = "rule_digest";

/// Where values go.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Raw events, if the pipeline has the tier.
    pub bronze: Option<HostTable>,
    /// Rejected events, if they go to a table.
    pub quarantine: Option<HostTable>,
    /// The file of rejected events as they came, of a run that writes one.
    pub rejects: Option<Arc<Layout>>,
    /// Accepted rows.
    pub silver: Silver,
    /// A row above this is not sent, bytes as encoded.
    pub max_row: usize,
    /// What `subscription` columns hold.
    pub source_name: String,
    /// What `pipeline` columns hold.
    pub pipeline: String,
    /// Where rows have what dedup compares, by rule; none without dedup.
    pub row_keys: BTreeMap<Digest, RowKeys>,
    /// What is measured over windows, if anything is.
    pub windows: Option<WindowsPlan>,
}

/// A table that the host fills alone.
#[derive(Debug, Clone)]
pub struct HostTable {
    /// Table and columns.
    pub layout: Arc<Layout>,
    /// The value of each column.
    pub columns: Vec<HostColumn>,
}

/// The table of accepted rows.
#[derive(Debug, Clone)]
pub struct Silver {
    /// Table and columns.
    pub layout: Arc<Layout>,
    /// The column that holds the message id, if there is one.
    pub message_id: Option<String>,
    /// Index in the layout of the column that partitions the table.
    pub partition: Option<usize>,
    /// Index in the layout of the column by whose values rows are counted.
    pub count_by: Option<usize>,
    /// Indexes in the layout of columns that are narrower than their type, and what they take.
    pub limits: Vec<(usize, Limit)>,
    /// The value of each column, by rule.
    pub by_rule: BTreeMap<Digest, Vec<Source>>,
}

impl Plan {
    /// The views that are to be made.
    pub fn views(&self) -> impl Iterator<Item = &NewView> {
        let aggregates = self.windows.iter().flat_map(|windows| &windows.aggregates);
        aggregates.filter_map(|planned| planned.view.as_ref())
    }

    /// An aggregate by its name.
    pub fn aggregate(&self, name: &str) -> Option<&AggregatePlan> {
        let mut aggregates = self.windows.iter().flat_map(|windows| &windows.aggregates);
        aggregates.find(|planned| *planned.aggregate.name == *name)
    }

    /// The layout of a tier.
    pub fn layout(&self, tier: Tier) -> Option<&Arc<Layout>> {
        match tier {
            Tier::Bronze => self.bronze.as_ref().map(|table| &table.layout),
            Tier::Silver => Some(&self.silver.layout),
            Tier::Quarantine => self.quarantine.as_ref().map(|table| &table.layout),
            Tier::Rejects => self.rejects.as_ref(),
            Tier::Late => self.windows.as_ref().map(|windows| &windows.late.layout),
            Tier::Panes(_) => {
                let mut aggregates = self.windows.iter().flat_map(|windows| &windows.aggregates);
                aggregates.find(|planned| planned.tier == tier).map(|planned| &planned.layout)
            }
        }
    }
}

/// Plans rows, and the tables to be made first. `live` gives the columns of a table that exists.
pub fn plan(
    config: &Config,
    rules: &RuleSet,
    live: impl Fn(&str) -> Option<Vec<TableColumn>>,
) -> Result<(Plan, Vec<NewTable>), Vec<Problem>> {
    let mut planner = Planner { warehouse: &config.warehouse, problems: Vec::new(), new: Vec::new() };
    let bronze = config.bronze.as_ref().map(|tier| planner.host_table("bronze", tier, bronze_columns(), &[], &live));
    let quarantine = config
        .quarantine
        .table
        .as_ref()
        .map(|tier| planner.host_table("quarantine", tier, quarantine_columns(), resolution_columns(), &live));
    let silver = planner.silver(config, rules, &live);
    let row_keys = planner.row_keys(config, rules);
    let windows = planner.windows(config, rules, &live);
    match (bronze, silver, quarantine) {
        (bronze, Some(silver), quarantine) if planner.problems.is_empty() => {
            let plan = Plan {
                bronze: bronze.flatten(),
                quarantine: quarantine.flatten(),
                rejects: None,
                silver,
                max_row: config.max_row,
                source_name: config.source.name(),
                pipeline: config.name.clone(),
                row_keys,
                windows,
            };
            Ok((plan, planner.new))
        }
        _ => Err(planner.problems),
    }
}

struct Planner<'a> {
    warehouse: &'a WarehouseConfig,
    problems: Vec<Problem>,
    new: Vec<NewTable>,
}

impl Planner<'_> {
    fn refuse(&mut self, key: impl Into<String>, what: impl Into<String>) {
        self.problems.push(Problem::new(key, what));
    }

    /// A table of events that the host fills. The `empty` columns of a table that is made are null in what it writes.
    fn host_table(
        &mut self,
        tier: &str,
        config: &TierConfig,
        known: &[HostTableColumn],
        empty: &[(&str, ColumnType)],
        live: impl Fn(&str) -> Option<Vec<TableColumn>>,
    ) -> Option<HostTable> {
        let known: Vec<Known<HostColumn>> = known.iter().map(Known::from).collect();
        let empty: Vec<Column> = empty.iter().map(|(name, kind)| Column::new(*name, *kind, true)).collect();
        let (layout, columns) = self.known_table(tier, config, &known, (&empty, None), live)?;
        Some(HostTable { layout: Arc::new(layout), columns })
    }

    fn silver(
        &mut self,
        config: &Config,
        rules: &RuleSet,
        live: impl Fn(&str) -> Option<Vec<TableColumn>>,
    ) -> Option<Silver> {
        let silver = &config.silver;
        let manifests: Vec<&Manifest> = rules.served().map(|(_, served)| &served.rule.manifest).collect();
        for name in silver.host_columns.keys() {
            if let Some(manifest) = manifests.iter().find(|manifest| manifest.column(name).is_some()) {
                let what = format!("rule {} fills column `{name}` already", manifest.label());
                self.refuse(key_path(&["silver", "host_columns", name]), what);
            }
        }
        if manifests.is_empty() && live(&silver.tier.table).is_none() {
            let what = "no rule says which columns it has: promote one, or make the table";
            self.refuse("silver.table", what);
            return None;
        }
        let table = self.table(
            "silver",
            &silver.tier,
            |planner| planner.wanted_silver(&manifests, &silver.host_columns),
            None,
            live,
        )?;
        for (version, served) in rules.served() {
            let key = config.rules.key(version);
            self.rule_fits(&key, &served.rule, &table);
            self.rule_fills(&key, &served.rule, &table, &manifests, &silver.host_columns);
        }
        self.host_fits(&table, &silver.host_columns, &silver.tier.table);
        let mut layout = self.layout(&silver.tier.table);
        let mut limits = Vec::new();
        let mut by_rule: BTreeMap<Digest, Vec<Source>> =
            rules.served().map(|(_, served)| (served.rule.digest, Vec::new())).collect();
        for column in &table {
            let host = host_column(&silver.host_columns, &column.name);
            let filled = host.is_some() || manifests.iter().any(|m| m.column(&column.name).is_some());
            if !filled {
                continue;
            }
            for (_, Served { rule, .. }) in rules.served() {
                let source = match (host, rule.manifest.column(&column.name)) {
                    (_, Some(index)) => Source::Rule(index),
                    (Some(host), None) => Source::Host(host),
                    (None, None) => Source::Null,
                };
                let sources = by_rule.get_mut(&rule.digest).expect("every rule of the set has an entry");
                // Two event versions may share a component: its sources are listed once.
                if sources.len() == layout.columns.len() {
                    sources.push(source);
                }
            }
            limits.extend(column.limit.map(|limit| (layout.columns.len(), limit)));
            layout.add(column);
        }
        let partition = silver.tier.partition_by.as_ref().and_then(|name| {
            let host = host_column(&silver.host_columns, name);
            self.partition(name, &layout, &manifests, host)
        });
        let ids = silver.host_columns.iter().find(|(_, host)| **host == HostColumn::MessageId);
        let message_id = ids.map(|(column, _)| column.clone());
        let count_by = silver.count_by.as_ref().and_then(|name| self.counted(name, &layout, &manifests));
        Some(Silver { layout: Arc::new(layout), message_id, partition, count_by, limits, by_rule })
    }

    /// The columns of a new silver table.
    fn wanted_silver(&mut self, manifests: &[&Manifest], host: &BTreeMap<String, HostColumn>) -> Vec<Column> {
        let (mut columns, problems) = silver_columns(manifests, host);
        self.problems.extend(problems);
        columns.extend(rule_digest_column(&columns));
        columns
    }

    /// Refuses a rule that leaves a NOT NULL column unfilled. A default helps only where no rule fills the column: the
    /// rules share the columns of one insert.
    fn rule_fills(
        &mut self,
        key: &str,
        rule: &Rule,
        table: &[TableColumn],
        manifests: &[&Manifest],
        host: &BTreeMap<String, HostColumn>,
    ) {
        for column in table.iter().filter(|column| !column.nullable) {
            let name = &column.name;
            if rule.manifest.column(name).is_some() || host_column(host, name).is_some() {
                continue;
            }
            let others = manifests.iter().any(|manifest| manifest.column(name).is_some());
            if column.has_default && !others {
                continue;
            }
            let but = if column.has_default { "; its default does not help, since another rule fills it" } else { "" };
            let what =
                format!("rule {} does not produce column `{name}`, which is NOT NULL in silver{but}", rule.label);
            self.refuse(key, what);
        }
    }

    /// Where rows have what dedup compares. Refuses a rule that does not produce a column which is part of the key: its
    /// events would be compared with nothing.
    fn row_keys(&mut self, config: &Config, rules: &RuleSet) -> BTreeMap<Digest, RowKeys> {
        let Some(dedup) = &config.dedup else { return BTreeMap::new() };
        let mut keys = BTreeMap::new();
        for (_, Served { rule, .. }) in rules.served() {
            match RowKeys::new(&dedup.by, &rule.manifest) {
                Ok(found) => {
                    keys.insert(rule.digest, found);
                }
                Err(column) => {
                    let what =
                        format!("rule {} does not produce column `{column}`: a key needs it of every rule", rule.label);
                    self.refuse("dedup.by.columns", what);
                }
            }
        }
        keys
    }

    /// Refuses host columns that the table cannot take.
    fn host_fits(&mut self, table: &[TableColumn], host: &BTreeMap<String, HostColumn>, silver: &str) {
        for column in table {
            let Some(value) = host_column(host, &column.name) else { continue };
            let configured = host.keys().find(|name| name.eq_ignore_ascii_case(&column.name));
            let key = configured.map_or("silver.table".to_owned(), |name| key_path(&["silver", "host_columns", name]));
            self.fits(&key, column, value.kind(), "the host");
            // Of an accepted row rule and version are known; these two depend on the event.
            let may_be_null = matches!(value, HostColumn::OrderingKey | HostColumn::DeliveryAttempt);
            if may_be_null && !column.nullable {
                let what = format!("column `{}` is NOT NULL, but not every event has a value for it", column.name);
                self.refuse(key, what);
            }
        }
        for missing in host.keys().filter(|name| !table.iter().any(|c| c.name.eq_ignore_ascii_case(name))) {
            let what = format!("table {} has no such column", table_name(self.warehouse, silver));
            self.refuse(key_path(&["silver", "host_columns", missing]), what);
        }
    }

    /// Refuses a rule whose columns the table cannot take.
    fn rule_fits(&mut self, key: &str, rule: &Rule, table: &[TableColumn]) {
        let label = &rule.label;
        for ours in &rule.manifest.columns {
            match table.iter().find(|column| column.name.eq_ignore_ascii_case(&ours.name)) {
                None => self.refuse(
                    key,
                    format!(
                        "rule {label} produces column `{}` ({}), which silver lacks: add it to the table",
                        ours.name, ours.kind
                    ),
                ),
                Some(column) => {
                    self.fits(key, column, ours.kind, &format!("rule {label}"));
                    if ours.nullable && !column.nullable {
                        self.refuse(
                            key,
                            format!("rule {label} may leave column `{}` null, which is NOT NULL in silver", ours.name),
                        );
                    }
                }
            }
        }
    }

    fn fits(&mut self, key: &str, column: &TableColumn, kind: ColumnType, whose: &str) {
        if !column.holds.contains(&kind) {
            let what = format!(
                "column `{}` is declared {}, which cannot hold {whose}'s {kind} without loss",
                column.name, column.declared
            );
            self.refuse(key, what);
        }
    }

    /// The column that rows are counted by. Without a rule there are no rows.
    fn counted(&mut self, name: &str, layout: &Layout, manifests: &[&Manifest]) -> Option<usize> {
        let index = layout.columns.iter().position(|column| column.eq_ignore_ascii_case(name));
        if index.is_none() && !manifests.is_empty() {
            let filled = layout.columns.join(", ");
            self.refuse("silver.count_by", format!("no rule and no host column fills `{name}`: filled are {filled}"));
        }
        index
    }

    fn partition(
        &mut self,
        name: &str,
        layout: &Layout,
        manifests: &[&Manifest],
        host: Option<HostColumn>,
    ) -> Option<usize> {
        let index = layout.columns.iter().position(|column| column.eq_ignore_ascii_case(name));
        let timely = |kind: ColumnType| matches!(kind, ColumnType::Timestamp | ColumnType::Date);
        let fits = manifests.iter().all(|m| m.column(name).is_none_or(|index| timely(m.columns[index].kind)))
            && host.is_none_or(|host| timely(host.kind()));
        match index {
            // Without a rule there are no rows.
            None if manifests.is_empty() => None,
            Some(index) if fits => Some(index),
            Some(_) => {
                self.refuse("silver.partition_by", format!("column `{name}` is neither TIMESTAMP nor DATE"));
                None
            }
            None => {
                self.refuse("silver.partition_by", format!("no rule and no host column fills `{name}`"));
                None
            }
        }
    }
}

/// The columns of silver that its rules and `silver.host_columns` fill: those of all rules, then the host's. A column that
/// not every rule fills is nullable. With them what rules disagree about.
pub fn silver_columns(manifests: &[&Manifest], host: &BTreeMap<String, HostColumn>) -> (Vec<Column>, Vec<Problem>) {
    let mut problems = Vec::new();
    let mut columns: Vec<Column> = Vec::new();
    for manifest in manifests {
        for column in &manifest.columns {
            match columns.iter().find(|known| known.name.eq_ignore_ascii_case(&column.name)) {
                None => columns.push(column.clone()),
                Some(known) if known.kind != column.kind => {
                    let what =
                        format!("two rules disagree on column `{}`: {} and {}", column.name, known.kind, column.kind);
                    problems.push(Problem::new("silver.table", what));
                }
                Some(_) => {}
            }
        }
    }
    for column in &mut columns {
        column.nullable =
            manifests.iter().any(|m| m.column(&column.name).is_none_or(|index| m.columns[index].nullable));
    }
    columns.extend(host.iter().map(|(name, host)| Column::new(name, host.kind(), host.nullable())));
    (columns, problems)
}

/// The column of silver that the host fills where the table has it, unless it is one of these already.
pub fn rule_digest_column(columns: &[Column]) -> Option<Column> {
    let there = columns.iter().any(|column| column.name.eq_ignore_ascii_case(RULE_DIGEST));
    (!there).then(|| Column::new(RULE_DIGEST, HostColumn::RuleDigest.kind(), true))
}

fn host_column(configured: &BTreeMap<String, HostColumn>, name: &str) -> Option<HostColumn> {
    let by_config = configured.iter().find(|(column, _)| column.eq_ignore_ascii_case(name)).map(|(_, host)| *host);
    by_config.or_else(|| name.eq_ignore_ascii_case(RULE_DIGEST).then_some(HostColumn::RuleDigest))
}

//! A table against one that is there.

use super::super::commands;
use super::super::model::{FoundTable, Standing, Table, TableRole, WantedColumn};
use super::{Change, Difference};
use crate::row::Column;
use crate::warehouse::TableColumn;

/// What is to be done to a table that is there, and how it differs. `tells_all`: whether partitions, order and description
/// were told.
pub fn compare(
    wanted: &Table,
    there: &FoundTable,
    tells_all: bool,
    add_columns: bool,
) -> (Option<Change>, Vec<Difference>) {
    if let Some(kind) = &there.other_kind {
        let what = format!("it is no table but of type {kind}: rows cannot be written to it");
        return (None, vec![Difference::blocking(what, None)]);
    }
    let mut differences = Vec::new();
    let mut missing = Vec::new();
    for ours in &wanted.columns {
        let name = &ours.column.name;
        match there.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name)) {
            None if ours.standing == Standing::Known => {}
            // BigQuery adds no NOT NULL column to a table: there may be rows already.
            None if add_columns && ours.column.nullable => missing.push(ours.column.clone()),
            None => differences.push(lacks(wanted, ours)),
            Some(column) => differences.extend(column_differs(wanted, ours, column)),
        }
    }
    for column in &there.columns {
        let ours = wanted.columns.iter().any(|ours| ours.column.name.eq_ignore_ascii_case(&column.name));
        if !ours && !column.nullable && !column.has_default {
            let what = format!("column `{}` is NOT NULL, and nothing fills it", column.name);
            differences.push(Difference::blocking(what, Some(commands::drop_not_null(&wanted.name, &column.name))));
        }
    }
    differences.extend(key_differs(wanted, there));
    if tells_all {
        differences.extend(layout_differs(wanted, there));
    }
    let change = (!missing.is_empty()).then_some(Change::AddColumns(missing));
    (change, differences)
}

fn lacks(table: &Table, ours: &WantedColumn) -> Difference {
    let Column { name, kind, nullable } = &ours.column;
    let column = Column { nullable: true, ..ours.column.clone() };
    let remedy = Some(commands::add_columns(table, &[column]).command);
    let how = if *nullable {
        format!("it lacks column `{name}` {kind}: --extended adds it")
    } else {
        format!("it lacks column `{name}` {kind}, which can only be added as a nullable one")
    };
    match ours.standing {
        Standing::Needed => Difference::blocking(how, remedy),
        Standing::Wanted | Standing::Known => Difference::harmless(how, remedy),
    }
}

fn column_differs(table: &Table, ours: &WantedColumn, column: &TableColumn) -> Option<Difference> {
    let name = &column.name;
    let kind = ours.column.kind;
    if !holds(table.role, ours, column) {
        let what = format!(
            "column `{name}` is declared {}, which cannot hold {kind} without loss: a column's type stays as it is, \
             make another table",
            column.declared
        );
        return Some(Difference::blocking(what, None));
    }
    if !column.nullable && ours.may_be_null {
        let what = format!("column `{name}` is NOT NULL, but not every event has a value for it");
        return Some(Difference::blocking(what, Some(commands::drop_not_null(&table.name, name))));
    }
    let loose = column.nullable && !ours.column.nullable && ours.standing != Standing::Known;
    loose.then(|| Difference::harmless(format!("column `{name}` may be null, a new table has it as NOT NULL"), None))
}

/// Rows replace others by a primary key of one column. Where the column is missing that was said.
fn key_differs(table: &Table, there: &FoundTable) -> Option<Difference> {
    let key = table.primary_key.as_ref()?;
    let column = there.columns.iter().find(|column| column.name.eq_ignore_ascii_case(key))?;
    if column.is_key {
        return None;
    }
    let what = format!(
        "column `{key}` is not its primary key, by which rows replace others: add it only where each value is there once"
    );
    Some(Difference::blocking(what, Some(commands::add_primary_key(table, key).command)))
}

/// A BigQuery subscription takes other types for these two as well.
fn holds(role: TableRole, ours: &WantedColumn, column: &TableColumn) -> bool {
    let also: &[&str] = match (role, ours.column.name.as_str()) {
        (TableRole::BronzeBySubscription, "data") => &["BYTES", "JSON"],
        (TableRole::BronzeBySubscription, "attributes") => &["STRING"],
        _ => &[],
    };
    column.holds.contains(&ours.column.kind) || also.contains(&column.declared.as_str())
}

fn layout_differs(wanted: &Table, there: &FoundTable) -> Vec<Difference> {
    let mut differences = Vec::new();
    let by = |columns: &[String]| if columns.is_empty() { "nothing".to_owned() } else { columns.join(", ") };
    let partitions = wanted.partition_by.as_ref().map(|column| partition_of(wanted, column));
    if partitions != there.partition_by {
        let shown = |by: &Option<String>| by.as_deref().unwrap_or("nothing").to_owned();
        let what = format!(
            "it is partitioned by {}, not by {}: a table's partitions stay as they are, copy it into a new one",
            shown(&there.partition_by),
            shown(&partitions)
        );
        differences.push(Difference::harmless(what, None));
    }
    if wanted.cluster_by != there.cluster_by {
        let what = format!("it is clustered by {}, not by {}", by(&there.cluster_by), by(&wanted.cluster_by));
        let remedy = commands::cluster(&wanted.name, &wanted.cluster_by);
        differences.push(Difference::harmless(what, Some(remedy)));
    }
    if let Some(description) = &wanted.description
        && there.description.as_ref() != Some(description)
    {
        let what = match &there.description {
            None => "it has no description".to_owned(),
            Some(there) => format!("its description is {there:?}"),
        };
        let remedy = commands::describe(&wanted.name, description);
        differences.push(Difference::harmless(what, Some(remedy)));
    }
    differences
}

/// The partitions of a wanted table as `PARTITION BY` says them.
fn partition_of(table: &Table, column: &str) -> String {
    let kind = table.columns.iter().find(|ours| ours.column.name.eq_ignore_ascii_case(column));
    commands::partition(column, kind.map(|ours| ours.column.kind))
}

#[cfg(test)]
mod tests {
    use super::super::super::model::TableName;
    use super::*;
    use crate::row::ColumnType;

    fn wanted() -> Table {
        let column = |name: &str, kind, nullable, standing| WantedColumn {
            column: Column::new(name, kind, nullable),
            standing,
            may_be_null: nullable,
        };
        Table {
            role: TableRole::Silver,
            name: TableName::parse("p.d.t", "").unwrap(),
            location: None,
            columns: vec![
                column("id", ColumnType::Text, false, Standing::Needed),
                column("at", ColumnType::Timestamp, false, Standing::Needed),
                column("tier", ColumnType::Text, true, Standing::Needed),
                column("seen", ColumnType::Timestamp, false, Standing::Wanted),
                column("digest", ColumnType::Text, true, Standing::Known),
            ],
            partition_by: Some("at".into()),
            cluster_by: vec!["id".into()],
            primary_key: None,
            description: Some("what it is".into()),
        }
    }

    fn there(columns: &[(&str, &str, bool)]) -> FoundTable {
        let columns = columns.iter().map(|(name, declared, nullable)| {
            let kind = ColumnType::ALL.into_iter().find(|kind| kind.to_string() == *declared);
            TableColumn {
                name: (*name).into(),
                declared: (*declared).into(),
                holds: kind.into_iter().collect(),
                limit: None,
                nullable: *nullable,
                has_default: false,
                is_key: false,
            }
        });
        FoundTable {
            columns: columns.collect(),
            partition_by: Some("DATE(at)".into()),
            cluster_by: vec!["id".into()],
            description: Some("what it is".into()),
            ..FoundTable::default()
        }
    }

    const WHOLE: [(&str, &str, bool); 4] =
        [("id", "STRING", false), ("at", "TIMESTAMP", false), ("tier", "STRING", true), ("seen", "TIMESTAMP", false)];

    /// What differs, and whether it blocks.
    fn differs(there: &FoundTable) -> Vec<(String, bool)> {
        let (change, differences) = compare(&wanted(), there, true, false);
        assert_eq!(change, None);
        differences.into_iter().map(|difference| (difference.what, difference.blocks)).collect()
    }

    #[test]
    fn a_table_as_it_would_be_made_is_kept_whatever_optional_columns_it_has() {
        assert_eq!(compare(&wanted(), &there(&WHOLE), true, true), (None, vec![]));
        let mut extended = WHOLE.to_vec();
        extended.extend([("digest", "STRING", true), ("theirs", "GEOGRAPHY", true)]);
        assert_eq!(compare(&wanted(), &there(&extended), true, false), (None, vec![]));
    }

    #[test]
    fn missing_nullable_columns_are_added_only_when_that_is_asked_for() {
        let table = there(&[("id", "STRING", false), ("AT", "TIMESTAMP", false)]);
        let (change, differences) = compare(&wanted(), &table, true, false);
        assert_eq!(change, None);
        let told: Vec<(&str, bool)> =
            differences.iter().map(|difference| (difference.what.as_str(), difference.blocks)).collect();
        assert_eq!(
            told,
            [
                ("it lacks column `tier` STRING: --extended adds it", true),
                ("it lacks column `seen` TIMESTAMP, which can only be added as a nullable one", false),
            ]
        );
        let remedy = differences[0].remedy.as_deref().unwrap();
        assert!(remedy.contains("ADD COLUMN IF NOT EXISTS `tier` STRING"), "{remedy}");
        let (change, differences) = compare(&wanted(), &table, true, true);
        assert_eq!(change, Some(Change::AddColumns(vec![Column::new("tier", ColumnType::Text, true)])));
        assert_eq!(differences.len(), 1);
    }

    #[test]
    fn columns_that_would_lose_or_refuse_values_block() {
        let mut columns = WHOLE.to_vec();
        columns[0].1 = "INT64";
        columns[2].2 = false;
        columns[3].2 = true;
        columns.push(("theirs", "STRING", false));
        let told = differs(&there(&columns));
        let starts = [
            ("column `id` is declared INT64, which cannot hold STRING", true),
            ("column `tier` is NOT NULL, but not every event has", true),
            ("column `seen` may be null", false),
            ("column `theirs` is NOT NULL, and nothing fills it", true),
        ];
        assert_eq!(told.len(), starts.len(), "{told:?}");
        for ((what, blocks), (start, blocking)) in told.iter().zip(starts) {
            assert!(what.starts_with(start) && *blocks == blocking, "{what}");
        }
    }

    #[test]
    fn another_layout_is_told_and_left_and_an_emulator_is_not_asked_for_it() {
        let other = FoundTable { partition_by: None, cluster_by: vec![], description: None, ..there(&WHOLE) };
        let (_, differences) = compare(&wanted(), &other, true, true);
        let told: Vec<&str> = differences.iter().map(|difference| difference.what.as_str()).collect();
        assert!(told[0].starts_with("it is partitioned by nothing, not by DATE(at)"), "{told:?}");
        assert_eq!(told[1..], ["it is clustered by nothing, not by id", "it has no description"]);
        assert!(differences.iter().all(|difference| !difference.blocks));
        let remedies: Vec<_> = differences.iter().filter_map(|difference| difference.remedy.as_deref()).collect();
        assert_eq!(
            remedies,
            [
                "bq --project_id=p update --clustering_fields=id p:d.t",
                "bq --project_id=p update --description='what it is' p:d.t",
            ]
        );
        assert_eq!(compare(&wanted(), &other, false, true), (None, vec![]));
    }

    #[test]
    fn rows_that_replace_others_need_a_primary_key() {
        let keyed = Table { primary_key: Some("ID".into()), ..wanted() };
        let mut table = there(&WHOLE);
        let (change, differences) = compare(&keyed, &table, true, true);
        assert_eq!((change, differences.len(), differences[0].blocks), (None, 1, true), "{differences:?}");
        assert!(differences[0].what.starts_with("column `ID` is not its primary key"), "{differences:?}");
        let remedy = differences[0].remedy.as_deref().unwrap();
        assert!(remedy.contains("ALTER TABLE `p.d.t`\n  ADD PRIMARY KEY (`ID`) NOT ENFORCED;"), "{remedy}");
        table.columns[0].is_key = true;
        assert_eq!(compare(&keyed, &table, true, true), (None, vec![]));
        // Whoever appends rows does not mind.
        assert_eq!(compare(&wanted(), &table, true, true), (None, vec![]));
    }

    #[test]
    fn a_view_is_no_table() {
        let view = FoundTable { other_kind: Some("VIEW".into()), ..there(&WHOLE) };
        let told = differs(&view);
        assert!(told[0].0.contains("of type VIEW") && told[0].1);
    }

    #[test]
    fn a_subscription_writes_payloads_as_text_bytes_or_json() {
        let mut table = wanted();
        table.role = TableRole::BronzeBySubscription;
        table.columns.truncate(1);
        table.columns[0].column.name = "data".into();
        for declared in ["STRING", "BYTES", "JSON"] {
            let (_, differences) = compare(&table, &there(&[("data", declared, false)]), false, false);
            assert_eq!(differences, [], "{declared}");
        }
        let (_, differences) = compare(&table, &there(&[("data", "INT64", false)]), false, false);
        assert!(differences[0].blocks);
    }
}

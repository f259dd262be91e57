//! Tables by SQL: made, and asked whether they have rows.

use super::super::{NewTable, WarehouseError};
use super::live::LiveTable;
use super::name::TableName;
use super::rest::{Rest, cell, list};
use crate::row::ColumnType;
use std::collections::BTreeSet;

/// Values that are looked for at once: BigQuery takes ten thousand parameters, and a request of 10 MB.
const AT_ONCE: usize = 2_000;

/// `CREATE TABLE` for a table of a project.
pub fn create_statement(table: &NewTable, project: &str) -> Result<String, WarehouseError> {
    let name = TableName::parse(&table.name, project)?;
    let mut columns: Vec<String> = table
        .columns
        .iter()
        .map(|column| {
            let null = if table.is_nullable(column) { "" } else { " NOT NULL" };
            format!("  `{}` {}{null}", column.name, column.kind)
        })
        .collect();
    let known = |column: &str| table.columns.iter().find(|known| known.name.eq_ignore_ascii_case(column));
    if let Some(missing) = table.cluster_by.iter().find(|column| known(column).is_none()) {
        let text = format!("table {name} cannot be clustered by `{missing}`: it has no such column");
        return Err(WarehouseError { text, retryable: false });
    }
    if let Some(key) = &table.primary_key {
        if known(key).is_none() {
            let text = format!("table {name} cannot have the primary key `{key}`: it has no such column");
            return Err(WarehouseError { text, retryable: false });
        }
        columns.push(format!("  PRIMARY KEY (`{key}`) NOT ENFORCED"));
    }
    let mut sql = format!("CREATE TABLE IF NOT EXISTS {} (\n{}\n)", name.sql(), columns.join(",\n"));
    if let Some(column) = &table.partition_by {
        match known(column).map(|known| known.kind) {
            Some(ColumnType::Timestamp) => sql.push_str(&format!("\nPARTITION BY DATE(`{column}`)")),
            Some(ColumnType::Date) => sql.push_str(&format!("\nPARTITION BY `{column}`")),
            _ => {
                let text =
                    format!("table {name} cannot be partitioned by `{column}`: it has no such TIMESTAMP or DATE");
                return Err(WarehouseError { text, retryable: false });
            }
        }
    }
    if !table.cluster_by.is_empty() {
        sql.push_str(&format!("\nCLUSTER BY `{}`", table.cluster_by.join("`, `")));
    }
    if let Some(description) = &table.description {
        sql.push_str(&format!("\nOPTIONS (description = {})", literal(description)));
    }
    Ok(sql)
}

/// A text in SQL.
fn literal(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Makes a table, unless it is there.
pub(super) async fn create(rest: &Rest, table: &NewTable, project: &str) -> Result<(), WarehouseError> {
    let sql = create_statement(table, project)?;
    let made = rest.query(&sql, Vec::new()).await;
    made.map_err(|failure| WarehouseError {
        text: format!("cannot make table {}: {}", table.name, failure.text),
        retryable: failure.retryable,
    })?;
    let name = TableName::parse(&table.name, project)?;
    let Some(there) = rest.table(&name).await? else {
        let text = format!("table {name} was made, and is not there: was it dropped at once?");
        return Err(WarehouseError { text, retryable: true });
    };
    if there.fields().iter().map(|field| &field.name).eq(table.columns.iter().map(|column| &column.name)) {
        return Ok(());
    }
    let text = format!("table {name} was made by another program meanwhile, with other columns: run again");
    Err(WarehouseError { text, retryable: false })
}

/// Whether a table has rows.
pub(super) async fn has_rows(rest: &Rest, name: &TableName) -> Result<bool, WarehouseError> {
    let Some(table) = rest.table(name).await? else {
        let text = format!("there is no table {name}");
        return Err(WarehouseError { text, retryable: false });
    };
    let sql = format!("SELECT 1 FROM {} WHERE {} LIMIT 1", name.sql(), any_partition(&table));
    let rows = rest.query(&sql, Vec::new()).await.map_err(|failure| cannot_look(name, failure.into()))?;
    Ok(!rows.is_empty())
}

/// Which of these values a text column has.
pub(super) async fn present(
    rest: &Rest,
    name: &TableName,
    column: &str,
    values: &[String],
) -> Result<BTreeSet<String>, WarehouseError> {
    let Some(table) = rest.table(name).await? else { return Ok(BTreeSet::new()) };
    let sql = format!(
        "SELECT DISTINCT `{column}` FROM {} WHERE `{column}` IN UNNEST(@wanted) AND {}",
        name.sql(),
        any_partition(&table)
    );
    let mut found = BTreeSet::new();
    for wanted in values.chunks(AT_ONCE) {
        let parameters = vec![list("wanted", "STRING", wanted.iter().map(String::as_str))];
        let rows = rest.query(&sql, parameters).await.map_err(|failure| cannot_look(name, failure.into()))?;
        found.extend(rows.iter().filter_map(|row| cell(row, 0)).map(str::to_owned));
    }
    Ok(found)
}

#[expect(clippy::needless_pass_by_value, reason = "it becomes another error")]
fn cannot_look(name: &TableName, error: WarehouseError) -> WarehouseError {
    WarehouseError { text: format!("cannot look into table {name}: {}", error.text), ..error }
}

/// A condition that every row fits. A table may refuse queries that name no partitions (`require_partition_filter`), and is
/// content with one that names all.
pub(super) fn any_partition(table: &LiveTable) -> String {
    let by_time = table.time_partitioning.as_ref();
    let required = table.require_partition_filter.or_else(|| by_time?.require_partition_filter);
    if required != Some(true) {
        return "TRUE".to_owned();
    }
    let by_range = table.range_partitioning.as_ref().and_then(|range| range.field.as_deref());
    let column = by_range.or_else(|| by_time?.field.as_deref());
    // Partitions by the time of arrival have a pseudo column.
    let column = column.unwrap_or("_PARTITIONTIME");
    let least = match table.field(column).map(|field| field.kind.as_str()) {
        Some("DATE") => "DATE '0001-01-01'",
        Some("DATETIME") => "DATETIME '0001-01-01 00:00:00'",
        Some("INTEGER" | "INT64") => "-9223372036854775808",
        _ => "TIMESTAMP '0001-01-01 00:00:00+00'",
    };
    format!("(`{column}` >= {least} OR `{column}` IS NULL)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Column;

    fn bookings() -> NewTable {
        NewTable {
            name: "silver.bookings".into(),
            columns: vec![
                Column::new("id", ColumnType::Text, false),
                Column::new("amount", ColumnType::Numeric, true),
                Column::new("at", ColumnType::Timestamp, true),
                Column::new("day", ColumnType::Date, true),
            ],
            partition_by: Some("at".into()),
            cluster_by: vec!["id".into(), "day".into()],
            primary_key: None,
            description: Some("what \"we\" accept\n\\".into()),
        }
    }

    #[test]
    fn a_table_is_declared_with_its_partitions_its_order_and_what_it_is() {
        assert_eq!(
            create_statement(&bookings(), "p").unwrap(),
            "CREATE TABLE IF NOT EXISTS `p.silver.bookings` (\n  `id` STRING NOT NULL,\n  `amount` NUMERIC,\n  `at` TIMESTAMP,\n  \
             `day` DATE\n)\nPARTITION BY DATE(`at`)\nCLUSTER BY `id`, `day`\nOPTIONS (description = \"what \\\"we\\\" accept\\n\\\\\")"
        );
        let plain = NewTable::plain("other.silver.bookings", vec![Column::new("x", ColumnType::Json, true)]);
        assert_eq!(
            create_statement(&plain, "p").unwrap(),
            "CREATE TABLE IF NOT EXISTS `other.silver.bookings` (\n  `x` JSON\n)"
        );
        let columns = vec![Column::new("x", ColumnType::Text, true), Column::new("n", ColumnType::Int64, true)];
        let keyed = NewTable { primary_key: Some("x".into()), ..NewTable::plain("s.t", columns) };
        assert_eq!(
            create_statement(&keyed, "p").unwrap(),
            "CREATE TABLE IF NOT EXISTS `p.s.t` (\n  `x` STRING NOT NULL,\n  `n` INT64,\n  PRIMARY KEY (`x`) NOT ENFORCED\n)"
        );
        let by_day = NewTable { partition_by: Some("DAY".into()), ..bookings() };
        assert!(create_statement(&by_day, "p").unwrap().contains("\nPARTITION BY `DAY`\n"));
    }

    #[test]
    fn what_cannot_be_partitioned_or_has_no_dataset_is_refused() {
        for column in ["id", "nowhere"] {
            let by_text = NewTable { partition_by: Some(column.into()), ..bookings() };
            assert!(create_statement(&by_text, "p").unwrap_err().text.contains(&format!("`{column}`")));
        }
        let by_nothing = NewTable { cluster_by: vec!["id".into(), "nowhere".into()], ..bookings() };
        assert!(create_statement(&by_nothing, "p").unwrap_err().text.contains("`nowhere`"));
        let by_no_key = NewTable { primary_key: Some("nowhere".into()), ..bookings() };
        assert!(create_statement(&by_no_key, "p").unwrap_err().text.contains("`nowhere`"));
        let bare = NewTable { name: "bookings".into(), ..bookings() };
        assert!(create_statement(&bare, "p").unwrap_err().text.contains("dataset.table"));
    }

    #[test]
    fn a_table_that_wants_a_partition_filter_gets_one_for_all() {
        let table = |json: serde_json::Value| -> LiveTable {
            let mut table =
                serde_json::json!({ "tableReference": { "projectId": "p", "datasetId": "d", "tableId": "t" } });
            let fields = serde_json::json!([{ "name": "at", "type": "TIMESTAMP" }, { "name": "day", "type": "DATE" },
                { "name": "n", "type": "INTEGER" }]);
            table["schema"] = serde_json::json!({ "fields": fields });
            for (key, value) in json.as_object().unwrap() {
                table[key] = value.clone();
            }
            serde_json::from_value(table).unwrap()
        };
        let day = |field: &str| serde_json::json!({ "type": "DAY", "field": field });
        for (json, condition) in [
            (serde_json::json!({}), "TRUE"),
            (serde_json::json!({ "timePartitioning": day("at") }), "TRUE"),
            (
                serde_json::json!({ "timePartitioning": day("at"), "requirePartitionFilter": true }),
                "(`at` >= TIMESTAMP '0001-01-01 00:00:00+00' OR `at` IS NULL)",
            ),
            (
                serde_json::json!({ "timePartitioning": day("day"), "requirePartitionFilter": true }),
                "(`day` >= DATE '0001-01-01' OR `day` IS NULL)",
            ),
            (
                serde_json::json!({ "timePartitioning": { "type": "DAY", "requirePartitionFilter": true } }),
                "(`_PARTITIONTIME` >= TIMESTAMP '0001-01-01 00:00:00+00' OR `_PARTITIONTIME` IS NULL)",
            ),
            (
                serde_json::json!({ "rangePartitioning": { "field": "n" }, "requirePartitionFilter": true }),
                "(`n` >= -9223372036854775808 OR `n` IS NULL)",
            ),
        ] {
            assert_eq!(any_partition(&table(json.clone())), condition, "{json}");
        }
    }
}

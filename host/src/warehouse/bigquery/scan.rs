//! Rows read back, page by page of the result of one query: what is written meanwhile is not seen.

use super::super::scan::{CHUNK_ROWS, Scan, from_text};
use super::super::{TableColumn, WarehouseError};
use super::name::TableName;
use super::rest::{Pages, Rest, cell, parameter};
use super::schema;
use super::storage::Storage;
use super::streams::Asks;
use super::tables::any_partition;
use crate::row::{ColumnType, Row, Value};
use crate::time::format_micros;
use gcp_bigquery_client::model::table_row::TableRow;

/// Begins to read.
pub(super) async fn begin<'a>(
    rest: &'a Rest,
    storage: &Storage,
    name: &TableName,
    scan: &Scan,
) -> Result<Pages<'a>, WarehouseError> {
    let missing = || scan.unreadable("there is no such table");
    let live = schema::columns(rest, storage, name, Asks::Looker).await?.ok_or_else(missing)?;
    let table = rest.table(name).await?.ok_or_else(missing)?;
    let columns = scan.live(&live)?;
    let range = [("from_time", scan.from), ("to_time", scan.to)];
    let range = range.map(|(name, time)| parameter(name, "TIMESTAMP", &format_micros(time)));
    let (sql, rows) = (statement(name, &columns, &any_partition(&table)), i32::try_from(CHUNK_ROWS).ok());
    rest.pages(&sql, range.to_vec(), rows).await.map_err(|failure| failed(scan, failure.into()))
}

/// The query for columns, the last of which is the time. `any` is a condition that every row fits.
fn statement(name: &TableName, columns: &[&TableColumn], any: &str) -> String {
    let (time, columns) = columns.split_last().expect("the time is the last of them");
    let values = columns.iter().map(|column| shown(&column.name, column.holds.first()));
    // There may be no columns, where only the number of rows is wanted.
    let values = values.chain(["1".to_owned()]);
    let values: Vec<String> =
        (0..).zip(values).map(|(index, value): (usize, _)| format!("{value} AS v_{index}")).collect();
    format!(
        "SELECT {} FROM {} WHERE `{time}` >= @from_time AND `{time}` < @to_time AND {any}",
        values.join(", "),
        name.sql(),
        time = time.name,
    )
}

/// The next chunk. None is left when there is none.
pub(super) async fn next(pages: &mut Pages<'_>, scan: &Scan) -> Result<Option<Vec<Row>>, WarehouseError> {
    while let Some(rows) = pages.next().await.map_err(|failure| failed(scan, failure.into()))? {
        // The page of a result without rows, or one of which only the next has any.
        if !rows.is_empty() {
            return rows.iter().map(|row| read(scan, row)).collect::<Result<_, _>>().map(Some);
        }
    }
    Ok(None)
}

/// A column as text from which its value can be read as it was written.
fn shown(name: &str, own: Option<&ColumnType>) -> String {
    match own {
        Some(ColumnType::Bytes) => format!("TO_BASE64(`{name}`)"),
        Some(ColumnType::Json) => format!("TO_JSON_STRING(`{name}`)"),
        Some(ColumnType::Timestamp) => format!("CAST(UNIX_MICROS(`{name}`) AS STRING)"),
        // REST has the shortest digits that tell it from its neighbours; what a cast gives may be less.
        Some(ColumnType::Text | ColumnType::Float64) => format!("`{name}`"),
        _ => format!("CAST(`{name}` AS STRING)"),
    }
}

fn read(scan: &Scan, row: &TableRow) -> Result<Row, WarehouseError> {
    let value = |(index, (_, kind)): (usize, &(String, ColumnType))| match cell(row, index) {
        None => Some(Value::Null),
        Some(text) => from_text(*kind, text),
    };
    scan.row(scan.columns.iter().enumerate().map(value))
}

#[expect(clippy::needless_pass_by_value, reason = "it becomes another error")]
fn failed(scan: &Scan, error: WarehouseError) -> WarehouseError {
    WarehouseError { text: format!("cannot read table {}: {}", scan.table, error.text), ..error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_names_partitions_where_the_table_wants_it() {
        let column = |name: &str, kind| TableColumn {
            name: name.into(),
            declared: String::new(),
            holds: vec![kind],
            limit: None,
            nullable: true,
            has_default: false,
            is_key: false,
        };
        let (id, raw) = (column("id", ColumnType::Text), column("raw", ColumnType::Bytes));
        let time = column("At", ColumnType::Timestamp);
        let name = TableName::parse("d.t", "p").unwrap();
        assert_eq!(
            statement(&name, &[&id, &raw, &time], "(`day` IS NULL)"),
            "SELECT `id` AS v_0, TO_BASE64(`raw`) AS v_1, 1 AS v_2 FROM `p.d.t` \
             WHERE `At` >= @from_time AND `At` < @to_time AND (`day` IS NULL)"
        );
    }
}

//! Rows read back as they were written, in chunks. On SQLite and the BigQuery emulator.

use super::fakes::fake;
use super::place::{Place, ids};
use futures::TryStreamExt as _;
use preflight::row::{Column, ColumnType, Row, Value};
use preflight::time::{MAX_MICROS, MIN_MICROS};
use preflight::warehouse::{NewTable, Scan, Warehouse, WarehouseError};
use preflight_tests::bigquery::fake::{Call, Fault};
use rusqlite::Connection;
use tonic::Code;

/// Runs each part against each warehouse, as a test of its own.
macro_rules! scans {
    ($($part:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test] async fn $part() { super::$part(&super::Place::sqlite()).await })*
        }
        mod emulator {
            $(#[tokio::test] async fn $part() { super::$part(&super::Place::emulator()).await })*
        }
    };
}

scans!(
    every_value_comes_back_as_it_was_written,
    rows_of_the_range_come_in_chunks_and_no_others,
    what_is_not_there_or_of_another_type_is_told,
    rows_can_be_counted_without_their_values,
);

fn scan(table: &str, columns: &[(&str, ColumnType)], from: i64, to: i64) -> Scan {
    let columns = columns.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect();
    Scan { table: table.into(), columns, time: "at".into(), from, to }
}

async fn chunks(warehouse: &dyn Warehouse, scan: Scan) -> Result<Vec<Vec<Row>>, WarehouseError> {
    warehouse.scan(scan).try_collect().await
}

async fn every_value_comes_back_as_it_was_written(place: &Place) {
    let warehouse = place.open().await;
    let table = place.table("every");
    let names = ColumnType::ALL.map(|kind| format!("c_{kind}").to_lowercase());
    let mut columns: Vec<Column> =
        names.iter().zip(ColumnType::ALL).map(|(name, kind)| Column::new(name, kind, true)).collect();
    columns.push(Column::new("at", ColumnType::Timestamp, true));
    // The emulator's NUMERIC has 15 digits before the point and 3 behind it.
    let (largest, least) = match place {
        Place::Emulator(_) => ("999999999999999.999", "-0.001"),
        _ => ("99999999999999999999999999999.999999999", "-0.000000001"),
    };
    let rows = [
        vec![
            Value::Boolean(true),
            Value::Int64(i64::MIN),
            Value::Float64(0.1),
            Value::Numeric("749.5".into()),
            Value::Text("é\"'\\\n".into()),
            Value::Bytes(vec![0, 255]),
            Value::Timestamp(-1),
            Value::Date(-1),
            Value::Json("{\"a\":[1,null]}".into()),
        ],
        vec![
            Value::Boolean(false),
            Value::Int64(i64::MAX),
            Value::Float64(1.797_693_134_862_315_7e308),
            Value::Numeric(largest.into()),
            Value::Text(String::new()),
            Value::Bytes(vec![]),
            Value::Timestamp(1_700_000_000_123_456),
            Value::Date(20_000),
            Value::Json("\"x\"".into()),
        ],
        vec![
            Value::Null,
            Value::Int64(0),
            Value::Float64(-5e-324),
            Value::Numeric(least.into()),
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null,
        ],
        vec![Value::Null; 9],
    ];
    let timed = (0..).zip(rows.clone()).map(|(at, mut row)| {
        row.push(Value::Timestamp(at));
        row
    });
    warehouse.add(NewTable::plain(&table, columns), timed.collect()).await.unwrap();
    let wanted: Vec<(&str, ColumnType)> =
        names.iter().zip(ColumnType::ALL).map(|(name, kind)| (name.as_str(), kind)).collect();
    for (at, row) in (0..).zip(rows) {
        let found = chunks(warehouse.as_ref(), scan(&table, &wanted, at, at + 1)).await.unwrap();
        assert_eq!(found, [vec![row]]);
    }
}

async fn rows_of_the_range_come_in_chunks_and_no_others(place: &Place) {
    let warehouse = place.open().await;
    let table = place.table("t");
    let columns = vec![Column::new("Number", ColumnType::Int64, false), Column::new("at", ColumnType::Timestamp, true)];
    let new = NewTable::plain(&table, columns);
    let row = |number: i64, at: Value| vec![Value::Int64(number), at];
    let start = 1_700_000_000_000_000;
    let mut rows: Vec<Row> = (0..5_000).map(|number| row(number, Value::Timestamp(start + number))).collect();
    rows.push(row(-1, Value::Null));
    warehouse.add(new, rows).await.unwrap();
    let found = async |from: i64, to: i64| {
        let found = chunks(warehouse.as_ref(), scan(&table, &[("number", ColumnType::Int64)], from, to)).await.unwrap();
        assert!(found.iter().all(|chunk| (1..=2_000).contains(&chunk.len())), "a chunk is neither empty nor large");
        let mut rows = found.concat();
        rows.sort_by_key(|row| if let [Value::Int64(number)] = row[..] { number } else { panic!("{row:?}") });
        rows
    };
    let numbers = |range: std::ops::Range<i64>| range.map(|number| vec![Value::Int64(number)]).collect::<Vec<_>>();
    assert_eq!(found(start + 10, start + 4_990).await, numbers(10..4_990));
    assert_eq!(found(start + 4_999, start + 5_000).await, numbers(4_999..5_000));
    assert_eq!(found(MIN_MICROS, MAX_MICROS).await, numbers(0..5_000), "a row without a time is in no range");
    assert!(found(start + 5_000, MAX_MICROS).await.is_empty());
}

async fn what_is_not_there_or_of_another_type_is_told(place: &Place) {
    let warehouse = place.open().await;
    let table = place.table("t");
    let error = async |scan: Scan| {
        let error = chunks(warehouse.as_ref(), scan).await.unwrap_err();
        assert!(!error.retryable, "{error}");
        error.text
    };
    let id = [("id", ColumnType::Text)];
    assert!(error(scan(&table, &id, 0, 1)).await.contains("no such table"));
    warehouse.create_table(ids(&table)).await.unwrap();
    assert!(error(scan(&table, &id, 0, 1)).await.contains("no column `at`"));
    let other = Scan { time: "number".into(), ..scan(&table, &id, 0, 1) };
    assert!(error(other).await.contains("column `number` is declared"));
    let other = Scan { time: "number".into(), ..scan(&table, &[("id", ColumnType::Int64)], 0, 1) };
    assert!(error(other).await.contains("does not hold INT64"));
}

async fn rows_can_be_counted_without_their_values(place: &Place) {
    let warehouse = place.open().await;
    let table = place.table("t");
    let new = NewTable::plain(&table, vec![Column::new("at", ColumnType::Timestamp, true)]);
    warehouse.add(new, vec![vec![Value::Timestamp(1)], vec![Value::Timestamp(2)]]).await.unwrap();
    assert_eq!(chunks(warehouse.as_ref(), scan(&table, &[], 0, 10)).await.unwrap(), [vec![vec![], vec![]]]);
}

#[tokio::test]
async fn large_rows_come_in_small_chunks() {
    let place = Place::sqlite();
    let warehouse = place.open().await;
    let columns = vec![Column::new("text", ColumnType::Text, true), Column::new("at", ColumnType::Timestamp, true)];
    let row = || vec![Value::Text("x".repeat(400_000)), Value::Timestamp(0)];
    warehouse.add(NewTable::plain("t", columns), vec![row(), row(), row(), row()]).await.unwrap();
    let found = chunks(warehouse.as_ref(), scan("t", &[("text", ColumnType::Text)], 0, 1)).await.unwrap();
    assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [3, 1]);
}

/// Somebody else has written to the table, too.
#[tokio::test]
async fn what_is_no_value_of_ours_is_an_error_and_not_another_value() {
    let place = Place::sqlite();
    let warehouse = place.open().await;
    let columns = vec![
        Column::new("amount", ColumnType::Numeric, true),
        Column::new("flag", ColumnType::Boolean, true),
        Column::new("at", ColumnType::Timestamp, true),
    ];
    warehouse.create_table(NewTable::plain("t", columns)).await.unwrap();
    let Place::Sqlite(directory) = &place else { unreachable!() };
    let connection = Connection::open(directory.path().join("w.db")).unwrap();
    let wanted = [("amount", ColumnType::Numeric), ("flag", ColumnType::Boolean)];
    for (values, column) in [("'1e5', 1", "NUMERIC in column `amount`"), ("'1', 2", "BOOL in column `flag`")] {
        let sql = format!("DELETE FROM t; INSERT INTO t VALUES ({values}, '1970-01-01T00:00:00.000000Z')");
        connection.execute_batch(&sql).unwrap();
        let error = chunks(warehouse.as_ref(), scan("t", &wanted, 0, 1)).await.unwrap_err();
        assert!(error.text.contains(column) && !error.retryable, "{error}");
    }
    drop(warehouse.scan(scan("t", &wanted, 0, 1)));
}

#[tokio::test]
async fn a_failure_that_may_pass_is_told_as_one() {
    let place = Place::fake();
    let warehouse = place.open().await;
    let table = place.table("t");
    let columns = vec![Column::new("id", ColumnType::Text, true), Column::new("at", ColumnType::Timestamp, true)];
    warehouse.create_table(NewTable::plain(&table, columns)).await.unwrap();
    for call in [Call::Table, Call::Query] {
        fake(&place).when(call).once(Fault::answer(Code::Unavailable));
        let error = chunks(warehouse.as_ref(), scan(&table, &[("id", ColumnType::Text)], 0, 1)).await.unwrap_err();
        assert!(error.retryable && error.text.contains("cannot read table"), "{error}");
    }
}

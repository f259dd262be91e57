//! Tables as the REST interface and the Storage Write interface tell of them.

use super::fakes::fake;
use super::place::{Place, ids};
use preflight::row::{Column, ColumnType};
use preflight::warehouse::{Limit, NewTable, StreamRows, bigquery, inspect};
use preflight_tests::bigquery::Emulator;
use preflight_tests::bigquery::fake::{Call, Ending, Fault, FinalizeAgain, Refusal};
use std::collections::BTreeSet;
use std::time::Duration;
use tonic::Code;

#[tokio::test]
async fn columns_are_what_they_are_declared() {
    let place = Place::fake();
    fake(&place).create_table(
        "CREATE TABLE d.t (id STRING(5) NOT NULL, amount NUMERIC(10, 2), n INT64 NOT NULL DEFAULT 7, tags ARRAY<STRING>, \
         span RANGE, day DATE, place GEOGRAPHY)",
    );
    let columns = place.open().await.columns("d.t").await.unwrap().unwrap();
    let shown: Vec<String> = columns
        .iter()
        .map(|column| {
            let holds: Vec<String> = column.holds.iter().map(ToString::to_string).collect();
            let (nullable, has_default) = (column.nullable, column.has_default);
            format!("{} {} {holds:?} {nullable} {has_default}", column.name, column.declared)
        })
        .collect();
    assert_eq!(
        shown,
        [
            r#"id STRING(5) ["STRING", "JSON"] false false"#,
            r#"amount NUMERIC(10, 2) ["NUMERIC", "INT64"] true false"#,
            r#"n INT64 ["INT64"] false true"#,
            "tags ARRAY<STRING> [] true false",
            // A type that a client of REST may not know.
            "span RANGE [] true false",
            r#"day DATE ["DATE"] true false"#,
            "place GEOGRAPHY [] true false",
        ]
    );
    assert_eq!(columns[0].limit, Some(Limit::Characters(5)));
    assert_eq!(columns[1].limit, Some(Limit::Digits { before: 8, behind: 2 }));
}

#[tokio::test]
async fn a_table_that_only_rest_knows_yet_has_its_columns() {
    let place = Place::fake();
    let warehouse = place.open().await;
    warehouse.create_table(ids("d.t")).await.unwrap();
    for code in [Code::NotFound, Code::Unimplemented] {
        fake(&place).when(Call::Get).once(Fault::status(code));
        assert_eq!(warehouse.columns("d.t").await.unwrap().unwrap().len(), 2, "{code:?}");
    }
}

#[tokio::test]
async fn what_keeps_the_columns_from_being_read_is_told() {
    let place = Place::fake();
    let warehouse = place.open().await;
    warehouse.create_table(ids("d.t")).await.unwrap();
    for (call, fault, retryable, part) in [
        (Call::Table, Fault::status(Code::Unavailable), true, "cannot read table preflight-test.d.t"),
        (Call::Table, Fault::status(Code::PermissionDenied), false, "cannot read table preflight-test.d.t"),
        (Call::Table, Fault::status(Code::Unauthenticated), true, "401"),
        (Call::Table, Fault::status(Code::ResourceExhausted), true, "403"),
        // A front end's page is no answer of BigQuery's, whatever its status.
        (Call::Table, Fault::Page(502), true, "cannot read table preflight-test.d.t"),
        (Call::Table, Fault::Page(404), true, "cannot read table preflight-test.d.t"),
        (Call::Table, Fault::Page(200), true, "cannot read table preflight-test.d.t"),
        (Call::Get, Fault::status(Code::PermissionDenied), false, "roles/bigquery.dataEditor"),
        (Call::Get, Fault::status(Code::Unavailable), true, "cannot read the schema of table"),
    ] {
        fake(&place).when(call).once(fault.clone());
        let error = warehouse.columns("d.t").await.unwrap_err();
        assert!(error.text.contains(part), "{fault:?}: {error}");
        assert_eq!(error.retryable, retryable, "{fault:?}: {error}");
    }
    let error = warehouse.columns("bare").await.unwrap_err();
    assert!(error.text.contains("dataset.table"), "{error}");
}

/// A job that looks for drift may read tables, and write to none.
#[tokio::test]
async fn who_only_looks_at_a_table_need_not_be_able_to_write_to_it() {
    let place = Place::fake();
    fake(&place).create_table("CREATE TABLE d.t (id STRING(5) NOT NULL, n INT64 DEFAULT 7)");
    fake(&place).when(Call::Get).always(Fault::status(Code::PermissionDenied));
    let warehouse = bigquery::BigQuery::connect(&place.bigquery()).await.unwrap();
    let columns = warehouse.columns_as_they_are("d.t").await.unwrap().unwrap();
    assert_eq!((columns[0].declared.as_str(), columns[1].has_default), ("STRING(5)", true));
    assert!(preflight::warehouse::Warehouse::columns(&warehouse, "d.t").await.is_err());
}

#[tokio::test]
async fn a_call_that_hangs_is_given_up() {
    let place = Place::fake();
    place.open().await.create_table(ids("d.t")).await.unwrap();
    let mut config = place.bigquery();
    config.request_timeout = Duration::from_millis(300);
    let warehouse = bigquery::BigQuery::connect(&config).await.unwrap();
    for call in [Call::Table, Call::Get] {
        fake(&place).when(call).once(Fault::Before(Ending::Hang));
        let error = preflight::warehouse::Warehouse::columns(&warehouse, "d.t").await.unwrap_err();
        assert!(error.text.contains("no answer within 0.3 s") && error.retryable, "{error}");
    }
}

#[tokio::test]
async fn a_stream_is_waited_for_where_that_may_help() {
    let place = Place::fake();
    let warehouse = place.open().await;
    let missing = warehouse.create_stream("s", "preflight-test.d.t").await.unwrap_err();
    assert!(missing.retryable && missing.text.contains("cannot make a stream"), "{missing}");
    warehouse.create_table(ids("d.t")).await.unwrap();
    for (code, retryable) in [(Code::PermissionDenied, true), (Code::Unavailable, true), (Code::InvalidArgument, false)]
    {
        fake(&place).when(Call::Create).once(Fault::status(code));
        let error = warehouse.create_stream("s", "preflight-test.d.t").await.unwrap_err();
        assert_eq!(error.retryable, retryable, "{error}");
    }
    warehouse.create_stream("s", "preflight-test.d.t").await.unwrap();
}

#[tokio::test]
async fn a_stream_that_was_finalized_before_may_not_say_its_rows_again() {
    let place = Place::fake();
    let warehouse = place.open().await;
    warehouse.create_table(ids("d.t")).await.unwrap();
    fake(&place).finalize_again(FinalizeAgain::Refuses);
    let plainly = warehouse.create_stream("s", "preflight-test.d.t").await.unwrap();
    fake(&place).someone_finalizes(&plainly);
    fake(&place).finalize_again(FinalizeAgain::RefusesPlainly);
    assert_eq!(warehouse.finalize_stream(&plainly).await, Ok(StreamRows::Unknown));
    fake(&place).when(Call::Finalize).once(Fault::status(Code::PermissionDenied));
    assert!(warehouse.finalize_stream(&plainly).await.is_err());
    fake(&place).finalize_again(FinalizeAgain::Refuses);
    let stream = warehouse.create_stream("s", "preflight-test.d.t").await.unwrap();
    fake(&place).someone_writes(&stream, 3);
    fake(&place).when(Call::Finalize).once(Fault::status(Code::Internal));
    assert!(warehouse.finalize_stream(&stream).await.unwrap_err().retryable);
    assert_eq!(warehouse.finalize_stream(&stream).await, Ok(StreamRows::Rows(3)));
    assert_eq!(warehouse.finalize_stream(&stream).await, Ok(StreamRows::Unknown));
    assert_eq!(warehouse.stream_rows(&stream).await, Ok(StreamRows::Unknown));
    fake(&place).expire_streams("d.t");
    assert_eq!(warehouse.finalize_stream(&stream).await, Ok(StreamRows::Missing));
    assert_eq!(warehouse.stream_rows(&stream).await, Ok(StreamRows::Missing));
    assert_eq!(warehouse.streams_with("s").await, Ok(vec![]));
    assert_eq!(warehouse.forget_streams("s", vec![]).await, Ok(()));
    assert!(warehouse.stream_lifetime().is_some());
}

#[tokio::test]
async fn a_table_that_asks_for_its_partitions_is_looked_into() {
    let place = Place::fake();
    fake(&place).create_table(
        "CREATE TABLE d.t (id STRING, at TIMESTAMP) PARTITION BY DATE(at) OPTIONS (require_partition_filter = true)",
    );
    let warehouse = place.open().await;
    assert_eq!(warehouse.has_rows("d.t").await, Ok(false));
    let row = |id: &str| vec![preflight::row::Value::Text(id.into()), preflight::row::Value::Null];
    let columns = vec![Column::new("id", ColumnType::Text, true), Column::new("at", ColumnType::Timestamp, true)];
    warehouse.add(NewTable::plain("d.t", columns), vec![row("a")]).await.unwrap();
    assert_eq!(warehouse.has_rows("d.t").await, Ok(true));
    let found = warehouse.present("preflight-test.d.t", "id", vec!["a".into(), "b".into()]).await;
    assert_eq!(found, Ok(BTreeSet::from(["a".to_owned()])));
    // A table that is gone has none of them.
    assert_eq!(warehouse.present("preflight-test.d.u", "id", vec!["a".into()]).await, Ok(BTreeSet::new()));
    assert!(warehouse.has_rows("d.u").await.unwrap_err().text.contains("there is no table"));
}

/// Once tried again for a day: the client of REST reads no table with a column of a type that it does not know.
#[tokio::test]
async fn a_column_of_a_new_type_hinders_nothing_that_is_not_about_it() {
    let place = Place::fake();
    fake(&place).create_table("CREATE TABLE d.t (id STRING, span RANGE, at TIMESTAMP) PARTITION BY DATE(at)");
    let warehouse = place.open().await;
    assert_eq!(warehouse.has_rows("d.t").await, Ok(false));
    let columns = vec![Column::new("id", ColumnType::Text, true)];
    warehouse.add(NewTable::plain("d.t", columns), vec![vec![preflight::row::Value::Text("a".into())]]).await.unwrap();
    assert_eq!(warehouse.has_rows("d.t").await, Ok(true));
    let found = warehouse.present("preflight-test.d.t", "id", vec!["a".into()]).await;
    assert_eq!(found, Ok(BTreeSet::from(["a".to_owned()])));
    let shape = bigquery::BigQuery::connect(&place.bigquery()).await.unwrap().shape("d.t").await.unwrap().unwrap();
    assert_eq!(shape.partition_by.as_deref(), Some("DATE(at)"));
}

#[tokio::test]
async fn a_statement_that_fails_says_what_was_wanted() {
    let place = Place::fake();
    let warehouse = place.open().await;
    fake(&place).when(Call::Query).once(Fault::status(Code::Unavailable));
    let error = warehouse.create_table(ids("d.t")).await.unwrap_err();
    assert!(error.retryable && error.text.contains("cannot make table d.t"), "{error}");
    fake(&place).when(Call::Query).once(Fault::status(Code::PermissionDenied));
    let error = warehouse.create_table(ids("d.t")).await.unwrap_err();
    assert!(!error.retryable, "{error}");
    warehouse.create_table(ids("d.t")).await.unwrap();
    fake(&place).when(Call::Query).once(Fault::status(Code::Internal));
    let error = warehouse.has_rows("d.t").await.unwrap_err();
    assert!(error.retryable && error.text.contains("cannot look into table preflight-test.d.t"), "{error}");
    for words in
        ["Could not serialize access to table d.t due to concurrent update", "Too many DML statements outstanding"]
    {
        fake(&place).when(Call::Query).once(Fault::Answer(Refusal::new(Code::InvalidArgument, words)));
        let error = warehouse.has_rows("d.t").await.unwrap_err();
        assert!(error.retryable && error.text.contains(words), "{error}");
    }
}

#[tokio::test]
async fn rows_that_cannot_be_added_are_told_of() {
    let place = Place::fake();
    let warehouse = place.open().await;
    let row = || vec![preflight::row::Value::Text("a".into()), preflight::row::Value::Null];
    for (fault, retryable, part) in [
        (Fault::rows("id", "a"), false, "row 0 is refused"),
        (Fault::answer(Code::Unavailable), true, "UNAVAILABLE"),
        (Fault::status(Code::ResourceExhausted), true, "RESOURCE_EXHAUSTED"),
    ] {
        fake(&place).when(Call::Append).once(fault);
        let error = warehouse.add(ids("d.t"), vec![row()]).await.unwrap_err();
        assert!(error.text.contains("cannot add rows to table preflight-test.d.t"), "{error}");
        assert!(error.text.contains(part) && error.retryable == retryable, "{error}");
    }
    assert_eq!(fake(&place).count("d.t"), 0);
}

/// `check` is no asynchronous code, and runs inside of it all the same.
#[test]
fn tables_are_inspected_inside_and_outside_of_a_runtime() {
    let place = Place::emulator();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (there, missing) = (place.table("t"), place.table("u"));
    runtime.block_on(async { place.open().await.create_table(ids(&there)).await }).unwrap();
    let look = || inspect(&place.config(), &[&there, &missing]).unwrap();
    let live = look();
    assert_eq!(live.keys().collect::<Vec<_>>(), [&there]);
    assert_eq!(runtime.block_on(async { look() }), live);
    let current = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(current.block_on(async { look() }), live);
}

/// The emulator's SQL takes what is made, partitions, order and all.
#[tokio::test]
async fn the_emulator_takes_the_statement() {
    let place = Place::emulator();
    let table = place.table("t");
    let new = NewTable {
        partition_by: Some("day".into()),
        cluster_by: vec!["id".into()],
        description: Some("a \"quoted\" \\ text\nof two lines".into()),
        ..NewTable::plain(
            &table,
            vec![Column::new("id", ColumnType::Text, false), Column::new("day", ColumnType::Date, true)],
        )
    };
    place.open().await.create_table(new).await.unwrap();
    let sql = format!("SELECT COUNT(*) FROM `{table}` WHERE day >= DATE '2020-01-01'");
    assert_eq!(Emulator::shared().value(&sql), "0");
}

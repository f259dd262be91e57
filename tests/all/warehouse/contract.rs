//! What each warehouse keeps: an offset is taken once, in order, whole or not at all; what has happened may be asked for
//! again.

use super::place::{Place, Target, ids, layout};
use preflight::row::{Column, ColumnType, Value};
use preflight::warehouse::events::{Filter, Resolution, Resolved, StoredEvent};
use preflight::warehouse::{self, AppendError, Appended, NewTable, StreamRows};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Runs each part of the contract against each warehouse, as a test of its own.
macro_rules! contract {
    ($($part:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test] async fn $part() { super::$part(&super::Place::sqlite()).await })*
        }
        mod emulator {
            $(#[tokio::test] async fn $part() { super::$part(&super::Place::emulator()).await })*
        }
        mod fake {
            $(#[tokio::test] async fn $part() { super::$part(&super::Place::fake()).await })*
        }
    };
}

contract!(
    an_entry_that_is_sent_twice_is_there_once,
    a_gap_is_out_of_range_and_nothing_is_written,
    a_finalized_stream_takes_nothing_not_even_what_it_has,
    a_stream_that_nobody_made_is_gone,
    a_process_that_starts_goes_on_where_the_last_one_stopped,
    a_large_entry_is_there_whole_and_once,
    entries_of_several_streams_are_written_in_one_call,
    an_entry_behind_one_that_failed_is_not_written,
    a_table_is_made_once_and_reads_back_as_declared,
    a_table_that_another_made_with_other_columns_is_refused,
    an_added_column_is_written_on_the_same_stream,
    it_tells_which_values_are_there,
    rows_are_added_outside_of_any_stream,
);

mod resolving {
    #[tokio::test]
    async fn sqlite() {
        super::quarantine_rows_are_resolved_once(&super::Place::sqlite()).await;
    }

    #[tokio::test]
    async fn emulator() {
        super::quarantine_rows_are_resolved_once(&super::Place::emulator()).await;
    }
}

async fn an_entry_that_is_sent_twice_is_there_once(place: &Place) {
    let target = Target::new(place).await;
    assert!(!target.warehouse.has_rows(&target.table).await.unwrap());
    for (offset, ids) in [(0, &["a", "b"][..]), (2, &["c"]), (3, &["d", "e"])] {
        assert_eq!(target.append(offset, ids).await, Ok(Appended::Written));
        assert_eq!(target.append(offset, ids).await, Ok(Appended::AlreadyThere));
    }
    assert_eq!(target.append(0, &["a", "b"]).await, Ok(Appended::AlreadyThere), "an old one too");
    assert_eq!(target.ids(), ["a", "b", "c", "d", "e"]);
    assert!(target.warehouse.has_rows(&target.table).await.unwrap());
}

async fn a_gap_is_out_of_range_and_nothing_is_written(place: &Place) {
    let target = Target::new(place).await;
    target.append(0, &["a"]).await.unwrap();
    let gap = target.append(2, &["c"]).await;
    assert!(matches!(gap, Err(AppendError::OutOfRange { offset: 2, .. })), "{gap:?}");
    assert_eq!(target.ids(), ["a"]);
    assert_eq!(target.append(1, &["b"]).await, Ok(Appended::Written), "the stream goes on");
}

async fn a_finalized_stream_takes_nothing_not_even_what_it_has(place: &Place) {
    let target = Target::new(place).await;
    target.append(0, &["a"]).await.unwrap();
    assert_eq!(target.warehouse.finalize_stream(&target.stream).await, Ok(StreamRows::Rows(1)));
    let again = target.warehouse.finalize_stream(&target.stream).await.unwrap();
    assert!(matches!(again, StreamRows::Rows(1) | StreamRows::Unknown), "{again:?}");
    let rows = target.warehouse.stream_rows(&target.stream).await.unwrap();
    assert!(matches!(rows, StreamRows::Rows(1) | StreamRows::Unknown), "{rows:?}");
    for (offset, id) in [(1, "b"), (0, "a")] {
        assert_eq!(target.append(offset, &[id]).await, Err(AppendError::StreamGone(target.stream.clone())));
    }
    assert_eq!(target.ids(), ["a"]);
}

async fn a_stream_that_nobody_made_is_gone(place: &Place) {
    let mut target = Target::new(place).await;
    target.stream = place.unknown_stream(&target.table);
    assert_eq!(target.warehouse.finalize_stream(&target.stream).await, Ok(StreamRows::Missing));
    assert_eq!(target.warehouse.stream_rows(&target.stream).await, Ok(StreamRows::Missing));
    assert_eq!(target.append(0, &["a"]).await, Err(AppendError::StreamGone(target.stream.clone())));
    assert!(target.ids().is_empty());
}

async fn a_process_that_starts_goes_on_where_the_last_one_stopped(place: &Place) {
    let mut target = Target::new(place).await;
    let identity = target.warehouse.identity().to_owned();
    target.append(0, &["a", "b"]).await.unwrap();
    target.warehouse = place.open().await;
    assert_eq!(target.warehouse.identity(), identity);
    assert_eq!(target.append(0, &["a", "b"]).await, Ok(Appended::AlreadyThere));
    assert_eq!(target.append(2, &["c"]).await, Ok(Appended::Written));
    assert_eq!(target.warehouse.finalize_stream(&target.stream).await, Ok(StreamRows::Rows(3)));
}

/// More than BigQuery takes in one request.
async fn a_large_entry_is_there_whole_and_once(place: &Place) {
    let mut target = Target::new(place).await;
    let ids: Vec<String> = (0..6_000).map(|number| format!("{number:04}{}", "x".repeat(1_000))).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    assert_eq!(target.append(0, &ids).await, Ok(Appended::Written));
    assert_eq!(target.append(0, &ids).await, Ok(Appended::AlreadyThere));
    target.warehouse = place.open().await;
    assert_eq!(target.append(0, &ids).await, Ok(Appended::AlreadyThere));
    assert_eq!(target.append(6_000, &["y"]).await, Ok(Appended::Written));
    let there = target.ids();
    assert_eq!(there.len(), 6_001);
    assert!(there.iter().zip(&ids).all(|(there, sent)| there == sent));
}

async fn entries_of_several_streams_are_written_in_one_call(place: &Place) {
    let one = Target::new(place).await;
    let table = place.table("u");
    one.warehouse.create_table(ids(&table)).await.unwrap();
    let two = Target::over(place, Arc::clone(&one.warehouse), table, "l-s-2").await;
    let entries = vec![one.entry(0, &["a"]), two.entry(0, &["x", "y"]), one.entry(1, &["b"])];
    assert_eq!(one.append_all(entries).await, vec![Ok(Appended::Written); 3]);
    assert_eq!((one.ids(), two.ids()), (vec!["a".into(), "b".into()], vec!["x".into(), "y".into()]));
}

async fn an_entry_behind_one_that_failed_is_not_written(place: &Place) {
    let one = Target::new(place).await;
    let table = place.table("u");
    one.warehouse.create_table(ids(&table)).await.unwrap();
    let two = Target::over(place, Arc::clone(&one.warehouse), table, "l-s-2").await;
    let results = one.append_all(vec![one.entry(5, &["f"]), one.entry(6, &["g"]), two.entry(0, &["x"])]).await;
    assert!(matches!(results[0], Err(AppendError::OutOfRange { offset: 5, .. })), "{results:?}");
    assert!(results[1].is_err());
    assert_eq!((one.ids(), two.ids()), (vec![], vec!["x".to_owned()]));
}

async fn a_table_is_made_once_and_reads_back_as_declared(place: &Place) {
    let warehouse = place.open().await;
    let table = place.table("every");
    let columns = ColumnType::ALL.map(|kind| Column::new(format!("c_{kind}").to_lowercase(), kind, false));
    let new = NewTable {
        partition_by: Some("c_timestamp".into()),
        cluster_by: vec!["c_string".into(), "c_int64".into()],
        description: Some("every \"type\"\nthere is".into()),
        ..NewTable::plain(&table, columns.to_vec())
    };
    assert_eq!(warehouse.columns(&table).await, Ok(None));
    for _ in 0..2 {
        warehouse.create_table(new.clone()).await.unwrap();
    }
    let live = warehouse.columns(&table).await.unwrap().unwrap();
    assert_eq!(live.len(), columns.len());
    for (live, declared) in live.iter().zip(&columns) {
        assert_eq!((&live.name, live.nullable), (&declared.name, false));
        assert!(live.holds.contains(&declared.kind), "{live:?}");
    }
}

async fn a_table_that_another_made_with_other_columns_is_refused(place: &Place) {
    let warehouse = place.open().await;
    let table = place.table("t");
    warehouse.create_table(ids(&table)).await.unwrap();
    let other = NewTable::plain(&table, vec![Column::new("other", ColumnType::Text, true)]);
    let error = warehouse.create_table(other).await.unwrap_err();
    assert!(error.text.contains("with other columns") && !error.retryable, "{error}");
}

async fn an_added_column_is_written_on_the_same_stream(place: &Place) {
    let mut target = Target::new(place).await;
    target.append(0, &["a"]).await.unwrap();
    place.add_column(&target.table, "extra");
    target.layout = layout(place, target.warehouse.as_ref(), &target.table).await;
    assert_eq!(target.layout.columns, ["id", "number", "extra"]);
    assert_eq!(target.append(1, &["b"]).await, Ok(Appended::Written));
    assert_eq!(place.values(&target.table, "extra", "id"), ["null", "more"]);
}

async fn it_tells_which_values_are_there(place: &Place) {
    let target = Target::new(place).await;
    let quoted = "it's `quoted`";
    target.append(0, &["a", "b", quoted]).await.unwrap();
    let wanted: Vec<String> = (0..5_000).map(|number| format!("no-{number}")).collect();
    let wanted = wanted.into_iter().chain(["b", quoted, "A"].map(str::to_owned)).collect();
    let found = target.warehouse.present(&target.layout.table, "id", wanted).await.unwrap();
    assert_eq!(found, BTreeSet::from(["b".to_owned(), quoted.to_owned()]));
}

async fn rows_are_added_outside_of_any_stream(place: &Place) {
    let warehouse = place.open().await;
    let table = place.table("notes");
    let row = |id: &str| vec![Value::Text(id.into()), Value::Null];
    warehouse.add(ids(&table), vec![row("a"), row("b")]).await.unwrap();
    warehouse.add(ids(&table), vec![row("c")]).await.unwrap();
    assert_eq!(place.values(&table, "id", "id"), ["a", "b", "c"]);
}

async fn quarantine_rows_are_resolved_once(place: &Place) {
    let warehouse = place.open().await;
    let table = place.table("quarantine");
    let text = |name: &str| Column::new(name, ColumnType::Text, true);
    let time = |name: &str| Column::new(name, ColumnType::Timestamp, true);
    let columns = vec![
        text("source_message_id"),
        text("error_stage"),
        time("received_timestamp"),
        text("pipeline"),
        time("resolved_at"),
        text("resolved_by"),
    ];
    let row = |id: &str, stage: &str, received: Value, pipeline: &str| {
        let [id, stage, pipeline] = [id, stage, pipeline].map(|text| Value::Text(text.into()));
        vec![id, stage, received, pipeline, Value::Null, Value::Null]
    };
    let at = |micros: i64| Value::Timestamp(1_700_000_000_000_000 + micros);
    let rows = vec![
        row("m1", "A", at(0), "p"),
        row("m1", "A", at(1), "p"),
        row("m1", "B", at(0), "p"),
        row("m1", "A", at(0), "other"),
        row("m2", "A", Value::Null, "p"),
        row("m3", "A", at(0), "p"),
    ];
    warehouse.add(NewTable::plain(&table, columns), rows).await.unwrap();
    let events =
        warehouse::quarantine(&place.config(), &table, "p").unwrap().newest_rows(&Filter::default(), 10).unwrap();
    let found = |message_id: &str, received: Option<&str>, digest: &str| {
        let is = |event: &&StoredEvent| {
            let same_time = event.meta.received.as_deref() == received;
            event.event.message_id == message_id && event.meta.stage.as_deref() == Some("A") && same_time
        };
        let id = events.iter().find(is).unwrap_or_else(|| panic!("{message_id} in {events:?}")).id;
        Resolved { event: 0, id, message_id: message_id.into(), digest: digest.into(), version: None }
    };
    let resolution = |by: &str, rows| {
        let table = warehouse::table_name(&place.config(), &table);
        Arc::new(Resolution { table, pipeline: "p".into(), at: 1_700_000_000_123_456, by: by.into(), rows })
    };
    let both = || vec![found("m1", Some("2023-11-14T22:13:20.000000Z"), "d1"), found("m2", None, "d2")];
    warehouse.resolve(resolution("one", both())).await.unwrap();
    // Once more, as after a crash, and by another replay.
    warehouse.resolve(resolution("one", both())).await.unwrap();
    warehouse.resolve(resolution("two", both())).await.unwrap();
    let by = place.values(&table, "resolved_by", "source_message_id, pipeline, error_stage, received_timestamp");
    assert_eq!(by, ["null", "one (d1)", "null", "null", "one (d2)", "null"], "other rows of a message stay");
}

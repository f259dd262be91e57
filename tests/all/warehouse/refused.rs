//! Rows that the table refuses, and what it fills by itself, on the strict fake.

use super::fakes::{append, fake, large};
use super::place::{Place, Target};
use preflight::row::ValueRef;
use preflight::warehouse::{AppendError, Appended, Encoding, Entry, RowSet};
use preflight_tests::bigquery::fake::{Call, Fault};
use std::sync::Arc;

#[tokio::test]
async fn each_refused_row_of_a_request_is_named_by_its_place_in_the_entry() {
    let place = Place::fake();
    let target = Target::new(&place).await;
    let refused = Fault::Rows(Arc::new(|row| row["id"].as_str()?.strip_prefix("bad").map(|_| "it is bad".to_owned())));
    fake(&place).when(Call::Append).once(refused);
    let rows = match target.append(0, &["a", "bad1", "b", "bad2"]).await {
        Err(AppendError::Rows(rows)) => rows,
        other => panic!("{other:?}"),
    };
    assert_eq!(rows, [(1, "it is bad".to_owned()), (3, "it is bad".to_owned())]);
    assert_eq!(target.append(0, &["a", "b"]).await, Ok(Appended::Written), "its offset is free again");
}

/// Rows that are refused in a later request: what is left of the entry is sent again, whose first requests are written.
#[tokio::test]
async fn rows_refused_behind_written_requests_cost_no_other_row() {
    // The sizes of the rows; a request is full at 900 kB. In the first the refused row begins the second request, and the row
    // behind it would still fit into the first.
    for sizes in [&[400_000, 510_000, 800_000, 10][..], &[400_000, 510_000, 800_000, 200_000, 10]] {
        let place = Place::fake();
        let target = Target::new(&place).await;
        let id = |index: usize| format!("{index}{}", "x".repeat(sizes[index]));
        let ids: Vec<String> = (0..sizes.len()).map(id).collect();
        let entry = large(&target, &ids);
        let third = ids[2].clone();
        let refused = Fault::Rows(Arc::new(move |row| (row["id"] == third).then(|| "no".to_owned())));
        let rule = fake(&place).when(Call::Append).always(refused);
        assert_eq!(append(&target, &entry).await, Err(AppendError::Rows(vec![(2, "no".into())])));
        let rows = Arc::new(entry.rows.without(&[2]));
        // Its first request was written by the first send.
        assert_eq!(append(&target, &Entry { rows, ..entry }).await, Ok(Appended::AlreadyThere));
        fake(&place).lift(rule);
        let kept = ids.iter().enumerate().filter(|(index, _)| *index != 2).map(|(_, id)| id);
        fake(&place).content(|content| content.expect_each_once(&target.table, "id", kept));
    }
}

/// A null of ours stays null where the column has a default. A column that rows do not have gets its default: the fake refuses
/// a NOT NULL one unless that is asked for.
#[tokio::test]
async fn a_default_fills_only_what_rows_do_not_have() {
    let place = Place::fake();
    let table = "dataset.defaults";
    fake(&place).create_table(&format!(
        "CREATE TABLE {table} (id STRING NOT NULL, number INT64 DEFAULT 5, other STRING NOT NULL DEFAULT 'filled')"
    ));
    let mut target = Target::over(&place, place.open().await, table.to_owned(), "s").await;
    let columns = target.warehouse.columns(table).await.unwrap().unwrap();
    let defaults: Vec<bool> = columns.iter().map(|column| column.has_default).collect();
    assert_eq!(defaults, [false, true, true]);
    let mut narrow = (*target.layout).clone();
    narrow.columns.truncate(2);
    let Encoding::Proto(kinds) = &mut narrow.encoding else { panic!("it is BigQuery") };
    kinds.truncate(2);
    target.layout = Arc::new(narrow);
    let mut rows = RowSet::default();
    for (event, number) in [(0, ValueRef::Null), (1, ValueRef::Int64(7))] {
        let id = if event == 0 { "a" } else { "b" };
        rows.push(event, usize::MAX, |bytes| target.layout.encode(bytes, [ValueRef::Text(id), number])).unwrap();
    }
    let entry = Entry { rows: Arc::new(rows), ..target.entry(0, &[]) };
    assert_eq!(append(&target, &entry).await, Ok(Appended::Written));
    assert_eq!(place.values(table, "number", "id"), ["null", "7"]);
    assert_eq!(place.values(table, "id", "id"), ["a", "b"]);
}

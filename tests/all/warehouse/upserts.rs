//! Rows that replace others: of each key the newest is kept, in whatever order and however often they are sent.
//!
//! Run against SQLite and the strict fake. The BigQuery emulator knows neither primary keys nor change data capture.

use super::fakes::fake;
use super::place::{Place, Target, ids, layout};
use preflight::row::{Column, ColumnType, ValueRef};
use preflight::warehouse::{
    AggregateName, AppendError, Appended, Change, Entry, Layout, NewTable, RowSet, Tier, Upsert, Warehouse,
};
use preflight_tests::bigquery::fake::{Call, Ending, Fault};
use rusqlite::Connection;
use std::sync::Arc;
use tonic::Code;

/// Runs each part against each warehouse, as a test of its own.
macro_rules! contract {
    ($($part:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test] async fn $part() { super::$part(&super::Place::sqlite()).await })*
        }
        mod fake {
            $(#[tokio::test] async fn $part() { super::$part(&super::Place::fake()).await })*
        }
    };
}

contract!(
    an_entry_that_is_sent_twice_is_there_once,
    the_newest_of_a_key_stays_in_whatever_order_rows_come,
    an_older_row_does_not_bring_back_a_deleted_one,
    a_large_entry_is_there_whole,
    rows_of_a_stream_and_upserts_are_written_in_one_call,
    each_refused_row_is_named_and_nothing_is_written,
    a_table_without_a_key_takes_no_upserts,
    a_made_table_tells_its_key,
);

/// A row: id, epoch, index, number, and what it does.
type Row<'a> = (&'a str, i64, i64, Option<i64>, Change);

/// A table with a key.
struct Keyed<'a> {
    place: &'a Place,
    warehouse: Arc<dyn Warehouse>,
    table: String,
    layout: Arc<Layout>,
}

impl<'a> Keyed<'a> {
    async fn new(place: &'a Place) -> Self {
        let table = place.table("panes");
        let warehouse = place.open().await;
        warehouse.create_table(keyed(&table)).await.unwrap();
        Self::over(place, warehouse, table).await
    }

    async fn over(place: &'a Place, warehouse: Arc<dyn Warehouse>, table: String) -> Self {
        let layout = layout(place, warehouse.as_ref(), &table).await;
        let upsert = Upsert { key: "id".into(), sequence: vec!["epoch".into(), "pane_index".into()] };
        let layout = Arc::new(Layout { upsert: Some(upsert), ..Layout::clone(&layout) });
        Self { place, warehouse, table, layout }
    }

    fn entry(&self, changes: &[Row<'_>]) -> Entry {
        let mut rows = RowSet::default();
        for (event, (id, epoch, index, number, change)) in (0..).zip(changes) {
            let number = number.map_or(ValueRef::Null, ValueRef::Int64);
            // A negative epoch stands for none.
            let counter = |n: i64| if n < 0 { ValueRef::Null } else { ValueRef::Int64(n) };
            let values = [ValueRef::Text(id), counter(*epoch), ValueRef::Int64(*index), number, ValueRef::Text("x")];
            rows.push(event, usize::MAX, |bytes| self.layout.encode_change(bytes, values, *change)).unwrap();
        }
        let tier = Tier::Panes(AggregateName::new("per_minute").unwrap());
        Entry { tier, stream: String::new(), first_offset: 0, rows: Arc::new(rows), layout: Arc::clone(&self.layout) }
    }

    async fn send(&self, changes: &[Row<'_>]) -> Result<Appended, AppendError> {
        self.warehouse.append(Arc::new(vec![self.entry(changes)])).await.remove(0)
    }

    /// Ids, each with its number.
    fn rows(&self) -> Vec<(String, String)> {
        let ids = self.place.values(&self.table, "id", "id");
        ids.into_iter().zip(self.place.values(&self.table, "number", "id")).collect()
    }
}

fn keyed(table: &str) -> NewTable {
    let columns = vec![
        Column::new("id", ColumnType::Text, true),
        Column::new("epoch", ColumnType::Int64, false),
        Column::new("pane_index", ColumnType::Int64, false),
        Column::new("number", ColumnType::Int64, true),
        Column::new("required", ColumnType::Text, false),
    ];
    NewTable { primary_key: Some("id".into()), ..NewTable::plain(table, columns) }
}

fn shown(rows: &[(&str, &str)]) -> Vec<(String, String)> {
    rows.iter().map(|(id, number)| ((*id).to_owned(), (*number).to_owned())).collect()
}

async fn an_entry_that_is_sent_twice_is_there_once(place: &Place) {
    let keyed = Keyed::new(place).await;
    let entry =
        [("a", 0, 0, Some(1), Change::Upsert), ("b", 0, 0, None, Change::Upsert), ("a", 0, 1, Some(2), Change::Upsert)];
    for _ in 0..2 {
        assert_eq!(keyed.send(&entry).await, Ok(Appended::Written));
        assert_eq!(keyed.rows(), shown(&[("a", "2"), ("b", "null")]));
    }
    // A number becomes null.
    assert_eq!(keyed.send(&[("a", 1, 0, None, Change::Upsert)]).await, Ok(Appended::Written));
    assert_eq!(keyed.rows(), shown(&[("a", "null"), ("b", "null")]));
}

/// Each order of four changes, each sent twice, also after a restart: epochs count before indexes.
async fn the_newest_of_a_key_stays_in_whatever_order_rows_come(place: &Place) {
    let mut keyed = Keyed::new(place).await;
    let changes = |newest: Change| {
        [
            (0, 255, Some(1), Change::Upsert),
            (0, 256, Some(2), Change::Delete),
            (1, 9, Some(3), Change::Upsert),
            (1, 10, Some(4), newest),
        ]
    };
    let mut expected = Vec::new();
    for (number, order) in permutations(4).into_iter().enumerate() {
        for newest in [Change::Upsert, Change::Delete] {
            let id = format!("{number:02}-{newest:?}");
            let changes = changes(newest);
            for at in order.iter().flat_map(|at| [*at, *at]) {
                let (epoch, index, value, change) = changes[at];
                assert_eq!(keyed.send(&[(&id, epoch, index, value, change)]).await, Ok(Appended::Written));
            }
            if newest == Change::Upsert {
                expected.push((id, "4".to_owned()));
            }
        }
        keyed.warehouse = place.open().await;
    }
    assert_eq!(keyed.rows(), expected);
}

fn permutations(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let with = |shorter: Vec<usize>| {
        (0..count).map(move |at| {
            let mut longer = shorter.clone();
            longer.insert(at, count - 1);
            longer
        })
    };
    permutations(count - 1).into_iter().flat_map(with).collect()
}

async fn an_older_row_does_not_bring_back_a_deleted_one(place: &Place) {
    let keyed = Keyed::new(place).await;
    // Nothing is there yet that could be deleted.
    keyed.send(&[("a", 0, 5, None, Change::Delete)]).await.unwrap();
    keyed.send(&[("a", 0, 4, Some(4), Change::Upsert), ("b", 0, 0, Some(0), Change::Upsert)]).await.unwrap();
    assert_eq!(keyed.rows(), shown(&[("b", "0")]));
    // An older delete leaves what is newer, and does not take the place of the newer delete.
    keyed.send(&[("a", 0, 3, None, Change::Delete), ("a", 0, 4, Some(4), Change::Upsert)]).await.unwrap();
    assert_eq!(keyed.rows(), shown(&[("b", "0")]));
    keyed.send(&[("a", 0, 6, Some(6), Change::Upsert), ("a", 0, 5, None, Change::Delete)]).await.unwrap();
    assert_eq!(keyed.rows(), shown(&[("a", "6"), ("b", "0")]));
}

/// More than BigQuery takes in one request.
async fn a_large_entry_is_there_whole(place: &Place) {
    let keyed = Keyed::new(place).await;
    let ids: Vec<String> = (0..3_000).map(|number| format!("{number:04}{}", "x".repeat(1_000))).collect();
    let rows: Vec<Row<'_>> = ids.iter().map(|id| (id.as_str(), 0, 0, Some(1), Change::Upsert)).collect();
    for _ in 0..2 {
        assert_eq!(keyed.send(&rows).await, Ok(Appended::Written));
    }
    assert_eq!(place.values(&keyed.table, "id", "id"), ids);
}

async fn rows_of_a_stream_and_upserts_are_written_in_one_call(place: &Place) {
    let target = Target::new(place).await;
    let table = place.table("panes");
    target.warehouse.create_table(self::keyed(&table)).await.unwrap();
    let keyed = Keyed::over(place, Arc::clone(&target.warehouse), table).await;
    let first = keyed.entry(&[("a", 0, 0, Some(1), Change::Upsert)]);
    let second = keyed.entry(&[("a", 0, 1, Some(2), Change::Upsert)]);
    let entries = vec![target.entry(0, &["s"]), first, target.entry(1, &["t"]), second];
    assert_eq!(target.append_all(entries.clone()).await, vec![Ok(Appended::Written); 4]);
    let (there, written) = (Ok(Appended::AlreadyThere), Ok(Appended::Written));
    assert_eq!(target.append_all(entries).await, [there.clone(), written.clone(), there, written]);
    assert_eq!((target.ids(), keyed.rows()), (vec!["s".into(), "t".into()], shown(&[("a", "2")])));
}

async fn each_refused_row_is_named_and_nothing_is_written(place: &Place) {
    let keyed = Keyed::new(place).await;
    if let Place::Sqlite(_) = place {
        database(place).execute_batch("CREATE UNIQUE INDEX n ON panes (number)").unwrap();
    } else {
        let why = |row: &serde_json::Map<String, serde_json::Value>| (row["id"] != "ok").then(|| "no".to_owned());
        fake(place).refuse_rows(&keyed.table, Arc::new(why));
    }
    let rows = [
        ("ok", 0, 0, Some(7), Change::Upsert),
        ("bad", 0, 0, Some(7), Change::Upsert),
        ("worse", 0, 0, Some(7), Change::Upsert),
    ];
    let refused = keyed.send(&rows).await;
    let Err(AppendError::Rows(refused)) = refused else { panic!("{refused:?}") };
    assert_eq!(refused.iter().map(|(index, _)| *index).collect::<Vec<_>>(), [1, 2], "{refused:?}");
    assert!(keyed.rows().is_empty());
}

async fn a_table_without_a_key_takes_no_upserts(place: &Place) {
    let warehouse = place.open().await;
    let table = place.table("panes");
    warehouse.create_table(NewTable { primary_key: None, ..keyed(&table) }).await.unwrap();
    let keyed = Keyed::over(place, warehouse, table).await;
    let refused = keyed.send(&[("a", 0, 0, None, Change::Upsert)]).await;
    let Err(AppendError::Fatal(why)) = refused else { panic!("{refused:?}") };
    assert!(why.contains("panes") && why.to_lowercase().contains("key"), "{why}");
}

async fn a_made_table_tells_its_key(place: &Place) {
    let keyed = Keyed::new(place).await;
    let live = keyed.warehouse.columns(&keyed.table).await.unwrap().unwrap();
    let keys: Vec<&str> = live.iter().filter(|column| column.is_key).map(|column| column.name.as_str()).collect();
    assert_eq!(keys, ["id"]);
    assert!(!live[0].nullable, "a key is never null");
    // Made once more it stays as it is.
    keyed.warehouse.create_table(self::keyed(&keyed.table)).await.unwrap();
    let plain = place.table("t");
    keyed.warehouse.create_table(ids(&plain)).await.unwrap();
    assert!(keyed.warehouse.columns(&plain).await.unwrap().unwrap().iter().all(|column| !column.is_key));
}

fn database(place: &Place) -> Connection {
    let Place::Sqlite(directory) = place else { panic!("it is no SQLite") };
    Connection::open(directory.path().join("w.db")).unwrap()
}

#[tokio::test]
async fn sqlite_remembers_for_two_days_what_was_deleted() {
    let place = Place::sqlite();
    let keyed = Keyed::new(&place).await;
    let remembered = || -> Vec<String> {
        let connection = database(&place);
        let mut statement = connection.prepare("SELECT key FROM preflight_deleted ORDER BY key").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    };
    for id in ["old", "new"] {
        keyed.send(&[(id, 0, 5, None, Change::Delete)]).await.unwrap();
    }
    let aged = "UPDATE preflight_deleted SET deleted_at = deleted_at - 172800 - 1 WHERE key = 'old'";
    database(&place).execute(aged, []).unwrap();
    assert_eq!(remembered(), ["new", "old"]);
    keyed.send(&[("other", 0, 0, None, Change::Delete)]).await.unwrap();
    assert_eq!(remembered(), ["new", "other"]);
}

#[tokio::test]
async fn sqlite_remembers_nothing_of_an_entry_that_it_refused() {
    let place = Place::sqlite();
    let keyed = Keyed::new(&place).await;
    keyed.send(&[("b", 0, 0, Some(7), Change::Upsert)]).await.unwrap();
    database(&place).execute_batch("CREATE UNIQUE INDEX n ON panes (number)").unwrap();
    let rows = [("b", 0, 1, None, Change::Delete), ("c", 0, 0, Some(8), Change::Upsert)];
    let refused = keyed.send(&[&rows[..], &[("d", 0, 0, Some(8), Change::Upsert)]].concat()).await;
    assert!(matches!(&refused, Err(AppendError::Rows(rows)) if rows.len() == 1 && rows[0].0 == 2), "{refused:?}");
    assert_eq!(keyed.rows(), shown(&[("b", "7")]), "neither is what it did to others");
    keyed.send(&[("b", 0, 1, Some(9), Change::Upsert)]).await.unwrap();
    assert_eq!(keyed.rows(), shown(&[("b", "9")]));
}

#[tokio::test]
async fn rows_that_sqlite_cannot_read_are_fatal() {
    let place = Place::sqlite();
    let keyed = Keyed::new(&place).await;
    let fatal = async |entry: Entry| match keyed.warehouse.append(Arc::new(vec![entry])).await.remove(0) {
        Err(AppendError::Fatal(why)) => why,
        other => panic!("{other:?}"),
    };
    let good = || keyed.entry(&[("a", 0, 0, None, Change::Upsert)]);
    assert!(fatal(keyed.entry(&[("a", -1, 0, None, Change::Upsert)])).await.contains("no sequence"));
    let mut cut = RowSet::default();
    cut.push(0, usize::MAX, |bytes| bytes.push(0xff)).unwrap();
    assert!(fatal(Entry { rows: Arc::new(cut), ..good() }).await.contains("cannot be read"));
    let mut blank = RowSet::default();
    blank.push(0, usize::MAX, |_| {}).unwrap();
    assert!(fatal(Entry { rows: Arc::new(blank), ..good() }).await.contains("what it changes"));
    let upsert = Upsert { key: "nowhere".into(), sequence: vec!["epoch".into()] };
    let layout = Layout { upsert: Some(upsert), ..Layout::clone(&keyed.layout) };
    assert!(fatal(Entry { layout: Arc::new(layout), ..good() }).await.contains("lack its key"));
    database(&place).execute_batch("ALTER TABLE panes RENAME COLUMN number TO amount").unwrap();
    assert!(fatal(good()).await.contains("number"));
    // A process that starts knows no statement yet.
    let started = place.open().await.append(Arc::new(vec![good()])).await.remove(0);
    assert!(matches!(&started, Err(AppendError::Fatal(why)) if why.contains("is not what it was")), "{started:?}");
    assert!(place.values(&keyed.table, "amount", "id").is_empty());
}

#[tokio::test]
async fn a_lost_answer_is_sent_again_and_comes_to_the_same() {
    for fault in [Fault::Before(Ending::Close), Fault::After(Ending::Reset), Fault::answer(Code::Aborted)] {
        let place = Place::fake();
        let keyed = Keyed::new(&place).await;
        fake(&place).when(Call::Append).once(fault.clone());
        let rows = [("a", 0, 1, Some(1), Change::Upsert), ("b", 0, 1, None, Change::Delete)];
        let lost = keyed.send(&rows).await;
        assert!(matches!(lost, Err(AppendError::Retryable(_))), "{fault:?}: {lost:?}");
        assert_eq!(keyed.send(&rows).await, Ok(Appended::Written));
        assert_eq!(keyed.rows(), shown(&[("a", "1")]));
    }
}

/// A connection that was closed while nobody used it is not an error.
#[tokio::test]
async fn upserts_go_on_where_a_connection_was_closed() {
    let place = Place::fake();
    let keyed = Keyed::new(&place).await;
    keyed.send(&[("a", 0, 0, Some(1), Change::Upsert)]).await.unwrap();
    fake(&place).when(Call::Append).once(Fault::Before(Ending::Close));
    assert_eq!(keyed.send(&[("a", 0, 1, Some(2), Change::Upsert)]).await, Ok(Appended::Written));
    assert_eq!(keyed.rows(), shown(&[("a", "2")]));
}

#[tokio::test]
async fn answers_about_offsets_and_streams_are_refusals_where_rows_have_none() {
    let place = Place::fake();
    let keyed = Keyed::new(&place).await;
    let row = [("a", 0, 0, Some(1), Change::Upsert)];
    for code in [Code::AlreadyExists, Code::OutOfRange, Code::FailedPrecondition] {
        for fault in [Fault::answer(code), Fault::status(code)] {
            fake(&place).when(Call::Append).once(fault);
            let refused = keyed.send(&row).await;
            assert!(matches!(&refused, Err(AppendError::Fatal(why)) if why.contains("panes")), "{refused:?}");
        }
    }
    for fault in [Fault::answer(Code::NotFound), Fault::status(Code::NotFound)] {
        fake(&place).when(Call::Append).once(fault);
        let missing = keyed.send(&row).await;
        assert!(matches!(&missing, Err(AppendError::Retryable(why)) if why.contains("no table")), "{missing:?}");
    }
    fake(&place).drop_table(&keyed.table);
    let missing = keyed.send(&row).await;
    assert!(matches!(&missing, Err(AppendError::Retryable(why)) if why.contains("make it again")), "{missing:?}");
    let nameless = Layout { table: "panes".into(), ..Layout::clone(&keyed.layout) };
    let entry = Entry { layout: Arc::new(nameless), ..keyed.entry(&row) };
    let refused = keyed.warehouse.append(Arc::new(vec![entry])).await.remove(0);
    assert!(matches!(refused, Err(AppendError::Fatal(_))), "{refused:?}");
}

//! The contract of an append target, on SQLite: an offset is taken once, in order, whole or not at all.

use preflight::row::ValueRef;
use preflight::warehouse::sqlite::encode;
use preflight::warehouse::{
    AppendError, Appended, Encoding, Entry, Layout, RowSet, Sqlite, StreamRows, Tier, Warehouse as _,
};
use rusqlite::Connection;
use std::sync::Arc;
use tempfile::TempDir;

/// A warehouse with a table and a stream `s` for it.
struct Target {
    directory: TempDir,
    warehouse: Sqlite,
}

impl Target {
    async fn new(columns: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let warehouse = Sqlite::open(&directory.path().join("w.db")).unwrap();
        let target = Self { directory, warehouse };
        target.sql(&format!("CREATE TABLE t ({columns})"));
        target.warehouse.create_stream("s", "t").await.unwrap();
        target
    }

    fn connection(&self) -> Connection {
        Connection::open(self.directory.path().join("w.db")).unwrap()
    }

    fn sql(&self, sql: &str) {
        self.connection().execute_batch(sql).unwrap();
    }

    async fn append(&self, offset: u64, ids: &[i64]) -> Result<Appended, AppendError> {
        self.append_all(vec![entry("t", offset, ids)]).await.remove(0)
    }

    async fn append_all(&self, entries: Vec<Entry>) -> Vec<Result<Appended, AppendError>> {
        self.warehouse.append(Arc::new(entries)).await
    }

    fn ids(&self) -> Vec<i64> {
        let connection = self.connection();
        let mut statement = connection.prepare("SELECT id FROM t ORDER BY rowid").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    }
}

fn entry(table: &str, first_offset: u64, ids: &[i64]) -> Entry {
    let mut rows = RowSet::default();
    for (event, id) in (0..).zip(ids) {
        rows.push(event, usize::MAX, |bytes| encode(bytes, [ValueRef::Int64(*id)])).unwrap();
    }
    let layout =
        Arc::new(Layout { table: table.into(), columns: vec!["id".into()], encoding: Encoding::Cells, upsert: None });
    Entry { tier: Tier::Silver, stream: "s".into(), first_offset, rows: Arc::new(rows), layout }
}

fn refused(result: Result<Appended, AppendError>) -> Vec<usize> {
    match result {
        Err(AppendError::Rows(rows)) => rows.into_iter().map(|(index, _)| index).collect(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_entry_that_is_sent_twice_is_there_once() {
    let target = Target::new("id INTEGER").await;
    for (offset, ids) in [(0, &[1, 2][..]), (2, &[3]), (3, &[4, 5])] {
        assert_eq!(target.append(offset, ids).await, Ok(Appended::Written));
        assert_eq!(target.append(offset, ids).await, Ok(Appended::AlreadyThere));
    }
    assert_eq!(target.append(0, &[1, 2]).await, Ok(Appended::AlreadyThere), "an old one too");
    assert_eq!(target.ids(), [1, 2, 3, 4, 5]);
}

#[tokio::test]
async fn a_gap_is_out_of_range_and_nothing_is_written() {
    let target = Target::new("id INTEGER").await;
    target.append(0, &[1]).await.unwrap();
    assert_eq!(target.append(2, &[3]).await, Err(AppendError::OutOfRange { offset: 2, end: Some(1) }));
    assert_eq!(target.ids(), [1]);
}

#[tokio::test]
async fn an_entry_of_which_a_part_is_there_is_never_taken_for_done() {
    let target = Target::new("id INTEGER").await;
    target.append(0, &[1, 2]).await.unwrap();
    let error = target.append(1, &[2, 3]).await.unwrap_err();
    assert!(matches!(&error, AppendError::Fatal(why) if why.contains("in the middle of an append")), "{error}");
    assert_eq!(target.ids(), [1, 2]);
}

#[tokio::test]
async fn a_finalized_stream_takes_nothing_not_even_what_it_has() {
    let target = Target::new("id INTEGER").await;
    target.append(0, &[1]).await.unwrap();
    assert_eq!(target.warehouse.finalize_stream("s").await, Ok(StreamRows::Rows(1)));
    assert_eq!(target.warehouse.finalize_stream("s").await, Ok(StreamRows::Rows(1)), "twice is the same");
    assert_eq!(target.append(1, &[2]).await, Err(AppendError::StreamGone("s".into())));
    assert_eq!(target.append(0, &[1]).await, Err(AppendError::StreamGone("s".into())));
    assert_eq!(target.ids(), [1]);
}

#[tokio::test]
async fn a_stream_that_nobody_made_is_gone_and_has_no_count() {
    let target = Target::new("id INTEGER").await;
    assert_eq!(target.warehouse.finalize_stream("other").await, Ok(StreamRows::Missing));
    let foreign = Entry { stream: "other".into(), ..entry("t", 0, &[1]) };
    assert_eq!(target.append_all(vec![foreign]).await, [Err(AppendError::StreamGone("other".into()))]);
}

#[tokio::test]
async fn every_refused_row_is_named_and_none_of_its_entry_is_written() {
    let target = Target::new("id INTEGER CHECK (id < 10)").await;
    assert_eq!(refused(target.append(0, &[1, 10, 2, 11]).await), [1, 3]);
    assert!(target.ids().is_empty());
    assert_eq!(target.append(0, &[1, 2]).await, Ok(Appended::Written), "its offset is free again");
    assert_eq!(target.ids(), [1, 2]);
}

#[tokio::test]
async fn a_row_that_repeats_a_key_of_its_own_entry_is_refused() {
    let target = Target::new("id INTEGER UNIQUE").await;
    assert_eq!(refused(target.append(0, &[1, 2, 1]).await), [2]);
    assert!(target.ids().is_empty());
}

#[tokio::test]
async fn a_refused_entry_leaves_the_others_of_its_commit_written() {
    let target = Target::new("id INTEGER CHECK (id < 10)").await;
    target.sql("CREATE TABLE other (id INTEGER)");
    target.warehouse.create_stream("o", "other").await.unwrap();
    let other = |offset, id| Entry { stream: "o".into(), ..entry("other", offset, &[id]) };
    let results = target.append_all(vec![other(0, 1), entry("t", 0, &[10]), other(1, 2)]).await;
    assert_eq!(results[0], Ok(Appended::Written));
    assert_eq!(refused(results[1].clone()), [0]);
    assert_eq!(results[2], Ok(Appended::Written));
    let results = target.append_all(vec![other(0, 1), entry("t", 0, &[9]), other(1, 2)]).await;
    assert_eq!(results, [Ok(Appended::AlreadyThere), Ok(Appended::Written), Ok(Appended::AlreadyThere)]);
}

/// A table declared `ON CONFLICT IGNORE` swallowed the second row, which was then counted as written.
#[tokio::test]
async fn a_table_cannot_swallow_a_row() {
    let target = Target::new("id INTEGER UNIQUE ON CONFLICT IGNORE").await;
    assert_eq!(refused(target.append(0, &[1, 1]).await), [1]);
    let target = Target::new("id INTEGER UNIQUE ON CONFLICT REPLACE").await;
    assert_eq!(refused(target.append(0, &[1, 1]).await), [1]);
}

/// A trigger with `RAISE(IGNORE)` dropped the row, which was then counted as written.
#[tokio::test]
async fn a_row_that_a_trigger_drops_is_refused() {
    let target = Target::new("id INTEGER").await;
    target.sql("CREATE TRIGGER filter BEFORE INSERT ON t WHEN NEW.id >= 10 BEGIN SELECT RAISE(IGNORE); END");
    assert_eq!(refused(target.append(0, &[1, 10]).await), [1]);
    assert!(target.ids().is_empty());
}

/// `ON CONFLICT ROLLBACK` ended our transaction: the rows after the conflict were written outside of any, without
/// their offset, and came again with the next send.
#[tokio::test]
async fn a_table_cannot_end_our_transaction() {
    let target = Target::new("id INTEGER UNIQUE ON CONFLICT ROLLBACK").await;
    assert_eq!(refused(target.append(0, &[1, 1, 2]).await), [1]);
    assert!(target.ids().is_empty());
    assert_eq!(target.append(0, &[1, 2]).await, Ok(Appended::Written));
}

/// The same by a trigger, which cannot be overruled: the append fails for good, and nothing is written.
#[tokio::test]
async fn a_trigger_that_ends_our_transaction_stops_the_append() {
    let target = Target::new("id INTEGER").await;
    target.sql("CREATE TRIGGER stop BEFORE INSERT ON t WHEN NEW.id = 10 BEGIN SELECT RAISE(ROLLBACK, 'not ten'); END");
    let error = target.append(0, &[1, 10, 2]).await.unwrap_err();
    assert!(matches!(&error, AppendError::Fatal(why) if why.contains("not ten")), "{error:?}");
    assert!(target.ids().is_empty());
    assert_eq!(target.append(0, &[1, 2]).await, Ok(Appended::Written));
}

#[tokio::test]
async fn a_missing_table_or_column_does_not_pass_by_waiting() {
    let target = Target::new("id INTEGER").await;
    target.sql("ALTER TABLE t RENAME COLUMN id TO number");
    let error = target.append(0, &[1]).await.unwrap_err();
    assert!(matches!(&error, AppendError::Fatal(why) if why.contains("id")), "{error:?}");
    target.sql("DROP TABLE t");
    let error = target.append(0, &[1]).await.unwrap_err();
    assert!(matches!(&error, AppendError::Fatal(why) if why.contains("no such table")), "{error:?}");
    assert!(error.to_string().contains("Put the table or the column back"), "{error}");
}

/// Such a row was said to be row 0 of the first entry, whatever its table: innocent rows went to quarantine.
#[tokio::test]
async fn a_constraint_that_is_checked_at_the_commit_blames_its_table_and_no_row() {
    let target = Target::new("id INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED").await;
    target.sql("CREATE TABLE parent (id INTEGER PRIMARY KEY); INSERT INTO parent VALUES (1)");
    target.sql("CREATE TABLE other (id INTEGER)");
    target.warehouse.create_stream("o", "other").await.unwrap();
    let other = || Entry { stream: "o".into(), tier: Tier::Bronze, ..entry("other", 0, &[1]) };
    let results = target.append_all(vec![other(), entry("t", 0, &[1, 2])]).await;
    assert!(matches!(&results[0], Err(AppendError::Retryable(why)) if why.contains("another table")), "{results:?}");
    let Err(AppendError::Fatal(why)) = &results[1] else { panic!("{results:?}") };
    for word in ["FOREIGN KEY", "table t checks", "only at the commit", "immediate"] {
        assert!(why.contains(word), "{word:?} is not in: {why}");
    }
    assert!(target.ids().is_empty());
    let results = target.append_all(vec![other(), entry("t", 0, &[1])]).await;
    assert_eq!(results, [Ok(Appended::Written), Ok(Appended::Written)], "nothing of the first send was kept");
}

/// The count came back although the commit had failed: the stream was still open.
#[tokio::test]
async fn a_stream_that_could_not_be_finalized_is_not_said_to_be() {
    let target = Target::new("id INTEGER").await;
    target.sql(
        "CREATE TABLE parent (id INTEGER PRIMARY KEY);
         CREATE TABLE child (id INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED);
         CREATE TRIGGER fail AFTER UPDATE ON preflight_streams BEGIN INSERT INTO child VALUES (1); END",
    );
    target.warehouse.finalize_stream("s").await.unwrap_err();
    target.sql("DROP TRIGGER fail");
    assert_eq!(target.append(0, &[1]).await, Ok(Appended::Written), "it is open");
}

#[tokio::test]
async fn two_workers_that_make_the_same_table_get_along_and_a_different_one_is_told() {
    use preflight::row::{Column, ColumnType};
    use preflight::warehouse::{NewTable, Sqlite, Warehouse as _};
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("w.db");
    let (one, two) = (Sqlite::open(&path).unwrap(), Sqlite::open(&path).unwrap());
    let table = |column: &str| NewTable::plain("d.t", vec![Column::new(column, ColumnType::Text, false)]);
    one.create_table(table("a")).await.unwrap();
    two.create_table(table("a")).await.unwrap();
    let error = two.create_table(table("b")).await.unwrap_err().to_string();
    assert!(error.contains("made by another program"), "{error}");
}

//! What stays of a table whose rows are replaced, and what it refuses.

use super::{Expected, pipeline, published, rejected, staged};
use preflight_tests::{bookings, tables};
use rusqlite::Connection;

#[test]
fn indexes_triggers_and_columns_of_others_stay() {
    let input = bookings::lines(200);
    let pipeline = published(110, &input);
    let database = Connection::open(pipeline.database()).unwrap();
    database
        .execute_batch(
            "CREATE INDEX mine ON fact_bookings (fare_amount);
             ALTER TABLE fact_bookings ADD COLUMN note TEXT DEFAULT 'none';
             CREATE TABLE log (booking TEXT);
             CREATE TRIGGER told AFTER INSERT ON fact_bookings BEGIN INSERT INTO log VALUES (NEW.booking_id); END;",
        )
        .unwrap();
    pipeline.run().expect(0);
    let good = 200 - rejected(&input).lines().count() as u64;
    assert_eq!(tables::count(&pipeline.database(), "fact_bookings"), good);
    assert_eq!(tables::count(&pipeline.database(), "log"), good, "a trigger fires for the rows that are published");
    let notes = tables::query(&pipeline.database(), "SELECT DISTINCT note FROM fact_bookings");
    assert_eq!(notes[0]["note"], "none");
    let kept = "SELECT name FROM sqlite_schema WHERE tbl_name = 'fact_bookings' AND name IN ('mine', 'told')";
    assert_eq!(tables::query(&pipeline.database(), kept).len(), 2);
}

#[test]
fn a_table_that_refuses_what_is_published_keeps_its_rows_until_it_is_repaired() {
    let input = bookings::lines(200);
    let pipeline = published(110, &input);
    let before = Expected::of(&bookings::lines(110));
    let database = Connection::open(pipeline.database()).unwrap();
    let trigger = "CREATE TRIGGER no BEFORE INSERT ON fact_bookings WHEN NEW.booking_id = 'BK-150'
                   BEGIN SELECT RAISE(ABORT, 'not this one'); END";
    database.execute_batch(trigger).unwrap();
    for _ in 0..2 {
        let ended = pipeline.run().expect(1);
        assert!(
            ended.stderr.contains("cannot be published") && ended.stderr.contains("not this one"),
            "{}",
            ended.stderr
        );
        before.expect(&pipeline, "refused");
    }
    assert_eq!(staged(&pipeline).len(), 4, "what is staged waits");
    database.execute_batch("DROP TRIGGER no").unwrap();
    assert_eq!(pipeline.run().expect(0).json()["events"], 200);
    Expected::of(&input).expect(&pipeline, "repaired");
}

/// Rows of a run that refer to each other would be held against those that they replace.
#[test]
fn a_table_that_refers_to_itself_cannot_be_replaced() {
    let pipeline = pipeline(&bookings::lines(20));
    pipeline.run().expect(0);
    let database = Connection::open(pipeline.database()).unwrap();
    database.execute_batch("ALTER TABLE fact_bookings ADD COLUMN follows TEXT REFERENCES fact_bookings (id)").unwrap();
    let ended = pipeline.run().expect(1);
    assert!(ended.stderr.contains("cannot be replaced: it refers to itself"), "{}", ended.stderr);
}

#[test]
fn a_view_cannot_be_replaced() {
    let pipeline = pipeline(&bookings::lines(20));
    pipeline.run().expect(0);
    let database = Connection::open(pipeline.database()).unwrap();
    database
        .execute_batch("ALTER TABLE fact_bookings RENAME TO facts; CREATE VIEW fact_bookings AS SELECT * FROM facts")
        .unwrap();
    let ended = pipeline.run().expect(1);
    assert!(ended.stderr.contains("table fact_bookings cannot be replaced: it is a view"), "{}", ended.stderr);
}

/// Without rows that stay there is nothing that a new ledger could double.
#[test]
fn a_lost_ledger_doubles_nothing() {
    let input = bookings::lines(200);
    let pipeline = published(110, &input);
    std::fs::remove_dir_all(pipeline.ledger()).unwrap();
    pipeline.run().expect(0);
    Expected::of(&input).expect(&pipeline, "with a new ledger");
    // Where a table is appended to it would.
    std::fs::remove_dir_all(pipeline.ledger()).unwrap();
    let pipeline = pipeline.set("bronze.write=append");
    assert!(pipeline.run().expect(2).stderr.contains("--new-ledger"));
}

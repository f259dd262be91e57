//! Publishing: the rows of staging tables take the place of the targets' rows, in one transaction.

use super::super::{Publication, Replaced};
use super::schema::quote;
use rusqlite::{Connection, Transaction, TransactionBehavior};

/// Replaces the rows of all tables. The inner error is why they cannot be replaced; then nothing has changed.
pub(super) fn publish(connection: &mut Connection, publication: &Publication) -> rusqlite::Result<Result<(), String>> {
    // A reference with ON DELETE CASCADE would take rows of other tables along whose row is there again a moment later. What
    // refers to nothing in the end is looked for by ourselves.
    let checks: bool = connection.pragma_query_value(None, "foreign_keys", |row| row.get(0))?;
    connection.pragma_update(None, "foreign_keys", false)?;
    let published = in_one_transaction(connection, publication, checks);
    connection.pragma_update(None, "foreign_keys", checks)?;
    published
}

fn in_one_transaction(
    connection: &mut Connection,
    Publication { run, tables }: &Publication,
    checks: bool,
) -> rusqlite::Result<Result<(), String>> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if transaction.prepare("SELECT 1 FROM preflight_published WHERE run = ?1")?.exists([run])? {
        return Ok(Ok(()));
    }
    let dangling = |transaction: &Transaction<'_>| -> rusqlite::Result<u64> {
        if !checks {
            return Ok(0);
        }
        let count = "SELECT count(*) FROM pragma_foreign_key_check()";
        transaction.query_row(count, [], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
    };
    let before = dangling(&transaction)?;
    for table in tables {
        if !transaction.table_exists(None, table.staging.as_str())? {
            return Ok(Err(format!("table {} is gone, which has them", table.staging)));
        }
        replace(&transaction, table)?;
    }
    if dangling(&transaction)? > before {
        return Ok(Err("rows of other tables refer to rows that would be gone".to_owned()));
    }
    // Of one pipeline there is one run at a time, but pipelines may share a database: none is forgotten.
    transaction.execute("INSERT INTO preflight_published VALUES (?1)", [run])?;
    transaction.commit()?;
    Ok(Ok(()))
}

fn replace(transaction: &Transaction<'_>, Replaced { table, staging, columns }: &Replaced) -> rusqlite::Result<()> {
    let (table, staging) = (quote(table), quote(staging));
    let columns = columns.iter().map(|column| quote(column)).collect::<Vec<_>>().join(", ");
    transaction.execute_batch(&format!(
        "DELETE FROM {table};
         INSERT OR ABORT INTO {table} ({columns}) SELECT {columns} FROM {staging};
         DROP TABLE {staging};"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database(sql: &str) -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        connection.pragma_update(None, "foreign_keys", true).unwrap();
        super::super::streams::prepare(&connection, std::time::Duration::from_secs(1)).unwrap();
        connection.execute_batch(sql).unwrap();
        connection
    }

    fn publication(run: &str, tables: &[&str]) -> Publication {
        let replaced = |table: &&str| Replaced {
            table: (*table).to_owned(),
            staging: format!("{table}__run_{run}"),
            columns: vec!["a".to_owned()],
        };
        Publication { run: run.to_owned(), tables: tables.iter().map(replaced).collect() }
    }

    fn texts(connection: &Connection, sql: &str) -> Vec<String> {
        connection.prepare(sql).unwrap().query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn rows_are_replaced_once_and_the_table_stays_what_it_was() {
        let mut connection = database(
            "CREATE TABLE \"t \"\"x\" (a TEXT, n INTEGER DEFAULT 7); CREATE INDEX i ON \"t \"\"x\" (a);
             INSERT INTO \"t \"\"x\" VALUES ('old', 1), ('older', 2);
             CREATE TABLE \"t \"\"x__run_1\" (a TEXT); INSERT INTO \"t \"\"x__run_1\" VALUES ('new');",
        );
        let publication = publication("1", &["t \"x"]);
        for _ in 0..2 {
            publish(&mut connection, &publication).unwrap().unwrap();
            assert_eq!(texts(&connection, "SELECT a || n FROM \"t \"\"x\""), ["new7"]);
        }
        assert_eq!(texts(&connection, "SELECT name FROM sqlite_schema WHERE name = 'i'"), ["i"]);
        assert!(texts(&connection, "SELECT name FROM sqlite_schema WHERE name LIKE '%run%'").is_empty());
    }

    #[test]
    fn of_several_tables_all_are_replaced_or_none() {
        let mut connection = database(
            "CREATE TABLE t (a TEXT); CREATE TABLE u (a TEXT NOT NULL); INSERT INTO t VALUES ('old'); INSERT INTO u VALUES ('old');
             CREATE TABLE t__run_1 (a TEXT); CREATE TABLE u__run_1 (a TEXT); INSERT INTO t__run_1 VALUES ('new');",
        );
        let all = publication("1", &["t", "u"]);
        connection.execute_batch("INSERT INTO u__run_1 VALUES (NULL)").unwrap();
        publish(&mut connection, &all).unwrap_err();
        let rows = "SELECT 't' || a FROM t UNION ALL SELECT 'u' || a FROM u";
        assert_eq!(texts(&connection, rows), ["told", "uold"]);
        connection.execute_batch("DELETE FROM u__run_1").unwrap();
        publish(&mut connection, &all).unwrap().unwrap();
        assert_eq!(texts(&connection, rows), ["tnew"], "a run without rows leaves an empty table");
        let why = publish(&mut connection, &publication("2", &["t"])).unwrap().unwrap_err();
        assert!(why.contains("t__run_2 is gone"), "{why}");
    }

    /// DELETE would have taken the lines of every order along.
    #[test]
    fn rows_that_refer_to_the_table_stay_and_none_is_left_without_what_it_refers_to() {
        let mut connection = database(
            "CREATE TABLE t (a TEXT PRIMARY KEY);
             CREATE TABLE lines (a TEXT REFERENCES t (a) ON DELETE CASCADE);
             INSERT INTO t VALUES ('1'), ('2'); INSERT INTO lines VALUES ('1');
             CREATE TABLE t__run_1 (a TEXT); INSERT INTO t__run_1 VALUES ('2'), ('3');",
        );
        let why = publish(&mut connection, &publication("1", &["t"])).unwrap().unwrap_err();
        assert!(why.contains("refer to rows"), "{why}");
        connection.execute_batch("INSERT INTO t__run_1 VALUES ('1')").unwrap();
        publish(&mut connection, &publication("1", &["t"])).unwrap().unwrap();
        assert_eq!(texts(&connection, "SELECT a FROM lines"), ["1"]);
        assert!(connection.execute_batch("INSERT INTO lines VALUES ('9')").is_err(), "references are checked again");
    }
}

//! Staging tables: made like the table whose rows they are to replace, so that what that would refuse is refused as it is
//! written, row by row.

use super::super::STAGED;
use super::schema::quote;
use rusqlite::{Connection, OptionalExtension as _};

/// Makes an empty table like another: its columns, what it checks, and what is unique in it. The inner error is why that cannot
/// be had.
pub(super) fn create(connection: &mut Connection, staging: &str, like: &str) -> rusqlite::Result<Result<(), String>> {
    let transaction = connection.transaction()?;
    if transaction.table_exists(None, staging)? {
        return Ok(Ok(()));
    }
    let there = "SELECT type, sql FROM sqlite_schema WHERE type IN ('table', 'view') AND name = ?1 COLLATE NOCASE";
    let there: Option<(String, String)> =
        transaction.query_row(there, [like], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let Some((kind, sql)) = there else { return Ok(Err("it is gone".to_owned())) };
    // SQLite keeps a statement as it was given from the name on.
    let Some(behind) = sql.strip_prefix("CREATE TABLE ").filter(|_| kind == "table").and_then(behind_name) else {
        return Ok(Err("it is a view or a virtual table".to_owned()));
    };
    let refers = "SELECT EXISTS (SELECT 1 FROM pragma_foreign_key_list(?1) WHERE \"table\" = ?1 COLLATE NOCASE)";
    if transaction.query_row(refers, [like], |row| row.get(0))? {
        // Rows that are staged would be held against those that they are to replace.
        return Ok(Err("it refers to itself".to_owned()));
    }
    transaction.execute_batch(&format!("CREATE TABLE {}{behind}", quote(staging)))?;
    let indexes = "SELECT sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = ?1 COLLATE NOCASE
                   AND sql LIKE 'CREATE UNIQUE INDEX %'";
    let indexes = transaction
        .prepare(indexes)?
        .query_map([like], |row| row.get(0))?
        .collect::<rusqlite::Result<Vec<String>>>()?;
    for (number, sql) in indexes.iter().enumerate() {
        let columns = sql.strip_prefix("CREATE UNIQUE INDEX ").and_then(behind_name);
        let columns = columns.and_then(behind_on).and_then(behind_name);
        let Some(columns) = columns else { return Ok(Err(format!("its index cannot be read: {sql}"))) };
        let name = quote(&format!("{staging}_{number}"));
        transaction.execute_batch(&format!("CREATE UNIQUE INDEX {name} ON {}{columns}", quote(staging)))?;
    }
    transaction.commit()?;
    Ok(Ok(()))
}

/// What stands behind a name in SQL (`sqlite.org/lang_keywords.html`): one in quotes, in brackets or in backticks, or a word.
fn behind_name(sql: &str) -> Option<&str> {
    let first = sql.chars().next()?;
    let end = match first {
        '[' => sql.find(']')? + 1,
        '"' | '`' | '\'' => {
            let mut at = 1;
            loop {
                at += sql[at..].find(first)? + 1;
                // Doubled it stands for itself.
                if !sql[at..].starts_with(first) {
                    break at;
                }
                at += 1;
            }
        }
        _ => sql.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$' || !c.is_ascii()))?,
    };
    (end > 0).then(|| &sql[end..])
}

/// What stands behind `ON` and blanks.
fn behind_on(sql: &str) -> Option<&str> {
    let sql = sql.trim_start();
    let on = sql.get(..2).filter(|on| on.eq_ignore_ascii_case("on"))?;
    Some(sql[on.len()..].trim_start())
}

/// Drops tables, unless they are gone.
pub(super) fn drop(connection: &mut Connection, tables: &[String]) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    for table in tables {
        transaction.execute_batch(&format!("DROP TABLE IF EXISTS {}", quote(table)))?;
    }
    transaction.commit()
}

/// The staging tables of a table.
pub(super) fn tables(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let names =
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND lower(substr(name, 1, length(?1))) = lower(?1)";
    connection.prepare(names)?.query_map([format!("{table}{STAGED}")], |row| row.get(0))?.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made_like(sql: &str, like: &str) -> (Connection, Result<(), String>) {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(sql).unwrap();
        let made = create(&mut connection, "s\"t__run_1", like).unwrap();
        (connection, made)
    }

    #[test]
    fn a_staging_table_takes_and_refuses_what_its_target_does() {
        for (sql, like) in [
            ("CREATE TABLE t(a INTEGER NOT NULL, b TEXT CHECK (b <> 'no'), UNIQUE (a))", "T"),
            (
                "create table  \"o \"\"x\" (a INT PRIMARY KEY NOT NULL, b TEXT CHECK (b <> 'no')) STRICT, WITHOUT ROWID",
                "o \"x",
            ),
            ("CREATE TABLE [o x] (a NOT NULL, b CHECK (b <> 'no')); CREATE UNIQUE INDEX [i 1]on[o x](a)", "o x"),
            (
                "CREATE TABLE `é\u{2028}` (a NOT NULL, b CHECK (b <> 'no')); CREATE UNIQUE INDEX i ON `é\u{2028}` (a) WHERE b > ''",
                "é\u{2028}",
            ),
            (
                "CREATE TABLE IF NOT EXISTS 't' (a NOT NULL, b CHECK (b <> 'no')); CREATE UNIQUE INDEX i -- (x)\n ON t (lower(a))",
                "t",
            ),
        ] {
            let (connection, made) = made_like(sql, like);
            if sql.contains("--") {
                assert!(made.unwrap_err().contains("its index cannot be read"), "{sql}");
                continue;
            }
            made.unwrap_or_else(|why| panic!("{sql}: {why}"));
            let insert =
                |values: &str| connection.execute_batch(&format!("INSERT INTO \"s\"\"t__run_1\" VALUES {values}"));
            insert("(1, 'x'), (2, 'y')").unwrap_or_else(|error| panic!("{sql}: {error}"));
            for refused in ["(1, 'x')", "(NULL, 'x')", "(3, 'no')"] {
                assert!(insert(refused).is_err(), "{sql} {refused}");
            }
            assert_eq!(tables(&connection, "S\"t").unwrap(), ["s\"t__run_1"]);
            assert!(tables(&connection, "s_t").unwrap().is_empty());
        }
    }

    #[test]
    fn it_is_made_once_and_dropped_once() {
        let (mut connection, made) = made_like("CREATE TABLE t (a)", "t");
        made.unwrap();
        connection.execute_batch("INSERT INTO \"s\"\"t__run_1\" VALUES (1)").unwrap();
        create(&mut connection, "s\"t__run_1", "t").unwrap().unwrap();
        let rows: i64 = connection.query_row("SELECT count(*) FROM \"s\"\"t__run_1\"", [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 1, "what is there stays");
        for _ in 0..2 {
            drop(&mut connection, &["s\"t__run_1".to_owned()]).unwrap();
        }
        assert!(tables(&connection, "s\"t").unwrap().is_empty());
    }

    #[test]
    fn what_is_no_table_cannot_be_replaced() {
        for (sql, like) in
            [("", "t"), ("CREATE VIEW t AS SELECT 1 AS a", "t"), ("CREATE VIRTUAL TABLE t USING fts5(a)", "t")]
        {
            assert!(made_like(sql, like).1.is_err(), "{sql}");
        }
    }
}

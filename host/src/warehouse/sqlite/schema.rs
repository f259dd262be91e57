//! Tables: what a live one can hold, and how a new one is declared.

use super::super::{NewTable, TableColumn};
use crate::row::ColumnType;
use rusqlite::{Connection, OptionalExtension as _};

/// The part of a table's name after the last dot.
pub fn table_name(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// An identifier in SQL.
pub fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// `CREATE TABLE` for a table of ours. Types whose text SQLite would turn into a number are declared so that their
/// affinity stays TEXT (a column declared NUMERIC would store `749.50` as a float).
pub fn create_statement(table: &NewTable) -> String {
    let columns: Vec<String> = table
        .columns
        .iter()
        .map(|column| {
            let null = if table.is_nullable(column) { "" } else { " NOT NULL" };
            let is_key = table.primary_key.as_ref().is_some_and(|key| key.eq_ignore_ascii_case(&column.name));
            let key = if is_key { " PRIMARY KEY" } else { "" };
            format!("  {} {}{null}{key}", quote(&column.name), declared(column.kind))
        })
        .collect();
    format!("CREATE TABLE IF NOT EXISTS {} (\n{}\n)", quote(table_name(&table.name)), columns.join(",\n"))
}

/// `ALTER TABLE` that adds a nullable column.
pub(super) fn add_column(table: &str, column: &str, kind: ColumnType) -> String {
    format!("ALTER TABLE {} ADD COLUMN {} {}", quote(table), quote(column), declared(kind))
}

/// A name for the number of a row that is no name of a column; none if the rows of the table have no numbers.
pub(super) fn row_id(connection: &Connection, table: &str) -> rusqlite::Result<Option<&'static str>> {
    let numbered = "SELECT type != 'view' AND NOT wr FROM pragma_table_list(?1) WHERE schema = 'main'";
    if !connection.query_row(numbered, [table], |row| row.get(0)).optional()?.unwrap_or(false) {
        return Ok(None);
    }
    let taken = connection
        .prepare("SELECT lower(name) FROM pragma_table_xinfo(?1)")?
        .query_map([table], |row| row.get(0))?
        .collect::<rusqlite::Result<Vec<String>>>()?;
    Ok(["rowid", "_rowid_", "oid"].into_iter().find(|name| !taken.iter().any(|taken| taken == name)))
}

const fn declared(kind: ColumnType) -> &'static str {
    match kind {
        ColumnType::Boolean => "BOOLEAN",
        ColumnType::Int64 => "INTEGER",
        ColumnType::Float64 => "REAL",
        ColumnType::Numeric => "NUMERIC_TEXT",
        ColumnType::Text => "TEXT",
        ColumnType::Bytes => "BLOB",
        ColumnType::Timestamp => "TIMESTAMP_TEXT",
        ColumnType::Date => "DATE_TEXT",
        ColumnType::Json => "JSON_TEXT",
    }
}

/// What a column with this declared type holds without loss, by SQLite's rules of affinity
/// (sqlite.org/datatype3.html, 3.1). In a STRICT table (sqlite.org/stricttables.html) a BLOB takes nothing but bytes, and
/// only there does ANY leave text alone.
fn holds(declared: &str, strict: bool) -> Vec<ColumnType> {
    use ColumnType::{Boolean, Bytes, Date, Float64, Int64, Json, Numeric, Text, Timestamp};
    let upper = declared.to_ascii_uppercase();
    let has = |part: &str| upper.contains(part);
    if has("INT") {
        vec![Int64, Boolean]
    } else if has("CHAR") || has("CLOB") || has("TEXT") {
        vec![Text, Numeric, Timestamp, Date, Json]
    } else if strict && has("BLOB") {
        vec![Bytes]
    } else if has("BLOB") || upper.is_empty() || strict && upper == "ANY" {
        ColumnType::ALL.to_vec()
    } else if has("REAL") || has("FLOA") || has("DOUB") {
        vec![Float64]
    } else {
        // Affinity NUMERIC: text that looks like a number would become one.
        vec![Boolean, Int64, Bytes]
    }
}

/// The columns of a table that rows can be written to; none if there is no such table. Generated columns are left out.
pub(super) fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Option<Vec<TableColumn>>> {
    let kind = "SELECT strict, wr FROM pragma_table_list(?1) WHERE schema = 'main'";
    let kind = connection.prepare_cached(kind)?.query_row([table], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let Some((strict, without_rowid)): Option<(bool, bool)> = kind else { return Ok(None) };
    let mut statement = connection.prepare_cached(
        "SELECT name, type, \"notnull\", dflt_value IS NOT NULL, hidden, pk > 0 AND sum(pk > 0) OVER () = 1, EXISTS (
           SELECT 1 FROM pragma_index_list(?1) indexes WHERE \"unique\" AND NOT partial
           AND (SELECT count(*) = 1 AND max(covered.name) = columns.name FROM pragma_index_info(indexes.name) covered)
         )
         FROM pragma_table_xinfo(?1) columns",
    )?;
    let mut rows = statement.query([table])?;
    let mut columns = Vec::new();
    while let Some(row) = rows.next()? {
        let declared: String = row.get(1)?;
        if row.get::<_, i64>(4)? != 0 {
            continue;
        }
        // An INTEGER PRIMARY KEY is the row's number, which SQLite gives out itself.
        let is_rowid = row.get(5)? && !without_rowid && declared.eq_ignore_ascii_case("INTEGER");
        columns.push(TableColumn {
            name: row.get(0)?,
            holds: holds(&declared, strict),
            limit: None,
            declared,
            nullable: !row.get::<_, bool>(2)?,
            has_default: is_rowid || row.get(3)?,
            is_key: row.get(5)? || row.get(6)?,
        });
    }
    Ok(if columns.is_empty() { None } else { Some(columns) })
}

/// Every table with its columns, except virtual tables of modules that are not part of this SQLite: they cannot be read,
/// nor be written to.
pub(super) fn tables(connection: &Connection) -> rusqlite::Result<Vec<(String, Vec<TableColumn>)>> {
    let mut statement = connection.prepare(
        "SELECT name, sql LIKE 'CREATE VIRTUAL TABLE%' FROM sqlite_schema WHERE type = 'table' AND sql IS NOT NULL",
    )?;
    let names = statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<Vec<(String, bool)>>>()?;
    let mut tables = Vec::with_capacity(names.len());
    for (name, is_virtual) in names {
        match columns(connection, &name) {
            Ok(columns) => tables.push((name, columns.unwrap_or_default())),
            Err(_) if is_virtual => {}
            Err(error) => return Err(error),
        }
    }
    Ok(tables)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Column;

    #[test]
    fn what_we_declare_holds_what_we_write() {
        for kind in ColumnType::ALL {
            assert!(holds(declared(kind), false).contains(&kind), "{kind}");
        }
    }

    #[test]
    fn a_numeric_column_would_turn_text_into_a_float_and_holds_no_numeric() {
        assert!(!holds("NUMERIC", false).contains(&ColumnType::Numeric));
        assert!(!holds("DECIMAL(10,2)", false).contains(&ColumnType::Numeric));
        assert!(!holds("TIMESTAMP", false).contains(&ColumnType::Timestamp));
        assert!(holds("VARCHAR(20)", false).contains(&ColumnType::Numeric));
    }

    #[test]
    fn a_made_table_reads_back_as_declared() {
        let connection = Connection::open_in_memory().unwrap();
        let wanted = vec![Column::new("id", ColumnType::Text, false), Column::new("amount", ColumnType::Numeric, true)];
        let table = NewTable::plain("project.data\"set.or\"ders", wanted);
        connection.execute_batch(&create_statement(&table)).unwrap();
        let columns = columns(&connection, "or\"ders").unwrap().unwrap();
        assert_eq!(columns.len(), 2);
        assert!(!columns[0].nullable && columns[1].nullable);
        assert_eq!(super::columns(&connection, "other").unwrap(), None);
    }

    #[test]
    fn a_virtual_table_without_its_module_does_not_hide_the_others() {
        let connection = Connection::open_in_memory().unwrap();
        connection
            .execute_batch(
                "CREATE TABLE t (a TEXT);
                 PRAGMA writable_schema = ON;
                 INSERT INTO sqlite_schema VALUES ('table', 'v', 'v', 0, 'CREATE VIRTUAL TABLE v USING no_such(a)');
                 PRAGMA writable_schema = RESET;",
            )
            .unwrap();
        assert!(super::columns(&connection, "v").unwrap_err().to_string().contains("no such module"));
        let names: Vec<String> = tables(&connection).unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["t"]);
    }

    #[test]
    fn any_and_blob_mean_other_things_in_a_strict_table() {
        // An ordinary column declared ANY would turn the id 007 into 7.
        assert!(!holds("ANY", false).contains(&ColumnType::Text));
        assert_eq!(holds("ANY", true), ColumnType::ALL);
        assert_eq!(holds("BLOB", false), ColumnType::ALL);
        // A STRICT one declared BLOB refuses text: every row would end in quarantine.
        assert_eq!(holds("BLOB", true), [ColumnType::Bytes]);
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE t (a ANY, b BLOB) STRICT; CREATE TABLE u (a ANY, b BLOB)").unwrap();
        let holds = |table: &str| columns(&connection, table).unwrap().unwrap().into_iter().map(|c| c.holds.len());
        assert_eq!(holds("t").collect::<Vec<_>>(), [9, 1]);
        assert_eq!(holds("u").collect::<Vec<_>>(), [3, 9]);
    }

    #[test]
    fn a_column_is_a_key_if_it_alone_is_unique() {
        let connection = Connection::open_in_memory().unwrap();
        let keys = |table: &str, sql: &str| -> Vec<String> {
            connection.execute_batch(sql).unwrap();
            let columns = columns(&connection, table).unwrap().unwrap().into_iter();
            columns.filter(|column| column.is_key).map(|column| column.name).collect()
        };
        assert_eq!(keys("a", "CREATE TABLE a (id TEXT PRIMARY KEY, x)"), ["id"]);
        assert_eq!(keys("b", "CREATE TABLE b (id INTEGER PRIMARY KEY, x)"), ["id"]);
        assert_eq!(keys("c", "CREATE TABLE c (id TEXT UNIQUE, x, y)"), ["id"]);
        assert!(keys("d", "CREATE TABLE d (id, x, PRIMARY KEY (id, x))").is_empty());
        assert!(keys("e", "CREATE TABLE e (id, x); CREATE UNIQUE INDEX ei ON e (id) WHERE x = 1").is_empty());
        assert!(keys("f", "CREATE TABLE f (id, x); CREATE UNIQUE INDEX fi ON f (id, x)").is_empty());
        assert!(keys("g", "CREATE TABLE g (id, x); CREATE INDEX gi ON g (id)").is_empty());
        assert!(keys("h", "CREATE TABLE h (id, x); CREATE UNIQUE INDEX hi ON h (lower(id))").is_empty());
        let columns = vec![Column::new("id", ColumnType::Text, true), Column::new("x", ColumnType::Int64, true)];
        let table = NewTable { primary_key: Some("ID".into()), ..NewTable::plain("i", columns) };
        assert_eq!(keys("i", &create_statement(&table)), ["id"]);
        let live = super::columns(&connection, "i").unwrap().unwrap();
        assert_eq!(live.iter().map(|column| column.nullable).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn a_row_number_fills_itself() {
        let connection = Connection::open_in_memory().unwrap();
        let filled = |table: &str, sql: &str| {
            connection.execute_batch(&format!("CREATE TABLE {table} {sql}")).unwrap();
            columns(&connection, table).unwrap().unwrap()[0].has_default
        };
        assert!(filled("a", "(id INTEGER PRIMARY KEY NOT NULL, x)"));
        assert!(filled("b", "(id integer NOT NULL PRIMARY KEY AUTOINCREMENT, x)"));
        assert!(!filled("c", "(id INT PRIMARY KEY NOT NULL, x)"));
        assert!(!filled("d", "(id INTEGER NOT NULL, x INTEGER NOT NULL, PRIMARY KEY (id, x))"));
        assert!(!filled("e", "(id INTEGER PRIMARY KEY NOT NULL, x) WITHOUT ROWID"));
    }
}

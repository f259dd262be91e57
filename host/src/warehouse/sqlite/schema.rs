//! Tables: what a live one can hold, and how a new one is declared.

use super::super::{NewTable, TableColumn};
use crate::row::ColumnType;
use rusqlite::Connection;

/// The part of a table's name after the last dot.
pub fn table_name(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// An identifier in SQL.
pub(super) fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// `CREATE TABLE` for a table of ours. Types whose text SQLite would turn into a number are declared so that their
/// affinity stays TEXT (a column declared NUMERIC would store `749.50` as a float).
pub fn create_statement(table: &NewTable) -> String {
    let columns: Vec<String> = table
        .columns
        .iter()
        .map(|column| {
            let null = if column.nullable { "" } else { " NOT NULL" };
            format!("  {} {}{null}", quote(&column.name), declared(column.kind))
        })
        .collect();
    format!("CREATE TABLE {} (\n{}\n)", quote(table_name(&table.name)), columns.join(",\n"))
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
/// (sqlite.org/datatype3.html, 3.1).
fn holds(declared: &str) -> Vec<ColumnType> {
    use ColumnType::{Boolean, Bytes, Date, Float64, Int64, Json, Numeric, Text, Timestamp};
    let upper = declared.to_ascii_uppercase();
    let has = |part: &str| upper.contains(part);
    if has("INT") {
        vec![Int64, Boolean]
    } else if has("CHAR") || has("CLOB") || has("TEXT") {
        vec![Text, Numeric, Timestamp, Date, Json]
    } else if has("BLOB") || upper.is_empty() || upper == "ANY" {
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
    let mut statement = connection
        .prepare_cached("SELECT name, type, \"notnull\", dflt_value IS NOT NULL, hidden FROM pragma_table_xinfo(?1)")?;
    let mut rows = statement.query([table])?;
    let mut columns = Vec::new();
    while let Some(row) = rows.next()? {
        let declared: String = row.get(1)?;
        if row.get::<_, i64>(4)? != 0 {
            continue;
        }
        columns.push(TableColumn {
            name: row.get(0)?,
            holds: holds(&declared),
            declared,
            nullable: !row.get::<_, bool>(2)?,
            has_default: row.get(3)?,
        });
    }
    Ok(if columns.is_empty() { None } else { Some(columns) })
}

/// Every table with its columns.
pub(super) fn tables(connection: &Connection) -> rusqlite::Result<Vec<(String, Vec<TableColumn>)>> {
    let mut statement = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")?;
    let names = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
    names.into_iter().map(|name| Ok((name.clone(), columns(connection, &name)?.unwrap_or_default()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Column;

    #[test]
    fn what_we_declare_holds_what_we_write() {
        for kind in ColumnType::ALL {
            assert!(holds(declared(kind)).contains(&kind), "{kind}");
        }
    }

    #[test]
    fn a_numeric_column_would_turn_text_into_a_float_and_holds_no_numeric() {
        assert!(!holds("NUMERIC").contains(&ColumnType::Numeric));
        assert!(!holds("DECIMAL(10,2)").contains(&ColumnType::Numeric));
        assert!(!holds("TIMESTAMP").contains(&ColumnType::Timestamp));
        assert!(holds("VARCHAR(20)").contains(&ColumnType::Numeric));
    }

    #[test]
    fn a_made_table_reads_back_as_declared() {
        let connection = Connection::open_in_memory().unwrap();
        let table = NewTable {
            name: "project.data\"set.or\"ders".into(),
            columns: vec![Column::new("id", ColumnType::Text, false), Column::new("amount", ColumnType::Numeric, true)],
        };
        connection.execute_batch(&create_statement(&table)).unwrap();
        let columns = columns(&connection, "or\"ders").unwrap().unwrap();
        assert_eq!(columns.len(), 2);
        assert!(!columns[0].nullable && columns[1].nullable);
        assert_eq!(super::columns(&connection, "other").unwrap(), None);
    }
}

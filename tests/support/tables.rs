//! Reading a SQLite warehouse back.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Map, Value};
use std::path::Path;

/// The columns that differ from run to run.
pub const VOLATILE: [&str; 4] = ["ingestion_timestamp", "received_timestamp", "publish_time", "publish_timestamp"];

/// A table's rows in the order they were written, as JSON objects. A blob is `{"base64": "…"}`.
pub fn rows(database: &Path, table: &str) -> Vec<Map<String, Value>> {
    query(database, &format!("SELECT * FROM \"{table}\" ORDER BY rowid"))
}

/// The same without the columns that differ from run to run.
pub fn stable_rows(database: &Path, table: &str) -> Vec<Map<String, Value>> {
    let mut rows = rows(database, table);
    for row in &mut rows {
        row.retain(|name, _| !VOLATILE.contains(&name.as_str()));
    }
    rows
}

/// How many rows a table has.
pub fn count(database: &Path, table: &str) -> u64 {
    query(database, &format!("SELECT COUNT(*) AS n FROM \"{table}\""))[0]["n"].as_u64().expect("a count")
}

/// The rows of any query.
pub fn query(database: &Path, sql: &str) -> Vec<Map<String, Value>> {
    let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .unwrap_or_else(|error| panic!("cannot open {}: {error}", database.display()));
    let mut statement = connection.prepare(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let names: Vec<String> = statement.column_names().into_iter().map(str::to_owned).collect();
    let mut rows = statement.query([]).expect("the query runs");
    let mut all = Vec::new();
    while let Some(row) = rows.next().expect("rows can be read") {
        let cells = names
            .iter()
            .enumerate()
            .map(|(index, name)| (name.clone(), json(row.get_ref(index).expect("the column exists"))));
        all.push(cells.collect());
    }
    all
}

fn json(value: ValueRef<'_>) -> Value {
    use base64::Engine as _;
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(n) => n.into(),
        ValueRef::Real(x) => x.into(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned().into(),
        ValueRef::Blob(bytes) => {
            let text = base64::engine::general_purpose::STANDARD.encode(bytes);
            Value::Object(Map::from_iter([("base64".to_owned(), text.into())]))
        }
    }
}

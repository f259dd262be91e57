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

/// The three tables of Offvia's pipelines without the columns that differ from run to run.
#[derive(Debug, PartialEq)]
pub struct Tiers {
    /// Bronze.
    pub bronze: Vec<Map<String, Value>>,
    /// Silver.
    pub silver: Vec<Map<String, Value>>,
    /// Quarantine.
    pub quarantine: Vec<Map<String, Value>>,
}

/// Reads all three tiers.
pub fn tiers(database: &Path) -> Tiers {
    Tiers {
        bronze: stable_rows(database, "raw_bookings"),
        silver: stable_rows(database, "fact_bookings"),
        quarantine: stable_rows(database, "poisoned_events"),
    }
}

impl Tiers {
    /// Asserts that both hold the same rows in the same order, none twice. Says where they part, not all they hold.
    #[track_caller]
    pub fn expect(&self, other: &Self, when: &str) {
        for (tier, ours, theirs) in [
            ("bronze", &self.bronze, &other.bronze),
            ("silver", &self.silver, &other.silver),
            ("quarantine", &self.quarantine, &other.quarantine),
        ] {
            let parted = ours.iter().zip(theirs).position(|(a, b)| a != b);
            if let Some(index) = parted {
                panic!("{when}: {tier} row {index} is {:?}\nand not {:?}", ours[index], theirs[index]);
            }
            assert_eq!(ours.len(), theirs.len(), "{when}: {tier} has another number of rows");
        }
    }
}

/// One column of a table as texts, in the order the rows were written.
pub fn column(database: &Path, table: &str, column: &str) -> Vec<String> {
    let rows = query(database, &format!("SELECT \"{column}\" AS value FROM \"{table}\" ORDER BY rowid"));
    rows.iter().map(|row| row["value"].as_str().map_or_else(|| row["value"].to_string(), str::to_owned)).collect()
}

/// How many rows a table has.
pub fn count(database: &Path, table: &str) -> u64 {
    query(database, &format!("SELECT COUNT(*) AS n FROM \"{table}\""))[0]["n"].as_u64().expect("a count")
}

/// The number of the newest row, or none if there is no such table, or no row, or the database is busy.
pub fn newest_rowid(database: &Path, table: &str) -> Option<u64> {
    let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
    let newest: Option<i64> =
        connection.query_row(&format!("SELECT max(rowid) FROM \"{table}\""), [], |row| row.get(0)).ok()?;
    newest.and_then(|newest| u64::try_from(newest).ok())
}

/// Number and digest of a table's rows in the order they were written, without the columns that differ from run to
/// run: to compare tables that are too large to hold.
pub fn fingerprint(database: &Path, table: &str) -> (usize, u64) {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("it can be opened");
    let mut statement =
        connection.prepare(&format!("SELECT * FROM \"{table}\" ORDER BY rowid")).expect("the table is there");
    let stable: Vec<usize> = (0..statement.column_count())
        .filter(|index| !VOLATILE.contains(&statement.column_name(*index).expect("the column exists")))
        .collect();
    let (mut rows, mut count, mut hasher) = (statement.query([]).expect("the query runs"), 0, DefaultHasher::new());
    while let Some(row) = rows.next().expect("rows can be read") {
        count += 1;
        for index in &stable {
            format!("{:?}", row.get_ref(*index).expect("the column exists")).hash(&mut hasher);
        }
    }
    (count, hasher.finish())
}

/// The rows of any query.
pub fn query(database: &Path, sql: &str) -> Vec<Map<String, Value>> {
    let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .unwrap_or_else(|error| panic!("cannot open {}: {error}", database.display()));
    let mut statement = connection.prepare(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
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

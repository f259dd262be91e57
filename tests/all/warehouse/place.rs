//! The warehouses that keep the contract, each with what a test does beside it.

use preflight::config::{BigqueryConfig, WarehouseConfig};
use preflight::google::credentials::Identity;
use preflight::google::endpoint::Endpoint;
use preflight::row::{Column, ColumnType, ValueRef};
use preflight::warehouse::{self, AppendError, Appended, Encoding, Entry, Layout, NewTable, RowSet, Tier, Warehouse};
use preflight_tests::bigquery::emulator::PROJECT;
use preflight_tests::bigquery::{Emulator, Fake, fake};
use rusqlite::Connection;
use serde_json::Value;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// Where a test's tables are.
pub enum Place {
    /// A SQLite file.
    Sqlite(TempDir),
    /// A dataset of the BigQuery emulator.
    Emulator(String),
    /// The strict fake of BigQuery.
    Fake(Fake),
}

impl Place {
    pub fn sqlite() -> Self {
        Self::Sqlite(tempfile::tempdir().unwrap())
    }

    pub fn emulator() -> Self {
        Self::Emulator(Emulator::shared().dataset("contract"))
    }

    pub fn fake() -> Self {
        assert_eq!(PROJECT, fake::PROJECT);
        // It brings a runtime of its own, which cannot be started inside of another.
        Self::Fake(thread::spawn(Fake::start).join().unwrap())
    }

    pub fn config(&self) -> WarehouseConfig {
        match self {
            Self::Sqlite(directory) => {
                WarehouseConfig::Sqlite { path: directory.path().join("w.db"), give_up_after: Duration::from_secs(10) }
            }
            _ => WarehouseConfig::Bigquery(self.bigquery()),
        }
    }

    pub fn bigquery(&self) -> BigqueryConfig {
        let (rest, storage) = match self {
            Self::Sqlite(_) => panic!("it is no BigQuery"),
            Self::Emulator(_) => (Emulator::shared().rest().to_owned(), Emulator::shared().storage().to_owned()),
            Self::Fake(fake) => (fake.rest().to_string(), fake.storage().to_string()),
        };
        BigqueryConfig {
            project: PROJECT.into(),
            request_timeout: Duration::from_secs(30),
            give_up_after: Duration::from_mins(1),
            endpoint: Some(Endpoint::parse(&rest).unwrap()),
            storage_endpoint: Some(Endpoint::parse(&storage).unwrap()),
            identity: Identity::Anonymous,
        }
    }

    /// Opens the warehouse, as a process that starts does.
    pub async fn open(&self) -> Arc<dyn Warehouse> {
        warehouse::open(&self.config()).await.unwrap()
    }

    /// A table's name in a pipeline file.
    pub fn table(&self, name: &str) -> String {
        match self {
            Self::Sqlite(_) | Self::Fake(_) => format!("dataset.{name}"),
            Self::Emulator(dataset) => format!("{dataset}.{name}"),
        }
    }

    /// A table without columns yet, as rows are laid out for it.
    fn layout(&self, table: &str) -> Layout {
        let encoding = match self {
            Self::Sqlite(_) => Encoding::Cells,
            _ => Encoding::Proto(Vec::new()),
        };
        Layout { table: warehouse::table_name(&self.config(), table), columns: Vec::new(), encoding, upsert: None }
    }

    /// The name of a stream that nobody made, of a table.
    pub fn unknown_stream(&self, table: &str) -> String {
        if let Self::Sqlite(_) = self {
            "nobody-s".into()
        } else {
            let (dataset, table) = table.split_once('.').unwrap();
            format!("projects/{PROJECT}/datasets/{dataset}/tables/{table}/streams/0123456789abcdef")
        }
    }

    /// Adds a STRING column to a table.
    pub fn add_column(&self, table: &str, column: &str) {
        match self {
            Self::Sqlite(_) => {
                let table = table.rsplit('.').next().unwrap();
                self.connection().execute_batch(&format!("ALTER TABLE {table} ADD COLUMN {column} TEXT")).unwrap();
            }
            Self::Fake(fake) => fake.add_column(table, &format!("{column} STRING"), true),
            Self::Emulator(dataset) => {
                Emulator::shared().add_column(dataset, table.rsplit('.').next().unwrap(), column);
            }
        }
    }

    /// The values of a column, as text; null is "null".
    pub fn values(&self, table: &str, column: &str, order: &str) -> Vec<String> {
        match self {
            Self::Sqlite(_) => {
                let table = table.rsplit('.').next().unwrap();
                let connection = self.connection();
                let sql = format!("SELECT coalesce(CAST({column} AS TEXT), 'null') FROM {table} ORDER BY {order}");
                let mut statement = connection.prepare(&sql).unwrap();
                statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
            }
            Self::Emulator(_) => {
                let rows = Emulator::shared().query(&format!("SELECT {column} AS c FROM `{table}` ORDER BY {order}"));
                rows.iter().map(|row| shown(&row["c"])).collect()
            }
            Self::Fake(fake) => {
                let mut rows = fake.content(|content| content.rows(table));
                rows.sort_by_key(|row| order.split(", ").map(|by| row.get(by).map(shown)).collect::<Vec<_>>());
                rows.iter().map(|row| row.get(column).map_or("null".into(), shown)).collect()
            }
        }
    }

    fn connection(&self) -> Connection {
        let Self::Sqlite(directory) = self else { panic!("it is no SQLite") };
        Connection::open(directory.path().join("w.db")).unwrap()
    }
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A table with an id and a number, and a stream for it.
pub struct Target<'a> {
    pub place: &'a Place,
    pub warehouse: Arc<dyn Warehouse>,
    pub table: String,
    pub stream: String,
    pub layout: Arc<Layout>,
}

impl<'a> Target<'a> {
    pub async fn new(place: &'a Place) -> Self {
        let warehouse = place.open().await;
        let table = place.table("t");
        warehouse.create_table(ids(&table)).await.unwrap();
        Self::over(place, warehouse, table, "l-s-1").await
    }

    /// The table as it is, and another stream for it.
    pub async fn over(place: &'a Place, warehouse: Arc<dyn Warehouse>, table: String, wanted: &str) -> Self {
        let stream = warehouse.create_stream(wanted, &place.layout(&table).table).await.unwrap();
        let layout = layout(place, warehouse.as_ref(), &table).await;
        Self { place, warehouse, table, stream, layout }
    }

    pub fn entry(&self, first_offset: u64, ids: &[&str]) -> Entry {
        let mut rows = RowSet::default();
        for (event, id) in (0..).zip(ids) {
            let number = i64::try_from(id.len()).unwrap();
            let values = self.layout.columns.iter().map(|column| match column.as_str() {
                "id" => ValueRef::Text(id),
                "number" => ValueRef::Int64(number),
                _ => ValueRef::Text("more"),
            });
            rows.push(event, usize::MAX, |bytes| self.layout.encode(bytes, values)).unwrap();
        }
        let (stream, layout) = (self.stream.clone(), Arc::clone(&self.layout));
        Entry { tier: Tier::Silver, stream, first_offset, rows: Arc::new(rows), layout }
    }

    pub async fn append(&self, first_offset: u64, ids: &[&str]) -> Result<Appended, AppendError> {
        self.append_all(vec![self.entry(first_offset, ids)]).await.remove(0)
    }

    pub async fn append_all(&self, entries: Vec<Entry>) -> Vec<Result<Appended, AppendError>> {
        self.warehouse.append(Arc::new(entries)).await
    }

    pub fn ids(&self) -> Vec<String> {
        self.place.values(&self.table, "id", "id")
    }
}

/// The layout of a live table, with all its columns.
pub async fn layout(place: &Place, warehouse: &dyn Warehouse, table: &str) -> Arc<Layout> {
    let mut layout = place.layout(table);
    warehouse.columns(table).await.unwrap().unwrap().iter().for_each(|column| layout.add(column));
    Arc::new(layout)
}

pub fn ids(table: &str) -> NewTable {
    NewTable::plain(
        table,
        vec![Column::new("id", ColumnType::Text, false), Column::new("number", ColumnType::Int64, true)],
    )
}

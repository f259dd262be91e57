//! The tables that the worker writes.

use anyhow::{Context, Result};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Params, Row};
use std::path::{Path, PathBuf};

/// The silver table as it was made when version 2 was planned: its column is there before its rule.
const SILVER: &str = "CREATE TABLE fact_bookings (
    booking_id TEXT NOT NULL, passenger_id TEXT NOT NULL, flight_number TEXT NOT NULL,
    origin_airport TEXT NOT NULL, destination_airport TEXT NOT NULL, fare_amount TEXT NOT NULL,
    currency TEXT NOT NULL, booking_status TEXT NOT NULL, event_timestamp TEXT NOT NULL, loyalty_tier TEXT,
    ingestion_timestamp TEXT NOT NULL, source_message_id TEXT NOT NULL, event_version TEXT, rule_digest TEXT
)";

/// A database, opened for each question: the worker makes it what it is.
pub(super) struct Warehouse(PathBuf);

impl Warehouse {
    /// Makes the database with its silver table.
    pub(super) fn create(path: &Path) -> Result<Self> {
        let create = || Connection::open(path)?.execute_batch(SILVER);
        create().with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path.to_owned()))
    }

    /// The first row of an answer.
    pub(super) fn first<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        let ask = || self.open()?.query_row(sql, values, read).optional();
        ask().with_context(|| format!("{}: {sql}", self.0.display()))
    }

    /// A number.
    pub(super) fn count(&self, sql: &str, values: impl Params) -> Result<u64> {
        let count = self.first(sql, values, |row| row.get::<_, i64>(0))?;
        u64::try_from(count.unwrap_or_default()).context("a count is not negative")
    }

    /// All rows of an answer.
    pub(super) fn all<T>(&self, sql: &str, read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>) -> Result<Vec<T>> {
        let ask = || -> rusqlite::Result<Vec<T>> { self.open()?.prepare(sql)?.query_map([], read)?.collect() };
        ask().with_context(|| format!("{}: {sql}", self.0.display()))
    }

    fn open(&self) -> rusqlite::Result<Connection> {
        Connection::open_with_flags(&self.0, OpenFlags::SQLITE_OPEN_READ_ONLY)
    }
}

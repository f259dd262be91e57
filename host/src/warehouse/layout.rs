//! How rows stand in a table: its columns, and how values are encoded for it.

use super::upsert::{Change, Upsert, places, sequence_number};
use super::{RowSet, TableColumn, bigquery, sqlite};
use crate::row::{ColumnType, ValueRef};
use serde::{Deserialize, Serialize};
use std::iter::once;

/// The table a row set is for, and the columns its values stand in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// Name of the table as the warehouse has it.
    pub table: String,
    /// Names of the columns, in the order of the values.
    pub columns: Vec<String>,
    /// How the values are encoded.
    #[serde(default)]
    pub encoding: Encoding,
    /// By what rows replace others. None where they are appended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upsert: Option<Upsert>,
}

/// How values are encoded: what is promised is sent as these bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// Cells as SQLite stores them.
    #[default]
    Cells,
    /// Bytes of a file: each value, and a newline behind it.
    Lines,
    /// Protocol buffer messages for BigQuery: the type of each column of the table. Field numbers count the columns from 1.
    Proto(Vec<ColumnType>),
}

impl Layout {
    /// Adds a column of the table.
    pub fn add(&mut self, column: &TableColumn) {
        self.columns.push(column.name.clone());
        if let Encoding::Proto(kinds) = &mut self.encoding {
            // A column that holds nothing we write is refused, and the layout with it.
            kinds.push(column.holds.first().copied().unwrap_or(ColumnType::Text));
        }
    }

    /// Appends a row to `bytes` that is to be appended to the table. There is a value for each column.
    pub fn encode<'a>(&self, bytes: &mut Vec<u8>, values: impl IntoIterator<Item = ValueRef<'a>>) {
        match &self.encoding {
            Encoding::Cells => sqlite::encode(bytes, values),
            Encoding::Proto(kinds) => bigquery::encode(kinds, bytes, values),
            Encoding::Lines => {
                for value in values {
                    if let ValueRef::Bytes(value) = value {
                        bytes.extend_from_slice(value);
                    }
                    bytes.push(b'\n');
                }
            }
        }
    }

    /// How far rows reach in a stream: offsets count rows, in a file bytes.
    pub fn extent(&self, rows: &RowSet) -> u64 {
        match self.encoding {
            Encoding::Cells | Encoding::Proto(_) => rows.len() as u64,
            Encoding::Lines => rows.iter().map(|row| row.len() as u64).sum(),
        }
    }

    /// Appends a row to `bytes` that is to be upserted. There is a value for each column.
    ///
    /// # Panics
    ///
    /// Where rows of the layout are appended, or its columns and values do not say which row is newer.
    pub fn encode_change<'a>(
        &self,
        bytes: &mut Vec<u8>,
        values: impl IntoIterator<Item = ValueRef<'a>>,
        change: Change,
    ) {
        let upsert = self.upsert.as_ref().expect("the rows of this layout are upserted");
        match &self.encoding {
            Encoding::Cells => {
                let is_delete = ValueRef::Boolean(change == Change::Delete);
                sqlite::encode(bytes, once(is_delete).chain(values));
            }
            Encoding::Proto(kinds) => {
                let values: Vec<ValueRef<'a>> = values.into_iter().collect();
                let places = places(&self.columns, &upsert.sequence).expect("a layout has the columns of its sequence");
                let sequence = sequence_number(places.into_iter().map(|place| values[place]));
                bigquery::encode(kinds, bytes, values);
                bigquery::encode_change(kinds, bytes, change, &sequence.expect("sequences are made of counters"));
            }
            Encoding::Lines => unreachable!("a file has no keys"),
        }
    }
}

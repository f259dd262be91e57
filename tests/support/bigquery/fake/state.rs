//! What the fake knows: tables, streams, every row that got in, and every request for one.

use super::change::{self, Keyed};
use super::decode::Decoder;
use super::faults::{Faults, RowTest};
use super::refusal::Refusal;
use super::table::Table;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use tonic::Code;

use super::api::storage_error::StorageErrorCode;

/// A stream of a table.
#[derive(Debug)]
pub(super) struct Stream {
    /// The table, by its path.
    pub(super) table: String,
    /// How many rows it has.
    pub(super) rows: u64,
    pub(super) finalized: bool,
}

/// A row that got in.
pub(super) struct Written {
    pub(super) table: Arc<str>,
    pub(super) stream: Arc<str>,
    /// None in a default stream.
    pub(super) offset: Option<u64>,
    /// The row; none is one that another writer wrote.
    pub(super) row: Option<(Arc<Decoder>, Vec<u8>)>,
}

impl Written {
    /// The same row in another table, written by a statement.
    pub(super) fn moved(&self, table: &str) -> Self {
        Self { table: table.into(), stream: "".into(), offset: None, row: self.row.clone() }
    }

    /// The row, read back.
    pub(super) fn content(&self) -> Map<String, Value> {
        let read = |(decoder, bytes): &(Arc<Decoder>, Vec<u8>)| decoder.row(bytes).expect("it was read before");
        let mut content = self.row.as_ref().map(read).unwrap_or_default();
        content.retain(|name, _| name != change::TYPE && name != change::SEQUENCE);
        content
    }
}

/// One request to append rows, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Append {
    /// The stream.
    pub stream: String,
    /// The offset, if one was given.
    pub offset: Option<u64>,
    /// How many rows.
    pub rows: usize,
    /// How many bytes the request has.
    pub bytes: usize,
    /// A digest of the rows: the same for the same bytes.
    pub digest: u64,
    /// Whether they got in now.
    pub written: bool,
    /// What was answered; none if nothing was.
    pub answer: Option<Code>,
}

/// What is done about a stream that is finalized again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FinalizeAgain {
    /// It says how many rows it has, as it did before.
    #[default]
    Counts,
    /// It is an error.
    Refuses,
    /// It is an error that does not say which.
    RefusesPlainly,
}

/// All of it.
#[derive(Default)]
pub(super) struct State {
    /// The locations of datasets that were made, by their path, `projects/…/datasets/…`.
    pub(super) datasets: BTreeMap<String, String>,
    /// Tables by their path, `projects/…/datasets/…/tables/…`.
    pub(super) tables: BTreeMap<String, Table>,
    /// The queries of views, by their path.
    pub(super) views: BTreeMap<String, String>,
    /// Streams by their path. Those that were forgotten are not here.
    pub(super) streams: BTreeMap<String, Stream>,
    pub(super) written: Vec<Written>,
    /// Rows that replaced others, by the path of the table.
    pub(super) keyed: BTreeMap<Arc<str>, Keyed>,
    pub(super) appends: Vec<Append>,
    pub(super) faults: Faults,
    /// Rows that tables refuse, by the path of the table.
    pub(super) refused_rows: Vec<(String, RowTest)>,
    pub(super) finalize_again: FinalizeAgain,
    /// Whether a call does nothing more once a request of it was answered with an error.
    pub(super) aborts_behind_errors: bool,
    pub(super) streams_made: u64,
    /// Jobs by their ids, and why they failed, if they did.
    pub(super) jobs: BTreeMap<String, Option<String>>,
    /// Whether rows that were streamed may be changed in a transaction.
    pub(super) forgets_streamed: bool,
}

impl State {
    pub(super) fn table(&self, path: &str) -> Result<&Table, Refusal> {
        self.tables.get(path).ok_or_else(|| {
            Refusal::new(Code::NotFound, format!("Requested entity was not found. Entity: {path}"))
                .of(StorageErrorCode::TableNotFound, path)
        })
    }

    /// The rows of a table.
    pub(super) fn rows(&self, path: &str) -> impl Iterator<Item = &Written> {
        let keyed = self.keyed.get(path).into_iter().flat_map(Keyed::rows);
        self.written.iter().filter(move |row| *row.table == *path).chain(keyed)
    }

    /// Makes a committed stream.
    pub(super) fn create_stream(&mut self, table: &str) -> Result<String, Refusal> {
        self.table(table)?;
        self.streams_made += 1;
        let name = format!("{table}/streams/Cic{:08x}", self.streams_made);
        self.streams.insert(name.clone(), Stream { table: table.to_owned(), rows: 0, finalized: false });
        Ok(name)
    }

    /// A stream that is there.
    pub(super) fn stream(&self, name: &str) -> Result<&Stream, Refusal> {
        self.streams.get(name).filter(|stream| self.tables.contains_key(&stream.table)).ok_or_else(|| {
            Refusal::new(Code::NotFound, format!("Requested entity was not found. Entity: {name}"))
                .of(StorageErrorCode::StreamNotFound, name)
        })
    }

    /// Finalizes a stream and says how many rows it has.
    pub(super) fn finalize(&mut self, name: &str) -> Result<u64, Refusal> {
        let again = self.finalize_again;
        self.stream(name)?;
        let stream = self.streams.get_mut(name).expect("it was just found");
        if stream.finalized && again != FinalizeAgain::Counts {
            let refusal = Refusal::new(Code::InvalidArgument, format!("Stream is already finalized. Entity: {name}"));
            let plainly = again == FinalizeAgain::RefusesPlainly;
            return Err(if plainly { refusal } else { refusal.of(StorageErrorCode::StreamFinalized, name) });
        }
        stream.finalized = true;
        Ok(stream.rows)
    }

    /// Rows that another writer appends to a stream.
    pub(super) fn someone_writes(&mut self, name: &str, rows: u64) {
        let Some(stream) = self.streams.get_mut(name) else { return };
        let (table, stream_name): (Arc<str>, Arc<str>) = (stream.table.as_str().into(), name.into());
        for _ in 0..rows {
            let (table, stream_name) = (Arc::clone(&table), Arc::clone(&stream_name));
            self.written.push(Written { table, stream: stream_name, offset: Some(stream.rows), row: None });
            stream.rows += 1;
        }
    }

    /// Writes rows at an offset of a stream, or at the end of a table's default stream.
    pub(super) fn write(
        &mut self,
        name: &str,
        offset: Option<u64>,
        rows: Vec<Vec<u8>>,
        decoder: &Arc<Decoder>,
    ) -> Result<(), Refusal> {
        let (table, first) = match offset {
            None => (super::table_of(name).to_owned(), None),
            Some(offset) => {
                self.stream(name)?;
                let stream = self.streams.get_mut(name).expect("it was just found");
                if stream.finalized {
                    let message = format!("Stream has been finalized and cannot be appended. Entity: {name}");
                    return Err(
                        Refusal::new(Code::InvalidArgument, message).of(StorageErrorCode::StreamFinalized, name)
                    );
                }
                let end = stream.rows;
                let wrong = |code, storage, what: &str| {
                    let message =
                        format!("The offset is {what}, expected offset {end}, received {offset} Entity: {name}");
                    Err(Refusal::new(code, message).of(storage, name))
                };
                if offset < end {
                    return wrong(Code::AlreadyExists, StorageErrorCode::OffsetAlreadyExists, "within stream");
                }
                if offset > end {
                    return wrong(Code::OutOfRange, StorageErrorCode::OffsetOutOfRange, "beyond stream");
                }
                stream.rows += rows.len() as u64;
                (stream.table.clone(), Some(offset))
            }
        };
        let (table, stream): (Arc<str>, Arc<str>) = (table.into(), name.into());
        let written = (0..).zip(rows).map(|(index, bytes)| Written {
            table: Arc::clone(&table),
            stream: Arc::clone(&stream),
            offset: first.map(|first| first + index),
            row: Some((Arc::clone(decoder), bytes)),
        });
        if decoder.changes() {
            let primary_key = self.tables[&*table].primary_key.clone();
            let keyed = self.keyed.entry(Arc::clone(&table)).or_default();
            written.for_each(|written| keyed.change(written, decoder, &primary_key));
        } else {
            self.written.extend(written);
        }
        Ok(())
    }
}

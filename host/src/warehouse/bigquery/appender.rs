//! Appending entries: a connection for each stream, kept open between calls.
//!
//! The requests of an entry are sent without waiting for the answers before. If one fails, those behind it fail too, for it:
//! the first error is the cause, and with it the connection is given up. The next try begins with the entry's first request,
//! on a new connection. Where a request was answered that it is there already, those behind it may be aborted for that as if it
//! were an error: then they are sent again at once, on a new connection, as long as each takes one more.
//!
//! Rows that are upserted go the same way, to the default stream of their table and without an offset: sent twice they come to
//! the same.

use super::super::{AppendError, Appended, Entry, StreamRows};
use super::connection::Connection;
use super::descriptor::descriptor;
use super::errors::{Cause, Meaning, refused_rows};
use super::name::TableName;
use super::request::{offset, request, split};
use super::storage::Storage;
use super::streams;
use futures::future::join_all;
use gcp_bigquery_client::google::cloud::bigquery::storage::v1::append_rows_response::Response;
use gcp_bigquery_client::google::cloud::bigquery::storage::v1::{AppendRowsResponse, RowError};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tonic::Status;

/// The connection of a stream, if one is open. Held while it is used.
type Slot = Arc<tokio::sync::Mutex<Option<Connection>>>;

/// Appends to streams.
pub(super) struct Appender {
    storage: Storage,
    slots: Mutex<BTreeMap<String, Slot>>,
    /// Streams that are there and whose table was said to be missing, since when nothing was written to them.
    missed: Mutex<BTreeSet<String>>,
    schema_changes: watch::Sender<u64>,
}

/// Why a request was not written.
enum Problem {
    /// An error of the service.
    Cause(Cause),
    /// The table refuses rows.
    Rows(Vec<RowError>),
    /// Rows went where they were not sent.
    Elsewhere(i64),
}

impl From<Status> for Problem {
    fn from(status: Status) -> Self {
        Self::Cause(Cause::from(&status))
    }
}

impl Appender {
    pub(super) fn new(storage: Storage) -> Self {
        Self { storage, slots: Mutex::default(), missed: Mutex::default(), schema_changes: watch::Sender::new(0) }
    }

    /// Counts the schema changes that answers told of.
    pub(super) fn schema_changes(&self) -> watch::Receiver<u64> {
        self.schema_changes.subscribe()
    }

    /// Closes the connection of a stream that takes no more rows.
    pub(super) fn forget(&self, stream: &str) {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).remove(stream);
    }

    /// Appends entries, those of one stream in order. Gives a result for each.
    pub(super) async fn append(&self, entries: &[Entry]) -> Vec<Result<Appended, AppendError>> {
        let mut by_stream: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, entry) in entries.iter().enumerate() {
            by_stream.entry(stream_of(entry)).or_default().push(index);
        }
        let streams = by_stream.into_iter().map(async |(stream, indexes)| {
            let mut results = Vec::with_capacity(indexes.len());
            for index in indexes {
                let before = results.last().is_none_or(|(_, result): &(usize, Result<_, _>)| result.is_ok());
                let result = if before {
                    self.append_one(&entries[index], &stream).await
                } else {
                    Err(AppendError::Retryable(format!("not sent: stream {stream} failed before")))
                };
                results.push((index, result));
            }
            results
        });
        let mut results: Vec<_> = join_all(streams).await.into_iter().flatten().collect();
        results.sort_by_key(|(index, _)| *index);
        results.into_iter().map(|(_, result)| result).collect()
    }

    async fn append_one(&self, entry: &Entry, stream: &str) -> Result<Appended, AppendError> {
        let parts = split(&entry.rows);
        let slot = self.slot(stream);
        let mut slot = slot.lock().await;
        // Taken out: a call that is given up in the middle leaves no connection with answers that nobody awaits.
        let mut connection = slot.take().filter(|connection| connection.layout == entry.layout);
        let has_offset = entry.layout.upsert.is_none();
        let (mut done, mut there, mut resent) = (0, false, false);
        while done < parts.len() {
            let left = &parts[done..];
            let open = connection.take().and_then(|mut open| open.is_open().then_some(open));
            let reused = open.is_some();
            let mut used = match open {
                Some(open) => open,
                None => match Connection::open(&self.storage, stream, Arc::clone(&entry.layout)).await {
                    Ok(opened) => opened,
                    Err(status) => return Err(self.failed(entry, stream, &left[0], status.into()).await),
                },
            };
            let mut met = false;
            let sent = self.send((entry, stream), left, &mut used, &mut met).await?;
            // What this call sends again may be there by its own first send: that is no sign of another.
            there |= met && !resent;
            match sent {
                Ok(()) => {
                    done = parts.len();
                    connection = Some(used);
                }
                // The answer that it is there already may end the connection. What is behind it goes to a new one.
                Err((number, Problem::Cause(cause))) if has_offset && cause.meaning() == Meaning::AlreadyThere => {
                    done += number + 1;
                    there |= !resent;
                }
                // Aborted for an answer before it that is no error: all before it is in the table. Each turn takes one more.
                Err((number, Problem::Cause(cause))) if number > 0 && cause.is_aborted() => {
                    done += number;
                    resent = true;
                }
                // Nobody may have used it for minutes: that it was closed meanwhile shows only now.
                // What is sent again may be there by the first send, which is this call's own.
                Err((0, Problem::Cause(cause))) if reused && cause.is_closed() => resent = true,
                // What is left of the entry is sent again, at other offsets: nothing of it as it was may come after that.
                Err((number, problem @ Problem::Rows(_))) => {
                    used.close(self.storage.timeout).await;
                    return Err(self.failed(entry, stream, &left[number], problem).await);
                }
                Err((number, problem)) => return Err(self.failed(entry, stream, &left[number], problem).await),
            }
        }
        *slot = connection;
        match (there, self.missed().remove(stream)) {
            // Counted, perhaps, when there was another table, or none.
            (true, true) => Err(AppendError::Replaced(stream.to_owned())),
            (true, false) => Ok(Appended::AlreadyThere),
            (false, _) => Ok(Appended::Written),
        }
    }

    fn missed(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.missed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends some requests of an entry on a connection. Fails with the first that is not there afterwards, and why. Sets
    /// `there` if one was there before.
    async fn send(
        &self,
        (entry, stream): (&Entry, &str),
        parts: &[Range<usize>],
        connection: &mut Connection,
        there: &mut bool,
    ) -> Result<Result<(), (usize, Problem)>, AppendError> {
        let mut schema =
            if connection.described { None } else { Some(descriptor(&entry.layout).map_err(AppendError::Fatal)?) };
        connection.described = true;
        let requests = parts.iter().map(|part| request(entry, stream, part.clone(), schema.take()));
        let mut updated = connection.updated.take();
        let each = |number: usize, answer: AppendRowsResponse| {
            let first = offset(entry, &parts[number]);
            if answer.updated_schema.is_some() && answer.updated_schema != updated {
                updated.clone_from(&answer.updated_schema);
                self.schema_changes.send_modify(|changes| *changes += 1);
            }
            *there |= read(answer, first)? == Appended::AlreadyThere;
            Ok(())
        };
        let sent = connection.exchange(requests, self.storage.timeout, each).await;
        connection.updated = updated;
        Ok(sent)
    }

    /// What the first problem means for the entry.
    async fn failed(&self, entry: &Entry, stream: &str, rows: &Range<usize>, problem: Problem) -> AppendError {
        let (table, offset) = (&entry.layout.table, offset(entry, rows));
        let cause = match problem {
            Problem::Cause(cause) => cause,
            Problem::Rows(errors) => return refused_rows(&errors, rows.start, rows.len()),
            Problem::Elsewhere(at) => {
                let offset = offset.unwrap_or_default();
                return AppendError::Fatal(format!("rows for offset {offset} of stream {stream} were written at {at}"));
            }
        };
        self.storage.refused(cause.code);
        if cause.meaning() == Meaning::Schema {
            self.schema_changes.send_modify(|changes| *changes += 1);
        }
        let Some(offset) = offset else { return cause.of_table(table) };
        match cause.meaning() {
            // A stream of a table that was made just now is not known everywhere at once.
            Meaning::NotFound => match streams::rows(&self.storage, stream).await {
                Ok(StreamRows::Missing) => {}
                Ok(_) => {
                    self.missed().insert(stream.to_owned());
                    return AppendError::Retryable(format!("table {table}: not there yet: {}", cause.text()));
                }
                Err(error) => return AppendError::Retryable(error.text),
            },
            Meaning::NoTable => {
                self.missed().insert(stream.to_owned());
            }
            _ => {}
        }
        cause.of_append(table, stream, offset).expect("a request that is there is no problem")
    }

    fn slot(&self, stream: &str) -> Slot {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(slots.entry(stream.to_owned()).or_default())
    }
}

/// The stream that an entry goes to.
fn stream_of(entry: &Entry) -> String {
    match &entry.layout.upsert {
        None => entry.stream.clone(),
        // A layout has the whole name of its table. One that is none has no stream either, which is said when it is sent.
        Some(_) => TableName::parse(&entry.layout.table, "").map(|name| name.default_stream()).unwrap_or_default(),
    }
}

/// Reads the answer to a request whose first row stands at `first`, if it stands anywhere.
fn read(answer: AppendRowsResponse, first: Option<u64>) -> Result<Appended, Problem> {
    if !answer.row_errors.is_empty() {
        return Err(Problem::Rows(answer.row_errors));
    }
    match answer.response {
        Some(Response::AppendResult(result)) => match (result.offset, first) {
            (Some(at), Some(first)) if u64::try_from(at) != Ok(first) => Err(Problem::Elsewhere(at)),
            _ => Ok(Appended::Written),
        },
        Some(Response::Error(status)) => {
            let cause = Cause::from(&status);
            if first.is_some() && cause.meaning() == Meaning::AlreadyThere {
                Ok(Appended::AlreadyThere)
            } else {
                Err(Problem::Cause(cause))
            }
        }
        None => Err(Status::internal("an answer that says nothing").into()),
    }
}

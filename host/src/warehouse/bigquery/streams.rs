//! Write streams: made, finalized, looked at.

use super::super::{StreamRows, WarehouseError};
use super::errors::{Cause, Meaning};
use super::name::TableName;
use super::storage::Storage;
use gcp_bigquery_client::google::cloud::bigquery::storage::v1::{
    CreateWriteStreamRequest, FinalizeWriteStreamRequest, GetWriteStreamRequest, TableSchema, WriteStream,
    WriteStreamView, write_stream,
};
use tonic::{Code, Status};

/// Makes a committed stream for a table, and returns its name.
pub(super) async fn create(storage: &Storage, table: &TableName) -> Result<String, WarehouseError> {
    let parent = table.path();
    let stream = WriteStream { r#type: write_stream::Type::Committed.into(), ..WriteStream::default() };
    let message = CreateWriteStreamRequest { parent: parent.clone(), write_stream: Some(stream) };
    let made = storage.call(async {
        let request = storage.request(message, "parent", &parent).await?;
        storage.client().create_write_stream(request).await
    });
    let made = made.await.map_err(|status| {
        // A table that was made just now is not known everywhere at once, and a missing right can be given.
        let repairable = matches!(status.code(), Code::NotFound | Code::PermissionDenied);
        let error = error(&format!("cannot make a stream for table {table}"), &status);
        WarehouseError { retryable: error.retryable || repairable, ..error }
    })?;
    Ok(made.into_inner().name)
}

/// Finalizes a stream.
pub(super) async fn finalize(storage: &Storage, name: &str) -> Result<StreamRows, WarehouseError> {
    let message = FinalizeWriteStreamRequest { name: name.to_owned() };
    let finalized = storage.call(async {
        let request = storage.request(message, "name", name).await?;
        storage.client().finalize_write_stream(request).await
    });
    match finalized.await {
        Ok(rows) => {
            let rows = rows.into_inner().row_count;
            Ok(u64::try_from(rows).map_or(StreamRows::Unknown, StreamRows::Rows))
        }
        Err(status) => {
            let cause = Cause::from(&status);
            match cause.meaning() {
                // It was finalized before, and is not said again how many rows it has.
                Meaning::Gone if status.code() != Code::NotFound => Ok(StreamRows::Unknown),
                Meaning::NotFound | Meaning::Gone => Ok(StreamRows::Missing),
                // In which words BigQuery refuses to finalize twice is written nowhere. A name that it gave us is no other
                // reason to call the request wrong.
                Meaning::Refused if cause.storage.is_none() && cause.code == Code::InvalidArgument => {
                    Ok(StreamRows::Unknown)
                }
                _ => Err(error(&format!("cannot finalize stream {name}"), &status)),
            }
        }
    }
}

/// Whether there is a stream. How many rows it has BigQuery says only once, when it is finalized.
pub(super) async fn rows(storage: &Storage, name: &str) -> Result<StreamRows, WarehouseError> {
    match get(storage, name, WriteStreamView::Basic).await {
        Ok(_) => Ok(StreamRows::Unknown),
        Err(status) if status.code() == Code::NotFound => Ok(StreamRows::Missing),
        Err(status) => Err(error(&format!("cannot look at stream {name}"), &status)),
    }
}

/// Who asks for the schema of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks {
    /// Somebody who is to write to it: that this is not allowed is an error.
    Writer,
    /// Somebody who only looks.
    Looker,
}

/// The schema of a table as the Storage Write interface knows it, by the stream that every table has. None where it does
/// not know the table yet, or cannot say.
pub(super) async fn table_schema(
    storage: &Storage,
    table: &TableName,
    asks: Asks,
) -> Result<Option<TableSchema>, WarehouseError> {
    let stream = table.default_stream();
    match get(storage, &stream, WriteStreamView::Full).await {
        Ok(stream) => Ok(stream.table_schema),
        Err(status) if matches!(status.code(), Code::NotFound | Code::Unimplemented) => Ok(None),
        Err(status) if status.code() == Code::PermissionDenied && asks == Asks::Looker => Ok(None),
        Err(status) if status.code() == Code::PermissionDenied => {
            let what = format!("we may not write to table {table}: grant roles/bigquery.dataEditor on it");
            Err(error(&what, &status))
        }
        Err(status) => Err(error(&format!("cannot read the schema of table {table}"), &status)),
    }
}

async fn get(storage: &Storage, name: &str, view: WriteStreamView) -> Result<WriteStream, Status> {
    let message = GetWriteStreamRequest { name: name.to_owned(), view: view.into() };
    let got = storage.call(async {
        let request = storage.request(message, "name", name).await?;
        storage.client().get_write_stream(request).await
    });
    Ok(got.await?.into_inner())
}

/// An error of a call that is no append.
pub(super) fn error(what: &str, status: &Status) -> WarehouseError {
    let cause = Cause::from(status);
    let retryable = matches!(cause.meaning(), Meaning::Passing | Meaning::Key)
        // A token that cannot be got at all is a matter of the configuration.
        || cause.meaning() == Meaning::Token && !status.message().starts_with(super::tokens::NO_TOKEN);
    WarehouseError { text: format!("{what}: {}", cause.text()), retryable }
}

//! Rows outside of any stream of ours: diagnoses, for which once at most is enough.

use super::super::{Encoding, Layout, NewTable, WarehouseError};
use super::connection::Connection;
use super::descriptor::descriptor;
use super::errors::{Cause, Meaning};
use super::name::TableName;
use super::request::append;
use super::storage::Storage;
use super::streams;
use crate::row::{Row, ValueRef};
use gcp_bigquery_client::google::cloud::bigquery::storage::v1::append_rows_response::Response;
use std::sync::Arc;
use tonic::{Code, Status};

/// Appends rows to a table's default stream, in one request.
pub(super) async fn add(
    storage: &Storage,
    table: &NewTable,
    name: &TableName,
    rows: &[Row],
) -> Result<(), WarehouseError> {
    let layout = Layout {
        table: name.to_string(),
        columns: table.columns.iter().map(|column| column.name.clone()).collect(),
        encoding: Encoding::Proto(table.columns.iter().map(|column| column.kind).collect()),
        upsert: None,
    };
    let encoded = rows.iter().map(|row| {
        let mut bytes = Vec::new();
        layout.encode(&mut bytes, row.iter().map(ValueRef::from));
        bytes
    });
    let schema = descriptor(&layout).map_err(|text| WarehouseError { text, retryable: false })?;
    let stream = name.default_stream();
    let request = append(&stream, None, &layout, encoded.collect(), Some(schema));
    let sent = async {
        let mut connection = Connection::open(storage, &stream, Arc::new(layout)).await?;
        let each = |_, answer| refusal(answer).map_or(Ok(()), Err);
        connection.exchange([request].into_iter(), storage.timeout, each).await.map_err(|(_, status)| status)
    };
    sent.await.map_err(|status: Status| {
        storage.refused(status.code());
        streams::error(&format!("cannot add rows to table {name}"), &status)
    })
}

fn refusal(answer: gcp_bigquery_client::google::cloud::bigquery::storage::v1::AppendRowsResponse) -> Option<Status> {
    if let Some(row) = answer.row_errors.first() {
        let (index, why) = (row.index, &row.message);
        return Some(Status::invalid_argument(format!("row {index} is refused: {why}")));
    }
    let Some(Response::Error(status)) = answer.response else { return None };
    let cause = Cause::from(&status);
    let code = if cause.meaning() == Meaning::Refused { Code::InvalidArgument } else { cause.code };
    Some(Status::new(code, cause.text()))
}

//! What the fake refuses, in the two ways in which errors come: in an answer, and as the end of the call.

use super::api::append_rows_response::Response;
use super::api::storage_error::StorageErrorCode;
use super::api::{AppendRowsResponse, RowError, StorageError};
use super::rpc;
use prost::Message as _;
use prost_types::Any;
use tonic::{Code, Status};

/// An error: its status, what it is about, the rows it names.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    pub(super) code: Code,
    pub(super) storage: Option<StorageErrorCode>,
    pub(super) entity: String,
    pub(super) message: String,
    pub(super) rows: Vec<RowError>,
}

impl Refusal {
    /// With this status and message.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, storage: None, entity: String::new(), message: message.into(), rows: Vec::new() }
    }

    /// With a `StorageError` about something, too.
    #[must_use]
    pub fn of(self, storage: StorageErrorCode, entity: &str) -> Self {
        Self { storage: Some(storage), entity: entity.to_owned(), ..self }
    }

    fn details(&self) -> Vec<Any> {
        let error = self.storage.map(|code| StorageError {
            code: code.into(),
            entity: self.entity.clone(),
            error_message: self.message.clone(),
        });
        let any = |error: StorageError| Any {
            type_url: "type.googleapis.com/google.cloud.bigquery.storage.v1.StorageError".to_owned(),
            value: error.encode_to_vec(),
        };
        error.map(any).into_iter().collect()
    }

    fn rpc(&self) -> rpc::Status {
        rpc::Status { code: self.code.into(), message: self.message.clone(), details: self.details() }
    }

    /// As an answer; the call goes on.
    pub(super) fn answer(self, stream: &str) -> AppendRowsResponse {
        AppendRowsResponse {
            response: Some(Response::Error(self.rpc())),
            row_errors: self.rows,
            write_stream: stream.to_owned(),
            ..AppendRowsResponse::default()
        }
    }

    /// As the end of the call.
    pub(super) fn status(&self) -> Status {
        Status::with_details(self.code, self.message.clone(), self.rpc().encode_to_vec().into())
    }
}

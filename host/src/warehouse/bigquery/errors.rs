//! What an error of the Storage Write interface means. Errors come in two ways: in an answer, or as the end of the call;
//! they are read alike.
//!
//! | status, or `StorageError` where there is one | meaning |
//! |---|---|
//! | `ALREADY_EXISTS`, `OFFSET_ALREADY_EXISTS` | an earlier send of this request got through |
//! | `OUT_OF_RANGE`, `OFFSET_OUT_OF_RANGE` | rows before this offset are missing |
//! | `SCHEMA_MISMATCH_EXTRA_FIELDS` | a column of the rows is not in the table, or not yet known to be |
//! | `STREAM_FINALIZED`, `STREAM_NOT_FOUND`, `STREAM_ALREADY_COMMITTED`, `INVALID_STREAM_STATE`, `FAILED_PRECONDITION` | the stream is closed or gone |
//! | `NOT_FOUND` | the stream or its table is not there, or not yet everywhere |
//! | `TABLE_NOT_FOUND`, `PERMISSION_DENIED`, the key errors | something to be repaired in the project |
//! | `UNAUTHENTICATED` | the token is refused |
//! | `RESOURCE_EXHAUSTED` | a quota, or too much at once |
//! | `INVALID_ARGUMENT`, `UNIMPLEMENTED`, `INVALID_STREAM_TYPE` | the request itself is refused |
//! | everything else | the connection, or the service |

use super::super::AppendError;
use gcp_bigquery_client::google::cloud::bigquery::storage::v1::storage_error::StorageErrorCode;
use gcp_bigquery_client::google::cloud::bigquery::storage::v1::{RowError, StorageError};
use gcp_bigquery_client::google::rpc;
use prost::Message;
use std::collections::BTreeMap;
use tonic::{Code, Status};

/// How details name the message that says more.
const STORAGE_ERROR: &str = "google.cloud.bigquery.storage.v1.StorageError";

/// An error as it came.
#[derive(Debug, Clone)]
pub(super) struct Cause {
    pub(super) code: Code,
    pub(super) storage: Option<StorageErrorCode>,
    pub(super) message: String,
}

impl From<&rpc::Status> for Cause {
    fn from(status: &rpc::Status) -> Self {
        let mut details = status.details.iter().filter(|any| any.type_url.ends_with(STORAGE_ERROR));
        let storage = details.find_map(|any| StorageError::decode(any.value.as_slice()).ok());
        let code = storage.as_ref().map(StorageError::code).filter(|code| *code != StorageErrorCode::Unspecified);
        let message = match storage {
            Some(error) if status.message.is_empty() => error.error_message,
            _ => status.message.clone(),
        };
        Self { code: Code::from(status.code), storage: code, message }
    }
}

impl From<&Status> for Cause {
    fn from(status: &Status) -> Self {
        let details = rpc::Status::decode(status.details()).map(|status| status.details).unwrap_or_default();
        let message = status.message().to_owned();
        Self::from(&rpc::Status { code: status.code().into(), message, details })
    }
}

/// What an error means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// An earlier send of this request got through.
    AlreadyThere,
    /// Rows before this offset are missing.
    OutOfRange,
    /// A column of the rows is not in the table.
    Schema,
    /// The stream is closed or gone.
    Gone,
    /// It is not found. Whether it is gone or only not known here yet is to be asked.
    NotFound,
    /// There is no such table.
    NoTable,
    /// We may not write to the table.
    Denied,
    /// The table's encryption key fails.
    Key,
    /// The token is refused.
    Token,
    /// The service or the way to it.
    Passing,
    /// The request itself.
    Refused,
}

impl Cause {
    /// What it means.
    pub(super) fn meaning(&self) -> Meaning {
        use StorageErrorCode as Storage;
        if let Some(storage) = self.storage {
            match storage {
                Storage::OffsetAlreadyExists => return Meaning::AlreadyThere,
                Storage::OffsetOutOfRange => return Meaning::OutOfRange,
                Storage::SchemaMismatchExtraFields => return Meaning::Schema,
                Storage::StreamFinalized
                | Storage::StreamNotFound
                | Storage::StreamAlreadyCommitted
                | Storage::InvalidStreamState => return Meaning::Gone,
                Storage::TableNotFound => return Meaning::NoTable,
                Storage::InvalidStreamType => return Meaning::Refused,
                Storage::CmekNotProvided
                | Storage::InvalidCmekProvided
                | Storage::CmekEncryptionError
                | Storage::KmsServiceError
                | Storage::KmsPermissionDenied => return Meaning::Key,
                Storage::Unspecified => {}
            }
        }
        match self.code {
            Code::AlreadyExists => Meaning::AlreadyThere,
            Code::OutOfRange => Meaning::OutOfRange,
            Code::FailedPrecondition => Meaning::Gone,
            Code::NotFound => Meaning::NotFound,
            Code::PermissionDenied => Meaning::Denied,
            Code::Unauthenticated => Meaning::Token,
            Code::InvalidArgument | Code::Unimplemented => Meaning::Refused,
            Code::Ok
            | Code::Cancelled
            | Code::Unknown
            | Code::DeadlineExceeded
            | Code::ResourceExhausted
            | Code::Aborted
            | Code::Internal
            | Code::Unavailable
            | Code::DataLoss => Meaning::Passing,
        }
    }

    /// Whether the other side has ended the connection.
    pub(super) fn is_closed(&self) -> bool {
        let closed = [Code::Unavailable, Code::Aborted, Code::Cancelled, Code::Internal, Code::Unknown];
        self.storage.is_none() && closed.contains(&self.code)
    }

    /// Whether it was not looked at, since something before it on its connection failed.
    pub(super) fn is_aborted(&self) -> bool {
        self.storage.is_none() && self.code == Code::Aborted
    }

    /// What went wrong, for people.
    pub(super) fn text(&self) -> String {
        let name = self.storage.map_or_else(|| code_name(self.code), |code| code.as_str_name());
        if self.message.is_empty() { name.to_owned() } else { format!("{} ({name})", self.message) }
    }

    /// The error of an append to `stream` of `table` at `offset`. None where the rows are there.
    pub(super) fn of_append(&self, table: &str, stream: &str, offset: u64) -> Option<AppendError> {
        Some(match self.meaning() {
            Meaning::AlreadyThere => return None,
            Meaning::OutOfRange => AppendError::OutOfRange { offset, end: expected_offset(&self.message) },
            Meaning::Gone | Meaning::NotFound => AppendError::StreamGone(stream.to_owned()),
            _ => self.of_table(table),
        })
    }

    /// The error of a write to `table`, whatever the stream. Rows that are upserted have no offset, and a stream that is there
    /// as long as the table.
    pub(super) fn of_table(&self, table: &str) -> AppendError {
        let why = self.text();
        let waits = |what: &str| {
            AppendError::Retryable(format!(
                "{what}: {why}. Nothing more is read until it is repaired, then writing goes on"
            ))
        };
        match self.meaning() {
            Meaning::Schema => waits(&format!(
                "table {table} lacks a column that the rows have. If it was added just now, it may take some minutes \
                 until BigQuery knows; if it was dropped, add it again"
            )),
            Meaning::NoTable | Meaning::NotFound => {
                waits(&format!("there is no table {table}, make it again as it was"))
            }
            Meaning::Denied => waits(&format!(
                "we may not write to table {table}: grant roles/bigquery.dataEditor on it, if it is there"
            )),
            Meaning::Key => waits(&format!("the encryption key of table {table} cannot be used")),
            Meaning::Token => AppendError::Retryable(format!("table {table}: our access token is refused: {why}")),
            Meaning::Passing => AppendError::Retryable(format!("table {table}: {why}")),
            Meaning::Refused | Meaning::Gone | Meaning::AlreadyThere | Meaning::OutOfRange => {
                AppendError::Fatal(format!("table {table}: BigQuery refuses the request: {why}"))
            }
        }
    }
}

/// The rows that a request is refused for, by their index in the entry: each once, with all that is wrong with it.
pub(super) fn refused_rows(errors: &[RowError], first: usize, rows: usize) -> AppendError {
    let mut refused: BTreeMap<usize, String> = BTreeMap::new();
    for error in errors {
        let Some(index) = usize::try_from(error.index).ok().filter(|index| *index < rows) else {
            return AppendError::Fatal(format!("BigQuery refuses row {} of {rows}: {}", error.index, error.message));
        };
        let why = refused.entry(first + index).or_default();
        if !why.is_empty() {
            why.push_str("; ");
        }
        why.push_str(&error.message);
    }
    AppendError::Rows(refused.into_iter().collect())
}

/// The end of the stream, where the message has it as BigQuery words it. A hint, for people.
fn expected_offset(message: &str) -> Option<u64> {
    let lower = message.to_ascii_lowercase();
    let (_, rest) = lower.split_once("expected")?;
    let digits = rest.trim_start_matches(|c: char| !c.is_ascii_digit());
    digits[..digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len())].parse().ok()
}

/// The name of a status, as its documentation has it.
pub(super) const fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost_types::Any;

    fn status(code: Code, storage: Option<StorageErrorCode>, message: &str) -> rpc::Status {
        let details = storage.map(|code| {
            let error = StorageError { code: code.into(), entity: "e".into(), error_message: "said so".into() };
            let type_url = format!("type.googleapis.com/{STORAGE_ERROR}");
            vec![Any { type_url, value: error.encode_to_vec() }]
        });
        rpc::Status { code: code.into(), message: message.into(), details: details.unwrap_or_default() }
    }

    /// The same error in an answer and as the end of the call.
    fn both(code: Code, storage: Option<StorageErrorCode>, message: &str) -> [Cause; 2] {
        let in_band = status(code, storage, message);
        let ended = Status::with_details(code, message, in_band.encode_to_vec().into());
        [Cause::from(&in_band), Cause::from(&ended)]
    }

    #[test]
    fn each_line_of_the_table_is_read_in_both_ways_it_comes() {
        use Meaning as M;
        use StorageErrorCode as S;
        for (code, storage, meaning) in [
            (Code::AlreadyExists, None, M::AlreadyThere),
            (Code::AlreadyExists, Some(S::OffsetAlreadyExists), M::AlreadyThere),
            (Code::OutOfRange, None, M::OutOfRange),
            (Code::OutOfRange, Some(S::OffsetOutOfRange), M::OutOfRange),
            (Code::InvalidArgument, Some(S::SchemaMismatchExtraFields), M::Schema),
            (Code::InvalidArgument, Some(S::StreamFinalized), M::Gone),
            (Code::FailedPrecondition, Some(S::StreamAlreadyCommitted), M::Gone),
            (Code::NotFound, Some(S::StreamNotFound), M::Gone),
            (Code::InvalidArgument, Some(S::InvalidStreamState), M::Gone),
            (Code::FailedPrecondition, None, M::Gone),
            (Code::NotFound, None, M::NotFound),
            (Code::NotFound, Some(S::Unspecified), M::NotFound),
            (Code::NotFound, Some(S::TableNotFound), M::NoTable),
            (Code::PermissionDenied, None, M::Denied),
            (Code::FailedPrecondition, Some(S::CmekNotProvided), M::Key),
            (Code::FailedPrecondition, Some(S::InvalidCmekProvided), M::Key),
            (Code::FailedPrecondition, Some(S::CmekEncryptionError), M::Key),
            (Code::Unavailable, Some(S::KmsServiceError), M::Key),
            (Code::PermissionDenied, Some(S::KmsPermissionDenied), M::Key),
            (Code::Unauthenticated, None, M::Token),
            (Code::ResourceExhausted, None, M::Passing),
            (Code::Aborted, None, M::Passing),
            (Code::Unavailable, None, M::Passing),
            (Code::Cancelled, None, M::Passing),
            (Code::Internal, None, M::Passing),
            (Code::DeadlineExceeded, None, M::Passing),
            (Code::Unknown, None, M::Passing),
            (Code::InvalidArgument, None, M::Refused),
            (Code::InvalidArgument, Some(S::InvalidStreamType), M::Refused),
            (Code::Unimplemented, None, M::Refused),
        ] {
            for cause in both(code, storage, "m") {
                assert_eq!(cause.meaning(), meaning, "{code:?} {storage:?}");
            }
        }
    }

    #[test]
    fn a_meaning_becomes_an_error_that_says_what_to_do() {
        let error = |code, storage, message: &str| {
            let [in_band, ended] = both(code, storage, message).map(|cause| cause.of_append("p.d.t", "s", 5));
            assert_eq!(in_band, ended);
            in_band
        };
        assert_eq!(error(Code::AlreadyExists, None, ""), None);
        let out_of_range = |message| error(Code::OutOfRange, None, message);
        assert_eq!(out_of_range("beyond"), Some(AppendError::OutOfRange { offset: 5, end: None }));
        let worded = "The offset is beyond stream, expected offset 3, received 5";
        assert_eq!(out_of_range(worded), Some(AppendError::OutOfRange { offset: 5, end: Some(3) }));
        assert_eq!(error(Code::FailedPrecondition, None, ""), Some(AppendError::StreamGone("s".into())));
        let texts = [
            (Code::InvalidArgument, Some(StorageErrorCode::SchemaMismatchExtraFields), ["p.d.t", "minutes"]),
            (Code::PermissionDenied, None, ["p.d.t", "roles/bigquery.dataEditor"]),
            (Code::NotFound, Some(StorageErrorCode::TableNotFound), ["p.d.t", "TABLE_NOT_FOUND"]),
            (Code::FailedPrecondition, Some(StorageErrorCode::KmsPermissionDenied), ["p.d.t", "encryption key"]),
            (Code::Unauthenticated, None, ["p.d.t", "token"]),
            (Code::ResourceExhausted, None, ["p.d.t", "RESOURCE_EXHAUSTED"]),
        ];
        for (code, storage, parts) in texts {
            let Some(AppendError::Retryable(text)) = error(code, storage, "why it is so") else { panic!("{code:?}") };
            assert!(parts.iter().all(|part| text.contains(part)) && text.contains("why it is so"), "{text}");
        }
        let Some(AppendError::Fatal(text)) = error(Code::InvalidArgument, None, "no such field") else { panic!() };
        assert!(text.contains("no such field"), "{text}");
    }

    #[test]
    fn a_message_that_only_the_detail_has_is_not_lost() {
        let [in_band, _] = both(Code::InvalidArgument, Some(StorageErrorCode::StreamFinalized), "");
        assert_eq!(in_band.text(), "said so (STREAM_FINALIZED)");
    }

    #[test]
    fn refused_rows_are_named_by_their_place_in_the_entry_and_once_each() {
        let error = |index, message: &str| RowError { index, code: 1, message: message.into() };
        let errors = [error(2, "b"), error(0, "a"), error(2, "c")];
        let refused = vec![(10, "a".to_owned()), (12, "b; c".to_owned())];
        assert_eq!(refused_rows(&errors, 10, 3), AppendError::Rows(refused));
        for index in [3, -1] {
            assert!(matches!(refused_rows(&[error(index, "x")], 10, 3), AppendError::Fatal(_)), "{index}");
        }
    }
}

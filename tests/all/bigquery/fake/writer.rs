//! A plain client of the Storage Write interface.

use preflight_tests::bigquery::Fake;
use preflight_tests::bigquery::fake::api::append_rows_request::{ProtoData, Rows};
use preflight_tests::bigquery::fake::api::append_rows_response::Response;
use preflight_tests::bigquery::fake::api::big_query_write_client::BigQueryWriteClient;
use preflight_tests::bigquery::fake::api::{
    AppendRowsRequest, AppendRowsResponse, CreateWriteStreamRequest, FinalizeWriteStreamRequest, GetWriteStreamRequest,
    ProtoRows, ProtoSchema, StorageError, WriteStream, WriteStreamView, storage_error::StorageErrorCode, write_stream,
};
use preflight_tests::bigquery::fake::{PROJECT, rpc};
use prost::Message;
use prost::encoding::{string, uint64};
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status, Streaming};

const HANGS: Duration = Duration::from_secs(30);

/// A client, and the runtime that it works in.
pub(super) struct Writer {
    runtime: Runtime,
    endpoint: Endpoint,
}

/// A call to append rows to a stream.
pub(super) struct Line<'a> {
    writer: &'a Writer,
    pub(super) stream: String,
    pub(super) schema: Option<DescriptorProto>,
    requests: mpsc::Sender<AppendRowsRequest>,
    opening: Option<tokio::task::JoinHandle<Result<Streaming<AppendRowsResponse>, Status>>>,
    answers: Option<Streaming<AppendRowsResponse>>,
}

/// What became of a request.
#[derive(Debug)]
pub(super) enum Answered {
    Written(i64),
    /// An error in an answer.
    Refused(rpc::Status, Vec<(i64, String)>),
    /// The call ended.
    Ended(Status),
    /// Nothing was said.
    Silence,
}

impl Answered {
    /// The status and the `StorageError`, whichever way they came.
    pub(super) fn error(&self) -> (Code, Option<StorageErrorCode>) {
        let storage = |details: &[prost_types::Any]| {
            details.first().map(|any| StorageError::decode(any.value.as_slice()).unwrap().code())
        };
        match self {
            Self::Refused(status, _) => (Code::from(status.code), storage(&status.details)),
            Self::Ended(status) => {
                (status.code(), storage(&rpc::Status::decode(status.details()).unwrap_or_default().details))
            }
            other => panic!("no error: {other:?}"),
        }
    }

    pub(super) fn text(&self) -> &str {
        match self {
            Self::Refused(status, _) => &status.message,
            Self::Ended(status) => status.message(),
            other => panic!("no error: {other:?}"),
        }
    }

    pub(super) fn error_or_ok(&self) -> Code {
        if matches!(self, Self::Written(_)) { Code::Ok } else { self.error().0 }
    }

    pub(super) fn is_written_at(&self, offset: i64) -> bool {
        matches!(self, Self::Written(at) if *at == offset)
    }
}

/// The path of a table.
pub(super) fn path(table: &str) -> String {
    let (dataset, table) = table.split_once('.').unwrap();
    format!("projects/{PROJECT}/datasets/{dataset}/tables/{table}")
}

/// A descriptor with optional fields, numbered from 1.
pub(super) fn descriptor(fields: &[(&str, Type)]) -> DescriptorProto {
    let field = fields.iter().zip(1..).map(|((name, kind), number)| FieldDescriptorProto {
        name: Some((*name).to_owned()),
        number: Some(number),
        label: Some(Label::Optional.into()),
        r#type: Some((*kind).into()),
        ..FieldDescriptorProto::default()
    });
    DescriptorProto { name: Some("Row".to_owned()), field: field.collect(), ..DescriptorProto::default() }
}

/// A row of which field 1 is a text.
pub(super) fn row(id: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    string::encode(1, &id.to_owned(), &mut bytes);
    bytes
}

/// A row of which field 1 is a text and another field a number.
pub(super) fn row_with(id: &str, field: u32, value: i64) -> Vec<u8> {
    let mut bytes = row(id);
    uint64::encode(field, &value.cast_unsigned(), &mut bytes);
    bytes
}

/// A row of which field 1 is a text and another field one too.
pub(super) fn row_with_text(id: &str, field: u32, value: &str) -> Vec<u8> {
    let mut bytes = row(id);
    string::encode(field, &value.to_owned(), &mut bytes);
    bytes
}

fn routed<T>(message: T, params: &str) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("x-goog-request-params", params.parse().unwrap());
    request
}

impl Writer {
    pub(super) fn to(fake: &Fake) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        Self { runtime, endpoint: Endpoint::from_shared(format!("http://{}", fake.storage())).unwrap() }
    }

    /// On a connection of its own.
    fn client(&self) -> BigQueryWriteClient<Channel> {
        let _inside = self.runtime.enter();
        BigQueryWriteClient::new(self.endpoint.connect_lazy())
    }

    pub(super) fn create(&self, table: &str) -> Result<String, Status> {
        let stream = WriteStream { r#type: write_stream::Type::Committed.into(), ..WriteStream::default() };
        self.create_as(table, stream, &format!("parent={}", path(table)))
    }

    pub(super) fn create_as(&self, table: &str, stream: WriteStream, params: &str) -> Result<String, Status> {
        let request = CreateWriteStreamRequest { parent: path(table), write_stream: Some(stream) };
        let mut client = self.client();
        let answer = self.runtime.block_on(client.create_write_stream(routed(request, params)))?;
        Ok(answer.into_inner().name)
    }

    pub(super) fn get(&self, stream: &str, view: WriteStreamView) -> Result<WriteStream, Status> {
        let request = GetWriteStreamRequest { name: stream.to_owned(), view: view.into() };
        let mut client = self.client();
        let answer = self.runtime.block_on(client.get_write_stream(routed(request, &format!("name={stream}"))))?;
        Ok(answer.into_inner())
    }

    pub(super) fn finalize(&self, stream: &str) -> Result<i64, Status> {
        let request = FinalizeWriteStreamRequest { name: stream.to_owned() };
        let mut client = self.client();
        let answer = self.runtime.block_on(client.finalize_write_stream(routed(request, &format!("name={stream}"))))?;
        Ok(answer.into_inner().row_count)
    }

    /// Opens a call for rows with field 1, `id`.
    pub(super) fn open(&self, stream: &str) -> Line<'_> {
        self.open_as(stream, Some(descriptor(&[("id", Type::String)])), Some(&format!("write_stream={stream}")))
    }

    pub(super) fn open_as(&self, stream: &str, schema: Option<DescriptorProto>, params: Option<&str>) -> Line<'_> {
        let (requests, waiting) = mpsc::channel(8);
        let mut request = Request::new(ReceiverStream::new(waiting));
        if let Some(params) = params {
            request.metadata_mut().insert("x-goog-request-params", params.parse().unwrap());
        }
        let mut client = self.client();
        let opening =
            self.runtime.spawn(async move { client.append_rows(request).await.map(tonic::Response::into_inner) });
        let stream = stream.to_owned();
        Line { writer: self, stream, schema, requests, opening: Some(opening), answers: None }
    }
}

impl Line<'_> {
    /// A request; the first has the schema.
    pub(super) fn request(&mut self, offset: Option<i64>, rows: &[Vec<u8>]) -> AppendRowsRequest {
        let schema = self.schema.take().map(|descriptor| ProtoSchema { proto_descriptor: Some(descriptor) });
        let rows = Some(ProtoRows { serialized_rows: rows.to_vec() });
        AppendRowsRequest {
            write_stream: self.stream.clone(),
            offset,
            rows: Some(Rows::ProtoRows(ProtoData { writer_schema: schema, rows })),
            ..AppendRowsRequest::default()
        }
    }

    /// Appends rows and waits for the answer.
    pub(super) fn append(&mut self, offset: i64, rows: &[Vec<u8>]) -> Answered {
        self.send(offset, rows);
        self.answer()
    }

    pub(super) fn send(&mut self, offset: i64, rows: &[Vec<u8>]) {
        let request = self.request(Some(offset), rows);
        self.send_as(request);
    }

    pub(super) fn send_as(&self, request: AppendRowsRequest) {
        // Where the call has ended, its answer says why.
        self.requests.blocking_send(request).ok();
    }

    pub(super) fn answer(&mut self) -> Answered {
        self.answer_within(HANGS)
    }

    pub(super) fn answer_within(&mut self, limit: Duration) -> Answered {
        let Self { writer, opening, answers, .. } = self;
        let next = async {
            if answers.is_none() {
                *answers = Some(opening.as_mut().expect("it is opened once").await.unwrap()?);
            }
            answers.as_mut().expect("it is open").message().await
        };
        let answered = writer.runtime.block_on(async { tokio::time::timeout(limit, next).await });
        match answered {
            Err(_) => Answered::Silence,
            Ok(Err(status)) => Answered::Ended(status),
            Ok(Ok(None)) => Answered::Ended(Status::ok("")),
            Ok(Ok(Some(answer))) => match answer.response {
                Some(Response::AppendResult(result)) => Answered::Written(result.offset.unwrap_or(-1)),
                Some(Response::Error(status)) => Answered::Refused(
                    status,
                    answer.row_errors.into_iter().map(|row| (row.index, row.message)).collect(),
                ),
                None => panic!("an answer that says nothing"),
            },
        }
    }

    /// Whether the next answer tells a new schema with this column.
    pub(super) fn next_tells(&mut self, column: &str) -> bool {
        let answers = self.answers.as_mut().expect("it is open");
        let answer = self.writer.runtime.block_on(answers.message()).unwrap().unwrap();
        answer.updated_schema.is_some_and(|schema| schema.fields.iter().any(|field| field.name == column))
    }
}

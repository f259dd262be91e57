//! The gRPC service `google.cloud.bigquery.storage.v1.BigQueryWrite`: there are messages for it, but no server.

use super::api::{
    AppendRowsRequest, AppendRowsResponse, CreateWriteStreamRequest, FinalizeWriteStreamRequest,
    FinalizeWriteStreamResponse, GetWriteStreamRequest, WriteStream, WriteStreamView, write_stream,
};
use super::append::{Line, Step};
use super::faults::{Call, Due, Ending, Fault};
use super::refusal::Refusal;
use super::state::State;
use super::wire::Cutter;
use super::{Shared, table_of};
use futures::StreamExt as _;
use futures::future::{self, BoxFuture};
use futures::stream::BoxStream;
use prost::Message;
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::codegen::http;
use tonic::metadata::MetadataMap;
use tonic::server::{Grpc, NamedService, StreamingService, UnaryService};
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;

/// More than a request may have, so that it is the fake that refuses it.
const MAX_MESSAGE: usize = 64 << 20;
/// Requests of a call that are answered and whose answers wait to be taken.
const WAITING: usize = 16;

/// The service.
#[derive(Clone)]
pub(super) struct Service(pub(super) Arc<Shared>);

impl NamedService for Service {
    const NAME: &'static str = "google.cloud.bigquery.storage.v1.BigQueryWrite";
}

impl tonic::codegen::Service<http::Request<Body>> for Service {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let shared = Arc::clone(&self.0);
        let method = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
        Box::pin(async move {
            Ok(match method.as_str() {
                "AppendRows" => {
                    let codec = ProstCodec::<AppendRowsResponse, AppendRowsRequest>::default();
                    Grpc::new(codec).max_decoding_message_size(MAX_MESSAGE).streaming(Appends(shared), request).await
                }
                "CreateWriteStream" => Unary::answer(shared, create, request).await,
                "GetWriteStream" => Unary::answer(shared, get, request).await,
                "FinalizeWriteStream" => Unary::answer(shared, finalize, request).await,
                other => Status::unimplemented(format!("the fake has no {other}")).into_http(),
            })
        })
    }
}

/// A call that is answered once: what it is about, and how it is carried out.
/// Carries a call out.
type Run<T> = Box<dyn FnOnce(&mut State) -> Result<T, Refusal> + Send>;

struct Asked<T> {
    call: Call,
    /// What the header `x-goog-request-params` must be.
    routing: String,
    table: String,
    run: Run<T>,
}

fn create(request: CreateWriteStreamRequest) -> Asked<WriteStream> {
    let CreateWriteStreamRequest { parent, write_stream } = request;
    let routing = format!("parent={parent}");
    let run = {
        let parent = parent.clone();
        move |state: &mut State| {
            let committed = i32::from(write_stream::Type::Committed);
            if write_stream.map(|stream| stream.r#type) != Some(committed) {
                return Err(Refusal::new(Code::InvalidArgument, "the fake makes committed streams only"));
            }
            let name = state.create_stream(&parent)?;
            describe(state, &name, true)
        }
    };
    Asked { call: Call::Create, routing, table: parent, run: Box::new(run) }
}

fn get(request: GetWriteStreamRequest) -> Asked<WriteStream> {
    let GetWriteStreamRequest { name, view } = request;
    let (routing, table) = (format!("name={name}"), table_of(&name).to_owned());
    let full = view == i32::from(WriteStreamView::Full);
    Asked { call: Call::Get, routing, table, run: Box::new(move |state| describe(state, &name, full)) }
}

fn finalize(request: FinalizeWriteStreamRequest) -> Asked<FinalizeWriteStreamResponse> {
    let name = request.name;
    let (routing, table) = (format!("name={name}"), table_of(&name).to_owned());
    let run = move |state: &mut State| {
        let rows = state.finalize(&name)?;
        Ok(FinalizeWriteStreamResponse { row_count: i64::try_from(rows).unwrap_or(i64::MAX) })
    };
    Asked { call: Call::Finalize, routing, table, run: Box::new(run) }
}

fn describe(state: &State, name: &str, with_schema: bool) -> Result<WriteStream, Refusal> {
    let table = state.table(table_of(name))?;
    if !name.ends_with("/streams/_default") {
        state.stream(name)?;
    }
    Ok(WriteStream {
        name: name.to_owned(),
        r#type: write_stream::Type::Committed.into(),
        table_schema: with_schema.then(|| table.schema()),
        write_mode: write_stream::WriteMode::Insert.into(),
        location: "EU".to_owned(),
        ..WriteStream::default()
    })
}

/// Carries out calls that are answered once.
struct Unary<Q, T> {
    shared: Arc<Shared>,
    asked: fn(Q) -> Asked<T>,
}

impl<Q: Message + Default + 'static, T: Message + Default + 'static> Unary<Q, T> {
    async fn answer(
        shared: Arc<Shared>,
        asked: fn(Q) -> Asked<T>,
        request: http::Request<Body>,
    ) -> http::Response<Body> {
        Grpc::new(ProstCodec::<T, Q>::default()).unary(Self { shared, asked }, request).await
    }
}

impl<Q: Send + 'static, T: Send + 'static> UnaryService<Q> for Unary<Q, T> {
    type Response = T;
    type Future = BoxFuture<'static, Result<Response<T>, Status>>;

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let shared = Arc::clone(&self.shared);
        let (routing, cutter) = (routing(request.metadata()), cutter(&request));
        let Asked { call, routing: expected, table, run } = (self.asked)(request.into_inner());
        Box::pin(async move {
            if routing.as_deref() != Some(&expected) {
                let routing = routing.unwrap_or_default();
                return Err(Status::invalid_argument(format!(
                    "x-goog-request-params is {routing:?} and not {expected:?}"
                )));
            }
            let (answer, ending, lifted) = shared.change(|state| {
                let Some(Due { fault, lifted }) = state.faults.due(call, &table) else {
                    return (Some(run(state)), None, None);
                };
                match fault {
                    Fault::Before(ending) => (None, Some(ending), None),
                    Fault::After(ending) => (Some(run(state)), Some(ending), None),
                    Fault::Answer(refusal) => (Some(Err(refusal)), None, None),
                    Fault::AnswerAfter(refusal) => (Some(run(state).and(Err(refusal))), None, None),
                    Fault::Held => (Some(run(state)), None, lifted),
                    // The rest is about rows and streams.
                    _ => (Some(run(state)), None, None),
                }
            });
            if let Some(mut lifted) = lifted {
                lifted.wait_for(|lifted| *lifted).await.ok();
            }
            match ending {
                Some(Ending::Error(refusal)) => Err(refusal.status()),
                Some(Ending::Hang) => future::pending().await,
                Some(Ending::Reset | Ending::Close) => {
                    cutter.cut();
                    future::pending().await
                }
                None => match answer.expect("what has no ending has an answer") {
                    Ok(answer) => Ok(Response::new(answer)),
                    Err(refusal) => Err(refusal.status()),
                },
            }
        })
    }
}

/// Carries out `AppendRows` calls.
struct Appends(Arc<Shared>);

impl StreamingService<AppendRowsRequest> for Appends {
    type Response = AppendRowsResponse;
    type ResponseStream = BoxStream<'static, Result<AppendRowsResponse, Status>>;
    type Future = BoxFuture<'static, Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: Request<Streaming<AppendRowsRequest>>) -> Self::Future {
        let (line, cutter) = (Line::new(routing(request.metadata())), cutter(&request));
        let (answers, mut waiting) = mpsc::channel(WAITING);
        tokio::spawn(serve(Arc::clone(&self.0), line, cutter, request.into_inner(), answers));
        Box::pin(async move {
            // The server says nothing at all before it has answered the first request.
            let first = match waiting.recv().await {
                Some(Err(status)) => return Err(status),
                first => first,
            };
            let answers = futures::stream::iter(first).chain(ReceiverStream::new(waiting));
            Ok(Response::new(answers.boxed()))
        })
    }
}

type Answers = mpsc::Sender<Result<AppendRowsResponse, Status>>;

/// Answers the requests of a call until it ends, from either side.
async fn serve(
    shared: Arc<Shared>,
    mut line: Line,
    cutter: Cutter,
    mut requests: Streaming<AppendRowsRequest>,
    answers: Answers,
) {
    while let Ok(Some(request)) = requests.message().await {
        let ending = match shared.change(|state| line.next(request, state)) {
            Step::Answer(answer) => match answers.send(Ok(answer)).await {
                Ok(()) => continue,
                Err(_) => return,
            },
            Step::AnswerAndEnd(answer, ending) => {
                answers.send(Ok(answer)).await.ok();
                ending
            }
            Step::Hold(answer, mut lifted) => {
                tokio::select! {
                    _ = lifted.wait_for(|lifted| *lifted) => {}
                    () = answers.closed() => return,
                }
                answers.send(Ok(answer)).await.ok();
                continue;
            }
            Step::End(ending) => ending,
        };
        match ending {
            Ending::Reset => cutter.cut(),
            Ending::Close => {}
            Ending::Hang => answers.closed().await,
            Ending::Error(refusal) => {
                answers.send(Err(refusal.status())).await.ok();
            }
        }
        return;
    }
}

/// The header by which a request finds the region of what it is about, unescaped.
fn routing(metadata: &MetadataMap) -> Option<String> {
    let escaped = metadata.get("x-goog-request-params")?.to_str().ok()?;
    let mut text = Vec::new();
    let mut bytes = escaped.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digits = [bytes.next()?, bytes.next()?];
            text.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            text.push(byte);
        }
    }
    String::from_utf8(text).ok()
}

fn cutter<T>(request: &Request<T>) -> Cutter {
    request.extensions().get::<Cutter>().cloned().unwrap_or_default()
}

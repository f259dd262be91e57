//! A server in front of the emulator that does what the real service does and the emulator does not, and fails when it is
//! told to.
//!
//! The emulator goes on sending to a stream whose client is gone, for as long as it lives: those messages come again only
//! when their leases have run out, and then most likely to a stream that is gone, too. Here such a stream is ended in the one
//! way that the emulator understands, and what still came on it is given back. Calls pass through as bytes; only what is
//! needed of them is looked at.

use super::wire::{Acknowledge, ModifyAckDeadline, Pulled, Raw, StreamingPull};
use crate::proxy;
use bytes::Bytes;
use prost::Message as _;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::thread;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::metadata::MetadataMap;
use tonic::server::{NamedService, StreamingService};
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Request, Response, Status, Streaming};

const STREAMING_PULL: &str = "/google.pubsub.v1.Subscriber/StreamingPull";
const ACKNOWLEDGE: &str = "/google.pubsub.v1.Subscriber/Acknowledge";
const MODIFY_ACK_DEADLINE: &str = "/google.pubsub.v1.Subscriber/ModifyAckDeadline";

/// A server in front of the emulator. It lives as long as the runtime that it was started on.
pub struct Front {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    emulator: Channel,
    log: Mutex<Log>,
    /// What pulls are refused with, those that are open too.
    pulls: watch::Sender<Option<Code>>,
    /// What acks are refused with.
    acks: watch::Sender<Option<Code>>,
}

/// What became of what was sent: ids of leases.
#[derive(Debug, Default, Clone)]
pub struct Log {
    /// Sent to a client that was there.
    pub sent: BTreeSet<String>,
    /// Acknowledged by a client.
    pub acked: BTreeSet<String>,
    /// Acknowledged by a client, which was refused.
    pub refused: BTreeSet<String>,
    /// Given back by a client.
    pub nacked: BTreeSet<String>,
    /// Kept longer by a client.
    pub extended: BTreeSet<String>,
}

impl Log {
    /// What a client was sent and has neither acknowledged nor given back.
    pub fn left(&self) -> usize {
        self.sent.iter().filter(|id| !self.acked.contains(*id) && !self.nacked.contains(*id)).count()
    }
}

impl Front {
    /// Starts one on a free port.
    pub fn start(runtime: &Handle, emulator: &str) -> Self {
        let _inside = runtime.enter();
        let server = emulator.to_owned();
        let emulator = Endpoint::from_shared(format!("http://{emulator}")).expect("an address").connect_lazy();
        let shared = Arc::new(Shared {
            emulator,
            log: Mutex::default(),
            pulls: watch::Sender::new(None),
            acks: watch::Sender::new(None),
        });
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let (accepting, accepted) = mpsc::channel(16);
        let inside = runtime.clone();
        thread::spawn(move || {
            let _inside = inside.enter();
            accept(&listener, &accepting, &server);
        });
        let connections = ReceiverStream::new(accepted);
        runtime.spawn(Server::builder().add_service(Subscriber(Arc::clone(&shared))).serve_with_incoming(connections));
        Self { address, shared }
    }

    /// Host and port.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// What became of what was sent so far.
    pub fn log(&self) -> Log {
        self.shared.log().clone()
    }

    /// Ends all pulls with an error (or with `Code::Ok`, as if there was none), and refuses new ones; none lets them through
    /// again.
    pub fn refuse_pulls(&self, code: Option<Code>) {
        self.shared.pulls.send_replace(code);
    }

    /// Refuses acks; none lets them through again.
    pub fn refuse_acks(&self, code: Option<Code>) {
        self.shared.acks.send_replace(code);
    }
}

/// Takes connections until the front is gone. Those that do not speak HTTP/2, as the client's questions about subscriptions
/// do not, go to the emulator as they are.
fn accept(listener: &TcpListener, calls: &mpsc::Sender<io::Result<tokio::net::TcpStream>>, emulator: &str) {
    const HTTP_2: [u8; 3] = *b"PRI";
    for connection in listener.incoming() {
        let Ok(connection) = connection else { return };
        let mut begins = [0; HTTP_2.len()];
        // Three bytes come together.
        if connection.peek(&mut begins).is_err() || begins != HTTP_2 {
            proxy::pass(&connection, emulator);
            continue;
        }
        let polled = connection.set_nonblocking(true).and_then(|()| tokio::net::TcpStream::from_std(connection));
        if calls.blocking_send(polled).is_err() {
            return;
        }
    }
}

impl Shared {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().expect("nobody panics with it")
    }

    /// Makes a call at the emulator.
    async fn call(
        &self,
        path: PathAndQuery,
        metadata: MetadataMap,
        requests: mpsc::Receiver<Bytes>,
    ) -> Result<Streaming<Bytes>, Status> {
        let mut client = tonic::client::Grpc::new(self.emulator.clone()).max_decoding_message_size(usize::MAX);
        client.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let mut request = Request::new(ReceiverStream::new(requests));
        *request.metadata_mut() = metadata;
        Ok(client.streaming(request, path, Raw).await?.into_inner())
    }

    /// Gives messages back.
    async fn give_back(&self, subscription: String, ack_ids: Vec<String>) {
        let nack = ModifyAckDeadline { subscription, ack_deadline_seconds: 0, ack_ids };
        let (sender, requests) = mpsc::channel(1);
        sender.send(nack.encode_to_vec().into()).await.expect("it is received below");
        drop(sender);
        if let Ok(mut answer) =
            self.call(PathAndQuery::from_static(MODIFY_ACK_DEADLINE), MetadataMap::default(), requests).await
        {
            // What does not arrive comes again when its lease has run out.
            answer.message().await.ok();
        }
    }
}

/// The service that workers call.
#[derive(Clone)]
struct Subscriber(Arc<Shared>);

impl NamedService for Subscriber {
    const NAME: &'static str = "google.pubsub.v1.Subscriber";
}

impl Service<http::Request<Body>> for Subscriber {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let path = request.uri().path_and_query().cloned().expect("a call has a path");
        let call = Call { shared: Arc::clone(&self.0), path };
        Box::pin(async move {
            let mut server = tonic::server::Grpc::new(Raw).max_decoding_message_size(usize::MAX);
            Ok(server.streaming(call, request).await)
        })
    }
}

/// One call of a worker. To this server every call is a stream: the bytes are the same.
struct Call {
    shared: Arc<Shared>,
    path: PathAndQuery,
}

type Answers = ReceiverStream<Result<Bytes, Status>>;

impl StreamingService<Bytes> for Call {
    type Response = Bytes;
    type ResponseStream = Answers;
    type Future = BoxFuture<Response<Answers>, Status>;

    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Self::Future {
        let (answering, answers) = mpsc::channel(1);
        // On its own: a client that goes away drops what is returned here.
        tokio::spawn(pass(Arc::clone(&self.shared), self.path.clone(), request, answering));
        Box::pin(async move { Ok(Response::new(ReceiverStream::new(answers))) })
    }
}

/// Passes requests and answers of a call on.
async fn pass(
    shared: Arc<Shared>,
    path: PathAndQuery,
    request: Request<Streaming<Bytes>>,
    answering: mpsc::Sender<Result<Bytes, Status>>,
) {
    let (metadata, _, mut requests) = request.into_parts();
    let Ok(Some(first)) = requests.message().await else { return };
    let refused = match path.path() {
        STREAMING_PULL => *shared.pulls.borrow(),
        ACKNOWLEDGE => *shared.acks.borrow(),
        _ => None,
    };
    if let Some(code) = refused {
        if path.path() == ACKNOWLEDGE {
            let refused = Acknowledge::decode(first).expect("an ack").ack_ids;
            shared.log().refused.extend(refused);
        }
        return refuse(&answering, code).await;
    }
    note(&shared, &path, &first);
    let (asking, asked) = mpsc::channel(16);
    asking.send(first.clone()).await.expect("it is received below");
    let forwarding = tokio::spawn(async move {
        while let Ok(Some(request)) = requests.message().await {
            if asking.send(request).await.is_err() {
                return;
            }
        }
    });
    // The end of the requests is what the emulator understands.
    let (left, gone) = (answering.clone(), forwarding.abort_handle());
    let leaving = tokio::spawn(async move {
        left.closed().await;
        gone.abort();
    });
    let mut calling = pin!(shared.call(path.clone(), metadata, asked));
    let mut pulls = shared.pulls.subscribe();
    let called = tokio::select! {
        called = &mut calling => called,
        // On a quiet topic the emulator does not even begin to answer.
        code = refusal(&mut pulls), if path.path() == STREAMING_PULL => {
            refuse(&answering, code).await;
            forwarding.abort();
            calling.await
        }
    };
    match called {
        Ok(answers) if path.path() == STREAMING_PULL => {
            let subscription = StreamingPull::decode(first).expect("a request to pull").subscription;
            stream(&shared, subscription, answers, &answering, &forwarding).await;
        }
        Ok(mut answers) => {
            while let Some(answer) = answers.message().await.transpose() {
                answering.send(answer).await.ok();
            }
        }
        Err(status) => _ = answering.send(Err(status)).await,
    }
    leaving.abort();
}

/// Notes what a client lets go of.
fn note(shared: &Shared, path: &PathAndQuery, request: &Bytes) {
    match path.path() {
        ACKNOWLEDGE => {
            let acked = Acknowledge::decode(request.clone()).expect("an ack").ack_ids;
            shared.log().acked.extend(acked);
        }
        MODIFY_ACK_DEADLINE => {
            let modified = ModifyAckDeadline::decode(request.clone()).expect("a deadline");
            let mut log = shared.log();
            let modified_so = if modified.ack_deadline_seconds == 0 { &mut log.nacked } else { &mut log.extended };
            modified_so.extend(modified.ack_ids);
        }
        _ => {}
    }
}

/// Answers with an error. A client that is gone does not need it.
async fn refuse(answering: &mpsc::Sender<Result<Bytes, Status>>, code: Code) {
    answering.send(Err(Status::new(code, "refused by the test"))).await.ok();
}

/// Waits until pulls are refused.
async fn refusal(pulls: &mut watch::Receiver<Option<Code>>) -> Code {
    let refused = pulls.wait_for(Option::is_some).await.ok().and_then(|code| *code);
    match refused {
        Some(code) => code,
        // The front is gone.
        None => std::future::pending().await,
    }
}

/// Passes messages on until the client is gone, and gives back what comes after that.
async fn stream(
    shared: &Shared,
    subscription: String,
    mut answers: Streaming<Bytes>,
    answering: &mpsc::Sender<Result<Bytes, Status>>,
    forwarding: &tokio::task::JoinHandle<()>,
) {
    let mut refused = shared.pulls.subscribe();
    let mut given_back = Vec::new();
    loop {
        let answer = tokio::select! {
            code = refusal(&mut refused), if !answering.is_closed() => {
                refuse(answering, code).await;
                forwarding.abort();
                break;
            }
            answer = answers.message() => answer,
        };
        match answer {
            Ok(Some(answer)) => {
                let ids = Pulled::decode(answer.clone()).expect("messages").received;
                let ids = ids.into_iter().map(|received| received.ack_id);
                if answering.send(Ok(answer)).await.is_ok() {
                    shared.log().sent.extend(ids);
                } else {
                    given_back.extend(ids);
                }
            }
            Ok(None) => break,
            Err(status) => {
                answering.send(Err(status)).await.ok();
                break;
            }
        }
    }
    // To the end: what the emulator has sent belongs to this stream.
    while let Ok(Some(answer)) = answers.message().await {
        let received = Pulled::decode(answer).expect("messages").received;
        given_back.extend(received.into_iter().map(|received| received.ack_id));
    }
    if !given_back.is_empty() {
        shared.give_back(subscription, given_back).await;
    }
}

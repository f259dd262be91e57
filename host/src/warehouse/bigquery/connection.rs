//! One connection to one stream: requests go out as the connection takes them, answers come in their order.

use super::super::Layout;
use super::storage::Storage;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use gcp_bigquery_client::google::cloud::bigquery::storage::v1::{AppendRowsRequest, AppendRowsResponse, TableSchema};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

/// Requests that wait to be taken by the connection. More would only be more memory.
const WAITING: usize = 2;

/// An open connection, or one that opens with its first request.
pub(super) struct Connection {
    /// What the connection's schema was made of.
    pub(super) layout: Arc<Layout>,
    /// Whether the schema was sent: only the first request of a connection carries it.
    pub(super) described: bool,
    /// The newest schema of the table that an answer brought.
    pub(super) updated: Option<TableSchema>,
    /// None once it is closed.
    requests: Option<mpsc::Sender<AppendRowsRequest>>,
    answers: Answers,
}

enum Answers {
    /// A server may say nothing at all before it has answered the first request.
    Opening(BoxFuture<'static, Result<Streaming<AppendRowsResponse>, Status>>),
    Open(Box<Streaming<AppendRowsResponse>>),
}

impl Answers {
    async fn next(&mut self) -> Result<AppendRowsResponse, Status> {
        if let Self::Opening(opening) = self {
            *self = Self::Open(Box::new(opening.await?));
        }
        let Self::Open(answers) = self else { unreachable!("it was just opened") };
        answers.message().await?.ok_or_else(|| Status::unavailable("the connection was closed"))
    }
}

impl Connection {
    /// Prepares a connection for rows of a layout to a stream.
    pub(super) async fn open(storage: &Storage, stream: &str, layout: Arc<Layout>) -> Result<Self, Status> {
        let (requests, waiting) = mpsc::channel(WAITING);
        let request = storage.call(storage.request(ReceiverStream::new(waiting), "write_stream", stream)).await?;
        let mut client = storage.client();
        let opening = async move { client.append_rows(request).await.map(tonic::Response::into_inner) };
        let answers = Answers::Opening(opening.boxed());
        Ok(Self { layout, described: false, updated: None, requests: Some(requests), answers })
    }

    /// Whether it can take more. The server ends a connection that nobody has used for ten minutes.
    pub(super) fn is_open(&mut self) -> bool {
        match &mut self.answers {
            Answers::Opening(_) => true,
            Answers::Open(answers) => answers.message().now_or_never().is_none(),
        }
    }

    /// Closes it, and waits until the other side has answered everything that is under way: what is not written by then never
    /// is.
    pub(super) async fn close(mut self, limit: Duration) {
        self.requests = None;
        let answered = async { while self.answers.next().await.is_ok() {} };
        tokio::time::timeout(limit, answered).await.ok();
    }

    /// Sends requests and gives each answer with its number to `each`, until that fails or all are answered. No answer
    /// may take longer than `limit`.
    pub(super) async fn exchange<E: From<Status>>(
        &mut self,
        requests: impl ExactSizeIterator<Item = AppendRowsRequest>,
        limit: Duration,
        mut each: impl FnMut(usize, AppendRowsResponse) -> Result<(), E>,
    ) -> Result<(), (usize, E)> {
        let (count, sender, answers) = (requests.len(), self.requests.as_ref(), &mut self.answers);
        let sending = async {
            for request in requests {
                // A connection that takes no more says why in its answers.
                let Some(sender) = sender else { break };
                if sender.send(request).await.is_err() {
                    break;
                }
            }
            std::future::pending::<()>().await;
        };
        let receiving = async {
            for number in 0..count {
                let answer = tokio::time::timeout(limit, answers.next()).await.unwrap_or_else(|_| {
                    Err(Status::deadline_exceeded(format!("no answer within {} s", limit.as_secs_f64())))
                });
                answer.map_err(E::from).and_then(|answer| each(number, answer)).map_err(|error| (number, error))?;
            }
            Ok(())
        };
        let (mut sending, mut receiving) = (pin!(sending), pin!(receiving));
        tokio::select! {
            answered = &mut receiving => answered,
            () = &mut sending => unreachable!("it never ends"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Encoding;
    use super::super::tokens::Tokens;
    use super::*;
    use crate::config::BigqueryConfig;
    use crate::google::credentials::Identity;
    use tonic::Code;

    #[tokio::test]
    async fn a_token_that_does_not_come_is_not_waited_for_for_ever() {
        let config = BigqueryConfig {
            project: "p".into(),
            request_timeout: Duration::from_millis(50),
            give_up_after: Duration::from_mins(1),
            endpoint: None,
            storage_endpoint: None,
            identity: Identity::Anonymous,
        };
        let storage = Storage::new(&config, Tokens::silent()).unwrap();
        let layout = Layout { table: "p.d.t".into(), columns: vec![], encoding: Encoding::Proto(vec![]), upsert: None };
        let opened = Connection::open(&storage, "s", Arc::new(layout)).await;
        let status = opened.err().expect("there is no token");
        assert_eq!((status.code(), status.message()), (Code::DeadlineExceeded, "no answer within 0.05 s"));
    }
}

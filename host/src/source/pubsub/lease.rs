//! Our hold on messages, and letting go of them.

use super::holding::Holding;
use super::messages::{Came, Messages, count};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use google_cloud_pubsub::error::AckError;
use google_cloud_pubsub::subscriber::handler::{ExactlyOnce, Handler};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Confirmations that are waited for at the same time: ten requests to Pub/Sub.
const CONFIRMING: usize = 10_000;

/// How long confirmations are waited for. The client goes on trying behind that for ten minutes; who waits for them could
/// write rows meanwhile.
const PATIENCE: Duration = Duration::from_secs(10);

/// Our hold on one message. Dropping it gives the message back.
#[derive(Debug)]
pub struct Lease {
    handler: Option<Handler>,
    came: Came,
    acked: bool,
    messages: Arc<Messages>,
    holding: Arc<Holding>,
}

impl Lease {
    /// Holds a message that was just received over a stream.
    pub(super) fn new(handler: Handler, came: Came, messages: &Arc<Messages>, holding: &Arc<Holding>) -> Self {
        count(&messages.received);
        if handler.delivery_attempt().is_some_and(|attempt| attempt > 1) {
            count(&messages.redelivered);
        }
        Self::hold(Some(handler), came, messages, holding)
    }

    fn hold(handler: Option<Handler>, came: Came, messages: &Arc<Messages>, holding: &Arc<Holding>) -> Self {
        let came = messages.take(came);
        holding.take(came.bytes);
        let (messages, holding) = (Arc::clone(messages), Arc::clone(holding));
        Self { handler, came, acked: false, messages, holding }
    }

    /// Acknowledges it. What is returned is to be confirmed, and the lease to be kept until then.
    fn ack(&mut self) -> Option<ExactlyOnce> {
        self.acked = true;
        match self.handler.take()? {
            Handler::ExactlyOnce(handler) => Some(handler),
            handler => {
                count(&self.messages.acked);
                handler.ack();
                None
            }
        }
    }

    /// A hold on no message, for tests.
    #[cfg(test)]
    pub(super) fn of_nothing(published: crate::time::Micros, messages: &Arc<Messages>) -> Self {
        Self::hold(None, Came { published, received: published, bytes: 1 }, messages, &Arc::default())
    }

    /// The same, of so many bytes, as if a stream had brought it.
    #[cfg(test)]
    pub(super) fn of_nothing_of(holding: &Arc<Holding>, bytes: usize) -> Self {
        Self::hold(None, Came { published: 0, received: 0, bytes }, &Arc::default(), holding)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.messages.let_go(self.came);
        self.holding.let_go(self.came.bytes);
        if !self.acked {
            count(&self.messages.nacked);
        }
    }
}

/// Acknowledges messages. Returns how many were not confirmed, where the subscription confirms: they may come again.
pub(in crate::source) async fn ack(leases: Vec<Lease>) -> usize {
    let to_confirm = leases.into_iter().filter_map(|mut lease| lease.ack().map(|handler| (lease, handler)));
    let to_confirm: Vec<(Lease, ExactlyOnce)> = to_confirm.collect();
    let Some(messages) = to_confirm.first().map(|(lease, _)| Arc::clone(&lease.messages)) else { return 0 };
    let total = to_confirm.len();
    let (mut confirmed, mut problem) = (0, None);
    let deadline = Instant::now() + PATIENCE;
    let mut to_confirm = to_confirm.into_iter().peekable();
    while to_confirm.peek().is_some() {
        let some: FuturesUnordered<_> = to_confirm.by_ref().take(CONFIRMING).map(confirm).collect();
        let mut some = pin!(some);
        while let Ok(Some(answer)) = timeout_at(deadline, some.next()).await {
            match answer {
                Ok(()) => confirmed += 1,
                Err(error) => problem = problem.or(Some(error)),
            }
        }
    }
    messages.acked.fetch_add(confirmed, Ordering::Relaxed);
    let unconfirmed = total as u64 - confirmed;
    if unconfirmed > 0 {
        messages.unconfirmed.fetch_add(unconfirmed, Ordering::Relaxed);
        let why = problem.map_or_else(|| "no answer came in time".to_owned(), |error| error.to_string());
        tracing::warn!(
            unconfirmed,
            messages = total,
            "acks were not confirmed; if those messages come again, that is recognised: {why}"
        );
    }
    usize::try_from(unconfirmed).unwrap_or(usize::MAX)
}

/// Acknowledges one message and waits for the answer. It is acknowledged with the first poll, and held until it is answered.
async fn confirm((_held, handler): (Lease, ExactlyOnce)) -> Result<(), AckError> {
    handler.confirmed_ack().await
}

//! Keeping one stream open, and taking what comes.
//!
//! The client resumes a stream by itself after most failures; those it does not are waited out here, and the stream is opened
//! again. When the worker stops, the stream is closed first and what had come is given back behind that, so that it is not
//! sent to this worker again.

use super::client::Client;
use super::lease::Lease;
use super::look::{Found, Unfit};
use super::message::event;
use super::messages::{Messages, count};
use super::trouble::Trouble;
use crate::config::PubsubConfig;
use crate::event::Event;
use crate::pace::Pace;
use crate::source::SourceError;
use crate::stop::Stop;
use crate::time::{Clock, Micros};
use futures::FutureExt as _;
use google_cloud_pubsub::Error;
use google_cloud_pubsub::model::Message;
use google_cloud_pubsub::subscriber::handler::Handler;
use google_cloud_pubsub::subscriber::{MessageStream, ShutdownToken};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::unconstrained;
use tokio::time::{Instant, sleep_until};

/// Messages that are handed on together, if so many have come.
const TOGETHER: usize = 256;
/// Bytes that are handed on together: a message may have ten million.
const TOGETHER_BYTES: usize = 1 << 20;
/// Between tries to open a stream.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(10);
/// A stream that failed before and has been open for so long is well, also if nothing comes of it.
const SETTLED: Duration = Duration::from_secs(5);

/// What came: messages in their order, or why nothing comes any more.
pub(super) type Arrived = Result<Vec<(Event, Lease)>, SourceError>;

/// Pulls one stream.
pub(super) struct Puller {
    pub client: Client,
    pub config: PubsubConfig,
    pub found: Found,
    pub max_payload: usize,
    pub clock: Arc<dyn Clock>,
    pub arriving: mpsc::Sender<Arrived>,
    pub messages: Arc<Messages>,
    pub trouble: Trouble,
    pub given: Given,
    pub renewed: watch::Receiver<u64>,
    pub stop: Stop,
}

/// Why a stream is not pulled on.
enum Over {
    /// Nobody wants what comes: the worker stops. This had come.
    Unwanted(Vec<(Event, Lease)>),
    /// It is to be opened again over another connection.
    Renew,
    /// It failed.
    Failed(Error),
}

impl Puller {
    /// Pulls until the worker stops or the subscription is gone.
    pub async fn run(mut self) {
        let mut pace = Pace::new(FIRST, LONGEST);
        let mut failing = false;
        loop {
            let mut stream = self.client.stream(&self.config, &self.found);
            let over = self.pull(&mut stream, &mut pace, &mut failing).await;
            self.close(stream);
            match over {
                // Given back only now: before, it might have come again over this stream.
                Over::Unwanted(left) => return drop(left),
                Over::Renew => match Client::new(&self.config).await {
                    Ok(client) => self.client = client,
                    Err(error) => tracing::warn!("the connection there is must do: {error}"),
                },
                Over::Failed(error) => match Unfit::from_error(&self.config, &error) {
                    gone @ Unfit::Gone(_) => {
                        // Nobody to tell: then it is over anyway.
                        self.arriving.send(Err(gone.of(&self.config))).await.ok();
                        return;
                    }
                    error => {
                        let subscription = &self.config.subscription;
                        tracing::warn!(subscription, "a stream failed; opening it again: {error}");
                        self.trouble.is(format!("subscription {subscription}: {error}"));
                        failing = true;
                        tokio::select! {
                            () = self.stop.wait() => return,
                            () = self.arriving.closed() => return,
                            () = tokio::time::sleep(pace.wait()) => {}
                        }
                    }
                },
            }
            count(&self.messages.reopened);
        }
    }

    /// Takes what comes.
    async fn pull(&mut self, stream: &mut MessageStream, pace: &mut Pace, failing: &mut bool) -> Over {
        let settled = Instant::now() + SETTLED;
        loop {
            let first = tokio::select! {
                biased;
                () = self.stop.wait() => return Over::Unwanted(Vec::new()),
                () = self.arriving.closed() => return Over::Unwanted(Vec::new()),
                Ok(()) = self.renewed.changed() => return Over::Renew,
                first = stream.next() => first,
                () = sleep_until(settled), if *failing => {
                    self.is_well(pace, failing);
                    continue;
                }
            };
            let mut together = Vec::new();
            let mut failed = None;
            let mut next = Some(first);
            let (mut bytes, received) = (0, self.clock.now());
            while let Some(came) = next.take() {
                match came {
                    Some(Ok((message, handler))) => {
                        let taken = self.take(message, handler, received);
                        bytes += taken.0.weight();
                        together.push(taken);
                    }
                    Some(Err(error)) => failed = Some(Over::Failed(error)),
                    None => failed = Some(Over::Renew),
                }
                if failed.is_none() && together.len() < TOGETHER && bytes < TOGETHER_BYTES {
                    next = stream.next().now_or_never();
                }
            }
            if !together.is_empty() {
                self.is_well(pace, failing);
                tokio::select! {
                    biased;
                    () = self.stop.wait() => return Over::Unwanted(together),
                    room = self.arriving.reserve() => match room {
                        Ok(room) => room.send(Ok(together)),
                        Err(_) => return Over::Unwanted(together),
                    },
                }
            }
            if let Some(over) = failed {
                return over;
            }
        }
    }

    fn is_well(&self, pace: &mut Pace, failing: &mut bool) {
        pace.worked();
        if std::mem::take(failing) {
            self.trouble.is_over();
        }
    }

    fn take(&self, message: Message, handler: Handler, received: Micros) -> (Event, Lease) {
        let event = event(message, handler.delivery_attempt(), received, self.max_payload);
        let lease = Lease::new(handler, event.publish_time, event.weight() as u64, &self.messages);
        (event, lease)
    }

    /// Closes a stream, and gives back what had come of it and was not taken. Those that were taken stay ours.
    fn close(&self, mut stream: MessageStream) {
        let mut left = Vec::new();
        // Only what is here: waiting would bring more.
        while let Some(Some(Ok((_, handler)))) = unconstrained(stream.next()).now_or_never() {
            left.push(handler);
            if left.len() >= self.config.max_outstanding_messages {
                break;
            }
        }
        self.given.closes(stream.shutdown_token());
        drop(stream);
        for handler in left {
            count(&self.messages.received);
            count(&self.messages.nacked);
            handler.nack();
        }
    }
}

/// Streams that were closed and may still have acks and nacks to send.
#[derive(Debug, Clone, Default)]
pub(super) struct Given(Arc<Mutex<Vec<ShutdownToken>>>);

impl Given {
    fn closes(&self, token: ShutdownToken) {
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that have nothing more to send are forgotten: streams are opened again and again while a permission is missing.
        tokens.retain(|token| token.shutdown().now_or_never().is_none());
        tokens.push(token);
    }

    /// Returns when everything is sent, after nothing is held any more.
    pub async fn finish(&self) {
        let tokens = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for token in tokens {
            token.shutdown().await;
        }
    }
}

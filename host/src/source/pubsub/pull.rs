//! Keeping one stream open, and taking what comes.
//!
//! The client resumes a stream by itself after most failures; those it does not are waited out here, and the stream is opened
//! again. What came of it before is handed on all the same. When the worker stops, the stream is closed first and what had
//! come is given back behind that, so that it is not sent to this worker again.

use super::client::Client;
use super::given::Given;
use super::holding::Share;
use super::lease::Lease;
use super::look::{Found, Unfit};
use super::message::event;
use super::messages::{Came, Messages, count};
use super::trouble::Trouble;
use super::waiting::{TOGETHER, TOGETHER_BYTES, Waiting};
use crate::config::PubsubConfig;
use crate::event::Event;
use crate::pace::Pace;
use crate::source::SourceError;
use crate::stop::Stop;
use crate::time::{Clock, Micros};
use futures::stream::{BoxStream, unfold};
use futures::{FutureExt as _, StreamExt as _};
use google_cloud_pubsub::Error;
use google_cloud_pubsub::model::Message;
use google_cloud_pubsub::subscriber::ShutdownToken;
use google_cloud_pubsub::subscriber::handler::Handler;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::unconstrained;
use tokio::time::{Instant, sleep_until};

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

/// A stream that is open.
struct Open {
    /// Each message is waited for to the end, whatever else happens meanwhile: a stream whose opening is given up half-way may
    /// have been sent messages already.
    coming: BoxStream<'static, Result<(Message, Handler), Error>>,
    token: ShutdownToken,
}

/// Why a stream is not pulled on.
enum Over {
    /// Nobody wants what comes: the worker stops.
    Unwanted,
    /// It is to be opened again over another connection.
    Renew,
    /// Pub/Sub ended it, and says nothing of a failure.
    Ended,
    /// It failed.
    Failed(Error),
}

/// How it goes.
struct Health {
    pace: Pace,
    /// The stream before this one failed or ended, and this one is not known to be better.
    failing: bool,
}

impl Puller {
    /// Pulls until the worker stops or the subscription is gone.
    pub async fn run(mut self) {
        let mut health = Health { pace: Pace::new(FIRST, LONGEST), failing: false };
        // Given back last, if it is: before its stream is closed, it might come again over that.
        let mut waiting = Waiting::new(Share::of(&self.config, &self.found));
        loop {
            let mut stream = self.open();
            let over = self.pull(&mut stream, &mut waiting, &mut health).await;
            self.close(stream, &mut waiting);
            let why = match over {
                Over::Unwanted => return,
                Over::Renew => {
                    match Client::new(&self.config).await {
                        Ok(client) => self.client = client,
                        Err(error) => tracing::warn!("the connection there is must do: {error}"),
                    }
                    count(&self.messages.reopened);
                    continue;
                }
                // Once is nothing to be told: there are servers that end what has been open for long.
                Over::Ended => health.failing.then(|| "Pub/Sub ends every stream that is opened".to_owned()),
                Over::Failed(error) => match Unfit::from_error(&self.config, &error) {
                    gone @ Unfit::Gone(_) => return self.is_gone(gone, waiting).await,
                    error => Some(error.to_string()),
                },
            };
            let subscription = &self.config.subscription;
            if let Some(why) = why {
                tracing::warn!(subscription, "a stream failed; opening it again: {why}");
                self.trouble.is(format!("subscription {subscription}: {why}"));
            }
            health.failing = true;
            if !self.pause(health.pace.wait(), &mut waiting).await {
                return;
            }
            count(&self.messages.reopened);
        }
    }

    fn open(&self) -> Open {
        let stream = Box::new(self.client.stream(&self.config, &self.found));
        let token = stream.shutdown_token();
        let coming = unfold(stream, async |mut stream| stream.next().await.map(|came| (came, stream)));
        Open { coming: coming.fuse().boxed(), token }
    }

    /// Takes what comes, also while the pipeline has no room for it.
    async fn pull(&mut self, stream: &mut Open, waiting: &mut Waiting, health: &mut Health) -> Over {
        let settled = Instant::now() + SETTLED;
        loop {
            let first = tokio::select! {
                biased;
                () = self.stop.wait() => return Over::Unwanted,
                () = self.arriving.closed() => return Over::Unwanted,
                // While something waits it is not known to be broken, and a new one would be sent another share.
                Ok(()) = self.renewed.changed(), if waiting.is_empty() => return Over::Renew,
                Ok(room) = self.arriving.reserve(), if !waiting.is_empty() => {
                    room.send(Ok(waiting.portion()));
                    continue;
                }
                first = stream.coming.next(), if !waiting.is_full() => first,
                () = sleep_until(settled), if health.failing => {
                    self.is_well(health);
                    continue;
                }
            };
            let mut next = Some(first);
            let (mut messages, mut bytes, received) = (0, 0, self.clock.now());
            while let Some(came) = next.take() {
                match came {
                    Some(Ok((message, handler))) => {
                        messages += 1;
                        bytes += self.take(message, handler, received, waiting);
                    }
                    Some(Err(error)) => return Over::Failed(error),
                    None => return Over::Ended,
                }
                self.is_well(health);
                if messages < TOGETHER && bytes < TOGETHER_BYTES && !waiting.is_full() {
                    next = stream.coming.next().now_or_never();
                }
            }
        }
    }

    fn is_well(&self, health: &mut Health) {
        health.pace.worked();
        if std::mem::take(&mut health.failing) {
            self.trouble.is_over();
        }
    }

    /// Takes one message. Returns how many bytes it has.
    fn take(&self, message: Message, handler: Handler, received: Micros, waiting: &mut Waiting) -> usize {
        let event = event(message, handler.delivery_attempt(), received, self.max_payload);
        let bytes = event.weight();
        let came = Came { published: event.publish_time, received, bytes };
        let lease = Lease::new(handler, came, &self.messages, &waiting.holding);
        waiting.add((event, lease));
        bytes
    }

    /// Closes a stream, and takes what had come of it. What was taken stays ours: its lease is extended, and given back when
    /// it is dropped.
    fn close(&self, mut stream: Open, waiting: &mut Waiting) {
        let received = self.clock.now();
        // Only what is here: waiting would bring more.
        for _ in 0..self.config.max_outstanding_messages {
            let Some(Some(Ok((message, handler)))) = unconstrained(stream.coming.next()).now_or_never() else { break };
            self.take(message, handler, received, waiting);
        }
        self.given.closes(stream.token);
    }

    /// Waits before a stream is opened again, and hands on what waits meanwhile. False when nobody wants it any more.
    async fn pause(&self, time: Duration, waiting: &mut Waiting) -> bool {
        let end = Instant::now() + time;
        loop {
            tokio::select! {
                biased;
                () = self.stop.wait() => return false,
                () = self.arriving.closed() => return false,
                Ok(room) = self.arriving.reserve(), if !waiting.is_empty() => room.send(Ok(waiting.portion())),
                () = sleep_until(end) => return true,
            }
        }
    }

    /// Says that nothing comes any more, behind what had come.
    async fn is_gone(&self, gone: Unfit, mut waiting: Waiting) {
        let mut gone = Some(gone.of(&self.config));
        while gone.is_some() {
            tokio::select! {
                biased;
                () = self.stop.wait() => return,
                room = self.arriving.reserve() => {
                    // Nobody to tell: then it is over anyway.
                    let Ok(room) = room else { return };
                    let portion = waiting.portion();
                    match gone.take_if(|_| portion.is_empty()) {
                        Some(gone) => room.send(Err(gone)),
                        None => room.send(Ok(portion)),
                    }
                }
            }
        }
    }
}

//! Noticing that Pub/Sub is out of reach.
//!
//! The client tries again by itself, with waits of up to a minute, and tells nobody; a connection that is cut on the way looks
//! like a quiet topic. So while nothing comes, the subscription is asked for now and then. When it answers again after a
//! while, every stream is opened anew, over new connections; after a short failure only if nothing comes behind it, since
//! then the client has most likely gone on by itself.

use super::client::Desk;
use super::look::{Found, Unfit};
use super::messages::Messages;
use super::pull::Arrived;
use super::trouble::Trouble;
use crate::config::PubsubConfig;
use crate::pace::Pace;
use crate::stop::Stop;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};

/// How long nothing comes before it is asked.
const QUIET: Duration = Duration::from_secs(10);
/// Between questions while there is no answer.
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(5);
/// How long there is no answer before the streams are not trusted any more; and how long nothing comes behind a shorter
/// failure.
const LONG: Duration = Duration::from_secs(30);

/// Watches one subscription.
pub(super) struct Watch {
    pub config: PubsubConfig,
    pub arriving: mpsc::Sender<Arrived>,
    pub messages: Arc<Messages>,
    pub trouble: Trouble,
    pub renewals: watch::Sender<u64>,
    pub stop: Stop,
}

impl Watch {
    /// Watches until the worker stops, nothing is wanted any more, or the subscription is gone.
    pub async fn run(self) {
        let mut pace = Pace::new(FIRST, LONGEST);
        let mut desk = None;
        let mut streams = Streams::default();
        let mut received = 0;
        loop {
            let wait = if streams.failing() { pace.wait() } else { QUIET };
            tokio::select! {
                () = self.stop.wait() => return,
                () = self.arriving.closed() => return,
                () = tokio::time::sleep(wait) => {}
            }
            let now = self.messages.received.load(Ordering::Relaxed);
            let asked = Instant::now();
            if std::mem::replace(&mut received, now) != now {
                streams.brought(asked);
                if !streams.failing() {
                    continue;
                }
            }
            let answer = tokio::select! {
                () = self.stop.wait() => return,
                answer = ask(&mut desk, &self.config) => answer,
            };
            let subscription = &self.config.subscription;
            match answer {
                Ok(_) => {
                    if streams.failing() {
                        tracing::info!(subscription, "the subscription answers again");
                        self.trouble.is_over();
                        pace.worked();
                    }
                    if streams.answered(Instant::now()) {
                        tracing::info!(subscription, "opening all streams anew");
                        self.renewals.send_modify(|renewal| *renewal += 1);
                    }
                }
                Err(gone @ Unfit::Gone(_)) => {
                    // Nobody to tell: then it is over anyway.
                    self.arriving.send(Err(gone.of(&self.config))).await.ok();
                    return;
                }
                Err(error) => {
                    if !streams.failing() {
                        tracing::warn!(subscription, "{error}; trying again");
                    }
                    self.trouble.is(format!("subscription {subscription}: {error}"));
                    streams.unanswered(asked);
                }
            }
        }
    }
}

/// What the answers say of the streams.
#[derive(Debug, Default)]
struct Streams {
    /// There is no answer since, and nothing came.
    failing: Option<Instant>,
    /// If nothing comes until then they are opened anew: there was no answer for a short time.
    doubted: Option<Instant>,
}

impl Streams {
    /// Whether there was no answer last.
    const fn failing(&self) -> bool {
        self.failing.is_some()
    }

    /// Something came: some of them are well.
    fn brought(&mut self, now: Instant) {
        self.doubted = None;
        self.failing = self.failing.map(|_| now);
    }

    /// A question that was asked then has no answer.
    fn unanswered(&mut self, asked: Instant) {
        self.failing.get_or_insert(asked);
    }

    /// There is an answer. Returns whether they are to be opened anew.
    fn answered(&mut self, now: Instant) -> bool {
        if let Some(since) = self.failing.take() {
            let short = now.duration_since(since) < LONG;
            self.doubted = short.then(|| now + LONG);
            return !short;
        }
        self.doubted.take_if(|due| now >= *due).is_some()
    }
}

/// Asks once, over a new connection if the last one did not do.
async fn ask(desk: &mut Option<Desk>, config: &PubsubConfig) -> Result<Found, Unfit> {
    let open = match desk.take() {
        Some(open) => open,
        None => Desk::new(config).await?,
    };
    let answer = open.ask(config).await;
    if answer.is_ok() {
        *desk = Some(open);
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn streams_are_opened_anew_when_there_was_no_answer_for_long() {
        let (mut streams, start) = (Streams::default(), Instant::now());
        assert!(!streams.answered(start));
        streams.unanswered(start);
        streams.unanswered(start + SECOND);
        assert!(streams.failing());
        assert!(streams.answered(start + LONG));
        assert!(!streams.failing() && !streams.answered(start + 3 * LONG), "once");
    }

    /// One failed question had every stream closed, and all that had come on them given back.
    #[test]
    fn after_a_short_failure_they_are_opened_anew_only_if_nothing_comes() {
        let (mut streams, start) = (Streams::default(), Instant::now());
        streams.unanswered(start);
        assert!(!streams.answered(start + SECOND));
        assert!(!streams.answered(start + LONG));
        assert!(streams.answered(start + LONG + SECOND));
        assert!(!streams.answered(start + 3 * LONG), "once");
        streams.unanswered(start);
        assert!(!streams.answered(start + SECOND));
        streams.brought(start + 2 * SECOND);
        assert!(!streams.answered(start + 3 * LONG));
    }

    /// Somebody took away the permission to look, and not the one to pull.
    #[test]
    fn streams_that_bring_messages_are_trusted_although_there_is_no_answer() {
        let (mut streams, start) = (Streams::default(), Instant::now());
        streams.unanswered(start);
        streams.brought(start + LONG);
        streams.unanswered(start + LONG);
        assert!(!streams.answered(start + LONG + SECOND));
    }
}

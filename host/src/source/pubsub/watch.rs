//! Noticing that Pub/Sub is out of reach.
//!
//! The client tries again by itself, with waits of up to a minute, and tells nobody; a connection that is cut on the way looks
//! like a quiet topic. So while nothing comes, the subscription is asked for now and then. When it answers again, every
//! stream is opened anew, over new connections.

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
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// How long nothing comes before it is asked.
const QUIET: Duration = Duration::from_secs(10);
/// Between questions while there is no answer.
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(5);

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
        let mut failing = false;
        let mut received = 0;
        loop {
            let wait = if failing { pace.wait() } else { QUIET };
            tokio::select! {
                () = self.stop.wait() => return,
                () = self.arriving.closed() => return,
                () = tokio::time::sleep(wait) => {}
            }
            let now = self.messages.received.load(Ordering::Relaxed);
            if std::mem::replace(&mut received, now) != now && !failing {
                continue;
            }
            let answer = tokio::select! {
                () = self.stop.wait() => return,
                answer = ask(&mut desk, &self.config) => answer,
            };
            match answer {
                Ok(_) if failing => {
                    let subscription = &self.config.subscription;
                    tracing::info!(subscription, "the subscription answers again; opening its streams anew");
                    self.trouble.is_over();
                    self.renewals.send_modify(|renewal| *renewal += 1);
                    pace.worked();
                    failing = false;
                }
                Ok(_) => {}
                Err(gone @ Unfit::Gone(_)) => {
                    // Nobody to tell: then it is over anyway.
                    self.arriving.send(Err(gone.of(&self.config))).await.ok();
                    return;
                }
                Err(error) => {
                    if !failing {
                        tracing::warn!(subscription = self.config.subscription, "{error}; trying again");
                    }
                    self.trouble.is(format!("subscription {}: {error}", self.config.subscription));
                    failing = true;
                }
            }
        }
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

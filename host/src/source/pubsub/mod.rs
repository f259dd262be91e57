//! A Pub/Sub subscription as a source.
//!
//! ```text
//! streaming pull ─┐
//! streaming pull ─┼─► micro-batch ─2─► pipeline ─► ack
//! streaming pull ─┘
//! ```
//!
//! Several streams are pulled at once and merged into one row of micro-batches; messages of one stream keep their order.
//! A [`Lease`] is our hold on one message: it is extended for as long as it lives, acknowledged when all that came of the
//! message is durable, and dropping it gives the message back. So nothing is lost whatever happens to what holds it; what
//! is delivered again is recognised by its message id, by whoever judges and commits.
//!
//! What is held is bounded: the channels between the streams and the pipeline are short, and Pub/Sub stops at
//! `max_outstanding_messages` and `max_outstanding_bytes`, of which each stream has its share. As much is taken also while the
//! pipeline takes nothing: nobody extends the lease of a message that was sent and not taken.
//!
//! `look` says what a subscription is and whether it can be pulled; `client` connects; `pull` keeps one stream open, and
//! `waiting` has what came of it; `merge` makes the micro-batches; `watch` notices that Pub/Sub is out of reach, which the
//! client does not tell; `lease` and `messages` hold and count, and `traffic` has how messages come and go; `given` waits for
//! the last acks.

mod client;
mod given;
mod holding;
mod lease;
mod look;
mod merge;
mod message;
mod messages;
mod pull;
mod traffic;
mod trouble;
mod waiting;
mod watch;

pub use lease::Lease;
pub(super) use lease::ack;
pub use look::{DeadLetters, Found, Unfit};
pub use messages::Messages;

use super::{OpenError, Progress, Running, Settings};
use crate::config::PubsubConfig;
use crate::stop::Stop;
use client::{Client, Desk};
use given::Given;
use holding::Share;
use pull::Puller;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch as channel};
use tokio::task::JoinSet;
use trouble::Troubles;
use watch::Watch;

/// Micro-batches that may wait: one is judged while the next is made.
const READY: usize = 2;

/// How long the end may take to tell Pub/Sub what was acknowledged and what is given back. Where it is out of reach the
/// leases run out by themselves.
const FAREWELL: Duration = Duration::from_secs(3);

/// Looks at a subscription: whether it is there and can be pulled.
pub async fn look(config: &PubsubConfig) -> Result<Found, Unfit> {
    Desk::new(config).await?.ask(config).await
}

/// A subscription that was found.
pub(super) struct Subscription {
    config: PubsubConfig,
    found: Found,
    client: Client,
}

impl Subscription {
    /// Connects and looks whether the subscription is there.
    pub(super) async fn open(config: &PubsubConfig) -> Result<Self, OpenError> {
        let found = look(config).await.map_err(|unfit| unfit.of(config))?;
        tracing::info!("found the subscription: {found}");
        for note in found.notes() {
            tracing::warn!(subscription = config.subscription, "{note}");
        }
        let client = Client::new(config).await.map_err(|unfit| unfit.of(config))?;
        Ok(Self { config: config.clone(), found, client })
    }

    /// Starts pulling.
    #[expect(
        clippy::unnecessary_wraps,
        clippy::needless_pass_by_value,
        reason = "a source that reads a file starts so"
    )]
    pub(super) fn start(self, settings: Settings, stop: Stop) -> std::io::Result<Running> {
        let Self { config, found, client } = self;
        let messages = Arc::new(Messages::new(Share::whole(&config), &settings.running_time));
        let streams = found.streams(&config);
        // The last extension of a process that died, and the deadline behind it.
        let comes_again_within = 2 * found.lease();
        let (troubles, trouble) = Troubles::new(streams, &settings.running_time);
        let (arriving, arrived) = mpsc::channel(streams);
        let (sender, batches) = mpsc::channel(READY);
        // A new number: Pub/Sub was out of reach, every stream is to be opened again.
        let (renewals, renewed) = channel::channel(0_u64);
        let given = Given::default();
        let mut tasks = JoinSet::new();
        for number in 0..streams {
            let puller = Puller {
                client: client.clone(),
                config: config.clone(),
                found: found.clone(),
                max_payload: settings.max_payload,
                clock: Arc::clone(&settings.clock),
                arriving: arriving.clone(),
                messages: Arc::clone(&messages),
                trouble: troubles.of(number),
                given: given.clone(),
                renewed: renewed.clone(),
                stop: stop.clone(),
            };
            tasks.spawn(puller.run());
        }
        let watch = Watch {
            config,
            arriving,
            messages: Arc::clone(&messages),
            trouble: troubles.of_watch(),
            renewals,
            stop: stop.clone(),
        };
        tasks.spawn(watch.run());
        let progress = Arc::new(Progress { messages: Some(Arc::clone(&messages)), ..Progress::default() });
        tasks.spawn(merge::run(arrived, sender, settings.batch, Arc::clone(&progress), stop));
        let ending = async move {
            let end = async {
                while tasks.join_next().await.is_some() {}
                given.finish().await;
            };
            if tokio::time::timeout(FAREWELL, end).await.is_err() {
                tracing::warn!(
                    held = messages.held(),
                    "Pub/Sub did not take all acks and nacks in time: those messages come again when their leases have run out"
                );
            }
        };
        Ok(Running { batches, progress, comes_again_within, trouble: Some(trouble), ending: Some(Box::pin(ending)) })
    }
}

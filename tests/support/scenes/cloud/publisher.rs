//! Who publishes, in the place of Offvia's checkout.

use super::{PROJECT, TOPIC};
use anyhow::{Context, Result};
use google_cloud_auth::credentials::{Credentials, anonymous};
use google_cloud_pubsub::client::{Publisher as Client, Subscriber};
use google_cloud_pubsub::model::Message;
use std::time::Duration;
use tokio::runtime::Runtime;

/// How long nothing comes of a subscription that is empty.
const QUIET: Duration = Duration::from_secs(2);

/// A publisher of booking events.
pub(super) struct Publisher {
    runtime: Runtime,
    endpoint: String,
}

impl Publisher {
    /// Prepares to connect; nothing is sent yet.
    pub(super) fn new(address: &str) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        Ok(Self { runtime: runtime.context("cannot start a runtime")?, endpoint: format!("http://{address}") })
    }

    /// Publishes messages. Their ids, in the same order.
    pub(super) fn publish<T: Into<Vec<u8>>>(&self, payloads: impl IntoIterator<Item = T>) -> Result<Vec<String>> {
        let topic = format!("projects/{PROJECT}/topics/{TOPIC}");
        self.runtime.block_on(async {
            let client = Client::builder(topic).with_endpoint(&self.endpoint).with_credentials(nobody());
            let client = client.build().await.context("cannot set up a publisher")?;
            let sent: Vec<_> =
                payloads.into_iter().map(|payload| client.publish(Message::new().set_data(payload.into()))).collect();
            client.flush().await;
            let mut ids = Vec::with_capacity(sent.len());
            for answer in sent {
                ids.push(answer.await.context("a message cannot be published")?);
            }
            Ok(ids)
        })
    }

    /// How many messages come of the worker's subscription before it is quiet. They are given back.
    pub(super) fn waiting(&self) -> Result<usize> {
        self.runtime.block_on(async {
            let client = Subscriber::builder().with_endpoint(&self.endpoint).with_credentials(nobody()).build().await;
            let client = client.context("cannot set up a subscriber")?;
            let name = format!("projects/{PROJECT}/subscriptions/booking-events-dataflow-sub");
            let mut stream = client.subscribe(name).build();
            let mut came = 0;
            while let Ok(Some(message)) = tokio::time::timeout(QUIET, stream.next()).await {
                message.context("cannot pull")?;
                came += 1;
            }
            Ok(came)
        })
    }
}

fn nobody() -> Credentials {
    anonymous::Builder::new().build()
}

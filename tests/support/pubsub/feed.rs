//! A topic with a subscription, of one test.

use super::{Emulator, Front};
use crate::{Pipeline, http};
use google_cloud_auth::credentials::{Credentials, anonymous};
use google_cloud_pubsub::client::{Publisher, SubscriptionAdmin, TopicAdmin};
use google_cloud_pubsub::model::{Message, Subscription};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;

const PROJECT: &str = "projects/preflight-test";

/// A topic with a subscription, and a publisher.
pub struct Feed {
    runtime: Runtime,
    endpoint: String,
    topic: String,
    subscription: String,
    publisher: Publisher,
    front: Front,
}

impl Feed {
    /// A topic with a subscription whose leases are as short as they can be: a killed worker's messages come again soon.
    pub fn new() -> Self {
        Self::with(|subscription| subscription)
    }

    /// The same with a subscription that was changed before it is made.
    pub fn with(change: impl FnOnce(Subscription) -> Subscription) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("a runtime can be started");
        let endpoint = format!("http://{}", Emulator::shared().address);
        let topic = format!("{PROJECT}/topics/topic-{number}");
        let subscription = format!("{PROJECT}/subscriptions/subscription-{number}");
        let publisher = runtime.block_on(async {
            let made = topics(&endpoint).await.create_topic().set_name(&topic).send().await;
            made.expect("a topic can be made");
            let publisher = Publisher::builder(&topic).with_endpoint(&endpoint).with_credentials(nobody());
            publisher.set_delay_threshold(Duration::from_millis(5)).build().await.expect("an address of a publisher")
        });
        let front = Front::start(runtime.handle(), &Emulator::shared().address);
        let feed = Self { runtime, endpoint, topic, subscription, publisher, front };
        let wanted =
            Subscription::new().set_name(&feed.subscription).set_topic(&feed.topic).set_ack_deadline_seconds(10);
        feed.subscribe(change(wanted));
        feed
    }

    /// Makes a subscription.
    pub fn subscribe(&self, wanted: Subscription) {
        let made = self.runtime.block_on(async {
            subscriptions(&self.endpoint).await.create_subscription().with_request(wanted).send().await
        });
        made.expect("a subscription can be made");
    }

    /// The topic's full name.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// The subscription's full name.
    pub fn subscription(&self) -> &str {
        &self.subscription
    }

    /// Publishes messages, and returns their ids in the same order.
    pub fn publish(&self, messages: impl IntoIterator<Item = Message>) -> Vec<String> {
        self.runtime.block_on(async {
            let published: Vec<_> = messages.into_iter().map(|message| self.publisher.publish(message)).collect();
            self.publisher.flush().await;
            let mut ids = Vec::with_capacity(published.len());
            for answer in published {
                ids.push(answer.await.expect("a message can be published"));
            }
            ids
        })
    }

    /// Takes messages that are available now, at most so many, and gives them back at once. Returns their ids.
    pub fn nack(&self, most: usize) -> Vec<String> {
        let taken = self.ask("pull", &json!({ "returnImmediately": true, "maxMessages": most }));
        let list = taken["receivedMessages"].as_array().cloned().unwrap_or_default();
        let acks: Vec<&Value> = list.iter().map(|message| &message["ackId"]).collect();
        if !acks.is_empty() {
            self.ask("modifyAckDeadline", &json!({ "ackIds": acks, "ackDeadlineSeconds": 0 }));
        }
        list.iter().map(|message| message["message"]["messageId"].as_str().expect("an id").to_owned()).collect()
    }

    fn ask(&self, method: &str, body: &Value) -> Value {
        let answer = http::post(&Emulator::shared().address, &format!("/v1/{}:{method}", self.subscription), body);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// Deletes the subscription.
    pub fn delete_subscription(&self) {
        let deleted = self.runtime.block_on(async {
            let admin = subscriptions(&self.endpoint).await;
            admin.delete_subscription().set_subscription(&self.subscription).send().await
        });
        deleted.expect("a subscription can be deleted");
    }

    /// Offvia's pipeline with both of its rules, from this subscription into SQLite.
    pub fn pipeline(&self) -> Pipeline {
        self.pipeline_at(&self.front.address())
    }

    /// What the workers of this feed pull through.
    pub fn front(&self) -> &Front {
        &self.front
    }

    /// The same with Pub/Sub at another address.
    pub fn pipeline_at(&self, address: &str) -> Pipeline {
        let source = format!("[source.pubsub]\nsubscription = {:?}\nendpoint = {address:?}", self.subscription);
        Pipeline::offvia_from(&source).warm()
    }
}

impl Default for Feed {
    fn default() -> Self {
        Self::new()
    }
}

/// A message with this payload.
pub fn message(payload: impl Into<Vec<u8>>) -> Message {
    Message::new().set_data(payload.into())
}

fn nobody() -> Credentials {
    anonymous::Builder::new().build()
}

async fn topics(endpoint: &str) -> TopicAdmin {
    let admin = TopicAdmin::builder().with_endpoint(endpoint).with_credentials(nobody()).build().await;
    admin.expect("an address of an emulator")
}

async fn subscriptions(endpoint: &str) -> SubscriptionAdmin {
    let admin = SubscriptionAdmin::builder().with_endpoint(endpoint).with_credentials(nobody()).build().await;
    admin.expect("an address of an emulator")
}

//! Our hold on the messages of a micro-batch.

use super::pubsub::Lease;

/// Our hold on the messages of a micro-batch: of every message that was received for it, those of events that were left
/// out because they are known already, too. Dropping gives them back.
#[derive(Debug, Default)]
pub struct Leases(Vec<Lease>);

impl Leases {
    /// Holds messages.
    pub(super) fn new(leases: Vec<Lease>) -> Self {
        Self(leases)
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many messages are held.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Lets go of the messages for good: all that came of them is durable. Returns of how many that was not confirmed,
    /// where the subscription confirms it: they come again, and are recognised.
    pub async fn ack(self) -> usize {
        super::pubsub::ack(self.0).await
    }
}

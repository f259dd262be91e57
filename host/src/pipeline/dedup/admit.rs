//! Before the rules: what is known of an event by what the ledger holds already.

use super::Dedup;
use crate::event::Event;
use crate::ledger::{Key, Ledger, LedgerError};
use crate::pipeline::deliver::Delivery;
use crate::source::{Batch, Leases};
use crate::telemetry::tally::Tally;
use std::sync::Arc;

/// A micro-batch on its way to be judged.
#[derive(Debug, Default)]
pub struct Admitted {
    /// The events that are left.
    pub events: Vec<Event>,
    /// What is known of each; none where nothing has to be.
    pub marks: Vec<Mark>,
    /// Counts of the events that were left out.
    pub left_out: Tally,
    /// The ids of their messages.
    pub left_out_ids: Vec<Key>,
    /// The source's position.
    pub position: Option<(String, String)>,
    /// Our hold on the messages, also on those that were left out.
    pub leases: Leases,
}

/// What is known of an event before it is judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mark {
    /// The id of its message, where a message may be delivered again.
    pub id: Option<Key>,
}

impl From<Batch> for Admitted {
    /// Every event is judged.
    fn from(Batch { events, position, leases }: Batch) -> Self {
        Self { events, position, leases, ..Self::default() }
    }
}

/// The key of a message.
fn id(event: &Event) -> Key {
    Key::of("message", event.message_id.as_bytes())
}

impl Dedup {
    /// Looks at a micro-batch before it is judged. Messages that were committed before are left out: they are
    /// acknowledged with the micro-batch they came in, when everything before it is durable.
    pub async fn admit(&self, batch: Batch, delivery: &Delivery) -> Result<Admitted, LedgerError> {
        if self.is_off() {
            return Ok(batch.into());
        }
        let dedup = self.clone();
        let events = Arc::new(batch.events);
        let call = {
            let events = Arc::clone(&events);
            move |ledger: &mut Ledger| dedup.look(&events, ledger)
        };
        let looked = delivery.ledger.retrying(&delivery.patience, call).await?;
        // The call is over: nobody else has them.
        let events = Arc::try_unwrap(events).unwrap_or_else(|events| Vec::clone(&events));
        let mut admitted = Admitted { position: batch.position, leases: batch.leases, ..Admitted::default() };
        for (event, (mark, is_known)) in events.into_iter().zip(looked) {
            if is_known {
                admitted.left_out.read(event.publish_time);
                admitted.left_out.redelivered += 1;
                admitted.left_out_ids.extend(mark.id);
            } else {
                admitted.events.push(event);
                admitted.marks.push(mark);
            }
        }
        Ok(admitted)
    }

    /// Marks, and whether a message was committed before.
    fn look(&self, events: &[Event], ledger: &Ledger) -> Result<Vec<(Mark, bool)>, LedgerError> {
        let mut known = vec![false; events.len()];
        let mut marks = vec![Mark::default(); events.len()];
        if self.0.redeliveries {
            let ids: Vec<Key> = events.iter().map(id).collect();
            known = ledger.known(&ids, self.ran())?;
            for (mark, id) in marks.iter_mut().zip(ids) {
                mark.id = Some(id);
            }
        }
        Ok(marks.into_iter().zip(known).collect())
    }
}

//! Before the rules: what is known of an event by what the ledger holds already.

use super::Dedup;
use crate::config::DedupBy;
use crate::event::Event;
use crate::ledger::{Key, Ledger, LedgerError};
use crate::pipeline::deliver::Delivery;
use crate::pipeline::facts::{Admitted, Mark};
use crate::pipeline::keys;
use crate::pipeline::keys::Compared;
use crate::source::Batch;
use std::sync::Arc;

impl Dedup {
    /// Looks at a micro-batch before it is judged. Messages that were committed before are left out: they are
    /// acknowledged with the micro-batch they came in, when everything before it is durable. What repeats the payload and
    /// the attributes of an accepted event is marked.
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

    /// Events that an operator wants again: whatever their messages were, only their keys count.
    pub fn again(&self, events: Vec<Event>) -> Admitted {
        let marks = if self.0.duplicates.is_some() { self.marks(&events) } else { Vec::new() };
        Admitted { events, marks, ..Admitted::default() }
    }

    fn marks(&self, events: &[Event]) -> Vec<Mark> {
        let Some(dedup) = &self.0.duplicates else { return vec![Mark::default(); events.len()] };
        let compared = if dedup.by == DedupBy::Payload { Compared::Payload } else { Compared::Whole };
        let mark = |event: &Event| Mark {
            key: keys::before_rules(&dedup.by, event),
            // Of what the source could make no whole event of it kept only a part.
            compared: if event.refused().is_none() { compared } else { Compared::Nothing },
            ..Mark::default()
        };
        events.iter().map(mark).collect()
    }

    /// Marks, and whether a message was committed before.
    fn look(&self, events: &[Event], ledger: &Ledger) -> Result<Vec<(Mark, bool)>, LedgerError> {
        let mut known = vec![false; events.len()];
        let mut marks = self.marks(events);
        if self.0.redeliveries {
            let ids: Vec<Key> = events.iter().map(keys::message).collect();
            known = ledger.known(&ids, self.ran())?;
            for (mark, id) in marks.iter_mut().zip(ids) {
                mark.id = Some(id);
            }
        }
        let keyed = || (0..events.len()).filter(|index| !known[*index] && marks[*index].key.is_some());
        let (indexes, keys): (Vec<usize>, Vec<Key>) = keyed().filter_map(|at| Some((at, marks[at].key?))).unzip();
        let claims = ledger.claims(&keys, self.ran())?;
        for (at, claim) in indexes.into_iter().zip(claims) {
            marks[at].is_duplicate =
                claim.is_some_and(|claim| claim.content == keys::content(&events[at], marks[at].compared));
        }
        Ok(marks.into_iter().zip(known).collect())
    }
}

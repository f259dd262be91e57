//! At the commit: everything before it is committed, so what was seen before is known for certain.

use super::{Dedup, Mark};
use crate::ledger::{Additions, Frames, Key, Ledger, LedgerError, Part};
use crate::pipeline::deliver::Delivery;
use crate::pipeline::evaluate::Evaluated;
use crate::source::Leases;
use crate::telemetry::tally::{Outcomes, Tally};
use crate::verdict::Rejection;
use crate::warehouse::Tier;
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

/// What judging found out about an event, as far as it matters here.
#[derive(Debug, Clone)]
pub struct Fact {
    /// The event version it is counted under.
    pub version: Arc<str>,
    /// What became of it.
    pub fate: Fate,
}

/// What became of an event so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It has a row for silver.
    Accepted,
    /// Its rule ignored it.
    Ignored,
    /// It has a row for quarantine: stage and code.
    Rejected(Cow<'static, str>, Option<Cow<'static, str>>),
}

impl Fate {
    /// Of a rejected event.
    pub fn rejected(rejection: &Rejection) -> Self {
        Self::Rejected(rejection.stage.clone(), rejection.code.clone())
    }

    /// Takes an event out of the counts.
    fn uncount(&self, outcomes: &mut Outcomes) {
        match self {
            Self::Accepted => outcomes.accepted -= 1,
            Self::Ignored => outcomes.ignored -= 1,
            Self::Rejected(stage, code) => outcomes.rejected.take_one(stage, code.as_deref()),
        }
    }
}

/// A micro-batch as it is to be committed.
#[derive(Debug)]
pub struct Settled {
    /// The rows.
    pub parts: Vec<Part>,
    /// The original events.
    pub originals: Frames,
    /// The counts.
    pub tally: Tally,
    /// What was seen.
    pub seen: Additions,
    /// The source's position.
    pub position: Option<(String, String)>,
    /// Our hold on the messages.
    pub leases: Leases,
    /// When it was submitted.
    pub submitted: Instant,
    /// The revision of the rules that judged it, if they are from a store.
    pub revision: Option<u64>,
}

impl Dedup {
    /// Decides what is new in a micro-batch that was judged. Until it is committed nobody else may
    /// [commit](Self::committing).
    pub async fn settle(&self, judged: Evaluated, delivery: &Delivery) -> Result<Settled, LedgerError> {
        let Evaluated {
            parts,
            originals,
            tally,
            position,
            leases,
            submitted,
            revision,
            marks,
            facts,
            left_out_ids,
            ..
        } = judged;
        let mut settled = Settled {
            parts,
            originals,
            tally,
            seen: Additions { ran: self.ran(), acked: self.0.acks.up_to(), ..Additions::default() },
            position,
            leases,
            submitted,
            revision,
        };
        if self.is_off() {
            return Ok(settled);
        }
        let marks: Arc<[Mark]> = marks.into();
        let redelivered = self.redelivered(&marks, delivery).await?;
        settled.seen.ids = marks.iter().filter_map(|mark| mark.id).chain(left_out_ids).collect();
        if !redelivered.is_empty() {
            for index in &redelivered {
                let Fact { version, fate } = &facts[*index as usize];
                fate.uncount(settled.tally.named(version));
                settled.tally.redelivered += 1;
            }
            settled.take_out(&redelivered, &Tier::ALL);
        }
        Ok(settled)
    }

    /// Indexes of events whose message was committed meanwhile, or stands twice in the micro-batch.
    async fn redelivered(&self, marks: &Arc<[Mark]>, delivery: &Delivery) -> Result<HashSet<u32>, LedgerError> {
        if !self.0.redeliveries {
            return Ok(HashSet::new());
        }
        let (ids, ran) = (Arc::clone(marks), self.ran());
        let call = move |ledger: &mut Ledger| {
            let ids: Vec<Key> = ids.iter().filter_map(|mark| mark.id).collect();
            Ok((ledger.known(&ids, ran)?, ids))
        };
        let (known, ids) = delivery.ledger.retrying(&delivery.patience, call).await?;
        let mut first = HashSet::with_capacity(ids.len());
        let again = ids.into_iter().zip(known).map(|(id, known)| !first.insert(id) || known);
        Ok((0..).zip(again).filter(|(_, again)| *again).map(|(index, _)| index).collect())
    }
}

impl Settled {
    /// Takes the rows of events out of some targets.
    fn take_out(&mut self, events: &HashSet<u32>, tiers: &[Tier]) {
        for part in self.parts.iter_mut().filter(|part| tiers.contains(&part.tier)) {
            let rows = &part.rows;
            if (0..rows.len()).any(|row| events.contains(&rows.event(row))) {
                let kept = rows.of_events(|event| !events.contains(&event));
                if part.tier == Tier::Bronze {
                    self.tally.bronze -= (rows.len() - kept.len()) as u64;
                }
                part.frames = Frames::default();
                if !kept.is_empty() {
                    part.frames.push(&kept);
                }
                part.rows = Arc::new(kept);
            }
        }
    }
}

//! At the commit: everything before it is committed, so what was seen before is known for certain.

use super::Dedup;
use super::decide::{Decision, Decisions};
use crate::event::Event;
use crate::ledger::{Additions, Claim, Frames, Key, Ledger, LedgerError, Part};
use crate::pipeline::assemble::{Assembler, Judged};
use crate::pipeline::deliver::Delivery;
use crate::pipeline::evaluate::Evaluated;
use crate::pipeline::facts::{Fact, Mark};
use crate::pipeline::plan::Plan;
use crate::pipeline::windows::Contribution;
use crate::source::Leases;
use crate::telemetry::tally::Tally;
use crate::verdict::{Rejection, stage};
use crate::warehouse::{RowSet, Tier};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

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
    /// Indexes of the events that are duplicates.
    pub duplicates: BTreeSet<u32>,
    /// What accepted events that are new add to aggregates.
    pub contributions: Vec<Contribution>,
    /// The events.
    pub events: Arc<Vec<Event>>,
    /// Where values go.
    pub plan: Arc<Plan>,
    /// The source's position.
    pub position: Option<(String, String)>,
    /// Our hold on the messages.
    pub leases: Leases,
    /// When it was submitted.
    pub submitted: Instant,
    /// The revision of the rules that judged it, if they are from a store.
    pub revision: Option<u64>,
}

/// What the ledger says of the events of a micro-batch, in their order.
struct Before {
    /// Whether their message was committed.
    known: Vec<bool>,
    /// What claimed their key.
    claims: Vec<Option<Claim>>,
}

impl Dedup {
    /// Decides what is new in a micro-batch that was judged. Until it is committed nobody else may
    /// [commit](Self::committing).
    pub async fn settle(&self, judged: Evaluated, delivery: &Delivery) -> Result<Settled, LedgerError> {
        self.settle_as(judged, delivery, true).await
    }

    /// The same for events of quarantine that were judged again. Each is there because it was rejected: that it is once
    /// more makes it no duplicate.
    pub async fn settle_again(&self, judged: Evaluated, delivery: &Delivery) -> Result<Settled, LedgerError> {
        self.settle_as(judged, delivery, false).await
    }

    async fn settle_as(&self, judged: Evaluated, delivery: &Delivery, is_first: bool) -> Result<Settled, LedgerError> {
        let Evaluated { parts, originals, tally, position, leases, submitted, revision, contributions, .. } = judged;
        let (events, plan) = (judged.events, judged.plan);
        let seen = self.nothing_seen();
        let duplicates = BTreeSet::new();
        let Evaluated { marks, facts, left_out_ids, .. } = judged;
        let mut settled = Settled {
            parts,
            originals,
            tally,
            seen,
            duplicates,
            contributions,
            events: Arc::clone(&events),
            plan: Arc::clone(&plan),
            position,
            leases,
            submitted,
            revision,
        };
        settled.seen.ids = marks.iter().filter_map(|mark| mark.id).chain(left_out_ids).collect();
        let facts = Arc::new(facts);
        let Before { known, claims } = self.before(&marks, &facts, delivery).await?;
        let on_conflict = self.0.duplicates.as_ref().map(|dedup| dedup.on_conflict).unwrap_or_default();
        let mut decisions = Decisions::new(&marks, &known, &facts, &claims, on_conflict);
        if is_first {
            let repeats = decisions.repeats(&facts);
            let (keys, ran) = (repeats.iter().map(|(_, key)| *key).collect::<Vec<Key>>(), self.ran());
            let call = move |ledger: &mut Ledger| ledger.claims(&keys, ran);
            let found = if repeats.is_empty() {
                Vec::new()
            } else {
                delivery.ledger.retrying(&delivery.patience, call).await?
            };
            settled.seen.repeats =
                decisions.drop_repeated(repeats, &found.iter().map(Option::is_some).collect::<Vec<_>>());
        }
        settled.seen.claims = decisions.claims(&facts);
        let rejection = self.conflict();
        let conflicts = conflicts(&decisions.of(Decision::Conflict), &facts, &events, &plan, &rejection);
        settled.carry_out(&decisions, &facts, &conflicts, &rejection);
        Ok(settled)
    }

    /// Asks the ledger, once.
    async fn before(
        &self,
        marks: &Arc<[Mark]>,
        facts: &Arc<Vec<Fact>>,
        delivery: &Delivery,
    ) -> Result<Before, LedgerError> {
        let ids: Vec<Key> = marks.iter().filter_map(|mark| mark.id).collect();
        let keys: Vec<Key> = facts.iter().filter_map(|fact| fact.key).collect();
        if ids.is_empty() && keys.is_empty() {
            return Ok(Before { known: vec![false; facts.len()], claims: vec![None; facts.len()] });
        }
        let (marks, facts, ran) = (Arc::clone(marks), Arc::clone(facts), self.ran());
        let call = move |ledger: &mut Ledger| {
            let mut known = ledger.known(&ids, ran)?.into_iter();
            let mut claims = ledger.claims(&keys, ran)?.into_iter();
            let known = marks.iter().map(|mark| mark.id.is_some() && known.next().unwrap_or_default()).collect();
            let claims = facts.iter().map(|fact| fact.key.and_then(|_| claims.next().flatten())).collect();
            Ok(Before { known, claims })
        };
        delivery.ledger.retrying(&delivery.patience, call).await
    }

    fn conflict(&self) -> Rejection {
        let by = self.0.duplicates.as_ref().map_or_else(String::new, |dedup| dedup.by.to_string());
        let reason = format!("an event with the same {by} was accepted before, with another payload and another row");
        Rejection::by_host(stage::DUPLICATE_CONFLICT, "different_row", reason)
    }
}

/// The rows of events that conflict with others, by tier: all are rejected.
fn conflicts(
    indexes: &BTreeSet<u32>,
    facts: &[Fact],
    events: &[Event],
    plan: &Plan,
    rejection: &Rejection,
) -> [RowSet; Tier::JUDGED.len()] {
    let mut assembler = Assembler::new(plan);
    for index in indexes {
        let (event, fact) = (&events[*index as usize], &facts[*index as usize]);
        let rule = fact.rule.as_ref().map(|rule| (rule.label.as_str(), rule.digest_text.as_str()));
        // What has a row is counted under its own version.
        let judged = Judged { index: *index, event, version: Some(&fact.version), rule };
        assembler.quarantine(judged, &event.attributes_json(), rejection);
    }
    assembler.rows
}

impl Settled {
    /// Makes counts and rows what was decided.
    fn carry_out(&mut self, decisions: &Decisions, facts: &[Fact], conflicts: &[RowSet], rejection: &Rejection) {
        for (fact, decision) in facts.iter().zip(decisions.iter()) {
            let outcomes = self.tally.named(&fact.version);
            match decision {
                Decision::Stays => continue,
                Decision::Redelivered => {}
                Decision::Duplicate => outcomes.duplicates += 1,
                Decision::Conflict => outcomes.reject(rejection),
            }
            fact.fate.uncount(&mut self.tally, &fact.version);
            self.tally.redelivered += u64::from(decision == Decision::Redelivered);
        }
        self.duplicates = decisions.of(Decision::Duplicate);
        self.contributions.retain(|contribution| decisions.about(contribution.event) == Decision::Stays);
        for part in &mut self.parts {
            let goes = |event: u32| {
                let decision = decisions.about(event);
                match part.tier {
                    // The raw tier has what the producer sent, however often.
                    Tier::Bronze => decision == Decision::Redelivered,
                    _ => decision != Decision::Stays,
                }
            };
            let rows = &part.rows;
            let more = &conflicts[part.tier.judged()];
            if more.is_empty() && !(0..rows.len()).any(|row| goes(rows.event(row))) {
                continue;
            }
            let kept = rows.of_events(|event| !goes(event)).merged(more);
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

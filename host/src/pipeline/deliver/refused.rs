//! Rows that a table refused after all: taken out of what was promised, and promised to quarantine.

use super::super::assemble::{Assembler, Judged};
use super::super::plan::{HostTable, Plan};
use super::{DeliverError, Delivery};
use crate::failpoint;
use crate::ledger::{Frames, Ledger, LedgerError, Part, Refused, Seq};
use crate::telemetry::tally::{CountedVersion, Tally};
use crate::verdict::{Rejection, stage};
use crate::warehouse::events::Resolution;
use crate::warehouse::{Entry, Tier, quarantine_columns};
use std::collections::BTreeSet;
use std::sync::Arc;

fn refusal(why: &str) -> Rejection {
    Rejection::by_host(stage::SINK_REJECTED, "refused_by_table", why)
}

impl Delivery {
    /// Takes refused rows out of the entry of a replay. Their events are in quarantine already, and stay there.
    pub(super) async fn withdraw(
        &self,
        seq: Seq,
        entry: &Entry,
        rows: &[(usize, String)],
        resolution: &Resolution,
        refused: &mut Tally,
    ) -> Result<(), DeliverError> {
        let mut events = BTreeSet::new();
        for (row, why) in rows {
            let event = entry.rows.event(*row);
            events.insert(event);
            let resolved = resolution.rows.iter().find(|row| row.event == event);
            let version = resolved.and_then(|row| row.version.as_deref());
            // A silver row comes from a rule.
            refused.of(CountedVersion::new(version, true)).reject(&refusal(why));
            let message_id = resolved.map(|row| &row.message_id);
            tracing::warn!(message_id, "the table refused a replayed row, its event stays in quarantine: {why}");
        }
        let indexes: Vec<usize> = rows.iter().map(|(index, _)| *index).collect();
        let mut resolution = resolution.clone();
        resolution.rows.retain(|row| !events.contains(&row.event));
        let events: Vec<u32> = events.into_iter().collect();
        let work = Arc::new((entry.rows.without(&indexes), events, resolution));
        let call = move |ledger: &mut Ledger| ledger.withdraw(seq, &work.0, &work.1, work.2.clone());
        self.ledger.retrying(&self.patience, call).await?;
        failpoint::pass(failpoint::ENTRY_REPLACED);
        Ok(())
    }

    /// Takes refused rows out of an entry and promises their events to quarantine. Returns the commit that does so.
    pub(super) async fn replace(
        &self,
        seq: Seq,
        entry: &Entry,
        rows: &[(usize, String)],
        refused: &mut Tally,
    ) -> Result<Seq, DeliverError> {
        let originals = self.ledger.retrying(&self.patience, move |ledger| ledger.originals(seq)).await?;
        let plan = self.plan_for_open_quarantine().await?;
        for tier in [Tier::Quarantine, Tier::Rejects].into_iter().filter(|tier| plan.layout(*tier).is_some()) {
            self.ensure_stream(tier).await?;
        }
        let mut counts = Tally::default();
        let mut assembler = Assembler::new(&plan);
        let mut events = Vec::new();
        for (row, why) in rows {
            let original = originals
                .get(entry.rows.event(*row) as usize)
                .ok_or_else(|| LedgerError::Damaged(format!("commit {seq} has no event for row {row}")))?;
            let rejection = refusal(why);
            let judged = Judged {
                index: u32::try_from(events.len()).expect("fewer rows are refused than were sent"),
                event: &original.event,
                version: original.version.as_deref(),
                rule: original.rule.as_ref().map(|(label, digest)| (label.as_ref(), digest.as_ref())),
            };
            assembler.quarantine(judged, &original.event.attributes_json(), &rejection);
            counts.of(CountedVersion::new(judged.version, judged.rule.is_some())).reject(&rejection);
            events.push(original.clone());
            tracing::warn!(message_id = original.event.message_id, "the table refused a row: {why}");
        }
        let indexes: Vec<usize> = rows.iter().map(|(index, _)| *index).collect();
        let refused_events: Vec<u32> = indexes.iter().map(|row| entry.rows.event(*row)).collect();
        let (kept, tier) = (entry.rows.without(&indexes), entry.tier);
        let mut originals = Frames::default();
        originals.push(&events);
        let rows = Tier::JUDGED.into_iter().zip(assembler.rows).filter(|(_, rows)| !rows.is_empty());
        let parts = rows.map(|(tier, rows)| {
            let layout = plan.layout(tier).expect("a target without a layout has no rows");
            let mut frames = Frames::default();
            frames.push(&rows);
            Part { tier, layout: Arc::clone(layout), rows: Arc::new(rows), frames }
        });
        let instead: Vec<Part> = parts.collect();
        refused.add(&counts);
        let work = Arc::new((kept, instead, refused_events, originals, counts));
        let call = move |ledger: &mut Ledger| {
            let (kept, instead, events, originals, counts) = work.as_ref();
            ledger.replace(&Refused { seq, tier, kept, instead, counts, events, originals })
        };
        let promised = self.ledger.retrying(&self.patience, call).await?;
        failpoint::pass(failpoint::ENTRY_REPLACED);
        Ok(promised)
    }

    /// The plan with the quarantine table that rows are bound to now. A stream that an earlier run opened keeps its
    /// table, whatever the pipeline file has become since.
    async fn plan_for_open_quarantine(&self) -> Result<Plan, DeliverError> {
        let mut plan = Plan::clone(&self.plan());
        let layout =
            self.ledger.call(|ledger| Ok(ledger.stream(Tier::Quarantine).map(|s| Arc::clone(&s.layout)))).await?;
        let planned = plan.layout(Tier::Quarantine).map(|layout| layout.table.clone());
        if let Some(layout) = layout.filter(|layout| Some(&layout.table) != planned.as_ref()) {
            let columns = layout.columns.iter().map(|name| {
                let known = quarantine_columns().iter().find(|column| column.name.eq_ignore_ascii_case(name));
                known.map(|column| column.host).ok_or_else(|| {
                    LedgerError::Damaged(format!(
                        "its quarantine stream has a column `{name}` that the host does not fill"
                    ))
                })
            });
            let columns = columns.collect::<Result<_, _>>()?;
            plan.quarantine = Some(HostTable { layout, columns });
        }
        Ok(plan)
    }
}

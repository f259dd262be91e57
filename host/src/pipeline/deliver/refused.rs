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

    /// Takes refused rows out of an entry and promises their events to quarantine.
    pub(super) async fn replace(
        &self,
        seq: Seq,
        entry: &Entry,
        rows: &[(usize, String)],
        refused: &mut Tally,
    ) -> Result<(), DeliverError> {
        let originals = self.ledger.retrying(&self.patience, move |ledger| ledger.originals(seq)).await?;
        self.ensure_stream(Tier::Quarantine).await?;
        let plan = self.plan_for_open_quarantine().await?;
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
            refused.of(CountedVersion::new(judged.version, judged.rule.is_some())).reject(&rejection);
            events.push(original.clone());
            tracing::warn!(message_id = original.event.message_id, "the table refused a row: {why}");
        }
        let indexes: Vec<usize> = rows.iter().map(|(index, _)| *index).collect();
        let refused_events: Vec<u32> = indexes.iter().map(|row| entry.rows.event(*row)).collect();
        let kept = entry.rows.without(&indexes);
        let [_, _, quarantine] = assembler.rows;
        let tier = entry.tier;
        let (mut originals, mut frames) = (Frames::default(), Frames::default());
        originals.push(&events);
        frames.push(&quarantine);
        let layout = Arc::clone(&plan.quarantine.layout);
        let part = Part { tier: Tier::Quarantine, layout, rows: Arc::new(quarantine), frames };
        let work = Arc::new((kept, part, refused_events, originals));
        let call = move |ledger: &mut Ledger| {
            let (kept, part, events, originals) = work.as_ref();
            ledger.replace(&Refused { seq, tier, kept, quarantine: part, events, originals })
        };
        self.ledger.retrying(&self.patience, call).await?;
        failpoint::pass(failpoint::ENTRY_REPLACED);
        Ok(())
    }

    /// The plan with the quarantine table that rows are bound to now. A stream that an earlier run opened keeps its
    /// table, whatever the pipeline file has become since.
    async fn plan_for_open_quarantine(&self) -> Result<Plan, DeliverError> {
        let mut plan = Plan::clone(&self.plan());
        let layout =
            self.ledger.call(|ledger| Ok(ledger.stream(Tier::Quarantine).map(|s| Arc::clone(&s.layout)))).await?;
        if let Some(layout) = layout.filter(|layout| layout.table != plan.quarantine.layout.table) {
            let columns = layout.columns.iter().map(|name| {
                let known = quarantine_columns().iter().find(|column| column.name.eq_ignore_ascii_case(name));
                known.map(|column| column.host).ok_or_else(|| {
                    LedgerError::Damaged(format!(
                        "its quarantine stream has a column `{name}` that the host does not fill"
                    ))
                })
            });
            let columns = columns.collect::<Result<_, _>>()?;
            plan.quarantine = HostTable { layout, columns };
        }
        Ok(plan)
    }
}

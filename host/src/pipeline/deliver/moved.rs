//! What a start does when the warehouse no longer has a stream that rows are bound to: it may forget one that nobody wrote
//! to for days, and with a table its streams are gone.
//!
//! Nothing is written before it is known which of the rows are in the table: the stream's own count says it, else the
//! message ids in the table do. Where neither does the start fails, for an operator to look.

use super::super::plan::Plan;
use super::super::retry::retrying;
use super::{DeliverError, Delivery, diverged};
use crate::failpoint;
use crate::ledger::{Ledger, LedgerError, Seq, Stream};
use crate::telemetry::tally::Tally;
use crate::warehouse::{AppendError, Entry, StreamRows, Tier};
use std::collections::{BTreeMap, BTreeSet};

/// What an operator can do who does not know what is in the table.
const UNKNOWN: &str = ". Whether its rows are in the table cannot be told. Nothing is lost: what was not confirmed was not \
    acknowledged either. Delete the ledger and run with --new-ledger: what is not acknowledged comes again, and what is in the \
    table already is there twice";

impl Delivery {
    /// Sends what an earlier run promised, on its streams. What was bound to a stream that is gone is bound to another.
    pub(super) async fn send_again(&self) -> Result<(), DeliverError> {
        let mut sending = self.sending.lock().await;
        for tier in self.ledger.call(|ledger| Ok(ledger.tiers())).await? {
            if self.ledger.retrying(&self.patience, move |ledger| ledger.is_distrusted(tier)).await? {
                tracing::warn!(
                    tier = tier.as_str(),
                    "another worker wrote to the stream, or its table is another; looking for what is there of ours"
                );
                self.move_stream(tier).await?;
            }
        }
        let mut moved = BTreeSet::new();
        loop {
            match self.send_up_to(None, &mut sending).await {
                Err(DeliverError::Append { tier, error: AppendError::StreamGone(name), .. })
                    if self.warehouse.stream_lifetime().is_some() && moved.insert(tier) =>
                {
                    tracing::warn!(
                        tier = tier.as_str(),
                        stream = name,
                        "the stream is gone; looking for what it had written"
                    );
                    self.move_stream(tier).await?;
                }
                sent => return sent,
            }
        }
    }

    async fn move_stream(&self, tier: Tier) -> Result<(), DeliverError> {
        let read = move |ledger: &mut Ledger| {
            Ok((ledger.stream(tier).cloned(), ledger.undone_entries(tier)?, ledger.is_distrusted(tier)?))
        };
        let (stream, undone, distrusted) = self.ledger.retrying(&self.patience, read).await?;
        let stream = stream.ok_or_else(|| LedgerError::Damaged(format!("rows of {tier} are bound to no stream")))?;
        let least = undone.first().map_or(stream.next_offset, |(_, entry)| entry.first_offset);
        let rows = retrying(&self.patience, || self.warehouse.finalize_stream(&stream.name)).await?;
        let written = match rows {
            // They are not all ours.
            _ if distrusted => self.look_up(tier, &stream, undone).await?,
            StreamRows::Rows(rows) if (least..=stream.next_offset).contains(&rows) => rows,
            StreamRows::Rows(_) => {
                return Err(diverged(&stream.name, rows, &format!("{least} to {}", stream.next_offset)));
            }
            StreamRows::Missing | StreamRows::Unknown => self.look_up(tier, &stream, undone).await?,
        };
        let table = stream.layout.table.clone();
        let name = self.ledger.retrying(&self.patience, move |ledger| ledger.new_stream_name(tier)).await?;
        let name = retrying(&self.patience, || self.warehouse.create_stream(&name, &table)).await?;
        failpoint::pass(failpoint::STREAM_CREATED);
        tracing::warn!(tier = tier.as_str(), written, bound = stream.next_offset, "sending the rest on a new stream");
        let call = move |ledger: &mut Ledger| ledger.move_stream(tier, &name, written);
        self.ledger.retrying(&self.patience, call).await?;
        failpoint::pass(failpoint::STREAM_RECORDED);
        Ok(())
    }

    /// How many rows of a stream are in the table, by the message ids of their events. Appends are whole or not at all and in
    /// order, so they are those of the first entries.
    async fn look_up(&self, tier: Tier, stream: &Stream, undone: Vec<(Seq, Entry)>) -> Result<u64, DeliverError> {
        let gone = |advice: &'static str| DeliverError::Append {
            tier,
            error: AppendError::StreamGone(stream.name.clone()),
            advice,
        };
        let Some(column) = self.plan().id_column(tier).map(str::to_owned) else { return Err(gone(UNKNOWN)) };
        let mut written = None;
        for (seq, entry) in undone {
            let known = self.message_ids(seq).await?;
            let ids = (0..entry.rows.len()).map(|row| known.get(&entry.rows.event(row)).cloned());
            let ids: Option<Vec<String>> = ids.collect();
            let column = entry.layout.columns.iter().find(|known| known.eq_ignore_ascii_case(&column));
            let (Some(ids), Some(column)) = (ids, column) else { return Err(gone(UNKNOWN)) };
            let table = &entry.layout.table;
            let found = retrying(&self.patience, || self.warehouse.present(table, column, ids.clone())).await?;
            // The rows of one request are there or not; an entry may have been more than one.
            let there = ids.iter().take_while(|id| found.contains(*id)).count();
            let behind_a_gap = ids[there..].iter().any(|id| found.contains(id));
            if behind_a_gap || written.is_some() && !found.is_empty() {
                return Err(gone(UNKNOWN));
            }
            if written.is_none() && there < ids.len() {
                written = Some(entry.first_offset + there as u64);
            }
        }
        Ok(written.unwrap_or(stream.next_offset))
    }

    /// The message ids of a commit's events. A replay has no originals: they are in quarantine.
    async fn message_ids(&self, seq: Seq) -> Result<BTreeMap<u32, String>, DeliverError> {
        let read = move |ledger: &mut Ledger| Ok((ledger.originals(seq)?, ledger.resolution(seq)));
        let (originals, resolution) = self.ledger.retrying(&self.patience, read).await?;
        let replayed = resolution.iter().flat_map(|resolution| &resolution.rows);
        let replayed = replayed.map(|row| (row.event, row.message_id.clone()));
        let originals = (0..).zip(originals).map(|(event, original)| (event, original.event.message_id.clone()));
        Ok(originals.chain(replayed).collect())
    }

    /// The refusals that were counted so far are an earlier run's.
    pub(super) async fn forget_refused(&self) {
        self.sending.lock().await.refused = BTreeMap::<Seq, Tally>::new();
    }
}

impl Plan {
    /// The column of a target's table that holds the message id, if there is one.
    fn id_column(&self, tier: Tier) -> Option<&str> {
        match tier {
            Tier::Bronze => Some("message_id"),
            Tier::Quarantine => Some("source_message_id"),
            Tier::Silver => self.silver.message_id.as_deref(),
            // A pane is of many events, an event may be late more than once, and a file forgets no stream.
            Tier::Late | Tier::Panes(_) | Tier::Rejects => None,
        }
    }
}

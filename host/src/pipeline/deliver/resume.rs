//! What every start does before anything else.

use super::super::retry::retrying;
use super::{DeliverError, Delivery, diverged};
use crate::failpoint;
use crate::ledger::{Ledger, Stream};
use crate::warehouse::{StreamRows, Tier};
use std::ops::RangeInclusive;

impl Delivery {
    /// What every start does first: sends what an earlier run promised, on its streams, then finalizes them, so that a
    /// worker that still thinks it owns them meets a closed door. Returns how many commits were sent.
    pub async fn resume(&self) -> Result<u64, DeliverError> {
        self.refuse_other_times().await?;
        let undone = self.ledger.call(|ledger| Ok(ledger.undone())).await? as u64;
        self.send_again().await?;
        self.forget_refused().await;
        failpoint::pass(failpoint::UNDONE_SENT);
        // All of them before the first is finalized: what is found here leaves everything as it is.
        self.compare_open_streams().await?;
        self.finalize_all(|tier| tier != Tier::Rejects).await?;
        self.forget_old_streams().await?;
        Ok(undone)
    }

    /// Closes the streams of targets, of which nothing is undone.
    pub async fn finalize_all(&self, wanted: impl Fn(Tier) -> bool) -> Result<(), DeliverError> {
        for tier in self.ledger.call(|ledger| Ok(ledger.tiers())).await?.into_iter().filter(|tier| wanted(*tier)) {
            let stream = self.ledger.call(move |ledger| Ok(ledger.stream(tier).cloned())).await?;
            let Some(stream) = stream else { continue };
            self.finalize(tier, &stream).await?;
        }
        Ok(())
    }

    /// Closes a target's stream, of which nothing is undone: in the warehouse first, whose count is compared.
    async fn finalize(&self, tier: Tier, stream: &Stream) -> Result<(), DeliverError> {
        let rows = self.end_stream(stream).await?;
        failpoint::pass(failpoint::STREAM_FINALIZED);
        if !self.agrees(rows, stream.next_offset..=stream.next_offset) {
            return Err(diverged(&stream.name, rows, &stream.next_offset.to_string()));
        }
        self.ledger.retrying(&self.patience, move |ledger| ledger.close_stream(tier)).await?;
        failpoint::pass(failpoint::STREAM_CLOSED);
        Ok(())
    }

    /// Closes a target's stream so that the next rows get another, unless rows of it wait to be sent.
    pub(super) async fn retire_stream(&self, tier: Tier) -> Result<(), DeliverError> {
        let read =
            move |ledger: &mut Ledger| Ok((ledger.stream(tier).cloned(), ledger.undone_entries(tier)?.is_empty()));
        match self.ledger.retrying(&self.patience, read).await? {
            (Some(stream), true) => self.finalize(tier, &stream).await,
            _ => Ok(()),
        }
    }

    /// Of the streams of earlier runs only the last of each target is of use, to be compared at the next start.
    async fn forget_old_streams(&self) -> Result<(), DeliverError> {
        let call = |ledger: &mut Ledger| Ok((ledger.id().to_owned(), ledger.closed_streams()?));
        let (id, last) = self.ledger.retrying(&self.patience, call).await?;
        let keep: Vec<String> = last.into_iter().map(|(name, _)| name).collect();
        Ok(retrying(&self.patience, || self.warehouse.forget_streams(&id, keep.clone())).await?)
    }

    /// Before anything is sent: the warehouse must have what earlier runs wrote, and no stream of ours that we do not
    /// know.
    async fn refuse_other_times(&self) -> Result<(), DeliverError> {
        let id = self.ledger.call(|ledger| Ok(ledger.id().to_owned())).await?;
        for name in retrying(&self.patience, || self.warehouse.streams_with(&id)).await? {
            let stream = name.clone();
            if self.ledger.retrying(&self.patience, move |ledger| ledger.is_younger(&stream)).await? {
                return Err(DeliverError::Diverged(format!("the ledger does not know its own stream {name}")));
            }
        }
        for (name, counted) in self.ledger.retrying(&self.patience, |ledger| ledger.closed_streams()).await? {
            let rows = retrying(&self.patience, || self.warehouse.stream_rows(&name)).await?;
            if !self.agrees(rows, counted..=counted) {
                return Err(diverged(&name, rows, &counted.to_string()));
            }
        }
        self.compare_open_streams().await
    }

    /// An open stream has all rows that are confirmed, and none that was never bound.
    async fn compare_open_streams(&self) -> Result<(), DeliverError> {
        for (stream, least) in self.ledger.retrying(&self.patience, |ledger| ledger.open_streams()).await? {
            let (name, most) = (&stream.name, stream.next_offset);
            let rows = self.reach(&stream).await?;
            if !self.agrees(rows, least..=most) {
                let counted = if least == most { most.to_string() } else { format!("{least} to {most}") };
                return Err(diverged(name, rows, &counted));
            }
        }
        Ok(())
    }

    /// Whether a stream has as many rows as the ledger counts. A warehouse that forgets streams says nothing by that.
    fn agrees(&self, rows: StreamRows, counted: RangeInclusive<u64>) -> bool {
        match rows {
            StreamRows::Rows(rows) => counted.contains(&rows),
            StreamRows::Unknown => true,
            StreamRows::Missing => *counted.end() == 0 || self.warehouse.stream_lifetime().is_some(),
        }
    }
}

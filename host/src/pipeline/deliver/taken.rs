//! Offsets that somebody else took.
//!
//! A warehouse answers "already there" by the offset alone and compares no rows. Of an entry that was sent before that means
//! that its rows are there. Of one that was not, somebody else has written to the stream, and to take his rows for ours would
//! lose ours.

use super::{DeliverError, Delivery, LOOKED_FOR};
use crate::ledger::{LedgerError, Seq};
use crate::warehouse::{AppendError, Appended, Entry, Tier};

impl Delivery {
    /// Fails if the first send of a commit of this process found rows at its offset. The ledger remembers that before: the
    /// next start must not believe that offset either.
    pub(super) async fn refuse_taken(
        &self,
        seq: Seq,
        entries: &[Entry],
        results: &[Result<Appended, AppendError>],
    ) -> Result<(), DeliverError> {
        let there =
            |(_, result): &(&Entry, &Result<Appended, AppendError>)| matches!(result, Ok(Appended::AlreadyThere));
        let taken: Vec<&Entry> = entries.iter().zip(results).filter(there).map(|(entry, _)| entry).collect();
        let Some(first) = taken.first() else { return Ok(()) };
        if self.ledger.call(move |ledger| Ok(ledger.is_of_earlier_run(seq))).await? {
            return Ok(());
        }
        for tier in taken.iter().map(|entry| entry.tier) {
            self.distrust(tier).await?;
        }
        let error = AppendError::Taken { stream: first.stream.clone(), offset: first.first_offset };
        Err(DeliverError::Append { tier: first.tier, error, advice: LOOKED_FOR })
    }

    /// The offsets of a target's stream do not say what of ours is in the table: the next start looks.
    pub(super) async fn distrust(&self, tier: Tier) -> Result<(), LedgerError> {
        self.ledger.retrying(&self.patience, move |ledger| ledger.distrust_stream(tier)).await
    }
}

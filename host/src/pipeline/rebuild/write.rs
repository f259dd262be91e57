//! Writing what was decided: commits to the ledger, one after another, each delivered before the next.

use super::{Rebuild, RebuildError};
use crate::failpoint;
use crate::ledger::{Frames, Ledger};
use crate::pipeline::windows::rows::{Stamp, panes};
use crate::pipeline::windows::{Aggregate, PANES};
use crate::time::Micros;
use crate::window::Pane;
use crate::window::windows::Named;
use std::sync::Arc;

impl Rebuild<'_> {
    /// Writes panes under an epoch. False if it is not to be done to its end.
    pub(super) async fn write(&self, read: &Aggregate, all: &[Pane], epoch: i64) -> Result<bool, RebuildError> {
        for chunk in all.chunks(PANES) {
            if !(self.goes_on)() {
                return Ok(false);
            }
            self.commit(read, chunk, epoch).await?;
        }
        Ok(true)
    }

    async fn commit(&self, read: &Aggregate, chunk: &[Pane], epoch: i64) -> Result<(), RebuildError> {
        // The table may have got columns meanwhile, and the rules others.
        let plan = (self.plan)();
        let shape = plan.aggregate(&read.name).map(|planned| planned.aggregate.shape());
        let Some(windows) = plan.windows.as_ref().filter(|_| shape == Some(read.shape())) else {
            let what = format!("aggregate {} was changed while it was rebuilt: try again", read.name);
            return Err(RebuildError::Refused(what));
        };
        let named: Vec<Named> = chunk.iter().map(|pane| (Arc::clone(&read.name), pane.clone())).collect();
        // As at the end of a bounded source.
        let (processing_time, watermark) = (self.clock.now(), Micros::MAX);
        let stamp = Stamp { pipeline: &self.measured.pipeline, epoch, processing_time, watermark };
        let parts = panes(windows, &named, &stamp);
        // Nobody else commits from here on, until this is committed.
        let alone = self.dedup.committing().await;
        for part in &parts {
            self.delivery.ensure_stream(part.tier).await?;
        }
        let work = Arc::new((parts, self.dedup.nothing_seen(), alone));
        let call = move |ledger: &mut Ledger| ledger.commit(&work.0, &Frames::default(), None, &work.1);
        let seq = self.delivery.ledger.retrying(&self.delivery.patience, call).await?;
        failpoint::pass(failpoint::LEDGER_COMMITTED);
        self.delivery.deliver(seq).await?;
        Ok(())
    }
}

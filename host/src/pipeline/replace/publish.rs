//! Publishing, in steps that may each be repeated.

use crate::failpoint;
use crate::ledger::{Ledger, Run, RunState};
use crate::pipeline::deliver::Delivery;
use crate::pipeline::error::RunError;
use crate::pipeline::retry::retrying;
use crate::warehouse::WarehouseError;
use std::sync::Arc;

/// Publishes the run of a ledger, whose source was read to its end.
pub(super) async fn publish(delivery: &Delivery) -> Result<(), RunError> {
    delivery.deliver_all().await?;
    // Nobody else writes to them from here on, and their counts are compared.
    delivery.finalize_all(|_| true).await?;
    let run = delivery.ledger.call(|ledger: &mut Ledger| Ok(ledger.run().cloned())).await?;
    let Some(run) = run else { return Ok(()) };
    failpoint::pass(failpoint::RUN_COMPLETE);
    is(delivery, RunState::Publishing).await?;
    failpoint::pass(failpoint::RUN_PUBLISHING);
    conclude(delivery, &run).await
}

/// Publishes what a run has staged, as it is noted, and forgets the run.
pub(super) async fn conclude(delivery: &Delivery, run: &Run) -> Result<(), RunError> {
    let publication = Arc::new(run.staged.publication.clone());
    let published = retrying(&delivery.patience, || delivery.warehouse.publish(Arc::clone(&publication))).await;
    published.map_err(|error| WarehouseError {
        text: format!("{error}. The next start tries again; with --restart it drops what run {} has staged", run.id),
        ..error
    })?;
    failpoint::pass(failpoint::TABLES_PUBLISHED);
    if let (Some(files), Some(file)) = (&run.staged.files, run.staged.file()) {
        files.publish(&file)?;
        failpoint::pass(failpoint::FILES_PUBLISHED);
    }
    is(delivery, RunState::Published).await?;
    failpoint::pass(failpoint::RUN_PUBLISHED);
    let dropped = retrying(&delivery.patience, || delivery.warehouse.drop_tables(run.staged.tables())).await;
    dropped.map_err(|error| WarehouseError {
        text: format!("run {} is published, but what it had staged cannot be dropped: {error}", run.id),
        ..error
    })?;
    delivery.ledger.retrying(&delivery.patience, Ledger::end_run).await?;
    tracing::info!(run = run.id, "published");
    Ok(())
}

async fn is(delivery: &Delivery, state: RunState) -> Result<(), RunError> {
    Ok(delivery.ledger.retrying(&delivery.patience, move |ledger| ledger.run_is(state)).await?)
}

//! Bringing back what a ledger holds of windows.

use super::{EventTime, Inner, State};
use crate::config::Config;
use crate::ledger::{Ledger, LedgerError};
use crate::pipeline::plan::WindowsPlan;
use crate::time::{Clock, Micros};
use crate::window::Windows;
use crate::window::windows::{LeftOpen, Unreadable};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Why the windows of a ledger cannot be gone on with.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The ledger cannot be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// It has open windows of an aggregate that is another now.
    #[error(
        "aggregate {name}: the ledger {ledger} holds {open} open windows of it, and in the pipeline file {what}. Windows, accumulation, \
         group_by and measures of an aggregate stay as they are while it has open windows: put them back, or give the changed \
         aggregate another name and table; or say --forget-windows, and what the open windows hold is not written any more \
         (it is in silver: preflight rebuild)"
    )]
    Changed {
        /// The aggregate.
        name: String,
        /// How many windows are open.
        open: usize,
        /// The ledger's directory.
        ledger: String,
        /// How it differs.
        what: &'static str,
    },
}

impl EventTime {
    /// The open windows of a pipeline as its ledger holds them; none of a pipeline without aggregates. With `forget` none are open.
    pub fn of(
        config: &Config,
        plan: Option<&WindowsPlan>,
        ledger: &mut Ledger,
        forget: bool,
        clock: &dyn Clock,
    ) -> Result<Option<Self>, RestoreError> {
        if let Some(plan) = plan {
            return Self::restore(config, plan, ledger, forget, clock).map(Some);
        }
        Self::none(ledger, forget).map(|()| None)
    }

    fn restore(
        config: &Config,
        plan: &WindowsPlan,
        ledger: &mut Ledger,
        forget: bool,
        clock: &dyn Clock,
    ) -> Result<Self, RestoreError> {
        let wanted: BTreeMap<String, String> = plan
            .aggregates
            .iter()
            .map(|planned| (planned.aggregate.name.to_string(), planned.aggregate.shape()))
            .collect();
        let mut windows = of(plan);
        if !forget {
            refuse_changed(&wanted, ledger)?;
            ledger.window_records(|number, record| windows.restore(number, record).map_err(damaged))?;
        }
        ledger.keep_shapes(&wanted, forget)?;
        for name in wanted.keys() {
            windows.restore_closed(name, ledger.closed(name)?.unwrap_or(Micros::MIN));
        }
        windows.restore_watermark(ledger.watermark()?.unwrap_or(Micros::MIN));
        // What was forgotten may come again in part, and is not what it was.
        let epoch = if forget { ledger.begin_epoch(clock.now())? } else { ledger.epoch(clock.now())? };
        let limit = config.max_open_windows;
        let (windows, pipeline) = (Mutex::new(State { windows, ahead: false }), config.name.clone());
        Ok(Self(Arc::new(Inner { windows, epoch, pipeline, limit })))
    }

    /// Of a pipeline without aggregates: refuses a ledger that has open windows.
    fn none(ledger: &mut Ledger, forget: bool) -> Result<(), RestoreError> {
        let none = BTreeMap::new();
        if !forget {
            refuse_changed(&none, ledger)?;
        }
        Ok(ledger.keep_shapes(&none, true)?)
    }
}

fn of(plan: &WindowsPlan) -> Windows {
    Windows::new(plan.aggregates.iter().map(|planned| {
        let aggregate = &planned.aggregate;
        (Arc::clone(&aggregate.name), aggregate.spec.clone())
    }))
}

/// Refuses an aggregate with open windows that is another by now, or gone.
fn refuse_changed(wanted: &BTreeMap<String, String>, ledger: &Ledger) -> Result<(), RestoreError> {
    let mut changed = ledger.shapes()?;
    changed.retain(|name, shape| wanted.get(name) != Some(shape));
    if changed.is_empty() {
        return Ok(());
    }
    let mut left = LeftOpen::default();
    ledger.window_records(|_, record| left.read(record).map_err(damaged))?;
    for name in changed.into_keys() {
        let open = left.of(&name);
        if open > 0 {
            let what = if wanted.contains_key(&name) { "it is another" } else { "it is gone" };
            let ledger = ledger.directory().display().to_string();
            return Err(RestoreError::Changed { name, open, ledger, what });
        }
    }
    Ok(())
}

/// The ledger's error for a record that cannot be read.
#[expect(clippy::needless_pass_by_value, reason = "it is the argument of map_err")]
pub(in crate::pipeline) fn damaged(error: Unreadable) -> LedgerError {
    LedgerError::Damaged(error.to_string())
}

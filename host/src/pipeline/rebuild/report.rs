//! What a rebuild came to.

use super::Wanted;
use super::decide::Decided;
use crate::time::format_micros;
use serde::{Deserialize, Serialize};

/// What a rebuild came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RebuildReport {
    /// The aggregate.
    pub aggregate: String,
    /// The beginning of the range.
    pub from: String,
    /// Its end, which is not in it.
    pub to: String,
    /// Whether it only shows what would be written.
    pub dry_run: bool,
    /// Silver rows that were read.
    pub rows: u64,
    /// Windows that were measured anew and written.
    pub written: u64,
    /// Windows that the table showed and that silver has no rows for, or that are parts of other sessions now: taken back.
    pub retracted: u64,
    /// Windows that are only in part in the range, or may be, and were left as they are.
    pub left_alone: u64,
    /// The epoch of what was written. None if nothing was.
    pub epoch: Option<i64>,
    /// How long it took, milliseconds.
    pub millis: u64,
}

impl RebuildReport {
    pub(super) fn new(wanted: &Wanted, rows: u64, decided: &Decided) -> Self {
        let Decided { written, retracted, left_alone, .. } = *decided;
        Self {
            aggregate: wanted.aggregate.clone(),
            from: format_micros(wanted.from),
            to: format_micros(wanted.to),
            dry_run: wanted.dry_run,
            rows,
            written,
            retracted,
            left_alone,
            epoch: None,
            millis: 0,
        }
    }
}

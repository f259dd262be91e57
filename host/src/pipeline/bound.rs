//! How many events may be rejected.

use crate::config::{Config, Counted, MaxRejects};
use crate::ledger::Run;
use crate::telemetry::tally::Tally;
use crate::warehouse;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// Too many events were rejected.
#[derive(Debug)]
pub struct TooManyRejects {
    counted: Counted,
    most: MaxRejects,
    look: String,
    /// Whether what was accepted is not published.
    replaces: bool,
}

impl fmt::Display for TooManyRejects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { counted: Counted { rejected, judged }, most, look, replaces } = self;
        write!(f, "{rejected} of {judged} events were rejected, more than --max-rejects {most}: ")?;
        if *replaces {
            write!(f, "nothing was replaced. Look at them in {look}; the next run begins anew and drops that")
        } else {
            write!(f, "what was read until then is written. Look at them in {look}; the next run goes on behind it")
        }
    }
}

impl std::error::Error for TooManyRejects {}

/// Counts events against the bound of a run.
pub(super) struct Bound {
    most: MaxRejects,
    look: String,
    replaces: bool,
    counted: Mutex<Counted>,
}

impl Bound {
    /// The bound of a run; one that is gone on with has counts already.
    pub fn new(most: MaxRejects, config: &Config, run: Option<&Run>) -> Self {
        let table = config.quarantine.table_name().map(|table| warehouse::table_name(&config.warehouse, table));
        let staged = |table: &String| {
            let replaced =
                run.and_then(|run| run.staged.publication.tables.iter().find(|staged| staged.table == *table));
            replaced.map(|replaced| replaced.staging.clone())
        };
        let table = table.map(|table| format!("table {}", staged(&table).unwrap_or(table)));
        let file = run.and_then(|run| run.staged.file()).map(|file| format!("file {}", file.display()));
        let look = table.into_iter().chain(file).collect::<Vec<_>>().join(" and ");
        let counted = run.map_or(Counted { rejected: 0, judged: 0 }, |run| counted(&run.counts));
        Self { most, look, replaces: run.is_some(), counted: Mutex::new(counted) }
    }

    /// Counts what was committed.
    pub fn add(&self, tally: &Tally) -> Result<(), TooManyRejects> {
        let mut all = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let more = counted(tally);
        all.rejected += more.rejected;
        all.judged += more.judged;
        if self.most.is_broken_for_good(*all) { Err(self.broken(*all)) } else { Ok(()) }
    }

    /// Looks at all that a run came to.
    pub fn holds(&self, tally: &Tally) -> Result<(), TooManyRejects> {
        let counted = counted(tally);
        if self.most.is_broken(counted) { Err(self.broken(counted)) } else { Ok(()) }
    }

    fn broken(&self, counted: Counted) -> TooManyRejects {
        TooManyRejects { counted, most: self.most, look: self.look.clone(), replaces: self.replaces }
    }
}

fn counted(tally: &Tally) -> Counted {
    let again = tally.duplicates() + tally.redelivered;
    Counted { rejected: tally.quarantined(), judged: tally.read.saturating_sub(again) }
}

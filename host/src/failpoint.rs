//! Named points of the commit protocol, and of changing a rule store, at which a test kills the process, as `kill -9`
//! would.
//!
//! `PREFLIGHT_FAILPOINT=name` kills at the first pass, `name=3` at the third. A point costs one look per micro-batch.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The variable that arms a point.
pub const VARIABLE: &str = "PREFLIGHT_FAILPOINT";

/// Every point of the commit protocol, in its order.
pub const ALL: [&str; 10] = [
    STREAM_CREATED,
    STREAM_RECORDED,
    BATCH_JUDGED,
    LEDGER_COMMITTED,
    ROWS_APPENDED,
    ENTRY_REPLACED,
    ENTRY_DONE,
    UNDONE_SENT,
    STREAM_FINALIZED,
    STREAM_CLOSED,
];

/// The points that only a run passes which replaces tables, in their order.
pub const REPLACE: [&str; 7] =
    [RUN_BEGUN, RUN_STAGED, RUN_COMPLETE, RUN_PUBLISHING, TABLES_PUBLISHED, FILES_PUBLISHED, RUN_PUBLISHED];

/// The points that only a replay of quarantine passes.
pub const REPLAY: [&str; 3] = [ROWS_RESOLVED, REQUEST_TAKEN, REQUEST_DONE];

/// Every point of staging a component and changing the releases of a rule store, in the order they are passed.
pub const STORE: [&str; 6] =
    [FIXTURES_STAGED, COMPONENT_STAGED, STAGE_RECORDED, RELEASES_WRITTEN, RELEASES_REPLACED, CHANGE_RECORDED];

/// A stream was made in the warehouse, the ledger does not know it yet.
pub const STREAM_CREATED: &str = "stream-created";
/// The ledger knows the new stream, nothing is bound to it yet.
pub const STREAM_RECORDED: &str = "stream-recorded";
/// A micro-batch was judged, nothing of it is durable.
pub const BATCH_JUDGED: &str = "batch-judged";
/// The ledger holds the micro-batch, nothing of it was sent.
pub const LEDGER_COMMITTED: &str = "ledger-committed";
/// The warehouse has the rows, the ledger does not know.
pub const ROWS_APPENDED: &str = "rows-appended";
/// A table refused rows; the ledger has taken them out of their entry, what is kept was not sent again.
pub const ENTRY_REPLACED: &str = "entry-replaced";
/// The silver rows of a replay are there and its quarantine rows are marked, the ledger does not know.
pub const ROWS_RESOLVED: &str = "rows-resolved";
/// The ledger knows that the rows are there, nothing was acknowledged.
pub const ENTRY_DONE: &str = "entry-done";
/// A request was taken from the inbox, nothing of it is done.
pub const REQUEST_TAKEN: &str = "request-taken";
/// A request was carried out, it has no answer yet.
pub const REQUEST_DONE: &str = "request-done";
/// At a start: what an earlier run left undone was sent.
pub const UNDONE_SENT: &str = "undone-sent";
/// At a start: the earlier run's stream was finalized, the ledger does not know.
pub const STREAM_FINALIZED: &str = "stream-finalized";
/// At a start: the ledger has forgotten the earlier run's stream.
pub const STREAM_CLOSED: &str = "stream-closed";
/// The ledger knows a run that replaces tables, its staging tables are not there.
pub const RUN_BEGUN: &str = "run-begun";
/// The staging tables of a run are there, nothing was read.
pub const RUN_STAGED: &str = "run-staged";
/// All rows of a run are in its staging tables, the ledger does not know that they are to be published.
pub const RUN_COMPLETE: &str = "run-complete";
/// The ledger knows that a run is published, nothing is.
pub const RUN_PUBLISHING: &str = "run-publishing";
/// The tables have the rows of a run, the ledger does not know.
pub const TABLES_PUBLISHED: &str = "tables-published";
/// Its file of rejects is in place, too.
pub const FILES_PUBLISHED: &str = "files-published";
/// The ledger knows that a run is published, and has not forgotten it.
pub const RUN_PUBLISHED: &str = "run-published";
/// The store has the fixtures, the component is not there yet.
pub const FIXTURES_STAGED: &str = "fixtures-staged";
/// The store has the component, the history does not know.
pub const COMPONENT_STAGED: &str = "component-staged";
/// The history knows that the component was staged.
pub const STAGE_RECORDED: &str = "stage-recorded";
/// The new releases are durable under a temporary name.
pub const RELEASES_WRITTEN: &str = "releases-written";
/// The new releases are in place, the history does not know.
pub const RELEASES_REPLACED: &str = "releases-replaced";
/// The history knows the change, nobody was told.
pub const CHANGE_RECORDED: &str = "change-recorded";

struct Armed {
    name: String,
    left: AtomicU64,
}

/// Passes a point; kills the process if it is armed and due.
pub fn pass(name: &str) {
    static ARMED: OnceLock<Option<Armed>> = OnceLock::new();
    let armed = ARMED.get_or_init(|| {
        let value = std::env::var(VARIABLE).ok()?;
        let (name, count) = value.split_once('=').unwrap_or((&value, "1"));
        Some(Armed { name: name.to_owned(), left: AtomicU64::new(count.parse().ok()?) })
    });
    if let Some(armed) = armed
        && armed.name == name
        && armed.left.fetch_sub(1, Ordering::SeqCst) == 1
    {
        // Nothing is flushed and no destructor runs.
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).ok();
    }
}

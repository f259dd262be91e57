//! Named points of the commit protocol at which a test kills the process, as `kill -9` would.
//!
//! `PREFLIGHT_FAILPOINT=name` kills at the first pass, `name=3` at the third. A point costs one look per micro-batch.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The variable that arms a point.
pub const VARIABLE: &str = "PREFLIGHT_FAILPOINT";

/// Every point, in the order of the protocol.
pub const ALL: [&str; 13] = [
    STREAM_CREATED,
    STREAM_RECORDED,
    BATCH_JUDGED,
    LEDGER_COMMITTED,
    ROWS_APPENDED,
    ENTRY_REPLACED,
    ROWS_RESOLVED,
    ENTRY_DONE,
    REQUEST_TAKEN,
    REQUEST_DONE,
    UNDONE_SENT,
    STREAM_FINALIZED,
    STREAM_CLOSED,
];

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

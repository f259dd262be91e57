//! A look at a ledger without its lock: a worker may hold it, and is not held up.

use super::{LedgerError, windows};
use crate::time::Micros;
use crate::warehouse::sqlite::plain;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Duration;

/// How long is waited for who writes to it.
const BUSY: Duration = Duration::from_secs(2);

/// How far the watermark of the ledger in a directory was at its last commit. None if there is no ledger, or no watermark.
pub fn watermark(directory: &Path) -> Result<Option<Micros>, LedgerError> {
    let file = directory.join("ledger.db");
    if !file.exists() {
        return Ok(None);
    }
    let look = || {
        let connection = Connection::open_with_flags(plain(&file), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        connection.busy_timeout(BUSY)?;
        windows::watermark(&connection)
    };
    look().map_err(|error: LedgerError| error.at(directory))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{Additions, Frames, Ledger};
    use crate::window::Record;

    #[test]
    fn the_watermark_is_seen_while_another_holds_the_ledger() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(watermark(directory.path()).unwrap(), None);
        let mut ledger = Ledger::open(directory.path(), "p", "w").unwrap();
        assert_eq!(watermark(directory.path()).unwrap(), None);
        for at in [5, 7] {
            let record = Record { number: 0, bytes: Vec::new(), first_needed: 0, watermark: at, closed: Vec::new() };
            let seen = Additions { windows: Some(record), ..Additions::default() };
            ledger.commit(&[], &Frames::default(), None, &seen).unwrap();
            assert_eq!(watermark(directory.path()).unwrap(), Some(at));
        }
    }
}

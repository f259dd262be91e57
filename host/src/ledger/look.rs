//! A look at a ledger without its lock: a worker may hold it, and is not held up.

use super::{LedgerError, windows};
use crate::time::Micros;
use crate::warehouse::sqlite::plain;
use rusqlite::{Connection, OpenFlags};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// How long is waited for who writes to it.
const BUSY: Duration = Duration::from_secs(2);

/// How far event time was at the last commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// The watermark; none if there was none.
    pub watermark: Option<Micros>,
    /// Up to which time windows are closed, by aggregate.
    pub closed: BTreeMap<String, Micros>,
}

impl Seen {
    /// Windows of an aggregate that end at this time or before it take nothing any more. None if it cannot be told of any.
    pub fn closed(&self, aggregate: &str, allowed_lateness: Micros) -> Option<Micros> {
        closed(self.watermark, self.closed.get(aggregate).copied(), allowed_lateness)
    }
}

/// Windows that end at this time or before it take nothing any more: the watermark is beyond their allowed lateness, or they were
/// closed at the end of a source.
pub fn closed(watermark: Option<Micros>, closed: Option<Micros>, allowed_lateness: Micros) -> Option<Micros> {
    let is_there = |time: &Micros| *time > Micros::MIN;
    let passed = watermark.filter(is_there).map(|watermark| watermark.saturating_sub(allowed_lateness));
    passed.max(closed.filter(is_there))
}

/// How far event time is in the ledger of a directory. Nothing is known if there is no ledger.
pub fn event_time(directory: &Path) -> Result<Seen, LedgerError> {
    let file = directory.join("ledger.db");
    if !file.exists() {
        return Ok(Seen::default());
    }
    let look = || {
        let connection = Connection::open_with_flags(plain(&file), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        connection.busy_timeout(BUSY)?;
        let (watermark, closed) = (windows::watermark(&connection)?, windows::closed(&connection)?);
        Ok(Seen { watermark, closed })
    };
    look().map_err(|error: LedgerError| error.at(directory))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{Additions, Frames, Ledger};
    use crate::window::Record;

    #[test]
    fn event_time_is_seen_while_another_holds_the_ledger() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(event_time(directory.path()).unwrap(), Seen::default());
        let mut ledger = Ledger::open(directory.path(), "p", "w").unwrap();
        assert_eq!(event_time(directory.path()).unwrap(), Seen::default());
        for at in [5, 7] {
            let closed = vec![("a".into(), at - 1)];
            let record = Record { number: 0, bytes: Vec::new(), first_needed: 0, watermark: at, closed };
            let seen = Additions { windows: Some(record), ..Additions::default() };
            ledger.commit(&[], &Frames::default(), None, &seen).unwrap();
            let seen = Seen { watermark: Some(at), closed: [("a".to_owned(), at - 1)].into() };
            assert_eq!(event_time(directory.path()).unwrap(), seen);
        }
        ledger.close_windows("a", 3).unwrap();
        assert_eq!(ledger.closed("a").unwrap(), Some(6), "what is closed stays closed");
        ledger.close_windows("a", 9).unwrap();
        assert_eq!(event_time(directory.path()).unwrap().closed("a", 0), Some(9));
    }

    #[test]
    fn windows_are_closed_by_the_watermark_or_by_the_end_of_a_source() {
        assert_eq!(closed(Some(100), None, 10), Some(90));
        assert_eq!(closed(Some(100), Some(95), 10), Some(95));
        assert_eq!(closed(Some(Micros::MIN), Some(95), 10), Some(95));
        assert_eq!(closed(Some(Micros::MIN), Some(Micros::MIN), 10), None);
    }
}

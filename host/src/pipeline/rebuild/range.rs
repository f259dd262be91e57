//! Which ranges can be rebuilt: those whose windows take no events any more.

use super::{RebuildError, Wanted};
use crate::config::units::shown;
use crate::time::{Micros, format_micros};
use crate::window::Span;
use std::time::Duration;

/// What windows of an aggregate may still take events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taking {
    /// Those that end behind this time, unless [`open`](Self::open) says more. None if none is known to be closed.
    pub closed: Option<Micros>,
    /// How many are open, where no others open now: the source has an end, and nobody reads it. None where others may.
    pub open: Option<usize>,
}

impl Taking {
    /// Whether windows of a range are to be closed, since nothing else keeps a later run from opening them.
    pub fn leaves_open(self, range: Span) -> bool {
        self.closed.is_none_or(|closed| range.end > closed)
    }
}

/// The range; refused if it is empty.
pub fn of(wanted: &Wanted) -> Result<Span, RebuildError> {
    let range = Span::from(wanted);
    if range.start < range.end {
        return Ok(range);
    }
    let (from, to) = (format_micros(range.start), format_micros(range.end));
    Err(RebuildError::Refused(format!(
        "the range {from}..{to} is empty: its end, which is not in it, comes behind its beginning"
    )))
}

/// Refuses a range that has, or may have, windows which still take events: who measures them would write them too.
pub fn refuse_open(aggregate: &str, range: Span, lateness: Micros, taking: Taking) -> Result<(), RebuildError> {
    if !taking.leaves_open(range) || taking.open == Some(0) {
        return Ok(());
    }
    let mut why = match taking.open {
        Some(open) => format!("{open} windows of {aggregate} are open, and the range may have some of them"),
        None => format!("windows of {aggregate} that end by {} may still take events", format_micros(range.end)),
    };
    match taking.closed {
        Some(closed) => {
            let (closed, lateness) = (format_micros(closed), shown(Duration::from_micros(lateness.unsigned_abs())));
            why.push_str(&format!(
                ". The latest end that a range can have now is {closed}: behind that windows are closed once the watermark is \
                 {lateness} (allowed_lateness) beyond their end"
            ));
        }
        None => why.push_str(": none is closed yet"),
    }
    if taking.open.is_some() {
        why.push_str(". Or run the pipeline to the end of its source first: that closes what is over");
    }
    Err(RebuildError::Refused(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Micros = 60_000_000;

    fn refused(end: Micros, closed: Option<Micros>, open: Option<usize>) -> Option<String> {
        let range = Span { start: 0, end };
        refuse_open("a", range, 4 * MINUTE, Taking { closed, open }).err().map(|error| error.to_string())
    }

    #[test]
    fn a_range_ends_where_the_windows_are_closed_for_good() {
        assert_eq!(refused(6 * MINUTE, Some(6 * MINUTE), None), None);
        let why = refused(6 * MINUTE + 1, Some(6 * MINUTE), None).unwrap();
        assert!(why.contains("is 1970-01-01T00:06:00") && why.contains("4 m (allowed_lateness)"), "{why}");
        assert!(!why.contains("end of its source"), "{why}");
        assert!(refused(1, None, None).unwrap().contains("none is closed yet"));
    }

    #[test]
    fn of_a_source_with_an_end_that_nobody_reads_any_range_can_be_had_once_nothing_is_open() {
        assert_eq!(refused(i64::MAX, Some(0), Some(0)), None);
        assert_eq!(refused(i64::MAX, None, Some(0)), None);
        let why = refused(MINUTE, Some(0), Some(3)).unwrap();
        assert!(why.starts_with("3 windows of a are open") && why.contains("end of its source first"), "{why}");
        assert_eq!(refused(MINUTE, Some(MINUTE), Some(3)), None, "they are behind it");
    }

    #[test]
    fn an_empty_range_is_refused() {
        let wanted = |from, to| Wanted { aggregate: "a".into(), from, to, dry_run: false };
        assert!(of(&wanted(0, 1)).is_ok());
        for (from, to) in [(0, 0), (1, 0)] {
            assert!(of(&wanted(from, to)).unwrap_err().to_string().contains("is empty"));
        }
    }
}

//! Which ranges can be rebuilt: those whose windows take no events any more.

use super::{RebuildError, Wanted};
use crate::config::units::shown;
use crate::time::{Micros, format_micros};
use crate::window::Span;
use std::time::Duration;

/// How far the windows of an aggregate may still take events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taking {
    /// How far the watermark is. None, or the least, if there was none yet.
    pub watermark: Option<Micros>,
    /// How many windows of it are open, where no others open: its source has an end, and nobody reads it. None where others may.
    pub open: Option<usize>,
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
    let watermark = taking.watermark.filter(|watermark| *watermark > Micros::MIN);
    let closed_to = watermark.map(|watermark| watermark.saturating_sub(lateness));
    if closed_to.is_some_and(|closed| range.end <= closed) || taking.open == Some(0) {
        return Ok(());
    }
    let end = format_micros(range.end);
    let mut why = match taking.open {
        Some(open) => format!("{open} windows of {aggregate} are open, and the range may have some of them"),
        None => format!("windows of {aggregate} that end by {end} may still take events"),
    };
    match (closed_to, watermark) {
        (Some(closed), Some(watermark)) => {
            let lateness = shown(Duration::from_micros(lateness.unsigned_abs()));
            let (closed, watermark) = (format_micros(closed), format_micros(watermark));
            why.push_str(&format!(
                ". The latest end that a range can have now is {closed}: the watermark is at {watermark}, and windows are closed \
                 {lateness} (allowed_lateness) behind their end"
            ));
        }
        _ => why.push_str(": there is no watermark yet, so none is closed"),
    }
    if taking.open.is_some() {
        why.push_str(". Or run the pipeline to the end of its source first: that closes them");
    }
    Err(RebuildError::Refused(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Micros = 60_000_000;

    fn refused(end: Micros, watermark: Option<Micros>, open: Option<usize>) -> Option<String> {
        let range = Span { start: 0, end };
        refuse_open("a", range, 4 * MINUTE, Taking { watermark, open }).err().map(|error| error.to_string())
    }

    #[test]
    fn a_range_ends_where_the_windows_are_closed_for_good() {
        assert_eq!(refused(6 * MINUTE, Some(10 * MINUTE), None), None);
        let why = refused(6 * MINUTE + 1, Some(10 * MINUTE), None).unwrap();
        assert!(why.contains("is 1970-01-01T00:06:00") && why.contains("at 1970-01-01T00:10:00"), "{why}");
        assert!(why.contains("4 m (allowed_lateness)") && !why.contains("end of its source"), "{why}");
    }

    #[test]
    fn without_a_watermark_no_window_is_closed() {
        for watermark in [None, Some(Micros::MIN)] {
            let why = refused(1, watermark, None).unwrap();
            assert!(why.contains("no watermark yet"), "{why}");
        }
    }

    #[test]
    fn of_a_source_with_an_end_that_nobody_reads_any_range_can_be_had_once_nothing_is_open() {
        assert_eq!(refused(i64::MAX, Some(0), Some(0)), None);
        assert_eq!(refused(i64::MAX, None, Some(0)), None);
        let why = refused(MINUTE, Some(0), Some(3)).unwrap();
        assert!(why.starts_with("3 windows of a are open") && why.contains("end of its source first"), "{why}");
        assert_eq!(refused(MINUTE, Some(5 * MINUTE), Some(3)), None, "they are behind it");
    }

    #[test]
    fn at_the_end_of_the_source_everything_is_closed() {
        assert_eq!(refused(i64::MAX - 4 * MINUTE, Some(Micros::MAX), None), None);
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

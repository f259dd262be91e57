//! Windows as spans of event time.

use super::spec::Windowing;
use crate::time::{MAX_MICROS, MIN_MICROS, Micros};
use serde::{Deserialize, Serialize};

/// A span of event time: `start` is in it, `end` is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Span {
    /// Its first microsecond.
    pub start: Micros,
    /// The first microsecond behind it.
    pub end: Micros,
}

impl Span {
    /// Whether both have a microsecond in common.
    pub const fn overlaps(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// The least span that has both.
    #[must_use]
    pub fn joined(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Whether all of another is in it.
    pub const fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

impl Windowing {
    /// The windows that an event time is in, in order; for sessions the span that an event by itself has. What would begin
    /// or end outside of the years 1 to 9999 is cut there, since no table could hold it; what happened in the last microsecond
    /// of these is in the windows of the one before, since no window that has it could end behind it.
    pub fn windows(self, event_time: Micros) -> impl Iterator<Item = Span> {
        let event_time = event_time.min(MAX_MICROS - 1);
        let (size, every, offset) = match self {
            Self::Fixed { size, offset } => (size, size, offset),
            Self::Sliding { size, every, offset } => (size, every, offset),
            Self::Session { gap } => (gap, 1, 0),
        };
        let last = event_time - (event_time - offset).rem_euclid(every);
        let count = match self {
            Self::Session { .. } => 1,
            // Those that begin at `last` or before and end behind the event time.
            _ => (size - (event_time - last) + every - 1).div_euclid(every).max(0),
        };
        (0..count).rev().map(move |back| {
            let start = last - back * every;
            Span { start: start.max(MIN_MICROS), end: start.saturating_add(size).min(MAX_MICROS) }
        })
    }

    /// How many windows an event is in at most.
    pub fn overlap(self) -> u64 {
        match self {
            Self::Fixed { .. } | Self::Session { .. } => 1,
            Self::Sliding { size, every, .. } => u64::try_from((size + every - 1) / every).unwrap_or(u64::MAX),
        }
    }

    /// Whether windows merge.
    pub const fn merges(self) -> bool {
        matches!(self, Self::Session { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(windowing: Windowing, event_time: Micros) -> Vec<(Micros, Micros)> {
        windowing.windows(event_time).map(|span| (span.start, span.end)).collect()
    }

    #[test]
    fn a_fixed_window_has_its_start_and_not_its_end() {
        let fixed = Windowing::Fixed { size: 60, offset: 0 };
        assert_eq!(windows(fixed, 0), [(0, 60)]);
        assert_eq!(windows(fixed, 59), [(0, 60)]);
        assert_eq!(windows(fixed, 60), [(60, 120)]);
        assert_eq!(windows(fixed, -1), [(-60, 0)]);
        let shifted = Windowing::Fixed { size: 60, offset: 45 };
        assert_eq!(windows(shifted, 44), [(-15, 45)]);
        assert_eq!(windows(shifted, 45), [(45, 105)]);
    }

    #[test]
    fn sliding_windows_are_all_that_have_the_event_time() {
        let sliding = Windowing::Sliding { size: 60, every: 20, offset: 0 };
        assert_eq!(windows(sliding, 65), [(20, 80), (40, 100), (60, 120)]);
        assert_eq!(windows(sliding, -1), [(-60, 0), (-40, 20), (-20, 40)]);
        assert_eq!(sliding.overlap(), 3);
        let uneven = Windowing::Sliding { size: 50, every: 20, offset: 5 };
        assert_eq!(windows(uneven, 45), [(5, 55), (25, 75), (45, 95)]);
        assert_eq!(windows(uneven, 60), [(25, 75), (45, 95)]);
        // Some event times are in no window.
        let sparse = Windowing::Sliding { size: 10, every: 60, offset: 0 };
        assert_eq!(windows(sparse, 9), [(0, 10)]);
        assert_eq!(windows(sparse, 10), []);
    }

    #[test]
    fn a_session_begins_with_its_event_and_ends_a_gap_later() {
        assert_eq!(windows(Windowing::Session { gap: 10 }, 7), [(7, 17)]);
        let (a, b) = (Span { start: 7, end: 17 }, Span { start: 17, end: 27 });
        assert!(!a.overlaps(b), "exactly a gap apart are two");
        assert!(a.overlaps(Span { start: 16, end: 26 }));
    }

    #[test]
    fn windows_at_the_ends_of_time_can_be_written() {
        let fixed = Windowing::Fixed { size: 1 << 50, offset: 0 };
        let first = fixed.windows(MIN_MICROS).next().unwrap();
        let last = fixed.windows(MAX_MICROS).last().unwrap();
        assert_eq!((first.start, last.end), (MIN_MICROS, MAX_MICROS));
    }

    /// The window of the last microsecond was one without any, which merged with none.
    #[test]
    fn the_last_microsecond_is_in_no_empty_window() {
        let last = (MAX_MICROS - 1, MAX_MICROS);
        assert_eq!(windows(Windowing::Session { gap: 10 }, MAX_MICROS), [last]);
        assert_eq!(windows(Windowing::Fixed { size: 1, offset: 0 }, MAX_MICROS), [last]);
        assert_eq!(windows(Windowing::Session { gap: 10 }, MIN_MICROS), [(MIN_MICROS, MIN_MICROS + 10)]);
    }
}

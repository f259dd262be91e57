//! How messages come and go, as far as the watermark wants to know: how old they are when they come, whether there is room for
//! more, and for how long nothing has moved.
//!
//! The lag is that of the last messages. Its seconds pass while there is room for messages: what is older than those that came
//! last may wait behind a worker that can take no more.

use super::holding::Share;
use crate::time::Micros;
use std::time::Duration;

/// Seconds of messages whose lag is remembered.
const SECONDS: usize = 10;
/// Of each time without room so much passes at most.
const CROWDED: Duration = Duration::from_secs(1);

/// How messages come and go. `at` is running time; of two streams that tell it at once the later may be first.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    /// The newest publish time that came.
    pub newest: Option<Micros>,
    /// When something came or was let go last.
    moved: Duration,
    /// Since when there is no room.
    crowded: Option<Duration>,
    /// Time without room that did not pass.
    skipped: Duration,
    /// When there was no room last, in time with room.
    last_crowded: Option<Duration>,
    /// Greatest lags by the second, in time with room, that messages came in.
    lags: [Option<(u64, Micros)>; SECONDS],
}

impl Traffic {
    /// Nothing came yet.
    pub fn new(at: Duration) -> Self {
        Self { moved: at, ..Self::default() }
    }

    /// A message came. Its lag is none where it is too old to say anything.
    pub fn came(&mut self, published: Micros, lag: Option<Micros>, at: Duration) {
        self.newest = self.newest.max(Some(published));
        self.moved = self.moved.max(at);
        let Some(lag) = lag else { return };
        let second = self.with_room(at).as_secs();
        let slot = &mut self.lags[usize::try_from(second % SECONDS as u64).expect("it is small")];
        match slot {
            Some((of, greatest)) if *of == second => *greatest = lag.max(*greatest),
            _ => *slot = Some((second, lag)),
        }
    }

    /// So much is held from now on.
    pub fn holds(&mut self, held: Share, most: Share, at: Duration) {
        self.moved = self.moved.max(at);
        let crowded = held.reaches(most);
        match self.crowded {
            None if crowded => self.crowded = Some(at),
            Some(since) if !crowded => {
                self.skipped += at.saturating_sub(since).saturating_sub(CROWDED);
                self.crowded = None;
                self.last_crowded = Some(self.with_room(at));
            }
            _ => {}
        }
    }

    /// For how long nothing has come nor was let go.
    pub fn quiet(&self, at: Duration) -> Duration {
        at.saturating_sub(self.moved)
    }

    /// Whether there was no room of late.
    pub fn was_crowded(&self, at: Duration) -> bool {
        let is_late = |then: Duration| self.with_room(at).saturating_sub(then).as_secs() < SECONDS as u64;
        self.crowded.is_some() || self.last_crowded.is_some_and(is_late)
    }

    /// The greatest lag of those that came of late.
    pub fn lag(&self, at: Duration) -> Option<Micros> {
        let now = self.with_room(at).as_secs();
        let late = self.lags.iter().flatten().filter(|(second, _)| now.saturating_sub(*second) < SECONDS as u64);
        late.map(|(_, lag)| *lag).max()
    }

    fn with_room(&self, at: Duration) -> Duration {
        let crowded = self.crowded.map_or(Duration::ZERO, |since| at.saturating_sub(since).saturating_sub(CROWDED));
        at.saturating_sub(self.skipped + crowded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Share = Share { messages: 10, bytes: 100 };
    const FULL: Share = Share { messages: 10, bytes: 10 };
    const FREE: Share = Share { messages: 9, bytes: 9 };

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_lag_is_the_greatest_of_the_last_ten_seconds() {
        let mut traffic = Traffic::new(at(0));
        assert_eq!(traffic.lag(at(0)), None);
        for (published, lag, millis) in [(10, 5, 100), (40, 7, 200), (20, 2, 5_000), (30, 3, 9_999)] {
            traffic.came(published, Some(lag), at(millis));
        }
        assert_eq!((traffic.newest, traffic.lag(at(9_999))), (Some(40), Some(7)));
        assert_eq!(traffic.lag(at(10_000)), Some(3));
        assert_eq!(traffic.lag(at(18_999)), Some(3));
        assert_eq!(traffic.lag(at(19_000)), None);
        traffic.came(30, Some(1), at(25_000));
        assert_eq!(traffic.lag(at(25_000)), Some(1), "the second ten before it is forgotten");
    }

    #[test]
    fn a_message_that_is_too_old_has_no_lag_but_it_moves() {
        let mut traffic = Traffic::new(at(0));
        traffic.came(10, None, at(500));
        assert_eq!((traffic.newest, traffic.lag(at(500)), traffic.quiet(at(700))), (Some(10), None, at(200)));
    }

    /// A warehouse that is away for a minute made the lag of a backlog be forgotten, and the watermark went on before the rest
    /// of the backlog came.
    #[test]
    fn while_there_is_no_room_the_lag_is_not_forgotten() {
        let mut traffic = Traffic::new(at(0));
        traffic.came(10, Some(5), at(0));
        traffic.holds(FULL, MOST, at(0));
        assert!(traffic.was_crowded(at(60_000)));
        assert_eq!(traffic.lag(at(60_000)), Some(5));
        traffic.holds(FREE, MOST, at(60_000));
        assert_eq!(traffic.lag(at(68_999)), Some(5));
        assert_eq!(traffic.lag(at(69_000)), None);
        assert!(traffic.was_crowded(at(69_999)) && !traffic.was_crowded(at(70_000)));
    }

    /// A worker that is busy and keeps up is always about to be full: its lag of an hour ago is over.
    #[test]
    fn a_short_time_without_room_passes() {
        let mut traffic = Traffic::new(at(0));
        traffic.came(10, Some(5), at(0));
        for half in 1..20 {
            traffic.holds(if half % 2 == 0 { FREE } else { FULL }, MOST, at(500 * half));
            traffic.came(10, Some(1), at(500 * half));
        }
        traffic.holds(FREE, MOST, at(10_000));
        assert_eq!(traffic.lag(at(10_000)), Some(1));
    }

    #[test]
    fn it_is_quiet_since_something_came_or_went() {
        let mut traffic = Traffic::new(at(100));
        assert_eq!(traffic.quiet(at(150)), at(50));
        traffic.came(10, Some(5), at(200));
        assert_eq!(traffic.quiet(at(250)), at(50));
        traffic.holds(FREE, MOST, at(300));
        assert_eq!(traffic.quiet(at(350)), at(50));
    }
}

//! How far event time is: the watermark W = F − D. F is the frontier of publish times, up to which messages have come; D is the
//! declared out-of-orderness, by which the event time of an event may be behind its publish time.
//!
//! The frontier is the oldest publish time that is held; where nothing is held the newest that was seen; and where nothing has
//! come for long, the present. The watermark never goes back. It is held where the frontier is not to be trusted: older
//! messages may still be to come. Messages whose publish time the frontier has passed already say nothing about it: late and
//! replayed events never hold the watermark.

use crate::time::Micros;
use serde::Serialize;
use std::fmt;

/// Estimates the watermark. [`Micros::MIN`] is a watermark that there is not yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimator {
    /// How far the event time of an event may be behind its publish time.
    pub out_of_orderness: Micros,
    /// A message that is older than this when it comes holds the watermark.
    pub backlog: Micros,
    /// Without messages for so long, the frontier is the present.
    pub idle: Micros,
    /// Until this processing time the watermark is held: what a process that died has had comes again only then.
    pub held_until: Option<Micros>,
}

/// What is seen of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// The present.
    pub processing_time: Micros,
    /// The oldest publish time of those that are held and not behind the [floor](Estimator::floor).
    pub oldest_held: Option<Micros>,
    /// The newest publish time there was.
    pub newest: Option<Micros>,
    /// For how long nothing has come, nothing was held and nothing kept anything from coming.
    pub quiet: Micros,
    /// The greatest time between publish time and arrival of those that came of late and are not behind the floor.
    pub lag: Option<Micros>,
    /// Whether as much was held of late as may be held.
    pub full: bool,
}

/// How far event time is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// The watermark; [`Micros::MIN`] if there is none yet.
    pub watermark: Micros,
    /// The frontier, if it is known.
    pub frontier: Option<Micros>,
    /// Why the watermark stays where it was, although the frontier may have moved.
    pub hold: Option<Hold>,
}

/// Why the watermark is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    /// What a process before this one had may not have come again yet.
    Start,
    /// Messages come that were published long ago.
    Backlog,
    /// As much is held as may be, and what comes is not fresh.
    FlowControl,
}

impl Hold {
    /// Every reason.
    pub const ALL: [Self; 3] = [Self::Start, Self::Backlog, Self::FlowControl];

    /// Its name, as a label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Backlog => "backlog",
            Self::FlowControl => "flow_control",
        }
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Estimate {
    /// A watermark that nothing is known of but where it is.
    pub const fn at(watermark: Micros) -> Self {
        Self { watermark, frontier: None, hold: None }
    }
}

impl Estimator {
    /// Messages that were published before this time say nothing of a watermark that is at `current`.
    pub const fn floor(&self, current: Micros) -> Micros {
        if current == Micros::MIN { Micros::MIN } else { current.saturating_add(self.out_of_orderness) }
    }

    /// The watermark, which is at `current` now. It never goes back.
    pub fn estimate(&self, current: Micros, seen: &Seen) -> Estimate {
        let frontier = self.frontier(current, seen);
        let hold = self.hold(seen);
        let moved = frontier.filter(|_| hold.is_none()).map_or(current, |frontier| self.behind(frontier));
        Estimate { watermark: moved.max(current), frontier, hold }
    }

    /// Where the watermark is if all up to this publish time has come.
    pub const fn behind(&self, frontier: Micros) -> Micros {
        frontier.saturating_sub(self.out_of_orderness)
    }

    /// A publish time of the future never moves it.
    fn frontier(&self, current: Micros, seen: &Seen) -> Option<Micros> {
        let floor = self.floor(current);
        let frontier = match seen.oldest_held.filter(|oldest| *oldest >= floor) {
            Some(oldest) => Some(oldest),
            None if seen.quiet >= self.idle => Some(seen.processing_time),
            None => seen.newest,
        };
        frontier.map(|frontier| frontier.min(seen.processing_time))
    }

    fn hold(&self, seen: &Seen) -> Option<Hold> {
        let is_above = |bound: Micros| seen.lag.is_some_and(|lag| lag > bound);
        if self.held_until.is_some_and(|until| seen.processing_time < until) {
            Some(Hold::Start)
        } else if is_above(self.backlog) {
            Some(Hold::Backlog)
        } else if seen.full && is_above(self.out_of_orderness) {
            Some(Hold::FlowControl)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Micros = 1_000_000;
    const ESTIMATOR: Estimator = Estimator { out_of_orderness: 100, backlog: 300, idle: 1_200, held_until: None };
    /// Nothing was ever seen.
    const NOTHING: Seen =
        Seen { processing_time: NOW, oldest_held: None, newest: None, quiet: 0, lag: None, full: false };

    fn watermark(current: Micros, seen: Seen) -> Micros {
        ESTIMATOR.estimate(current, &seen).watermark
    }

    #[test]
    fn there_is_none_until_something_is_seen_or_nothing_comes_for_long() {
        assert_eq!(ESTIMATOR.estimate(Micros::MIN, &NOTHING), Estimate::at(Micros::MIN));
        let seen = Seen { quiet: 1_199, ..NOTHING };
        assert_eq!(watermark(Micros::MIN, seen), Micros::MIN);
        let seen = Seen { quiet: 1_200, ..NOTHING };
        let idle = Estimate { watermark: NOW - 100, frontier: Some(NOW), hold: None };
        assert_eq!(ESTIMATOR.estimate(Micros::MIN, &seen), idle);
    }

    #[test]
    fn it_stays_behind_the_oldest_that_is_held() {
        let seen = Seen { oldest_held: Some(5_000), newest: Some(9_000), ..NOTHING };
        let estimate = Estimate { watermark: 4_900, frontier: Some(5_000), hold: None };
        assert_eq!(ESTIMATOR.estimate(Micros::MIN, &seen), estimate);
        let seen = Seen { quiet: 1_200, ..seen };
        assert_eq!(watermark(0, seen), 4_900, "who holds something is not idle");
    }

    #[test]
    fn while_nothing_is_held_it_stays_behind_the_newest_that_was_seen_until_nothing_has_come_for_long() {
        let seen = Seen { newest: Some(9_000), ..NOTHING };
        assert_eq!(watermark(0, seen), 8_900);
        assert_eq!(watermark(0, Seen { quiet: 1_200, ..seen }), NOW - 100);
    }

    #[test]
    fn it_never_goes_back() {
        let seen = Seen { oldest_held: Some(5_000), newest: Some(9_000), ..NOTHING };
        assert_eq!(watermark(4_900, seen), 4_900);
        assert_eq!(watermark(7_000, Seen { oldest_held: None, newest: Some(7_050), ..seen }), 7_000);
        assert_eq!(watermark(NOW + 5, Seen { quiet: 1_200, ..NOTHING }), NOW + 5, "the clock was set back");
    }

    #[test]
    fn what_was_published_in_the_future_never_moves_it_beyond_the_present() {
        for seen in [
            Seen { oldest_held: Some(NOW + 500), newest: Some(NOW + 500), ..NOTHING },
            Seen { newest: Some(Micros::MAX), ..NOTHING },
        ] {
            assert_eq!(watermark(0, seen), NOW - 100);
        }
    }

    /// A replayed message of last week would otherwise keep every window open until it is written.
    #[test]
    fn what_the_frontier_has_passed_already_does_not_hold_it() {
        assert_eq!((ESTIMATOR.floor(6_000), ESTIMATOR.floor(Micros::MIN)), (6_100, Micros::MIN));
        let seen = Seen { oldest_held: Some(6_099), newest: Some(9_000), ..NOTHING };
        assert_eq!(watermark(6_000, seen), 8_900);
        assert_eq!(watermark(6_000, Seen { oldest_held: Some(6_100), ..seen }), 6_000);
    }

    #[test]
    fn it_is_held_while_old_messages_come() {
        let seen = Seen { newest: Some(9_000), lag: Some(300), ..NOTHING };
        assert_eq!(watermark(0, seen), 8_900);
        let held = Estimate { watermark: 0, frontier: Some(9_000), hold: Some(Hold::Backlog) };
        assert_eq!(ESTIMATOR.estimate(0, &Seen { lag: Some(301), ..seen }), held);
    }

    #[test]
    fn it_is_held_while_as_much_is_held_as_may_be_but_for_a_worker_that_is_only_busy() {
        let seen = Seen { newest: Some(9_000), lag: Some(101), full: true, ..NOTHING };
        let held = Estimate { watermark: 0, frontier: Some(9_000), hold: Some(Hold::FlowControl) };
        assert_eq!(ESTIMATOR.estimate(0, &seen), held);
        assert_eq!(watermark(0, Seen { lag: Some(100), ..seen }), 8_900);
        assert_eq!(watermark(0, Seen { lag: None, ..seen }), 8_900);
        assert_eq!(watermark(0, Seen { full: false, ..seen }), 8_900);
    }

    #[test]
    fn after_a_restart_it_is_held_until_what_the_last_process_had_has_come_again() {
        let estimator = Estimator { held_until: Some(NOW + 1), ..ESTIMATOR };
        let seen = Seen { newest: Some(9_000), quiet: 1_200, lag: Some(500), ..NOTHING };
        let held = Estimate { watermark: 7, frontier: Some(NOW), hold: Some(Hold::Start) };
        assert_eq!(estimator.estimate(7, &seen), held);
        let seen = Seen { processing_time: NOW + 1, lag: None, ..seen };
        assert_eq!(estimator.estimate(7, &seen).watermark, NOW - 99);
    }

    #[test]
    fn the_ends_of_time_are_no_trouble() {
        let estimator = Estimator { out_of_orderness: Micros::MAX, ..ESTIMATOR };
        let seen = Seen { oldest_held: Some(Micros::MIN), newest: Some(Micros::MAX), ..NOTHING };
        assert_eq!(estimator.estimate(Micros::MAX, &seen).watermark, Micros::MAX);
        assert_eq!(ESTIMATOR.estimate(Micros::MIN, &seen).watermark, Micros::MIN);
        assert_eq!(ESTIMATOR.floor(Micros::MAX), Micros::MAX);
    }

    /// Whatever comes in whatever order: it goes forward, stays where it is held, and never passes what is held and counts.
    #[test]
    fn it_goes_forward_and_passes_nothing_that_counts() {
        let mut random = fastrand::Rng::with_seed(6);
        for _ in 0..200 {
            let (mut current, mut now, mut newest) = (Micros::MIN, NOW, None);
            let held_until = random.bool().then(|| NOW + random.i64(0..2_000));
            let estimator = Estimator { held_until, ..ESTIMATOR };
            for _ in 0..100 {
                now += random.i64(-50..200);
                let oldest_held = random.bool().then(|| now + random.i64(-2_000..100));
                newest = newest.max(oldest_held).max(random.bool().then(|| now + random.i64(-1_000..100)));
                let seen = Seen {
                    processing_time: now,
                    oldest_held: oldest_held.filter(|oldest| *oldest >= estimator.floor(current)),
                    newest,
                    quiet: if oldest_held.is_some() { 0 } else { random.i64(0..2_000) },
                    lag: random.bool().then(|| random.i64(0..600)),
                    full: random.bool(),
                };
                let Estimate { watermark, frontier, hold } = estimator.estimate(current, &seen);
                assert!(watermark >= current, "{seen:?}");
                assert!(watermark == current || (hold.is_none() && watermark <= now - 100), "{seen:?}");
                assert!(
                    watermark == current || frontier.is_some_and(|frontier| watermark == frontier - 100),
                    "{seen:?}"
                );
                assert!(seen.oldest_held.is_none_or(|oldest| watermark <= oldest - 100), "{seen:?}");
                current = watermark;
            }
            assert!(current > Micros::MIN);
        }
    }
}

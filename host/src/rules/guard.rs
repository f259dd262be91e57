//! When a promotion or a canary is taken back: decided from what two components made of the same events.
//!
//! Not two rates are compared but pairs: events that both judged. What both reject says nothing; what counts is the
//! events on which they part, so a bad hour of the producer trips nothing.

use super::compare::Difference;
use std::fmt::Write as _;
use std::time::Duration;

/// When a guard trips, and when it ends.
#[derive(Debug, Clone, PartialEq)]
pub struct GuardLimits {
    /// Pairs before rejections count.
    pub min_pairs: u64,
    /// Share of the pairs, percent, that may be lost (accepted before, rejected now, less those gained) before it trips.
    pub margin_percent: f64,
    /// Events on which the new component faults and the old one does not, before it trips.
    pub faults: u64,
    /// Running time after which it has passed.
    pub time: Duration,
}

impl Default for GuardLimits {
    fn default() -> Self {
        Self { min_pairs: 100, margin_percent: 1.0, faults: 3, time: Duration::from_mins(10) }
    }
}

/// How many standard deviations of a coin toss the lost must exceed the gained: three are passed by chance once in 700
/// times, however few the pairs.
const DEVIATIONS: f64 = 3.0;

/// What the pairs of a guard came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pairs {
    /// Events that both judged.
    pub all: u64,
    /// Accepted by the old, rejected or ignored by the new.
    pub lost: u64,
    /// Rejected or ignored by the old, accepted by the new.
    pub gained: u64,
    /// The new faults, the old does not.
    pub faults: u64,
}

impl Pairs {
    /// Counts a pair.
    pub fn add(&mut self, differences: &[Difference]) {
        self.all += 1;
        self.lost += u64::from(differences.iter().any(Difference::loses));
        self.gained += u64::from(differences.iter().any(Difference::gains));
        self.faults += u64::from(differences.iter().any(Difference::faults));
    }
}

/// How a guard stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stand {
    /// Neither passed nor tripped.
    Watching,
    /// The time is over.
    Passed,
    /// The new component goes out of service, for this reason.
    Tripped(String),
}

/// How a guard stands with these pairs after this running time.
pub fn stand(limits: &GuardLimits, expect_rejects: bool, pairs: &Pairs, running: Duration) -> Stand {
    if pairs.faults >= limits.faults {
        let mut why = format!("{} of {} events fault that did not before", pairs.faults, pairs.all);
        if pairs.lost > 0 {
            write!(why, "; {} are no longer accepted", pairs.lost).expect("a string takes any text");
        }
        return Stand::Tripped(why);
    }
    let net = pairs.lost.saturating_sub(pairs.gained) as f64;
    let margin = limits.margin_percent / 100.0 * pairs.all as f64;
    let chance = DEVIATIONS * ((pairs.lost + pairs.gained) as f64).sqrt();
    if !expect_rejects && pairs.all >= limits.min_pairs && net > margin && net > chance {
        return Stand::Tripped(format!(
            "of {} events {} are no longer accepted, {} are that were not: more than {} % lost",
            pairs.all, pairs.lost, pairs.gained, limits.margin_percent
        ));
    }
    if running >= limits.time { Stand::Passed } else { Stand::Watching }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stand_of(all: u64, lost: u64, gained: u64) -> Stand {
        stand(&GuardLimits::default(), false, &Pairs { all, lost, gained, faults: 0 }, Duration::ZERO)
    }

    fn trips(all: u64, lost: u64, gained: u64) -> bool {
        matches!(stand_of(all, lost, gained), Stand::Tripped(_))
    }

    #[test]
    fn it_trips_on_net_losses_above_the_margin() {
        assert!(trips(1_000, 20, 0));
        assert!(!trips(1_000, 10, 0), "exactly the margin");
        assert!(!trips(1_000, 500, 495), "as many gained as lost");
        assert!(!trips(1_000, 0, 900), "gains are no harm");
        assert!(trips(1_000_000, 10_500, 100));
    }

    #[test]
    fn few_pairs_and_chance_trip_nothing() {
        assert!(!trips(99, 99, 0), "below the minimum of pairs");
        assert!(trips(100, 100, 0));
        // Nine of nine are three deviations of a fair coin, and not more than that.
        assert!(!trips(100, 9, 0));
        assert!(trips(100, 10, 0));
        assert!(!trips(100, 20, 5));
    }

    /// Two rules that are equally good but part on one event in ten, by chance either way: over many guards of a quiet
    /// pipeline almost none trips, at every look.
    #[test]
    fn noise_on_low_traffic_trips_nothing() {
        let mut random = fastrand::Rng::with_seed(4);
        let mut tripped = 0;
        for _ in 0..500 {
            let mut pairs = Pairs::default();
            for _ in 0..400 {
                let parts = if random.u8(0..10) == 0 { u64::from(random.bool()) + 1 } else { 0 };
                pairs.all += 1;
                pairs.lost += u64::from(parts == 1);
                pairs.gained += u64::from(parts == 2);
                if matches!(stand(&GuardLimits::default(), false, &pairs, Duration::ZERO), Stand::Tripped(_)) {
                    tripped += 1;
                    break;
                }
            }
        }
        assert!(tripped <= 10, "{tripped} of 500");
    }

    #[test]
    fn expected_rejects_disarm_that_part_and_not_faults() {
        let limits = GuardLimits::default();
        let lost = Pairs { all: 1_000, lost: 900, gained: 0, faults: 2 };
        assert_eq!(stand(&limits, true, &lost, Duration::ZERO), Stand::Watching);
        let faults = Pairs { faults: 3, ..lost };
        let Stand::Tripped(why) = stand(&limits, true, &faults, Duration::ZERO) else { panic!("it tripped") };
        assert_eq!(why, "3 of 1000 events fault that did not before; 900 are no longer accepted");
    }

    #[test]
    fn it_passes_when_its_time_is_over() {
        let limits = GuardLimits::default();
        assert_eq!(stand(&limits, false, &Pairs::default(), limits.time), Stand::Passed);
        assert_eq!(stand_of(1_000_000, 0, 0), Stand::Watching);
    }

    #[test]
    fn pairs_count_each_event_once() {
        let mut pairs = Pairs::default();
        pairs.add(&[]);
        pairs.add(&[Difference::Column("a".into()), Difference::Column("b".into())]);
        pairs.add(&[Difference::AcceptToReject("S".into())]);
        pairs.add(&[Difference::RejectToAccept("S".into())]);
        pairs.add(&[Difference::NewFault("fuel")]);
        assert_eq!(pairs, Pairs { all: 5, lost: 1, gained: 1, faults: 1 });
        pairs.add(&[Difference::Ignore("accept", "ignore")]);
        pairs.add(&[Difference::Ignore("ignore", "accept")]);
        pairs.add(&[Difference::Ignore("ignore", "reject")]);
        assert_eq!(pairs, Pairs { all: 8, lost: 2, gained: 2, faults: 1 });
    }
}

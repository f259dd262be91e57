//! How long to wait between tries: twice as long each time up to a limit, with jitter.

use std::time::Duration;

/// The waits between tries of one thing.
#[derive(Debug, Clone)]
pub struct Pace {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Pace {
    /// Waits of `first` in the beginning and of `longest` in the end.
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, next: first }
    }

    /// How long to wait now: between half of what it is about and all of it, so that many who fail together do not try
    /// again together.
    pub fn wait(&mut self) -> Duration {
        let wait = jitter(self.next, fastrand::f64());
        self.next = (self.next * 2).min(self.longest);
        wait
    }

    /// It worked: the next failure is a first one.
    pub const fn worked(&mut self) {
        self.next = self.first;
    }
}

/// Between half of `wait` and all of it; `random` is in 0..1.
fn jitter(wait: Duration, random: f64) -> Duration {
    wait.mul_f64(f64::midpoint(1.0, random))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn jitter_keeps_between_half_and_whole() {
        assert_eq!(jitter(SECOND, 0.0), SECOND / 2);
        assert!(jitter(SECOND, 0.999) <= SECOND);
    }

    #[test]
    fn waits_double_up_to_the_longest_and_begin_anew_when_it_worked() {
        let mut pace = Pace::new(SECOND, 4 * SECOND);
        for about in [1, 2, 4, 4] {
            let wait = pace.wait();
            assert!(wait >= about * SECOND / 2 && wait <= about * SECOND, "{wait:?} is not about {about} s");
        }
        pace.worked();
        assert!(pace.wait() <= SECOND);
    }
}

//! Running time: what horizons of keys are counted in. It passes while a run can read and write, and stands still while
//! either fails: what comes again because of that comes only behind it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The running time of one run. Clones are the same.
#[derive(Debug, Clone)]
pub struct RunningTime(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    started: Instant,
    stood: Mutex<Stood>,
}

/// When it stood still.
#[derive(Debug, Default)]
struct Stood {
    /// How many halt it. Each moment counts once, however many do.
    halts: usize,
    since: Option<Instant>,
    before: Duration,
    /// When it went on last.
    went_on: Option<Instant>,
}

/// Halts running time until it is dropped.
#[derive(Debug)]
pub struct Halt(RunningTime);

impl RunningTime {
    /// Begins now.
    pub fn start() -> Self {
        Self(Arc::new(Inner { started: Instant::now(), stood: Mutex::default() }))
    }

    /// How much has passed.
    pub fn passed(&self) -> Duration {
        self.stood(|stood| {
            let standing = stood.since.map_or(Duration::ZERO, |since| since.elapsed());
            self.0.started.elapsed().saturating_sub(stood.before + standing)
        })
    }

    /// How much has passed since it stood still last; nothing while it does.
    pub fn unbroken(&self) -> Duration {
        self.stood(|stood| match stood.since {
            Some(_) => Duration::ZERO,
            None => stood.went_on.unwrap_or(self.0.started).elapsed(),
        })
    }

    /// It stands still for as long as what is returned is held.
    pub fn halt(&self) -> Halt {
        self.stood(|stood| {
            stood.halts += 1;
            stood.since.get_or_insert_with(Instant::now);
        });
        Halt(self.clone())
    }

    fn stood<T>(&self, look: impl FnOnce(&mut Stood) -> T) -> T {
        look(&mut self.0.stood.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Halt {
    fn drop(&mut self) {
        self.0.stood(|stood| {
            stood.halts -= 1;
            if stood.halts == 0
                && let Some(since) = stood.since.take()
            {
                let now = Instant::now();
                stood.before += now - since;
                stood.went_on = Some(now);
            }
        });
    }
}

#[cfg(test)]
impl RunningTime {
    /// Whether it stands still.
    pub(crate) fn stands_still(&self) -> bool {
        self.stood(|stood| stood.since.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: Duration = Duration::from_millis(2);

    fn pass(time: Duration) {
        let began = Instant::now();
        while began.elapsed() < time {}
    }

    #[test]
    fn it_passes_except_while_it_is_halted() {
        let time = RunningTime::start();
        while time.passed() < SOME {}
        let halt = time.halt();
        let before = time.passed();
        pass(SOME);
        // Two readings of the clock are not the same moment.
        assert!(time.passed() < before + SOME);
        drop(halt);
        while time.passed() < before + SOME {}
    }

    #[test]
    fn it_is_known_for_how_long_it_did_not_stand_still() {
        let time = RunningTime::start();
        while time.unbroken() < SOME {}
        let halt = time.halt();
        assert_eq!(time.unbroken(), Duration::ZERO);
        pass(SOME);
        let before = Instant::now();
        drop(halt);
        assert!(time.unbroken() <= before.elapsed());
    }

    /// Pub/Sub and the warehouse may be away at the same time: counted twice it would run backwards.
    #[test]
    fn what_is_halted_by_two_stands_still_once() {
        let time = RunningTime::start();
        while time.passed() < SOME {}
        let (one, two) = (time.halt(), time.halt());
        let before = time.passed();
        pass(SOME);
        drop(one);
        assert!(time.stands_still());
        pass(SOME);
        drop(two);
        assert!(!time.stands_still() && time.passed() >= before);
    }
}

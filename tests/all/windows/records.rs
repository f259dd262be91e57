//! What a ledger keeps of open windows: as much as gives them back, and not much more.

use super::play::{Way, Worker};
use super::script::{Commit, Event, spec};
use preflight::time::Micros;
use preflight::window::Spec;

/// Bytes of a record of one window.
fn one(spec: &Spec) -> usize {
    let mut worker = Worker::new(std::slice::from_ref(spec));
    let event = Event { key: '\u{1000}', happened: 2_000, value: Some(9) };
    worker.commit(&Commit { events: vec![event], processing_time: Some(2_000), watermark: None }, Way::STRAIGHT);
    worker.log[0].1.len() / usize::try_from(worker.windows.open()).unwrap()
}

/// Commits with so many events each, of so many keys, while windows stay open for long; the process ends every so many commits.
/// Returns how many windows were open at most, and how many the log had at most.
fn most(spec: &Spec, events: usize, keys: u32, restarts: usize) -> (usize, usize) {
    let mut worker = Worker::new(std::slice::from_ref(spec));
    let mut random = fastrand::Rng::with_seed(1);
    let (mut most_open, mut most_kept) = (0, 0);
    for commit in 0..600_usize {
        let now = Micros::try_from(commit).unwrap();
        let events = (0..events).map(|_| Event {
            key: char::from_u32(0x1000 + random.u32(0..keys)).unwrap(),
            happened: now + random.i64(0..50),
            value: Some(random.i64(0..100)),
        });
        let commit_of = Commit { processing_time: Some(now), events: events.collect(), watermark: Some(now) };
        worker.commit(&commit_of, Way::STRAIGHT);
        most_open = most_open.max(worker.windows.open());
        most_kept = most_kept.max(worker.log.iter().map(|(_, bytes)| bytes.len()).sum());
        if commit % restarts == restarts - 1 {
            worker.restart();
        }
    }
    (usize::try_from(most_open).unwrap(), most_kept / one(spec))
}

/// At most two rounds are kept. In each all is said that is open, and beside it what changes in that time, which is not more. That is so also where
/// processes end before a round does.
#[test]
fn the_log_has_the_open_windows_a_few_times_and_no_more() {
    let aggregates = [
        "fixed 1000, lateness 500",
        "sliding 100 every 10, lateness 50, discarding, early 7",
        "session 60, lateness 90, late 5",
    ];
    for text in aggregates {
        for (events, keys) in [(1, 10), (1, 500), (20, 200)] {
            for restarts in [20, usize::MAX] {
                let (open, kept) = most(&spec(text), events, keys, restarts);
                assert!(kept <= 4 * open + 64, "{text}, {events} of {keys}, {restarts}: {kept} for {open} windows");
            }
        }
    }
}

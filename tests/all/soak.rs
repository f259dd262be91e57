//! A short soak: `cargo xtask soak` runs the same for as long as is asked for.

use preflight_tests::soak;
use std::time::Duration;

#[test]
fn in_the_end_every_event_is_in_one_place_once_whatever_happens_to_its_workers() {
    let report = soak::run(Duration::from_secs(25), 1_492, |_| ()).unwrap();
    assert!(report.kills > 3 && report.faults > 10, "{report}");
    assert!(report.events > 1_000 && report.messages > report.events, "{report}");
    assert_eq!(report.silver + report.quarantine, report.events);
}

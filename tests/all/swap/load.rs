//! Fifty swaps under full load: nothing is lost or doubled, and every row is from a rule that was active then.

use preflight::digest::Digest;
use preflight::releases::Change;
use preflight_tests::{Following, Toy, booking, tables};

const EVENTS: u64 = 1_000_000;
const SWAPS: u64 = 50;

/// A thousand events of both versions, a tenth of which is rejected.
fn thousand() -> String {
    let event = |n: usize| {
        let payload = if n % 10 == 9 { "r" } else { "a" };
        booking::envelope(payload, &[("event_version", if n.is_multiple_of(2) { "1" } else { "2" })])
    };
    (0..1_000).map(event).collect()
}

/// The rules of an event version's rows, silver's or quarantine's, in the order they were written.
fn reigns(following: &Following, table: &str, version: &str) -> Vec<String> {
    let all = tables::rows(&following.pipeline.database(), table);
    let of_version = all.iter().filter(|row| row["event_version"] == version);
    let mut digests: Vec<String> = of_version.map(|row| row["rule_digest"].as_str().unwrap().to_owned()).collect();
    digests.dedup();
    digests
}

#[test]
fn a_million_events_and_fifty_swaps_add_up() {
    let following = Following::default();
    let toy = |version| Toy { version, ..Toy::default() }.component();
    let builds: [Digest; 2] = [following.stage(&toy("1.0.0")), following.stage(&toy("1.0.1"))];
    following.promote(builds[0], "1");
    let mut revision = following.promote(builds[0], "2").revision;
    let mut fed = following.start();
    let thousand = thousand();
    let (mut events, mut swaps) = (0, 0);
    while events < EVENTS || swaps < SWAPS {
        fed.write(&thousand);
        events += 1_000;
        // One after the other, spread over the run, and never faster than the worker takes them.
        let due = swaps < SWAPS && events * SWAPS >= swaps * EVENTS;
        if due && following.worker().is_some_and(|worker| worker.revision == Some(revision)) {
            let version = if swaps % 4 < 2 { "1" } else { "2" };
            revision = if swaps.is_multiple_of(2) {
                following.promote(builds[1], version).revision
            } else {
                following.change(&Change::Rollback { events: version.into() }).revision
            };
            swaps += 1;
        }
    }
    following.serves(&mut fed, revision);
    let report = fed.finish().expect(0).json();
    let count = |what: &str| report[what].as_u64().unwrap();
    assert_eq!(count("events"), events);
    assert_eq!(count("silver") + count("quarantine") + count("ignored"), events);
    let database = following.pipeline.database();
    let rows = ["silver", "quarantine"].map(|table| tables::count(&database, table));
    assert_eq!(rows, [events / 10 * 9, events / 10]);
    let history = following.store.history().unwrap();
    for version in ["1", "2"] {
        let mut active = history
            .iter()
            .filter(|record| record.events.as_deref() == Some(version))
            .map(|record| record.roles.as_ref().unwrap().active.to_string());
        // A reign too short for a micro-batch has left no rows; none is out of its turn.
        let silver = reigns(&following, "silver", version);
        assert!(silver.len() > 1 && silver.iter().all(|digest| active.any(|other| other == *digest)), "{silver:?}");
    }
}

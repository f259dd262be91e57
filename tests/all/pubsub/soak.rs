//! Two hundred thousand messages, with what producers send twice and what rules refuse, through workers that are killed: the
//! tables hold what was published, once.

use super::bronze;
use preflight_tests::pubsub::{Feed, message};
use preflight_tests::{Running, bookings, tables};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::time::Duration;

const MESSAGES: usize = 200_000;
/// The others are sent twice.
const EVENTS: usize = 180_000;
const KILLS: usize = 6;

/// Longer than it takes on a machine that does other things, too.
const HANGS: Duration = Duration::from_mins(10);

/// The publisher's list: every event once, some of them once more, some time after that.
fn published(random: &mut fastrand::Rng) -> Vec<String> {
    let lines = bookings::lines(EVENTS);
    let events: Vec<&str> = lines.lines().collect();
    let mut due: Vec<(usize, &str)> = events.iter().copied().enumerate().collect();
    for _ in EVENTS..MESSAGES {
        let first = random.usize(0..EVENTS);
        due.push((first + random.usize(1..5_000), events[first]));
    }
    due.sort_by_key(|(turn, _)| *turn);
    due.into_iter().map(|(_, text)| text.to_owned()).collect()
}

#[test]
fn two_hundred_thousand_messages_through_workers_that_are_killed_add_up() {
    let mut random = fastrand::Rng::with_seed(314);
    let payloads = published(&mut random);
    let feed = Feed::new();
    let pipeline = feed.pipeline().set("source.pubsub.streams=16").set("batch.max_events=1000").set("dedup.by=payload");
    let (ids, kills) = std::thread::scope(|scope| {
        let publishing = scope.spawn(|| {
            let chunks = payloads.chunks(5_000);
            chunks.flat_map(|some| feed.publish(some.iter().map(|text| message(text.as_str())))).collect::<Vec<_>>()
        });
        let mut kills = 0;
        for kill in 0..KILLS {
            let rows = (kill * MESSAGES + random.usize(0..MESSAGES)) / (KILLS + 1);
            let (mut run, _stdin) = Running::start_for(&pipeline, HANGS);
            run.wait_patiently_until(|| bronze(&pipeline) >= rows as u64);
            // Where in the protocol the worker then is, nobody knows.
            run.signal(Signal::KILL);
            kills += u32::from(run.finish().was_killed());
        }
        (publishing.join().expect("it publishes all"), kills)
    });
    assert_eq!((kills as usize, ids.len()), (KILLS, MESSAGES));
    let (mut run, _stdin) = Running::start_for(&pipeline, HANGS);
    run.wait_patiently_until(|| bronze(&pipeline) >= MESSAGES as u64);
    run.stop().expect(0);

    let database = pipeline.database();
    let once = |table: &str, column: &str, expected: BTreeSet<String>| {
        let rows = tables::column(&database, table, column);
        let distinct: BTreeSet<String> = rows.iter().cloned().collect();
        let (missing, surplus) = (expected.difference(&distinct).next(), distinct.difference(&expected).next());
        assert_eq!((missing, surplus), (None, None), "{table}: what is missing, what is too much");
        assert_eq!(rows.len(), expected.len(), "{table}: nothing is there twice");
    };
    let distinct: BTreeSet<&String> = payloads.iter().collect();
    let poison = |text: &str| text.contains("cut off") || text.contains("-1.00");
    let booking_id = |text: &str| text.split('"').nth(3).expect("it begins with the id").to_owned();
    once("raw_bookings", "message_id", ids.into_iter().collect());
    once(
        "fact_bookings",
        "booking_id",
        distinct.iter().filter(|text| !poison(text)).map(|text| booking_id(text)).collect(),
    );
    once(
        "poisoned_events",
        "raw_payload",
        distinct.iter().filter(|text| poison(text)).map(|text| (*text).clone()).collect(),
    );
}

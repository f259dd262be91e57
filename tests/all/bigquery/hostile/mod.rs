//! Real workers that write to the fake, whatever happens to what they write: every row gets in exactly once.

mod answers;
mod crash;
mod large;
mod patience;
mod rows;
mod schema;
mod starts;
mod streams;

use preflight_tests::Ended;
use preflight_tests::bigquery::Fake;
use preflight_tests::bigquery::fake::Content;
use preflight_tests::bigquery::offvia::{BRONZE, QUARANTINE, SILVER};
use std::collections::BTreeMap;

/// How many events most tests have: six micro-batches.
const EVENTS: usize = 300;

const TABLES: [&str; 3] = [BRONZE, SILVER, QUARANTINE];

/// What becomes of the events of `bookings::lines`, which are called by the numbers of their lines.
struct Expected {
    bronze: Vec<String>,
    silver: Vec<String>,
    quarantine: Vec<String>,
}

impl Expected {
    fn of_lines(count: usize) -> Self {
        let id = |number: &usize| format!("input.ndjson:{}", number + 1);
        let (good, bad): (Vec<usize>, Vec<usize>) = (0..count).partition(|number| number % 11 != 10 && number % 5 != 4);
        Self {
            bronze: (0..count).map(|number| id(&number)).collect(),
            silver: good.iter().map(id).collect(),
            quarantine: bad.iter().map(id).collect(),
        }
    }
}

/// The values of a column, in the order in which their rows got in.
fn column(content: &Content<'_>, table: &str, column: &str) -> Vec<String> {
    let rows = content.rows(table);
    rows.iter().map(|row| row.get(column).and_then(|value| value.as_str()).unwrap_or("(none)").to_owned()).collect()
}

/// Every row of `bookings::lines` is there, once and in order.
#[track_caller]
fn expect_exact(fake: &Fake, count: usize, when: &str) {
    expect_rows(fake, count, 0, when);
}

/// The same, but for some rows that another writer put into silver.
#[track_caller]
fn expect_exact_but_for_others(fake: &Fake, count: usize, others: usize, when: &str) {
    expect_rows(fake, count, others, when);
}

#[track_caller]
fn expect_rows(fake: &Fake, count: usize, others: usize, when: &str) {
    let expected = Expected::of_lines(count);
    fake.content(|content| {
        for (table, id, expected, others) in [
            (BRONZE, "message_id", expected.bronze, 0),
            (SILVER, "source_message_id", expected.silver, others),
            (QUARANTINE, "source_message_id", expected.quarantine, 0),
        ] {
            let mut found = column(&content, table, id);
            let all = found.len();
            found.retain(|id| id != "(none)");
            assert_eq!(all - found.len(), others, "{when}: {table} has rows of others");
            if let Some(at) = found.iter().zip(&expected).position(|(found, expected)| found != expected) {
                panic!(
                    "{when}: {table} row {at} is {} and not {}: {:?}",
                    found[at],
                    expected[at],
                    content.appends(table)
                );
            }
            assert_eq!(found.len(), expected.len(), "{when}: {table}: {:?}", content.appends(table));
        }
    });
}

/// Whatever was sent again was the same, byte for byte.
#[track_caller]
fn expect_same_bytes(fake: &Fake) {
    let mut sent: BTreeMap<(String, Option<u64>), u64> = BTreeMap::new();
    for append in fake.content(|content| TABLES.map(|table| content.appends(table))).into_iter().flatten() {
        let digest = *sent.entry((append.stream.clone(), append.offset)).or_insert(append.digest);
        assert_eq!(append.digest, digest, "{append:?}");
    }
}

/// The stream of a table that takes rows.
#[track_caller]
fn stream_of(fake: &Fake, table: &str) -> String {
    let streams = fake.content(|content| content.streams(table));
    let open: Vec<_> = streams.into_iter().filter(|(_, _, finalized)| !finalized).collect();
    assert_eq!(open.len(), 1, "{table}: {open:?}");
    open.into_iter().next().unwrap().0
}

/// Asserts that a run stops with a code and says all of `words`.
#[track_caller]
fn stops(ended: Ended, code: i32, words: &[&str]) {
    let ended = ended.expect(code);
    for word in words {
        assert!(ended.stderr.contains(word), "{word:?} is not in: {}", ended.stderr);
    }
}

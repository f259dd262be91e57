//! What the ledger keeps of message ids and dedup keys: durable with the commit, aged by running time, bounded.

use preflight::ledger::{Additions, Claim, Frames, Horizon, Key, Ledger, LedgerError, Parts, Retention};
use proptest::prelude::*;
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// Slices of a horizon that a bucket is filled for: a key may be kept by so much longer.
const SLICES: u32 = 8;
const HORIZON: Duration = Duration::from_secs(80);
const SLICE: Duration = Duration::from_secs(10);

const CLAIMS: Retention = Retention { ids: None, claims: Some(Horizon::For(HORIZON)) };
const IDS: Retention = Retention { ids: Some(HORIZON), claims: None };

/// A ledger whose running time is told.
struct Kept {
    directory: TempDir,
    retention: Retention,
    ledger: Option<Ledger>,
    /// Running time since it was opened.
    ran: Duration,
    acked: i64,
}

fn key(number: u64) -> Key {
    Key::of("test", &number.to_le_bytes())
}

fn claim(number: u64) -> Claim {
    let of = |what: &str| {
        let mut parts = Parts::of(what);
        parts.add(&number.to_le_bytes());
        parts.fingerprint()
    };
    Claim { content: of("content"), row: of("row") }
}

fn open(directory: &Path, retention: Retention) -> Result<Ledger, LedgerError> {
    let mut ledger = Ledger::open(directory, "test", "w")?;
    ledger.keep_keys(retention)?;
    Ok(ledger)
}

impl Kept {
    fn new(retention: Retention) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let ledger = Some(open(directory.path(), retention).unwrap());
        Self { directory, retention, ledger, ran: Duration::ZERO, acked: 0 }
    }

    /// As after a crash, or a long pause: no running time passes.
    fn reopen(&mut self) {
        drop(self.ledger.take());
        self.ledger = Some(open(self.directory.path(), self.retention).unwrap());
        self.ran = Duration::ZERO;
    }

    fn run_for(&mut self, time: Duration) {
        self.ran += time;
    }

    fn ledger(&self) -> &Ledger {
        self.ledger.as_ref().unwrap()
    }

    fn commit(&mut self, additions: Additions) -> i64 {
        let additions = Additions { ran: self.ran, acked: self.acked, ..additions };
        self.ledger.as_mut().unwrap().commit(&[], &Frames::default(), None, &additions).unwrap()
    }

    fn claim(&mut self, numbers: impl IntoIterator<Item = u64>) -> i64 {
        let claims = numbers.into_iter().zip(0..).map(|(number, event)| (event, key(number), claim(number)));
        self.commit(Additions { claims: claims.collect(), ..Additions::default() })
    }

    fn see(&mut self, numbers: impl IntoIterator<Item = u64>) -> i64 {
        self.commit(Additions { ids: numbers.into_iter().map(key).collect(), ..Additions::default() })
    }

    fn has(&self, number: u64) -> bool {
        let found = self.ledger().claims(&[key(number)], self.ran).unwrap()[0];
        assert!(found.is_none_or(|found| found == claim(number)), "{number} is another's");
        found.is_some()
    }

    fn knows(&self, number: u64) -> bool {
        self.ledger().known(&[key(number)], self.ran).unwrap()[0]
    }

    fn database(&self) -> Connection {
        Connection::open(self.directory.path().join("ledger.db")).unwrap()
    }

    fn count(&self, table: &str) -> i64 {
        self.database().query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    }
}

#[test]
fn keys_are_there_from_their_commit_on_and_after_a_start() {
    let mut kept = Kept::new(CLAIMS);
    assert!(!kept.has(1));
    kept.claim([1, 2]);
    kept.commit(Additions { repeats: vec![key(3)], ..Additions::default() });
    for _ in 0..2 {
        assert!(kept.has(1) && kept.has(2) && !kept.has(4));
        assert_eq!(kept.ledger().claims(&[key(3)], kept.ran).unwrap(), [Some(Claim::default())]);
        kept.reopen();
    }
    kept.claim([4]);
    kept.reopen();
    assert!((1..=2).all(|number| kept.has(number)) && kept.has(4), "a bucket is filled further");
}

#[test]
fn message_ids_and_claims_are_told_apart_and_kept_where_they_are_asked_for() {
    let both = Retention { ids: IDS.ids, claims: CLAIMS.claims };
    let mut kept = Kept::new(both);
    kept.claim([1]);
    kept.see([2]);
    assert!(kept.has(1) && !kept.knows(1) && kept.knows(2) && !kept.has(2));
    // A run over a file comes in between.
    kept.retention = CLAIMS;
    kept.reopen();
    assert!(kept.has(1) && !kept.knows(2));
    kept.retention = both;
    kept.reopen();
    assert!(kept.has(1) && kept.knows(2));
    kept.retention = IDS;
    kept.reopen();
    kept.retention = both;
    kept.reopen();
    assert!(!kept.has(1) && kept.knows(2), "a pipeline without dedup forgets its keys");
}

#[test]
fn a_key_is_kept_for_its_horizon_and_a_slice_of_it_at_most() {
    let mut kept = Kept::new(CLAIMS);
    kept.claim([1]);
    kept.run_for(SLICE.checked_sub(Duration::from_secs(1)).unwrap());
    kept.claim([2]);
    kept.run_for(HORIZON.checked_sub(SLICE).unwrap() + Duration::from_secs(1));
    // Nothing need be committed for a key to grow old.
    assert!(kept.has(1), "its horizon is not over");
    kept.run_for(SLICE);
    assert!(!kept.has(1) && !kept.has(2));
    kept.claim([3]);
    assert!(!kept.has(1) && kept.has(3));
    kept.reopen();
    assert!(!kept.has(1) && !kept.has(2) && kept.has(3));
}

#[test]
fn time_that_nobody_runs_makes_no_key_older() {
    let mut kept = Kept::new(CLAIMS);
    kept.claim([1]);
    for number in 0..6 {
        kept.run_for(SLICE);
        kept.claim([100 + number]);
        kept.reopen();
        assert!(kept.has(1), "after {number} starts");
    }
    kept.run_for(SLICE * 3);
    assert!(!kept.has(1), "the running times of all starts count");
}

#[test]
fn a_message_id_is_kept_until_its_ack_and_the_horizon_after_it() {
    let mut kept = Kept::new(IDS);
    let first = kept.see([1]);
    kept.run_for(SLICE);
    kept.see([2]);
    // The warehouse is away: nothing is acknowledged for an hour.
    for number in 0..60 {
        kept.run_for(Duration::from_mins(1));
        kept.see([100 + number]);
    }
    assert!(kept.knows(1) && kept.knows(2) && kept.knows(159));
    kept.acked = first;
    kept.see([200]);
    kept.run_for(HORIZON);
    kept.see([201]);
    assert!(kept.knows(1) && kept.knows(2), "the first is acknowledged for its horizon only");
    kept.run_for(SLICE);
    kept.see([202]);
    assert!(!kept.knows(1) && kept.knows(2));
    kept.reopen();
    assert!(!kept.knows(1) && kept.knows(2), "what was not acknowledged is so after a start, too");
}

#[test]
fn a_bucket_that_is_full_is_searched_like_the_others() {
    const FULL: u64 = 1 << 20;
    let mut kept = Kept::new(CLAIMS);
    kept.claim(0..FULL);
    kept.claim([FULL]);
    assert_eq!(kept.count("key_buckets"), 2);
    for _ in 0..2 {
        assert!([0, 1, 77_777, FULL - 1, FULL].into_iter().all(|number| kept.has(number)));
        let new: Vec<Key> = (FULL + 1..FULL + 100_000).map(key).collect();
        assert!(kept.ledger().claims(&new, kept.ran).unwrap().iter().all(Option::is_none));
        kept.reopen();
    }
    let pages = kept.count("key_pages");
    // It is forgotten at once, and deleted bit by bit, over a start as well.
    kept.run_for(HORIZON + SLICE);
    kept.claim([FULL + 1]);
    assert!(!kept.has(0) && kept.has(FULL + 1));
    let mut commits = 0;
    while kept.count("key_buckets") > 1 {
        let before = kept.count("key_pages");
        kept.claim([]);
        assert!(before - kept.count("key_pages") < pages / 4, "not all at once");
        if commits == 2 {
            kept.reopen();
        }
        commits += 1;
        assert!(commits < 30, "it ends");
    }
    assert!((4..30).contains(&commits) && kept.count("key_pages") == 1 && kept.has(FULL + 1));
}

#[test]
fn forgotten_claims_leave_nothing_and_others_can_follow() {
    let mut kept = Kept::new(Retention { ids: None, claims: Some(Horizon::Run) });
    kept.claim(0..10_000);
    kept.run_for(Duration::from_hours(1_000));
    kept.claim([10_000]);
    assert!(kept.has(0), "no time is too long for a run");
    kept.ledger.as_mut().unwrap().forget_claims().unwrap();
    assert!(!kept.has(0) && kept.count("key_pages") == 0 && kept.count("key_buckets") == 0);
    kept.claim([1]);
    kept.reopen();
    assert!(!kept.has(0) && kept.has(1));
}

#[test]
fn pages_that_are_missing_or_cut_are_told() {
    for damage in [
        "DELETE FROM key_pages WHERE id = (SELECT min(id) FROM key_pages)",
        "UPDATE key_pages SET entries = substr(entries, 2)",
        "UPDATE key_pages SET entries = x''",
        "UPDATE key_pages SET entries = zeroblob(40000)",
    ] {
        let mut kept = Kept::new(CLAIMS);
        kept.claim(0..1_000);
        drop(kept.ledger.take());
        kept.database().execute_batch(damage).unwrap();
        let error = open(kept.directory.path(), CLAIMS).err().map(|error| error.to_string()).unwrap();
        assert!(error.contains("the ledger is damaged") && error.contains("of its keys"), "{damage}: {error}");
    }
}

/// What is in memory and what is on the disk must not part when a commit fails.
#[test]
fn a_commit_that_fails_adds_nothing() {
    let mut kept = Kept::new(CLAIMS);
    kept.claim([1]);
    let database = kept.database();
    database
        .execute_batch("CREATE TRIGGER no BEFORE UPDATE ON counters BEGIN SELECT RAISE(ABORT, 'not now'); END")
        .unwrap();
    kept.run_for(SLICE);
    for number in 2..5 {
        let additions =
            Additions { claims: vec![(0, key(number), claim(number))], ran: kept.ran, ..Additions::default() };
        kept.ledger.as_mut().unwrap().commit(&[], &Frames::default(), None, &additions).unwrap_err();
    }
    database.execute_batch("DROP TRIGGER no").unwrap();
    assert!((2..5).all(|number| !kept.has(number)) && kept.has(1));
    kept.claim([4]);
    for _ in 0..2 {
        assert!(kept.has(1) && !kept.has(2) && kept.has(4));
        kept.reopen();
    }
}

#[derive(Debug, Clone)]
enum Step {
    Claim(Vec<u8>),
    Run(u16),
    Start,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => prop::collection::vec(any::<u8>(), 0..40).prop_map(Step::Claim),
        3 => (0_u16..15).prop_map(Step::Run),
        1 => Just(Step::Start),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Against a map that remembers when each key was claimed.
    #[test]
    fn keys_are_kept_as_a_map_with_times_keeps_them(steps in steps()) {
        let mut kept = Kept::new(CLAIMS);
        let mut times: BTreeMap<u64, u64> = BTreeMap::new();
        // Running time is durable with a commit: what came after the last is not counted after a start.
        let (mut now, mut durable) = (0_u64, 0_u64);
        let longest = (HORIZON + HORIZON / SLICES).as_secs();
        for step in steps {
            match step {
                Step::Run(seconds) => {
                    kept.run_for(Duration::from_secs(seconds.into()));
                    now += u64::from(seconds);
                }
                Step::Start => {
                    kept.reopen();
                    now = durable;
                }
                Step::Claim(numbers) => {
                    let new: Vec<u64> = numbers.into_iter().map(u64::from).filter(|number| !kept.has(*number)).collect();
                    let mut new: Vec<u64> = new;
                    new.sort_unstable();
                    new.dedup();
                    kept.claim(new.iter().copied());
                    times.extend(new.into_iter().map(|number| (number, now)));
                    durable = now;
                }
            }
            for (number, claimed) in &times {
                let age = now - claimed;
                if age <= HORIZON.as_secs() {
                    prop_assert!(kept.has(*number), "{number} is gone after {age} s");
                } else if age > longest {
                    prop_assert!(!kept.has(*number), "{number} is there after {age} s");
                }
            }
        }
    }
}

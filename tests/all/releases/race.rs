//! Several operators at once: every revision is one change, and no change is lost.

use preflight::releases::{Change, ChangeError};
use preflight_tests::Store;
use preflight_tests::rule_store::stage;
use std::collections::BTreeMap;
use std::process::Stdio;
use std::thread;

#[test]
fn of_changes_meant_for_one_revision_exactly_one_is_made() {
    const OPERATORS: usize = 4;
    const EACH: usize = 25;
    let (store, _) = Store::with(["a"]);
    let won: Vec<(u64, String)> = thread::scope(|scope| {
        let operators: Vec<_> = (0..OPERATORS)
            .map(|operator| {
                let store = store.open();
                scope.spawn(move || {
                    let by = format!("operator {operator}");
                    let own = [0, 1].map(|which| stage(&store, &format!("{operator} {which}")));
                    let mut won = Vec::new();
                    while won.len() < EACH {
                        let digest = own[won.len() % 2];
                        let change =
                            Change::Promote { digest, events: "1".into(), expect_rejects: false, force: false };
                        let expected = store.releases().unwrap().revision;
                        match store.change(&change, Some(expected), &by, "", 0) {
                            Ok(releases) => {
                                assert_eq!(releases.revision, expected + 1);
                                won.push((releases.revision, by.clone()));
                            }
                            Err(ChangeError::Moved { expected: meant, found, last }) => {
                                assert!(meant == expected && found > expected && last.is_some());
                            }
                            Err(error) => panic!("{error}"),
                        }
                    }
                    won
                })
            })
            .collect();
        operators.into_iter().flat_map(|operator| operator.join().unwrap()).collect()
    });
    let won: BTreeMap<u64, String> = won.into_iter().collect();
    let revisions: Vec<u64> = won.keys().copied().collect();
    assert_eq!(revisions, (1..=(OPERATORS * EACH) as u64).collect::<Vec<_>>());
    let history = store.open().history().unwrap().into_iter().filter(|record| record.action == "promote");
    let history: Vec<(u64, String)> = history.map(|record| (record.revision, record.by)).collect();
    assert_eq!(history, won.into_iter().collect::<Vec<_>>());
    assert_eq!(store.releases().revision, (OPERATORS * EACH) as u64);
}

#[test]
fn of_two_commands_meant_for_one_revision_exactly_one_is_made() {
    let (store, digests) = Store::with(["a", "b", "c", "d"]);
    for revision in 0..6_u64 {
        let start = |index: usize| {
            // Neither is active, whichever of the last pair won.
            let digest = digests[index + 2 * usize::from(revision % 2 == 1)];
            let mut command = store.command(&format!("promote {digest} --events 1 --revision {revision}"));
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        };
        let mut commands = [start(0), start(1)];
        let mut codes = commands.each_mut().map(|command| command.wait().unwrap().code());
        codes.sort_unstable();
        assert_eq!(codes, [Some(0), Some(1)], "revision {revision}");
        assert_eq!(store.releases().revision, revision + 1);
    }
}

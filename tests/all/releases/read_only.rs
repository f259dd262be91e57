//! A store that may be read and not written: what a worker's guard must be able to tell.

use preflight::releases::worker::Worker;
use preflight::releases::{ChangeError, RuleStore};
use preflight_tests::rule_store::{promote, stage, trip};
use preflight_tests::{SmallDisk, pipeline::preflight};

#[test]
fn a_read_only_store_is_read_and_tells_that_it_cannot_be_written() {
    let disk = SmallDisk::new(4 << 20);
    let store = RuleStore::at(disk.path("rules"));
    let (a, b) = (stage(&store, "a"), stage(&store, "b"));
    promote(&store, a);
    let promoted = promote(&store, b);
    if !disk.freeze() {
        return;
    }
    let error = store.change(&trip(&promoted), None, "worker", "", 0).unwrap_err();
    assert!(matches!(error, ChangeError::Store(_)) && error.is_read_only(), "{error:?}");
    assert!(error.to_string().contains("rules"), "{error}");
    assert!(store.write_worker("w", &Worker::default()).unwrap_err().is_read_only());

    let path = store.directory().display().to_string();
    let rules = |words: &[&str]| preflight(["rules"].iter().chain(words).chain(&["--store", &path]));
    rules(&["status"]).expect(0);
    rules(&["history"]).expect(0);
    rules(&["gc"]).expect(0);
    rules(&["gc", "--delete"]).expect(1);
    rules(&["rollback", "--events", "1"]).expect(1);
}

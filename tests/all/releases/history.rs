//! The history: complete, whatever happened to its last line.

use preflight_tests::{Ended, Store};
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

fn file(store: &Store) -> PathBuf {
    store.path().join("history.ndjson")
}

/// The revisions of all changes in it.
fn revisions(store: &Store) -> Vec<u64> {
    let history = store.open().history().unwrap();
    history.into_iter().filter(|record| record.action != "stage").map(|record| record.revision).collect()
}

#[test]
fn the_history_tells_every_change_and_can_be_narrowed() {
    let (store, [a, b]) = Store::with(["a", "b"]);
    store.run(&format!("promote {a} --events 1 --why first")).expect(0);
    store.run(&format!("promote {b} --events 2")).expect(0);
    store.run(&format!("promote {b} --events 1")).expect(0);
    let all = store.run("history --json").expect(0).json();
    let actions: Vec<_> = all.as_array().unwrap().iter().map(|record| &record["action"]).collect();
    assert_eq!(actions, ["stage", "stage", "promote", "promote", "promote"]);
    let newest = store.run("history --json --events 1 --limit 1").expect(0).json();
    assert_eq!(newest.as_array().unwrap().len(), 1);
    assert_eq!((&newest[0]["revision"], &newest[0]["digest"]), (&json!(3), &json!(b)));
    assert_eq!((&newest[0]["roles"]["active"], &newest[0]["roles"]["previous"]), (&json!(b), &json!(a)));
    let text = store.run("history --events 1").expect(0).stdout;
    assert!(text.contains("first") && text.contains("ana@here") && !text.contains("stage"), "{text}");
}

#[test]
fn a_last_line_that_is_cut_off_is_not_read_and_written_anew() {
    let (store, [a, b, c]) = Store::with(["a", "b", "c"]);
    store.promote(a);
    store.promote(b);
    let whole = fs::read(file(&store)).unwrap();
    let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for length in [last, last + 1, whole.len() - 1] {
        fs::write(file(&store), &whole[..length]).unwrap();
        assert_eq!(revisions(&store), [1], "{length}");
        store.run("status").expect(0);
        // Even a change that is refused completes it.
        store.run("rollback --events 9").expect(2);
        assert_eq!(revisions(&store), [1, 2], "{length}");
        assert_eq!(fs::read(file(&store)).unwrap(), whole, "{length}");
    }
    store.promote(c);
    assert_eq!(revisions(&store), [1, 2, 3]);
}

#[test]
fn a_damaged_line_is_named_and_keeps_nobody_from_changing_the_releases() {
    let (store, [a, b]) = Store::with(["a", "b"]);
    store.promote(a);
    let mut content = fs::read(file(&store)).unwrap();
    content.extend(b"not json\n");
    fs::write(file(&store), content).unwrap();
    let ended = store.run("history").expect(1);
    assert!(ended.stderr.contains("history.ndjson: line 4: "), "{}", ended.stderr);
    let status = store.run("status --json").expect(0).json();
    assert!(status["problems"][0].as_str().unwrap().contains("history.ndjson: line 4: "), "{status}");
    store.run("gc").expect(1);
    store.promote(b);
    store.run("rollback --events 1").expect(0);
    assert_eq!(store.releases().revision, 3);
}

#[test]
fn a_change_whose_line_cannot_be_written_is_made_and_the_next_one_writes_it() {
    let (store, [a, b]) = Store::with(["a", "b"]);
    store.promote(a);
    store.run(&format!("promote {b} --events 1 --why {}", "x".repeat(20_000))).expect(0);
    store.run(&format!("shadow {a} --events 1")).expect(0);
    // No file may grow above some KiB: the releases are small, the history is not.
    let command = store.command("rollback --events 1");
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -S -f 10; exec \"$@\"", "sh"]).arg(command.get_program());
    let ended = Ended::from_output(limited.args(command.get_args()).output().unwrap()).expect(0);
    assert!(ended.stderr.contains("the change is made, but not in the history yet"), "{}", ended.stderr);
    assert_eq!(store.releases().release["1"].validator.active, a);
    assert_eq!(revisions(&store), [1, 2, 3]);
    store.run(&format!("promote {b} --events 1")).expect(0);
    assert_eq!(revisions(&store), [1, 2, 3, 4, 5]);
}

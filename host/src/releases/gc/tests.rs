use super::*;
use crate::releases::change::Change;
use crate::releases::worker::{ServedRule, Serving};
use crate::time::format_micros;

fn digest(name: &str) -> Digest {
    Digest::of(name.as_bytes())
}

/// A store in which components were promoted one after the other, with its history.
fn promoted(names: &[&str]) -> (Releases, Vec<Record>) {
    let (mut releases, mut history) = (Releases::default(), Vec::new());
    for name in names {
        let change = Change::Promote { digest: digest(name), events: "1".into(), expect_rejects: false, force: false };
        releases = releases.after(&change, "", "", "").unwrap();
        history.push(Record::of(&releases).unwrap());
    }
    (releases, history)
}

fn kept(releases: &Releases, history: &[Record], workers: &[(String, Worker)], keep: u64) -> Vec<&'static str> {
    let needed = needed(releases, history, workers, keep, 2 * DAY);
    ["a", "b", "c", "d", "e"].into_iter().filter(|name| needed.contains(&digest(name))).collect()
}

#[test]
fn what_is_in_a_role_or_was_within_the_last_revisions_is_kept() {
    let (releases, history) = promoted(&["a", "b", "c", "d", "e"]);
    assert_eq!(kept(&releases, &history, &[], 1), ["d", "e"]);
    assert_eq!(kept(&releases, &history, &[], 2), ["c", "d", "e"]);
    assert_eq!(kept(&releases, &history, &[], 3), ["b", "c", "d", "e"]);
    assert_eq!(kept(&releases, &history, &[], u64::MAX), ["a", "b", "c", "d", "e"]);
    assert_eq!(kept(&releases, &[], &[], 10), ["d", "e"], "without a history the releases still count");
}

#[test]
fn what_was_staged_at_the_present_revision_is_kept() {
    let (releases, mut history) = promoted(&["b", "c"]);
    let staged = |name, revision| {
        let mut record = history[0].clone();
        (record.action, record.digest, record.roles, record.revision) =
            ("stage".into(), Some(digest(name)), None, revision);
        record
    };
    let (old, new) = (staged("d", 1), staged("e", 2));
    history.extend([old, new]);
    assert_eq!(kept(&releases, &history, &[], 1), ["b", "c", "e"]);
}

#[test]
fn what_a_worker_holds_is_kept_for_a_day_whether_it_runs_or_not() {
    let (releases, history) = promoted(&["a", "b", "c", "d"]);
    let worker = |at, running| {
        let rule = ServedRule { rule: "r@1.0.0".into(), digest: digest("a") };
        let serving = Serving { roles: [("active".to_owned(), rule)].into() };
        let event_versions = [("1".to_owned(), serving)].into();
        [("w".to_owned(), Worker { at: format_micros(at), running, event_versions, ..Worker::default() })]
    };
    for running in [true, false] {
        assert_eq!(kept(&releases, &history, &worker(DAY + 1, running), 1), ["a", "c", "d"]);
        assert_eq!(kept(&releases, &history, &worker(DAY, running), 1), ["c", "d"]);
    }
}

//! Replays after a change of the rule store, with the rules that serve by then.

use super::replay;
use preflight::releases::Change;
use preflight_tests::swap::FIXTURES;
use preflight_tests::{Following, Toy};

fn build(n: i64) -> (Vec<u8>, String) {
    (Toy { n, ..Toy::default() }.component(), FIXTURES.replace("\"n\": 1", &format!("\"n\": {n}")))
}

fn resolved(following: &Following) -> usize {
    following.quarantine().iter().filter(|row| !row["resolved_at"].is_null()).count()
}

#[test]
fn events_of_a_version_nobody_served_are_replayed_once_a_rule_is_promoted() {
    for worker_runs in [true, false] {
        let following = Following::default();
        following.begin_with(&build(1).0, "1");
        let mut fed = following.start();
        following.serves(&mut fed, 1);
        fed.feed("2", ["a", "r", "a"]);
        fed.feed("3", ["a"]);
        following.written(&mut fed, 4);
        let (component, fixtures) = build(2);
        let two = following.stage_with(&component, &fixtures);
        following.promote(two, "2");
        following.serves(&mut fed, 2);
        let mut running = Some(fed);
        if !worker_runs {
            running.take().unwrap().finish().expect(0);
        }
        let report = replay(&following.pipeline, &["--stage", "ROUTING"]);
        assert_eq!((&report["selected"], &report["accepted"]), (&4.into(), &2.into()), "{report}");
        assert_eq!(replay(&following.pipeline, &["--all"])["accepted"], 0, "twice changes nothing");
        if let Some(fed) = running {
            fed.finish().expect(0);
        }
        let silver = following.silver();
        assert!(silver.iter().all(|row| row["n"] == 2 && row["event_version"] == "2"), "{silver:?}");
        assert_eq!((silver.len(), resolved(&following)), (2, 2), "a worker: {worker_runs}");
        let by = following.quarantine()[0]["resolved_by"].as_str().unwrap().to_owned();
        assert!(by.ends_with(&format!("({two})")), "{by}");
    }
}

/// The way back from a bad rule: roll it back, then replay what it rejected.
#[test]
fn what_a_bad_rule_rejected_is_replayed_by_its_digest_after_a_rollback() {
    let following = Following::default();
    let good = following.begin_with(&build(1).0, "1");
    let bad = Toy { rejects: "rb", ..Toy::default() };
    let bad = following.stage(&bad.component());
    following.change(&Change::Promote { digest: bad, events: "1".into(), expect_rejects: true, force: false });
    let mut fed = following.start();
    following.serves(&mut fed, 2);
    fed.feed("1", ["a", "b", "b", "r"]);
    following.written(&mut fed, 4);
    following.change(&Change::Rollback { events: "1".into() });
    following.serves(&mut fed, 3);
    let report = replay(&following.pipeline, &["--digest", &bad.to_string()]);
    assert_eq!((&report["selected"], &report["accepted"]), (&3.into(), &2.into()), "{report}");
    fed.finish().expect(0);
    let judged: Vec<_> = following.silver().iter().map(|row| row["rule_digest"].clone()).collect();
    assert_eq!(judged, [bad, good, good].map(|digest| digest.to_string()));
    assert_eq!(resolved(&following), 2);
}

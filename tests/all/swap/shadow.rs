//! Shadows and canaries: what they see, what is kept of it, and that they harm nobody.

use preflight::digest::Digest;
use preflight::releases::Change;
use preflight_tests::{Following, Toy, booking, tables};
use std::collections::BTreeMap;

fn shadow(following: &Following, digest: Digest, sample: f64) {
    following.change(&Change::Shadow { digest, events: "1".into(), sample });
}

/// A pipeline with the plain toy active and another as its shadow.
fn shadowed(more: &str, other: &Toy) -> (Following, Digest, Digest) {
    let following = Following::new(more);
    let active = following.begin_with(&Toy::default().component(), "1");
    let other = following.stage_with(&other.component(), &fixtures(other.n));
    shadow(&following, other, 100.0);
    (following, active, other)
}

fn fixtures(n: i64) -> String {
    preflight_tests::swap::FIXTURES.replace("\"n\": 1", &format!("\"n\": {n}"))
}

#[test]
fn differences_are_counted_by_kind_and_stored() {
    let (following, active, other) = shadowed("", &Toy { n: 2, rejects: "b", traps: "t", ..Toy::default() });
    let mut fed = following.start();
    following.serves(&mut fed, 2);
    fed.feed("1", ["a", "a", "b", "r", "t", "c"]);
    fed.finish().expect(0);
    let worker = following.worker().unwrap();
    let [comparison] = worker.comparisons.as_slice() else { panic!("one pair: {worker:?}") };
    assert_eq!((comparison.kind.as_str(), comparison.pairs, comparison.skipped), ("shadow", 6, 0));
    assert_eq!((comparison.old, comparison.new), (active, other));
    let counts = [("accept→reject TOY", 1), ("column n", 3), ("new fault panic", 1), ("reject TOY→accept", 1)];
    assert_eq!(comparison.differences, BTreeMap::from(counts.map(|(kind, count)| (kind.to_owned(), count))));
    let sample = comparison.samples.iter().find(|sample| sample.kind == "column n").unwrap();
    assert_eq!((sample.old.as_str(), sample.new.as_str()), ("1", "2"));
    let rows = tables::rows(&following.pipeline.database(), "shadow_differences");
    assert_eq!(rows.len(), 6);
    assert_eq!(rows[2]["differences"], "[\"accept→reject TOY\"]");
    assert_eq!(
        (&rows[2]["old_verdict"], &rows[2]["new_verdict"]),
        (&"accept {\"n\":1}".into(), &"reject TOY: it is a toy".into())
    );
    assert_eq!((&rows[0]["new_digest"], &rows[0]["pipeline"]), (&other.to_string().into(), &"test".into()));
    // The shadow wrote nothing: only the active rule's rows are there.
    assert_eq!(following.silver().iter().filter(|row| row["n"] == 1).count(), 5);
    assert_eq!(following.served_by(), [active.to_string()]);
}

#[test]
fn what_is_stored_is_capped_and_counting_goes_on() {
    let (following, ..) = shadowed("[rules.shadow]\nkeep = 5\ntable = \"apart\"\n", &Toy { n: 2, ..Toy::default() });
    let mut fed = following.start();
    following.serves(&mut fed, 2);
    fed.feed("1", ["a"; 40]);
    fed.finish().expect(0);
    assert_eq!(tables::count(&following.pipeline.database(), "apart"), 5);
    assert_eq!(following.worker().unwrap().comparisons[0].differences["column n"], 40);
}

#[test]
fn a_sample_sees_a_share() {
    let following = Following::default();
    following.begin_with(&Toy::default().component(), "1");
    shadow(&following, following.stage_with(&Toy { n: 2, ..Toy::default() }.component(), &fixtures(2)), 10.0);
    let mut fed = following.start();
    following.serves(&mut fed, 2);
    fed.feed("1", ["a"; 2_000]);
    fed.finish().expect(0);
    let pairs = following.worker().unwrap().comparisons[0].pairs;
    assert!((100..300).contains(&pairs), "{pairs} of 2000");
}

/// A shadow that takes ten times as long as there is time for: the worker's speed and rows do not depend on it.
#[test]
fn a_slow_shadow_is_skipped_and_the_skips_are_counted() {
    let (following, active, _) =
        shadowed("[batch]\nmax_events = 100\n", &Toy { dawdles: "d", version: "1.0.1", ..Toy::default() });
    let mut fed = following.start();
    following.serves(&mut fed, 2);
    let events = 100_000;
    for _ in 0..100 {
        fed.feed("1", vec!["d"; events / 100]);
    }
    let report = fed.finish().expect(0).json();
    assert_eq!(report["silver"], events);
    assert_eq!(following.served_by(), [active.to_string()]);
    let comparison = following.worker().unwrap().comparisons.remove(0);
    assert_eq!(comparison.pairs + comparison.skipped, events as u64);
    assert!(comparison.skipped > 0 && comparison.pairs > 0, "{comparison:?}");
}

#[test]
fn a_table_of_another_shape_is_refused_before_the_first_event() {
    let (following, ..) = shadowed("", &Toy { version: "1.0.1", ..Toy::default() });
    let database = rusqlite::Connection::open(following.pipeline.database()).unwrap();
    database.execute_batch("CREATE TABLE shadow_differences (message_id TEXT)").unwrap();
    let refused = following.pipeline.check().expect(2).stderr;
    assert!(refused.contains("rules.shadow.table") && refused.contains("lacks recorded_at TIMESTAMP"), "{refused}");
}

#[test]
fn a_canary_judges_its_share_and_the_same_events_always() {
    let sides = |order: &mut dyn Iterator<Item = usize>| {
        let mut following = Following::default();
        following.pipeline.settings.push("rules.canary_by={ attribute = \"customer\" }".into());
        let active = following.begin_with(&Toy::default().component(), "1");
        let canary = following.stage_with(&Toy { n: 2, ..Toy::default() }.component(), &fixtures(2));
        following.change(&Change::Canary {
            digest: canary,
            events: "1".into(),
            percent: 20.0,
            expect_rejects: false,
            force: false,
        });
        let lines: String = order
            .map(|n| {
                let id = format!("{{\"message_id\":\"m{n}\",");
                let customer = format!("c{}", n / 2);
                booking::envelope("a", &[("event_version", "1"), ("customer", &customer)]).replacen('{', &id, 1)
            })
            .collect();
        following.pipeline.write_input(lines);
        let mut fed = following.start();
        following.serves(&mut fed, 2);
        fed.pass(&following.pipeline.input());
        fed.finish().expect(0);
        let rows = following.silver();
        assert!(rows.iter().all(|row| row["rule_digest"] == if row["n"] == 2 { canary } else { active }.to_string()));
        rows.iter()
            .map(|row| (row["message_id"].as_str().unwrap().to_owned(), row["n"].as_i64().unwrap()))
            .collect::<BTreeMap<_, _>>()
    };
    let forwards = sides(&mut (0..1_000));
    assert_eq!(forwards, sides(&mut (0..1_000).rev()));
    let of_canary = forwards.values().filter(|n| **n == 2).count();
    assert!((100..300).contains(&of_canary), "{of_canary} of 1000");
    // Both events of a customer are on the same side.
    assert!((0..500).all(|n| forwards[&format!("m{}", 2 * n)] == forwards[&format!("m{}", 2 * n + 1)]));
}

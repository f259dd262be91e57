//! A worker follows the store: what is good is served, what is bad changes nothing, and nothing is lost.

use preflight::digest::Digest;
use preflight::releases::Change;
use preflight_tests::swap::FIXTURES;
use preflight_tests::{Following, Toy, paths};
use std::fs;

/// Another build of the same rule: another value, so that rows tell who made them.
fn build(n: i64) -> Vec<u8> {
    Toy { n, ..Toy::default() }.component()
}

fn fixtures(n: i64) -> String {
    FIXTURES.replace("\"n\": 1", &format!("\"n\": {n}"))
}

#[test]
fn a_promotion_is_served_and_a_rollback_too() {
    let following = Following::default();
    let one = following.begin_with(&build(1), "1");
    let two = following.stage_with(&build(2), &fixtures(2));
    let mut fed = following.start();
    following.serves(&mut fed, 1);
    fed.feed("1", ["a", "a", "r"]);
    following.written(&mut fed, 3);
    following.promote(two, "1");
    following.serves(&mut fed, 2);
    fed.feed("1", ["a", "r"]);
    following.written(&mut fed, 5);
    following.change(&Change::Rollback { events: "1".into() });
    following.serves(&mut fed, 3);
    fed.feed("1", ["a"]);
    let report = fed.finish().expect(0).json();
    assert_eq!((&report["silver"], &report["quarantine"]), (&4.into(), &2.into()));
    let n: Vec<i64> = following.silver().iter().map(|row| row["n"].as_i64().unwrap()).collect();
    assert_eq!(n, [1, 1, 2, 1]);
    assert_eq!(following.served_by(), [one, two, one].map(|digest| digest.to_string()));
    assert_eq!(following.quarantine()[1]["rule_digest"], two.to_string());
    let ended = following.worker().unwrap();
    assert_eq!((ended.running, ended.revision), (false, Some(3)));
}

#[test]
fn an_event_version_may_come_and_go() {
    let following = Following::default();
    following.begin_with(&build(1), "1");
    let mut fed = following.start();
    following.serves(&mut fed, 1);
    fed.feed("2", ["a"]);
    following.written(&mut fed, 1);
    following.promote(following.stage_with(&build(2), &fixtures(2)), "2");
    following.serves(&mut fed, 2);
    fed.feed("2", ["a"]);
    following.written(&mut fed, 2);
    following.change(&Change::Retire { events: "1".into() });
    following.serves(&mut fed, 3);
    fed.feed("1", ["a"]);
    fed.finish().expect(0);
    let codes: Vec<_> = following.quarantine().iter().map(|row| row["error_code"].clone()).collect();
    assert_eq!(codes, ["no_rule", "no_rule"]);
    assert_eq!(following.silver().len(), 1);
}

/// Who retires the last event version wants nobody to judge; the retired rule judged on.
#[test]
fn the_last_event_version_may_be_retired() {
    let following = Following::default();
    following.begin_with(&build(1), "1");
    let mut fed = following.start();
    following.serves(&mut fed, 1);
    following.change(&Change::Retire { events: "1".into() });
    following.serves(&mut fed, 2);
    fed.feed("1", ["a"]);
    fed.finish().expect(0);
    let mut fed = following.start();
    following.serves(&mut fed, 2);
    fed.feed("1", ["a"]);
    fed.finish().expect(0);
    let codes: Vec<_> = following.quarantine().iter().map(|row| row["error_code"].clone()).collect();
    assert_eq!(codes, ["no_rule", "no_rule"]);
    // Without a rule nobody could say what the table of rows looks like.
    std::fs::remove_file(following.pipeline.database()).unwrap();
    let refused = following.pipeline.check().expect(2).stderr;
    assert!(refused.contains("silver.table: no rule says which columns it has"), "{refused}");
}

/// The one rule after the other fills a column more: the table has it, the stream goes on.
#[test]
fn a_new_rule_may_fill_a_column_that_the_table_has() {
    let following = Following::default();
    following.begin_with(&Toy { extra: Some("first"), ..Toy::default() }.component(), "2");
    following.promote(following.stage(&build(1)), "1");
    let plain = following.change(&Change::Retire { events: "2".into() });
    // The table has both columns from the start.
    let database = rusqlite::Connection::open(following.pipeline.database()).unwrap();
    let columns = "n INTEGER NOT NULL, extra TEXT, message_id TEXT, event_version TEXT, rule_digest TEXT";
    database.execute_batch(&format!("CREATE TABLE silver ({columns})")).unwrap();
    let mut fed = following.start();
    following.serves(&mut fed, plain.revision);
    fed.feed("1", ["a"]);
    following.written(&mut fed, 1);
    let wider = Toy { extra: Some("more"), version: "1.1.0", ..Toy::default() };
    let fixtures = FIXTURES.replace("\"n\": 1", "\"n\": 1, \"extra\": \"more\"");
    let revision = following.promote(following.stage_with(&wider.component(), &fixtures), "1").revision;
    following.serves(&mut fed, revision);
    fed.feed("1", ["a"]);
    fed.finish().expect(0);
    let extra: Vec<_> = following.silver().iter().map(|row| row["extra"].clone()).collect();
    assert_eq!(extra, [serde_json::Value::Null, "more".into()]);
}

/// Promotes what must be refused, and looks that what served serves on.
#[track_caller]
fn refused(following: &Following, digest: Digest, why: &str) {
    let mut fed = following.start();
    following.serves(&mut fed, 1);
    following.promote(digest, "1");
    let worker = following.wait(&mut fed, |worker| worker.refused.is_some());
    let refused = worker.refused.unwrap();
    assert!(refused.revision == 2 && refused.why.contains(why), "{refused:?}");
    assert_eq!(worker.revision, Some(1));
    fed.feed("1", ["a", "r"]);
    following.written(&mut fed, 2);
    following.change(&Change::Rollback { events: "1".into() });
    let worker = following.wait(&mut fed, |worker| worker.revision == Some(3));
    assert_eq!(worker.refused, None);
    let ended = fed.finish().expect(0);
    assert!(ended.stderr.contains("is refused, what serves goes on") && ended.stderr.contains(why), "{}", ended.stderr);
    assert_eq!((following.silver().len(), following.quarantine().len()), (1, 1));
}

#[test]
fn a_component_that_does_not_hold_to_its_fixtures_is_refused() {
    let following = Following::default();
    following.begin_with(&build(1), "1");
    let broken = following.stage(&build(2));
    refused(&following, broken, "does not hold to 1 of its 1 fixtures");
}

#[test]
fn a_component_whose_columns_the_table_lacks_is_refused() {
    let following = Following::default();
    following.begin_with(&build(1), "1");
    let wider = Toy { extra: Some("x"), ..Toy::default() };
    let wider = following.stage_with(&wider.component(), &FIXTURES.replace("\"n\": 1", "\"n\": 1, \"extra\": \"x\""));
    refused(&following, wider, "produces column `extra` (STRING), which silver lacks");
}

#[test]
fn a_component_that_is_no_rule_is_refused() {
    let following = Following::default();
    following.begin_with(&build(1), "1");
    let text = following.stage(b"not wasm");
    refused(&following, text, "it is not WebAssembly");
}

#[test]
fn a_component_for_other_event_versions_is_refused() {
    let following = Following::default();
    following.begin_with(&build(1), "1");
    let fixtures =
        fs::read_to_string(paths::root().join("guest-validators/offvia-booking-v2/fixtures.ndjson")).unwrap();
    let other = following.stage_with(&fs::read(paths::rule("offvia-booking-v2")).unwrap(), &fixtures);
    refused(&following, other, "judges event versions 2, not");
}

#[test]
fn a_good_component_takes_the_place_of_one_that_was_refused() {
    let following = Following::default();
    let one = following.begin_with(&build(1), "1");
    let mut fed = following.start();
    following.serves(&mut fed, 1);
    fed.feed("1", ["a"]);
    following.written(&mut fed, 1);
    following.promote(following.stage(&build(2)), "1");
    following.wait(&mut fed, |worker| worker.refused.is_some());
    let three = following.stage_with(&build(3), &fixtures(3));
    following.promote(three, "1");
    let worker = following.serves(&mut fed, 3);
    assert_eq!(worker.refused, None);
    fed.feed("1", ["a"]);
    let ended = fed.finish().expect(0);
    assert!(ended.stderr.contains("no guard watches the promotion"), "{}", ended.stderr);
    assert_eq!(following.served_by(), [one, three].map(|digest| digest.to_string()));
}

/// As a copy by another program leaves it, until it is whole.
#[test]
fn a_half_written_component_is_refused_until_it_is_whole() {
    let following = Following::default();
    following.begin_with(&build(1), "1");
    let two = following.stage_with(&build(2), &fixtures(2));
    let mut fed = following.start();
    following.serves(&mut fed, 1);
    let file = following.store.directory().join("components").join(format!("{}.wasm", two.hex()));
    following.promote(two, "1");
    following.serves(&mut fed, 2);
    following.change(&Change::Rollback { events: "1".into() });
    following.serves(&mut fed, 3);
    let whole = fs::read(&file).unwrap();
    let releases = following.store.directory().join("releases.toml");
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    // `change` would refuse it too: this is a store that is written by other means.
    let text = fs::read_to_string(&releases).unwrap();
    let active = text.lines().find(|line| line.starts_with("active")).unwrap().to_owned();
    fs::write(&releases, text.replace(&active, &format!("active = \"{two}\"")).replace("revision = 3", "revision = 4"))
        .unwrap();
    let worker = following.wait(&mut fed, |worker| worker.refused.is_some());
    assert!(worker.refused.as_ref().unwrap().why.contains("another digest"), "{worker:?}");
    fs::write(&file, &whole).unwrap();
    let worker = following.serves(&mut fed, 4);
    assert_eq!(worker.refused, None);
    fed.finish().expect(0);
}

#[test]
fn a_store_that_vanishes_or_is_half_written_changes_nothing() {
    let following = Following::default();
    following.begin_with(&build(1), "1");
    let mut fed = following.start();
    following.serves(&mut fed, 1);
    let releases = following.store.directory().join("releases.toml");
    let whole = fs::read_to_string(&releases).unwrap();
    let problem = |fed: &mut preflight_tests::swap::Fed, what: &str| {
        let worker = following.wait(fed, |worker| worker.store_problem.as_ref().is_some_and(|why| why.contains(what)));
        assert_eq!((worker.revision, worker.refused), (Some(1), None));
        fed.feed("1", ["a"]);
    };
    fs::write(&releases, &whole[..whole.len() / 2]).unwrap();
    problem(&mut fed, "releases.toml");
    fs::remove_file(&releases).unwrap();
    problem(&mut fed, "it is gone, and the history has revision 1");
    fs::write(&releases, &whole).unwrap();
    following.wait(&mut fed, |worker| worker.store_problem.is_none());
    let aside = following.pipeline.directory().join("aside");
    fs::rename(following.store.directory(), &aside).unwrap();
    fed.run.wait_for_log("the rule store cannot be read, what serves goes on serving");
    fed.feed("1", ["a"]);
    following.written(&mut fed, 3);
    // Back again, it is followed again.
    fs::rename(&aside, following.store.directory()).unwrap();
    following.promote(following.stage_with(&build(2), &fixtures(2)), "1");
    following.serves(&mut fed, 2);
    fed.finish().expect(0);
    assert_eq!(following.silver().len(), 3);
}

/// Compiling cannot be broken off. Meanwhile events flow, and what comes later overtakes.
#[test]
fn a_rollback_overtakes_a_component_that_takes_long_to_compile() {
    let mut following = Following::default();
    // Not the shared cache: it must compile.
    following.pipeline.settings = vec!["rules.cache=code".into()];
    following.begin_with(&build(1), "1");
    let slow = Toy { n: 2, ballast: 600, ..Toy::default() };
    let slow = following.stage_with(&slow.component(), &fixtures(2));
    let three = following.stage_with(&build(3), &fixtures(3));
    let mut fed = following.start();
    following.serves(&mut fed, 1);
    following.promote(slow, "1");
    following.change(&Change::Rollback { events: "1".into() });
    following.promote(three, "1");
    following.serves(&mut fed, 4);
    fed.feed("1", ["a"]);
    following.written(&mut fed, 1);
    fed.finish().expect(0);
    assert_eq!(following.served_by(), [three.to_string()]);
}

#[test]
fn events_flow_while_a_component_compiles_for_long() {
    let mut following = Following::default();
    following.pipeline.settings = vec!["rules.cache=code".into()];
    let one = following.begin_with(&build(1), "1");
    let slow = Toy { n: 2, ballast: 600, ..Toy::default() };
    let slow = following.stage_with(&slow.component(), &fixtures(2));
    let mut fed = following.start();
    following.serves(&mut fed, 1);
    following.promote(slow, "1");
    fed.feed("1", ["a"]);
    following.written(&mut fed, 1);
    following.serves(&mut fed, 2);
    fed.feed("1", ["a"]);
    fed.finish().expect(0);
    assert_eq!(following.served_by(), [one.to_string(), slow.to_string()]);
}

#[test]
fn a_start_with_a_bad_revision_serves_what_was_served_last() {
    let following = Following::default();
    let one = following.begin_with(&build(1), "1");
    let mut fed = following.start();
    following.serves(&mut fed, 1);
    fed.finish().expect(0);
    following.promote(following.stage(&build(2)), "1");
    let mut fed = following.start();
    let worker = following.wait(&mut fed, |worker| worker.refused.is_some());
    assert_eq!((worker.revision, worker.refused.unwrap().revision), (Some(1), 2));
    fed.feed("1", ["a"]);
    fed.finish().expect(0);
    assert_eq!(following.served_by(), [one.to_string()]);
}

#[test]
fn a_first_start_with_a_bad_or_empty_store_is_refused() {
    let following = Following::default();
    fs::create_dir(following.store.directory()).unwrap();
    let refused = following.pipeline.run().expect(2).stderr;
    assert!(refused.contains("rules.store") && refused.contains("releases nothing"), "{refused}");
    following.begin_with(&build(2), "1");
    let refused = following.pipeline.check().expect(2).stderr;
    assert!(refused.contains("active of event version 1") && refused.contains("does not hold to 1"), "{refused}");
    fs::remove_dir_all(following.store.directory()).unwrap();
    let refused = following.pipeline.run().expect(2).stderr;
    assert!(refused.contains("rules.store: ") && refused.contains("no rule store"), "{refused}");
}

/// Both versions change in one revision: no micro-batch may mix the two.
#[test]
fn a_revision_is_taken_whole() {
    let following = Following::new("[batch]\nmax_events = 7\n");
    let old = [following.begin_with(&build(1), "1"), following.begin_with(&build(1), "2")];
    let new = following.stage_with(&build(2), &fixtures(2));
    let mut fed = following.start();
    following.serves(&mut fed, 2);
    let releases = following.store.directory().join("releases.toml");
    let text = fs::read_to_string(&releases).unwrap();
    let next = text.replace(&old[0].to_string(), &new.to_string()).replace("revision = 2", "revision = 3");
    fs::write(following.pipeline.directory().join("next"), next).unwrap();
    fs::rename(following.pipeline.directory().join("next"), &releases).unwrap();
    while following.worker().is_none_or(|worker| worker.revision != Some(3)) {
        for _ in 0..50 {
            fed.feed("1", ["a"]);
            fed.feed("2", ["a"]);
        }
    }
    fed.feed("1", ["a"]);
    fed.finish().expect(0);
    let n: Vec<i64> = following.silver().iter().map(|row| row["n"].as_i64().unwrap()).collect();
    assert!(n.is_sorted(), "once the new set judges, the old one no longer does, whatever the event version");
    assert_eq!((n.first(), n.last()), (Some(&1), Some(&2)));
}

/// A pipe where a file should be was waited for, for ever: at the start, and at the end of a run.
#[test]
fn a_pipe_in_the_place_of_a_file_is_told_and_holds_up_nobody() {
    let following = Following::default();
    following.begin_with(&build(1), "1");
    let mut fed = following.start();
    following.serves(&mut fed, 1);
    let releases = following.store.directory().join("releases.toml");
    let whole = fs::read(&releases).unwrap();
    let pipe = following.pipeline.directory().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    fs::rename(&pipe, &releases).unwrap();
    let worker = following.wait(&mut fed, |worker| worker.store_problem.is_some());
    assert!(worker.store_problem.unwrap().contains("not a regular file"));
    fed.finish().expect(0);
    assert!(following.pipeline.check().expect(2).stderr.contains("not a regular file"));
    fs::remove_file(&releases).unwrap();
    fs::write(&releases, whole).unwrap();
    following.pipeline.check().expect(0);
}

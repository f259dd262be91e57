//! What `check` says of dedup, and what it refuses.

use super::{Line, pipeline};
use preflight::config::{Config, Layers};
use preflight::pipeline::dedup::{Dedup, DedupNeed, needs};
use preflight_tests::{Ended, Pipeline};
use serde_json::{Value, json};

fn as_json(pipeline: &Pipeline) -> Value {
    Ended::from_output(pipeline.command("check").arg("--json").output().unwrap()).json()
}

#[test]
fn a_file_takes_so_much_for_each_key() {
    let pipeline = pipeline("payload", &[Line::booking("BK-1")]);
    let text = pipeline.check().expect(0).stdout;
    assert!(text.contains("duplicates are known by payload, until the source is read to its end: 36 bytes"), "{text}");
    assert!(!text.contains("delivered again"), "{text}");
    let keys = as_json(&pipeline)["keys"].clone();
    assert_eq!(keys["dedup"], json!({ "disk_bytes_per_key": 36, "memory_bytes_per_key": 9 }));
    assert_eq!(keys["redelivery"], Value::Null);
}

#[test]
fn a_column_that_a_rule_does_not_produce_is_no_key() {
    let pipeline = pipeline("{ columns = [\"booking_id\", \"loyalty_tier\"] }", &[]);
    for ended in [pipeline.check(), pipeline.run()] {
        let ended = ended.expect(2);
        let why = "does not produce column `loyalty_tier`: a key needs it of every rule";
        assert!(ended.stderr.contains("dedup.by.columns") && ended.stderr.contains(why), "{}", ended.stderr);
        assert!(ended.stderr.contains("rule offvia-booking@"), "{}", ended.stderr);
        assert!(!ended.stderr.contains("column `booking_id`"), "{}", ended.stderr);
    }
}

/// The pipeline file of a subscription with these keys of `[dedup]`.
fn of_subscription(dedup: &str) -> Config {
    let toml = format!(
        "name = \"test\"\n[source.pubsub]\nsubscription = \"projects/p/subscriptions/bookings\"\n\
         [rules]\nevent_version = {{ default = \"1\" }}\n[rules.components]\n\"1\" = \"rule.wasm\"\n\
         [warehouse.sqlite]\npath = \"w.db\"\n[silver]\ntable = \"s\"\n[quarantine]\ntable = \"q\"\n{dedup}"
    );
    let pipeline = Pipeline::with_file(&toml, "");
    let layers = Layers::load(&pipeline.file(), &[""; 0], &[]).unwrap();
    Config::from_layers(&layers).unwrap()
}

#[test]
fn a_subscription_takes_rate_times_horizon() {
    let without = needs(&of_subscription(""));
    assert_eq!((without.rate, without.is_assumed, without.dedup), (1_000.0, true, None));
    // Half an hour, and the slice that a bucket is filled for.
    assert_eq!(without.redelivery.unwrap().keys, 2_025_000);
    let with = needs(&of_subscription("[dedup]\nby = \"payload\"\nhorizon = \"2 h\"\nexpected_rate = 100.0\n"));
    assert_eq!((with.rate, with.is_assumed, with.redelivery.unwrap().keys), (100.0, false, 202_500));
    let Some(DedupNeed::Horizon(need)) = with.dedup else { panic!("{with:?}") };
    assert_eq!(need.keys, 810_000);
    assert_eq!((need.disk, need.memory), (810_000 * 37, 810_000 * 48));
}

#[test]
fn what_no_machine_could_hold_is_refused_by_the_rate_that_was_given() {
    let horizon = "[dedup]\nby = \"payload\"\nhorizon = \"30 d\"\n";
    let refused = |rate: &str| Dedup::refuse_absurd(&of_subscription(&format!("{horizon}{rate}")));
    assert!(refused("").is_ok(), "nobody said that so many come");
    assert!(refused("expected_rate = 100.0\n").is_ok());
    let error = refused("expected_rate = 1000.0\n").unwrap_err().to_string();
    assert!(
        error.contains("dedup.horizon") && error.contains("2916000000 keys") && error.contains("24 GiB"),
        "{error}"
    );
}

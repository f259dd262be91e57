//! Which events are judged.

use super::*;
use preflight_tests::Pipeline;
use serde_json::json;

#[test]
fn without_routing_every_event_is_judged() {
    let report = on(versions(), &v1(), &v1(), &["--format", "envelope", "--json"]).expect(0).json();
    assert_eq!(skipped(&report), (5, 0, 0));
}

#[test]
fn with_routing_only_versions_that_both_serve_are_judged() {
    let by = ["--format", "envelope", "--json", "--event-version-attribute", "event_version"];
    let with = |old: &Path, new: &Path, further: &[&str]| on(versions(), old, new, &[&by, further].concat());
    assert_eq!(skipped(&with(&v1(), &v1(), &[]).expect(0).json()), (2, 2, 1));
    assert_eq!(skipped(&with(&v1(), &v1(), &["--default", "1"]).expect(0).json()), (3, 2, 0));
    assert_eq!(skipped(&with(&v1(), &hostile(), &[]).expect(3).json()), (2, 2, 1));
    assert_eq!(skipped(&with(&hostile(), &hostile(), &[]).expect(0).json()), (3, 1, 1));
    assert_eq!(skipped(&with(&v1(), &v1(), &["--events", "3"]).expect(0).json()), (1, 3, 1));
    // What a version is judged by is for the asker to say, whatever the manifests serve.
    assert_eq!(skipped(&with(&v1(), &v2(), &["--events", "1"]).expect(3).json()), (2, 2, 1));
    refused(
        with(&v1(), &v2(), &[]),
        &["no event version is served by both rules", "offvia-booking-v2@0.1.0 serves 2", "--events"],
    );
}

#[test]
fn the_version_may_be_a_field_of_the_payload() {
    let lines: String =
        ["1", "2"].map(|version| Booking::v1("BK-1").and("schema", version).json() + "\n").concat() + "{}\n";
    let by = ["--json", "--event-version-field", "/schema", "--events", "2"];
    assert_eq!(skipped(&on(&lines, &v1(), &v1(), &by).expect(0).json()), (1, 1, 1));
}

#[test]
fn a_pipeline_file_gives_routing_format_and_limits() {
    let pipeline = Pipeline::offvia(versions());
    let (file, cache) = (pipeline.file(), format!("rules.cache={}", paths::scratch().join("code").display()));
    let by = ["--json", "--pipeline", text(&file), "--set", &cache];
    let with = |old: &Path, new: &Path, further: &[&str]| diff(old, new, &pipeline.input(), &[&by, further].concat());
    // The source of the pipeline file reads lines: no envelope has an attribute, and the default version is 1.
    assert_eq!(skipped(&with(&v1(), &v1(), &[]).expect(0).json()), (5, 0, 0));
    assert_eq!(skipped(&with(&v1(), &v1(), &["--format", "envelope"]).expect(0).json()), (3, 2, 0));
    let overlay = pipeline.directory().join("overlay.toml");
    std::fs::write(&overlay, "[source.stdin]\nformat = \"envelope\"\n").unwrap();
    let report = with(&v1(), &v1(), &["--with", text(&overlay)]).expect(0).json();
    assert_eq!(skipped(&report), (3, 2, 0));
    let report = with(&v1(), &v1(), &["--set", "limits.payload=100 B"]).expect(1).json();
    assert_eq!(report["skipped"]["not_whole"], json!({ "PAYLOAD_TOO_LARGE": 5 }));
    // With so little fuel both fault alike.
    with(&v1(), &hostile(), &["--format", "envelope"]).expect(3);
    let starved = ["--format", "envelope", "--set", "limits.fuel_base=1", "--set", "limits.fuel_per_byte=1"];
    with(&v1(), &hostile(), &starved).expect(0);
}

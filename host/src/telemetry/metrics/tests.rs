//! The text is `OpenMetrics`, and its labels are bounded.

use super::*;
use crate::rules::compare::Difference;
use crate::source::{Messages, Progress};
use crate::telemetry::tally::{CountedVersion, Tally};
use crate::time::FixedClock;
use crate::verdict::{FaultCode, Rejection, stage};
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A strict reading of the text: every sample belongs to the family above it and is there once. By name and labels.
pub(super) fn parse(text: &str) -> BTreeMap<String, String> {
    let body = text.strip_suffix("# EOF\n").expect("it ends with # EOF");
    let (mut families, mut samples) = (HashSet::new(), BTreeMap::new());
    let (mut name, mut kind) = ("", "");
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (family, help) = rest.split_once(' ').expect("a help text");
            assert!(help.ends_with('.') && !help.ends_with(".."), "{line}");
            assert!(families.insert(family), "{family} comes twice");
            (name, kind) = (family, "");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (family, of) = rest.split_once(' ').expect("a type");
            assert_eq!(family, name, "TYPE follows HELP");
            assert!(["counter", "gauge", "histogram"].contains(&of), "{line}");
            assert!(family.starts_with("preflight_") && !family.ends_with("_total"), "{family}");
            kind = of;
        } else {
            let (series, value) = line.rsplit_once(' ').expect("a value");
            let (sample, labels) = series.split_once('{').expect("every family has labels");
            let suffix = sample.strip_prefix(name).unwrap_or_else(|| panic!("{sample} is not of {name}"));
            let suffixes: &[&str] = match kind {
                "counter" => &["_total"],
                "gauge" => &[""],
                _ => &["_sum", "_count", "_bucket"],
            };
            assert!(suffixes.contains(&suffix), "{line}");
            let names = label_names(labels.strip_suffix('}').expect("labels end"));
            assert!(names.contains(&"pipeline".to_owned()), "{line}");
            assert_eq!(names.contains(&"le".to_owned()), suffix == "_bucket", "{line}");
            value.parse::<f64>().expect("a number");
            assert!(samples.insert(series.to_owned(), value.to_owned()).is_none(), "{series} comes twice");
        }
    }
    samples
}

fn label_names(mut labels: &str) -> Vec<String> {
    let mut names = Vec::new();
    while !labels.is_empty() {
        let (name, rest) = labels.split_once("=\"").expect("a label has a value");
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{name}");
        let (mut end, mut escaped) = (None, false);
        for (index, c) in rest.char_indices() {
            match c {
                _ if escaped => {
                    assert!(['\\', '"', 'n'].contains(&c), "{rest}");
                    escaped = false;
                }
                '\\' => escaped = true,
                '"' => {
                    end = Some(index);
                    break;
                }
                _ => {}
            }
        }
        let end = end.expect("a value ends");
        names.push(name.to_owned());
        labels = rest[end + 1..].strip_prefix(',').unwrap_or(&rest[end + 1..]);
    }
    names
}

pub(super) fn metrics(exposition: &Exposition, name: &str) -> Metrics {
    exposition.pipeline(name, Arc::new(FixedClock(10_000_000)))
}

fn rejected(tally: &mut Tally, version: Option<&str>, stage: &'static str, code: &'static str) {
    tally.of(CountedVersion::new(version, true)).reject(&Rejection::by_host(stage, code, ""));
}

#[test]
fn everything_that_is_counted_stands_in_the_text_as_open_metrics_wants_it() {
    let exposition = Exposition::default();
    let (one, two) = (metrics(&exposition, "one"), metrics(&exposition, "two"));
    let messages = Arc::new(Messages::default());
    for (counter, value) in [
        (&messages.received, 9),
        (&messages.redelivered, 1),
        (&messages.acked, 4),
        (&messages.unconfirmed, 2),
        (&messages.nacked, 3),
        (&messages.reopened, 5),
    ] {
        counter.store(value, Ordering::Relaxed);
    }
    let progress = Arc::new(Progress { messages: Some(messages), ..Progress::default() });
    progress.bytes.store(40, Ordering::Relaxed);
    one.reading(Arc::clone(&progress));
    let mut tally = Tally::default();
    tally.read(7_500_000);
    tally.of(CountedVersion::new(Some("1"), true)).accepted = 3;
    rejected(&mut tally, Some("1"), stage::RULE_FAULT, FaultCode::Fuel.as_str());
    rejected(&mut tally, Some("1"), stage::RULE_FAULT, FaultCode::Trap.as_str());
    rejected(&mut tally, None, stage::PARSE_ENVELOPE, "envelope");
    drop(one.batch(&[]));
    drop(one.sampled_event(64).expect("its turn has come"));
    assert!(one.sampled_event(63).is_none());
    one.committed(Duration::from_millis(3));
    one.committed(Duration::from_millis(3));
    one.sent(Duration::from_millis(3));
    one.durable(&tally);
    one.retried(Retry::Append);
    one.reloaded(7);
    one.reload_refused(8);
    one.compared("shadow", 10, 2, [(Difference::Column("a".into()).kind(), 2)]);
    one.guard_tripped();
    two.reloaded(1);

    let samples = parse(&exposition.text());
    let value = |series: &str| samples.get(series).cloned().unwrap_or_else(|| panic!("no {series} in {samples:#?}"));
    let events = |outcome: &str, stage: &str, version: &str| {
        value(&format!(
            "preflight_events_total{{pipeline=\"one\",outcome=\"{outcome}\",stage=\"{stage}\",event_version=\"{version}\"}}"
        ))
    };
    assert_eq!([events("accepted", "", "1"), events("ignored", "", "1")], ["3", "0"]);
    assert_eq!([events("rejected", "RULE_FAULT", "1"), events("rejected", "PARSE_ENVELOPE", "none")], ["2", "1"]);
    for (series, expected) in [
        (r#"preflight_rule_faults_total{pipeline="one",code="fuel",event_version="1"}"#, "1"),
        (r#"preflight_recovered_faults_total{pipeline="one"}"#, "0"),
        (r#"preflight_source_read_bytes{pipeline="one"}"#, "40"),
        (r#"preflight_publish_lag_seconds{pipeline="one"}"#, "2.5"),
        (r#"preflight_messages_received_total{pipeline="one"}"#, "9"),
        (r#"preflight_messages_redelivered_total{pipeline="one"}"#, "1"),
        (r#"preflight_messages_acked_total{pipeline="one"}"#, "4"),
        (r#"preflight_acks_unconfirmed_total{pipeline="one"}"#, "2"),
        (r#"preflight_messages_nacked_total{pipeline="one"}"#, "3"),
        (r#"preflight_stream_reopenings_total{pipeline="one"}"#, "5"),
        (r#"preflight_outstanding_messages{pipeline="one"}"#, "0"),
        (r#"preflight_outstanding_bytes{pipeline="one"}"#, "0"),
        (r#"preflight_oldest_unacked_age_seconds{pipeline="one"}"#, "0.0"),
        (r#"preflight_batch_events_count{pipeline="one"}"#, "1"),
        (r#"preflight_batch_evaluation_seconds_count{pipeline="one"}"#, "1"),
        (r#"preflight_event_evaluation_seconds_count{pipeline="one"}"#, "1"),
        (r#"preflight_batches_in_judging{pipeline="one"}"#, "0"),
        (r#"preflight_commits_undelivered{pipeline="one"}"#, "1"),
        (r#"preflight_ledger_commit_seconds_bucket{le="0.004",pipeline="one"}"#, "2"),
        (r#"preflight_append_seconds_count{pipeline="one"}"#, "1"),
        (r#"preflight_rows_total{pipeline="one",tier="silver"}"#, "0"),
        (r#"preflight_retries_total{pipeline="one",operation="append"}"#, "1"),
        (r#"preflight_reloads_total{pipeline="one",result="loaded"}"#, "1"),
        (r#"preflight_reloads_total{pipeline="one",result="refused"}"#, "1"),
        (r#"preflight_active_revision{pipeline="one"}"#, "7"),
        (r#"preflight_refused_revision{pipeline="one"}"#, "8"),
        (r#"preflight_compared_pairs_total{pipeline="one",comparison="shadow"}"#, "10"),
        (r#"preflight_comparisons_skipped_total{pipeline="one",comparison="shadow"}"#, "2"),
        (r#"preflight_differences_total{pipeline="one",comparison="shadow",kind="column"}"#, "2"),
        (r#"preflight_guard_trips_total{pipeline="one"}"#, "1"),
        (r#"preflight_active_revision{pipeline="two"}"#, "1"),
    ] {
        assert_eq!(value(series), expected, "{series}");
    }
    // Not known: no figure, rather than a wrong one.
    assert!(!samples.keys().any(|series| series.starts_with("preflight_source_size_bytes")));
    assert!(!samples.contains_key(r#"preflight_publish_lag_seconds{pipeline="two"}"#));
}

#[test]
fn a_revision_that_loads_clears_the_refused_one() {
    let exposition = Exposition::default();
    let metrics = metrics(&exposition, "p");
    metrics.reload_refused(2);
    metrics.reloaded(3);
    assert_eq!(parse(&exposition.text())[r#"preflight_refused_revision{pipeline="p"}"#], "0");
}

#[test]
fn commits_with_ever_new_stages_do_not_add_ever_new_series() {
    let exposition = Exposition::default();
    let metrics = metrics(&exposition, "p");
    for commit in 0..10 {
        let mut tally = Tally::default();
        for number in 0..100 {
            let stage = format!("ORDER_{commit}_{number}").into();
            let rejection = Rejection { stage, code: None, reason: String::new() };
            tally.of(CountedVersion::new(Some("1"), true)).reject(&rejection);
        }
        metrics.durable(&tally);
    }
    let samples = parse(&exposition.text());
    let rejected: Vec<u64> = samples
        .iter()
        .filter(|(series, _)| series.starts_with("preflight_events_total") && series.contains("\"rejected\""))
        .map(|(_, value)| value.parse().expect("a count"))
        .collect();
    assert_eq!((rejected.len(), rejected.iter().sum::<u64>()), (201, 1_000));
}

#[test]
fn a_version_with_quotes_and_newlines_does_not_break_the_text() {
    let exposition = Exposition::default();
    let metrics = metrics(&exposition, "p");
    let mut tally = Tally::default();
    tally.of(CountedVersion::new(Some("a\"b\\c\n# EOF"), true)).accepted = 1;
    metrics.durable(&tally);
    let samples = parse(&exposition.text());
    assert!(samples.keys().any(|series| series.contains(r#"event_version="a\"b\\c\n# EOF""#)), "{samples:#?}");
}

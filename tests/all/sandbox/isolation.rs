//! What one event may do to the next: nothing.

use preflight::row::Value;
use preflight::rules::Limits;
use preflight::verdict::{FaultCode, Verdict};
use preflight_tests::{Guest, events};

/// Everything that ends a call, and some that do not.
const HOSTILE: [&str; 27] = [
    "spin",
    "allocate",
    "recurse",
    "recurse-big",
    "trap",
    "panic:x",
    "panic-long:5000",
    "divide",
    "oob",
    "arity:3",
    "values:100",
    "type",
    "null",
    "nan",
    "numeric:x",
    "time:9223372036854775807",
    "text:100000",
    "json:{",
    "bad-utf8",
    "bad-utf8-reason",
    "bad-pointer",
    "stage:RULE_FAULT",
    "log",
    "log:50",
    "lookup",
    "spin-in-post-return",
    "log-in-post-return",
];

#[test]
fn a_verdict_is_the_same_alone_and_among_hostile_neighbours() {
    let alone: Vec<_> = HOSTILE.iter().map(|payload| Guest::default().judge(payload).verdict).collect();
    let mut together = Guest::default();
    for round in 0..2 {
        for (payload, expected) in HOSTILE.iter().zip(&alone) {
            assert_eq!(&together.judge(payload).verdict, expected, "{payload}, round {round}");
            assert_eq!(together.number("ok"), 1, "after {payload}");
        }
    }
}

#[test]
fn an_instance_ends_after_its_events() {
    let mut guest = Guest::new(Limits { events_per_instance: 3, ..Limits::default() });
    let counts: Vec<i64> = (0..7).map(|_| guest.number("count")).collect();
    assert_eq!(counts, [1, 2, 3, 1, 2, 3, 1]);
}

#[test]
fn an_instance_ends_with_its_micro_batch() {
    let mut guest = Guest::default();
    assert_eq!([guest.number("count"), guest.number("count")], [1, 2]);
    guest.end_batch();
    assert_eq!(guest.number("count"), 1);
}

#[test]
fn an_instance_ends_with_a_fault_whatever_its_kind() {
    for payload in HOSTILE {
        let mut guest = Guest::default();
        assert_eq!(guest.number("count"), 1);
        let expected = if guest.judge(payload).verdict.is_ok() { 3 } else { 1 };
        assert_eq!(guest.number("count"), expected, "after {payload}");
    }
}

#[test]
fn isolation_by_event_gives_each_a_fresh_instance() {
    let mut guest = Guest::isolated();
    assert_eq!([guest.number("count"), guest.number("count"), guest.number("count")], [1, 1, 1]);
    assert_eq!(guest.fault("trap").code, FaultCode::Panic);
}

#[test]
fn a_fault_that_earlier_events_caused_does_not_stand() {
    let mut guest = Guest::default();
    for _ in 0..3 {
        let judged = guest.judge("trap-after:3");
        assert!(judged.verdict.is_ok() && judged.recovered.is_none());
    }
    let fourth = guest.judge("trap-after:3");
    assert!(fourth.verdict.is_ok(), "alone it is the first");
    assert_eq!(fourth.recovered.map(|fault| fault.code), Some(FaultCode::Panic));
    let next = guest.judge("count");
    assert_eq!((next.verdict, next.recovered), (Guest::default().judge("count").verdict, None), "a fresh instance");
}

#[test]
fn an_allocator_that_was_spoilt_by_an_event_does_not_harm_the_next() {
    for (payload, code) in [
        ("spin-in-realloc", FaultCode::Fuel),
        ("trap-in-realloc", FaultCode::Panic),
        ("log-in-realloc", FaultCode::Abi),
        ("bad-pointer-from-realloc", FaultCode::Abi),
    ] {
        let mut guest = Guest::default();
        guest.accepts(payload);
        let next = guest.judge("ok");
        assert!(next.verdict.is_ok(), "{payload}: {next:?}");
        assert_eq!(next.recovered.map(|fault| fault.code), Some(code), "{payload}");
    }
}

#[test]
fn a_rule_sees_only_what_its_manifest_asks_for_and_what_a_redelivery_does_not_change() {
    let mut event = events::event("id-1", "echo-attributes");
    let attribute = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    event.attributes = vec![attribute("secret", "x"), attribute("event_version", "1"), attribute("source", "web")];
    let text = |verdict| match verdict {
        Ok(Verdict::Accept(row)) => row[1].clone(),
        other => panic!("{other:?}"),
    };
    let mut guest = Guest::default();
    assert_eq!(text(guest.judge_event(&event).verdict), Value::Text("source=web\nevent_version=1".into()));
    event.payload = "echo-id".into();
    assert_eq!(text(guest.judge_event(&event).verdict), Value::Text("id-1".into()));
}

//! Verdicts that break the rule's own manifest or the contract's ranges, and those at the edge that do not.

use preflight::time::{MAX_MICROS, MIN_MICROS};
use preflight::verdict::{FaultCode, Verdict};
use preflight_tests::Guest;

#[track_caller]
fn breaks(payload: &str, detail: &str) {
    let fault = Guest::default().fault(payload);
    assert_eq!(fault.code, FaultCode::Manifest, "{payload}: {}", fault.detail);
    assert!(fault.detail.contains(detail), "{payload}: {}", fault.detail);
}

#[track_caller]
fn fits(payload: &str) {
    Guest::default().accepts(payload);
}

#[test]
fn arity() {
    breaks("arity:7", "the row has 7 values, the manifest declares 8 columns");
    fits("arity:8");
    breaks("arity:9", "9 values");
    breaks("arity:0", "0 values");
    breaks("values:8", "came as INT64");
}

#[test]
fn type_and_nullability() {
    breaks("type", "column `n` is INT64 and came as STRING");
    breaks("null", "column `n` is NOT NULL and came as null");
    fits("ok");
}

#[test]
fn floats_are_finite() {
    breaks("nan", "column `f`: NaN is not finite");
    breaks("inf", "column `f`: inf is not finite");
}

#[test]
fn numeric_is_canonical_text_within_its_range() {
    let most = format!("{}.{}", "9".repeat(29), "9".repeat(9));
    for text in ["0", "-1", "749.5", "0.000000001", &most, &format!("-{most}")] {
        fits(&format!("numeric:{text}"));
    }
    let too_many_before = format!("1{}", "0".repeat(29));
    for text in [
        "",
        "-0",
        "+1",
        "01",
        "1.",
        ".5",
        "1.0",
        "1e5",
        "NaN",
        "Infinity",
        " 1",
        "1,5",
        "٣",
        "0.0000000001",
        &too_many_before,
    ] {
        breaks(&format!("numeric:{text}"), "canonical decimal text");
    }
}

#[test]
fn timestamps_and_dates_lie_in_the_years_1_to_9999() {
    fits(&format!("time:{MAX_MICROS}"));
    fits(&format!("time:{MIN_MICROS}"));
    breaks(&format!("time:{}", MAX_MICROS + 1), "years 1 to 9999");
    breaks(&format!("time:{}", MIN_MICROS - 1), "years 1 to 9999");
    breaks(&format!("time:{}", i64::MIN), "years 1 to 9999");
    fits("date:2932896");
    fits("date:-719162");
    breaks("date:2932897", "years 1 to 9999");
    breaks("date:-719163", "years 1 to 9999");
    breaks(&format!("date:{}", i32::MAX), "years 1 to 9999");
}

#[test]
fn json_is_one_value_that_reads_one_way() {
    for text in ["{}", "[1,{\"a\":null}]", "\"x\"", "1e400", " true "] {
        fits(&format!("json:{text}"));
    }
    let deep = "[".repeat(65) + &"]".repeat(65);
    let ambiguous = ["{\"a\":1,\"a\":2}", "[{\"a\":1,\"\\u0061\":2}]", "\"\\ud800\"", &deep];
    for text in ["", "{", "{} {}", "NaN", "{\"a\":}", "'x'", "\u{feff}{}"].iter().chain(&ambiguous) {
        breaks(&format!("json:{text}"), "not one JSON value");
    }
}

#[test]
fn the_hosts_stages_and_ill_formed_ones_are_refused() {
    for stage in ["RULE_FAULT", "ROUTING", "SINK_REJECTED", "PARSE_ENVELOPE", "PAYLOAD_TOO_LARGE", "LATE_DATA"] {
        breaks(&format!("stage:{stage}"), "belongs to the host");
    }
    for stage in ["", "lower", "1ST", "A B", "A-B", "É", "_A", "A\n", &"A".repeat(65)] {
        breaks(&format!("stage:{stage}"), "is not [A-Z][A-Z0-9_]*");
    }
    for stage in ["A", "PARSE_JSON", "A1_", &"A".repeat(64)] {
        match Guest::default().verdict(&format!("stage:{stage}")) {
            Verdict::Reject(rejection) => assert_eq!((&*rejection.stage, rejection.code), (stage, None)),
            other => panic!("{other:?}"),
        }
    }
}

//! A rejected record is replayed from its row alone: the text, and the columns beside it.

use super::{HEADER, booking, pipeline, rejected, silver};
use preflight_tests::{Pipeline, paths, tables};

/// Records that a rule rejects which wants three digits of a flight number; the last is broken.
fn records() -> String {
    let record = |id: &str, flight: &str| booking(id, "\"Jane\n\"\"JD\"\" Doe\"").replace("OF-104", flight);
    let records = [HEADER.to_owned(), record("1", "OF-104"), record("2", "OF-2104"), record("3", "OF-3104")];
    format!("{}\r\n4;\"Jane", records.join("\r\n").replace(',', ";"))
}

fn judged_by(pipeline: Pipeline, rule: &str) -> Pipeline {
    pipeline.set(format!("rules.components.\"1\"={}", paths::rule(rule).display()))
}

#[test]
fn a_record_that_was_rejected_is_judged_again_as_it_was_read() {
    let pipeline = pipeline(records()).set("source.file.csv.delimiter=;");
    let strict = judged_by(pipeline, "offvia-booking-three-digits");
    strict.run().expect(0);
    assert_eq!(silver(&strict), ["1"]);
    let stages: Vec<String> = rejected(&strict).into_iter().map(|(stage, _)| stage).collect();
    assert_eq!(stages, ["BUSINESS_RULE_VALIDATION", "BUSINESS_RULE_VALIDATION", "PARSE_CSV"]);
    let shown = strict.quarantine("show", &["1", "--json"]).expect(0).json();
    assert_eq!(shown["attributes"]["csv"]["delimiter"], ";");
    assert_eq!(shown["attributes"]["csv"]["columns"][0], "booking_id");
    let raw = strict.quarantine("show", &["1", "--raw"]).expect(0).stdout;
    assert!(records().contains(&raw) && raw.contains("\n\"\"JD"), "{raw:?}");

    // What the pipeline file says of files now has nothing to do with records that were read before.
    let mild = judged_by(strict, "offvia-booking").set("source.file.csv.delimiter=|");
    let report = mild.quarantine("replay", &["--all", "--json"]).expect(0).json();
    assert_eq!((&report["selected"], &report["accepted"]), (&3.into(), &2.into()), "{report}");
    assert_eq!(report["rejected"][0]["code"], "unclosed_quote", "{report}");
    assert_eq!(silver(&mild), ["1", "2", "3"]);
    assert_eq!(tables::column(&mild.database(), "fact_bookings", "passenger_id"), ["Jane\n\"JD\" Doe"; 3]);
    let open = tables::query(&mild.database(), "SELECT error_stage FROM poisoned_events WHERE resolved_at IS NULL");
    assert_eq!(open.len(), 1);
    assert_eq!(open[0]["error_stage"], "PARSE_CSV");
}

/// An attribute of a producer is a text, whatever it is called.
#[test]
fn an_attribute_called_csv_makes_no_record() {
    let event = serde_json::json!({ "data": "x", "attributes": { "csv": "{\"columns\":[\"a\"]}" } }).to_string();
    let pipeline = Pipeline::offvia(event).warm().set("source.file.format=envelope");
    pipeline.run().expect(0);
    let report = pipeline.quarantine("replay", &["--all", "--json"]).expect(0).json();
    assert_eq!(report["rejected"][0]["stage"], "PARSE_JSON", "{report}");
    let shown = pipeline.quarantine("show", &["1", "--json"]).expect(0).json();
    assert_eq!(shown["attributes"]["csv"], "{\"columns\":[\"a\"]}");
}

//! Hostile payloads through the whole host, with Offvia's rules: what is not provably lossless goes to quarantine, with
//! its stage, its reason and its bytes, and changes nothing for its neighbours. One test per kind.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use preflight_tests::booking::envelope;
use preflight_tests::{Booking, Pipeline, tables};
use serde_json::Value;

/// Offvia's pipeline, without compiling its rules once more.
fn offvia(input: impl AsRef<[u8]>) -> Pipeline {
    Pipeline::offvia(input).warm()
}

const JSON: &str = "PARSE_JSON";
const SCHEMA: &str = "SCHEMA_VALIDATION";
const BUSINESS: &str = "BUSINESS_RULE_VALIDATION";
const TIME: &str = "EVENT_TIME_VALIDATION";

/// Events with good ones around each, and where they should end.
struct Story {
    version: &'static str,
    input: String,
    good: Vec<String>,
    hostile: Vec<(Vec<u8>, &'static str, String)>,
}

impl Story {
    fn new(version: &'static str) -> Self {
        let mut story = Self { version, input: String::new(), good: Vec::new(), hostile: Vec::new() };
        story.neighbour();
        story
    }

    fn neighbour(&mut self) {
        let id = format!("good-{}", self.good.len());
        self.push(Booking::of_version(self.version, &id).json().as_bytes());
        self.good.push(id);
    }

    fn push(&mut self, payload: &[u8]) {
        self.input += &envelope(payload, &[("event_version", self.version)]);
    }

    /// An event that must be rejected at a stage, for a reason that contains a text.
    fn hostile(&mut self, payload: impl AsRef<[u8]>, stage: &'static str, reason: impl Into<String>) {
        self.push(payload.as_ref());
        self.hostile.push((payload.as_ref().to_vec(), stage, reason.into()));
        self.neighbour();
    }

    /// A good booking.
    fn booking(&self, id: &str) -> Booking {
        Booking::of_version(self.version, id)
    }

    /// A good booking but for its fare, written as this JSON.
    fn fare(&self, json: &str) -> String {
        let fare = if self.version == "1" { json.to_owned() } else { format!("{{\"amount\":{json}}}") };
        self.booking("BK-1").with("fare", &fare).json()
    }

    fn run(self) {
        let pipeline = offvia(&self.input).set("source.file.format=envelope");
        let report = pipeline.run().expect(0).json();
        assert_eq!(report["events"], self.good.len() + self.hostile.len());
        assert_eq!(report["recovered_faults"], 0, "no event may make a rule fault");
        assert_eq!(tables::column(&pipeline.database(), "fact_bookings", "booking_id"), self.good);
        let rows = tables::rows(&pipeline.database(), "poisoned_events");
        assert_eq!(rows.len(), self.hostile.len());
        for (row, (payload, stage, reason)) in rows.iter().zip(&self.hostile) {
            let shown = String::from_utf8_lossy(&payload[..payload.len().min(300)]);
            let got = row["error_reason"].as_str().unwrap();
            assert_eq!(row["error_stage"], *stage, "{shown}: {got}");
            assert!(got.contains(reason.as_str()), "{shown}: {got:?} lacks {reason:?}");
            assert_eq!(bytes(&row["raw_bytes"]), *payload, "{shown}");
            assert_eq!(row["raw_payload"], *String::from_utf8_lossy(payload), "{shown}");
            assert_eq!(row["event_version"], self.version);
        }
    }
}

fn bytes(cell: &Value) -> Vec<u8> {
    STANDARD.decode(cell["base64"].as_str().unwrap()).unwrap()
}

/// A story for each event version.
fn both(tell: impl Fn(&mut Story)) {
    for version in ["1", "2"] {
        let mut story = Story::new(version);
        tell(&mut story);
        story.run();
    }
}

/// Runs accepted bookings, each changed in one way, and returns a column of their rows.
fn accepted(column: &str, bookings: impl IntoIterator<Item = Booking>) -> Vec<String> {
    let input: String = bookings.into_iter().map(|booking| booking.json() + "\n").collect();
    let pipeline = offvia(input);
    let report = pipeline.run().expect(0).json();
    assert_eq!(
        report["quarantine"],
        0,
        "{:?}",
        tables::column(&pipeline.database(), "poisoned_events", "error_reason")
    );
    tables::column(&pipeline.database(), "fact_bookings", column)
}

#[test]
fn h01_a_repeated_key_is_rejected_by_name() {
    both(|story| {
        let many: Vec<String> = (0..2_000).map(|n| format!("\"key-{n}\":0")).collect();
        let nested = format!("{{{},\"key-77\":1}}", many.join(","));
        let cases = [
            (story.booking("BK-1").and("fare", "\"-10\""), "duplicate key \"fare\""),
            (story.booking("BK-1").and("fare", "\"749.50\""), "duplicate key \"fare\""),
            (story.booking("BK-1").and("f\\u0061re", "\"-10\""), "duplicate key \"fare\""),
            (story.booking("BK-1").and("booking_id", "null"), "duplicate key \"booking_id\""),
            (story.booking("BK-1").and("x", r#"{"a":1,"a":1}"#), "duplicate key \"a\""),
            (story.booking("BK-1").and("x", r#"[[{"\ud83d\ude00":1,"😀":2}]]"#), "duplicate key \"😀\""),
            (story.booking("BK-1").and("", "1").and("", "2"), "duplicate key \"\""),
            (story.booking("BK-1").and("x", &nested), "duplicate key \"key-77\""),
        ];
        for (booking, reason) in cases {
            story.hostile(booking.json(), JSON, reason);
        }
    });
    // The same key in two objects is none that is repeated, nor is one of another case.
    let bookings = [Booking::v1("a").with("x", r#"[{"a":1},{"a":{"a":1}}]"#), Booking::v1("b").with("FARE", "-1")];
    assert_eq!(accepted("booking_id", bookings), ["a", "b"]);
}

#[test]
fn h02_a_byte_order_mark_is_rejected() {
    both(|story| {
        let marked = format!("\u{feff}{}", story.booking("BK-1").json());
        story.hostile(marked, JSON, "byte order mark");
        story.hostile("\u{feff}", JSON, "byte order mark");
        story.hostile("\u{feff}\u{feff}{}", JSON, "byte order mark");
        story.hostile(" \u{feff}{}", JSON, "byte order mark");
        story.hostile("{\u{feff}}", JSON, "key must be a string");
        story.hostile("{}\u{feff}", JSON, "trailing characters");
    });
}

#[test]
fn h03_what_is_not_finite_is_rejected() {
    both(|story| {
        for json in
            ["NaN", "Infinity", "-Infinity", "nan", "+1", "0x10", "1_000", ".5", "5.", "007", "1,5", "--1", "1e", "-"]
        {
            story.hostile(story.fare(json), JSON, "");
        }
        for text in ["NaN", "Infinity", "-Infinity", "inf", "-inf", "nan", "+Infinity", "INF", "∞"] {
            story.hostile(story.fare(&format!("{text:?}")), BUSINESS, "Invalid fare");
        }
        for text in ["+1", "0x10", "1_000", ".5", "5.", "007", "1,5", " 1", "1 ", "", "１", "1e", "1\u{0}"] {
            let json = serde_json::to_string(text).unwrap();
            story.hostile(story.fare(&json), BUSINESS, "Invalid fare");
        }
    });
}

#[test]
fn h04_a_number_keeps_every_digit() {
    let numbers = [
        "9007199254740993",
        "9223372036854775808",
        "-9223372036854775809",
        "18446744073709551615",
        "18446744073709551616",
        "340282366920938463463374607431768211456",
        "0.1000000000000000055511151231257827",
        "1e400",
    ];
    let ids = numbers.map(|number| Booking::v1("").with("booking_id", number));
    assert_eq!(accepted("booking_id", ids), numbers);
    let fares = [
        ("9223372036854775808", "9223372036854775808"),
        ("18446744073709551616", "18446744073709551616"),
        ("9007199254740993.000000001", "9007199254740993.000000001"),
        ("12345678901234567.123456789", "12345678901234567.123456789"),
        ("0.000000001", "0.000000001"),
        ("\"79228162514264337593.543950335\"", "79228162514264337593.543950335"),
    ];
    let bookings = fares.map(|(json, _)| Booking::v1("BK-1").with("fare", json));
    assert_eq!(accepted("fare_amount", bookings), fares.map(|(_, text)| text));
}

#[test]
fn h05_depth_is_bounded_before_recursion() {
    both(|story| {
        let deep = |n: usize| format!("{}0{}", "{\"a\":".repeat(n), "}".repeat(n));
        story.hostile("[".repeat(100_000), JSON, "");
        story.hostile(format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)), JSON, "nested deeper than 64 levels");
        story.hostile(deep(10_000), JSON, "nested deeper than 64 levels");
        story.hostile("{\"a\":".repeat(10_000), JSON, "");
        story.hostile("{\"a\":[".repeat(10_000), JSON, "");
        story.hostile(deep(65), JSON, "nested deeper than 64 levels");
        story.hostile(deep(64), SCHEMA, "Missing required fields");
        let lists = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        for field in ["booking_id", "unknown"] {
            story.hostile(story.booking("BK-1").with(field, &lists(64)).json(), JSON, "nested deeper");
        }
        story.hostile(story.booking("BK-1").with("booking_id", &lists(63)).json(), SCHEMA, "booking_id");
    });
    let deepest = format!("{}{}", "[".repeat(63), "]".repeat(63));
    assert_eq!(accepted("booking_id", [Booking::v1("deep").with("unknown", &deepest)]), ["deep"]);
}

#[test]
fn h06_bytes_that_are_not_utf8_are_kept_as_they_are() {
    let bad: [&[u8]; 9] = [
        b"\xe9",             // Latin-1
        b"\xc0\xaf",         // overlong
        b"\xe0\x80\xaf",     // overlong
        b"\xf0\x80\x80\xaf", // overlong
        b"\xed\xa0\x80",     // a surrogate
        b"\xf4\x90\x80\x80", // above U+10FFFF
        b"\xff",
        b"\xc3",     // cut off
        b"\xe2\x82", // cut off
    ];
    both(|story| {
        for bytes in bad {
            // In a value, in a value nobody reads, in a key, and bare.
            for field in ["passenger_id", "unknown"] {
                let json = story.booking("BK-1").with(field, "\"Ren#\"").json();
                story.hostile(replaced(&json, bytes), JSON, "not UTF-8");
            }
            let json = story.booking("BK-1").and("Ren#", "1").json();
            story.hostile(replaced(&json, bytes), JSON, "not UTF-8");
            story.hostile(bytes, JSON, "not UTF-8: bad byte at offset 0");
        }
        let text = story.booking("BK-1").json();
        let utf16 = |mark: bool| -> Vec<u8> {
            let units = mark.then_some(0xfeff).into_iter().chain(text.encode_utf16());
            units.flat_map(u16::to_le_bytes).collect()
        };
        story.hostile(utf16(true), JSON, "not UTF-8: bad byte at offset 0");
        story.hostile(utf16(false), JSON, "");
    });
}

fn replaced(json: &str, bytes: &[u8]) -> Vec<u8> {
    let at = json.find('#').unwrap();
    [&json.as_bytes()[..at], bytes, &json.as_bytes()[at + 1..]].concat()
}

#[test]
fn h07_half_a_surrogate_pair_is_rejected() {
    both(|story| {
        let halves = [
            "\\ud83d",
            "\\ude00\\ud83d",
            "\\ud83dx",
            "\\ud83d\\n",
            "\\ud83d\\u0041",
            "\\uD83D",
            "\\ud83d\\ud83d\\ude00",
            "\\ude00",
        ];
        for half in halves {
            let text = format!("\"{half}\"");
            for field in ["passenger_id", "unknown", "event_time"] {
                story.hostile(story.booking("BK-1").with(field, &text).json(), JSON, "surrogate");
            }
            story.hostile(story.fare(&text), JSON, "surrogate");
            story.hostile(
                story.booking("BK-1").with("unknown", &format!("[{{\"a\":[{text}]}}]")).json(),
                JSON,
                "surrogate",
            );
            story.hostile(story.booking("BK-1").and(half, "1").json(), JSON, "");
            story.hostile(story.booking("BK-1").and("x", &format!("{{{text}:1}}")).json(), JSON, "");
        }
    });
    let whole =
        [r#""\ud83d\ude00""#, r#""\\ud83d""#, r#""\ufffd""#].map(|text| Booking::v1("").with("booking_id", text));
    assert_eq!(accepted("booking_id", whole), ["😀", "\\ud83d", "\u{fffd}"]);
}

#[test]
fn h08_nothing_may_follow_the_object() {
    both(|story| {
        let json = story.booking("BK-1").json();
        for rest in ["#", "{}", "\0", ",", "}", "]", "null", " x", "\u{a0}", "\u{b}", "// comment", "\u{1a}"] {
            story.hostile(format!("{json}{rest}"), JSON, "trailing characters");
        }
        story.hostile(format!("{json}\n{json}"), JSON, "trailing characters");
        story.hostile(&json[..json.len() - 1], JSON, "EOF");
        story.hostile(format!("{}, }}", &json[..json.len() - 1]), JSON, "trailing comma");
    });
    // Blanks are no more than that, around and within.
    let input = format!(" \t{} \r\n", Booking::v1("blank").json().replace(',', "\t,\t"));
    let pipeline = offvia(input);
    assert_eq!(pipeline.run().expect(0).json()["silver"], 1);
}

#[test]
fn h09_what_is_no_object_is_told_apart() {
    let kinds = [
        ("", JSON, "payload is empty"),
        (" \r\n\t ", JSON, "payload is blank"),
        ("null", SCHEMA, "payload must be a JSON object, found null"),
        ("42", SCHEMA, "payload must be a JSON object, found a number"),
        ("\"x\"", SCHEMA, "payload must be a JSON object, found a string"),
        ("[]", SCHEMA, "payload must be a JSON object, found a list"),
        ("true", SCHEMA, "payload must be a JSON object, found a boolean"),
        ("{}", SCHEMA, "Missing required fields: booking_id, destination, event_time, fare, flight_number, origin"),
        ("nul", JSON, ""),
        ("42 42", JSON, "trailing characters"),
        ("undefined", JSON, "expected value"),
        ("\u{a0}", JSON, "expected value"),
    ];
    both(|story| {
        for (payload, stage, reason) in kinds {
            story.hostile(payload, stage, reason);
        }
    });
}

#[test]
fn h10_a_required_field_must_be_there_and_say_something() {
    let large = format!("\"{}\"", "x".repeat(1 << 20));
    both(|story| {
        for field in ["booking_id", "passenger_id", "flight_number", "origin", "destination"] {
            let with = |json: &str| story.booking("BK-1").with(field, json).json();
            let missing = story.booking("BK-1").without(field).json();
            let cases = [
                (missing, format!("Missing required fields: {field}")),
                (with("null"), format!("Required fields must not be null: {field}")),
                (with("{}"), format!("{field} must be text, found an object")),
                (with("[\"x\"]"), format!("{field} must be text, found a list")),
                (with("true"), format!("{field} must be text, found a boolean")),
                (with("\"\""), format!("{field} must not be blank")),
                (with("\" \\t\\n\""), format!("{field} must not be blank")),
                (with(&large), format!("{field} must have at most 65536 bytes")),
            ];
            for (payload, reason) in cases {
                story.hostile(payload, SCHEMA, reason);
            }
        }
        for json in ["{}", "[]", "true", "\"\"", &large] {
            story.hostile(story.fare(json), BUSINESS, "Invalid fare");
            story.hostile(story.booking("BK-1").with("event_time", json).json(), TIME, "Invalid event_time");
        }
        story.hostile(story.booking("BK-1").with("fare", "null").json(), SCHEMA, "must not be null: fare");
        story.hostile(story.booking("BK-1").with("event_time", "null").json(), SCHEMA, "must not be null: event_time");
    });
}

#[test]
fn h11_a_decimal_is_exact_or_rejected() {
    let exact = [
        ("2.3", "2.3"),
        ("\"2.3\"", "2.3"),
        ("0.1", "0.1"),
        ("749.50", "749.5"),
        ("1.5e3", "1500"),
        ("1E-9", "0.000000001"),
        ("1.1000000000000000", "1.1"),
        ("1e28", "10000000000000000000000000000"),
        ("\"0.123456789\"", "0.123456789"),
    ];
    let bookings = exact.map(|(json, _)| Booking::v1("BK-1").with("fare", json));
    assert_eq!(accepted("fare_amount", bookings), exact.map(|(_, text)| text));
    both(|story| {
        for text in ["1.0000000001", "0.0000000001", "1e-10", "1.12345678901"] {
            story.hostile(story.fare(text), BUSINESS, "at most 9 digits after the decimal point");
            story.hostile(story.fare(&format!("{text:?}")), BUSINESS, "at most 9 digits after the decimal point");
        }
        for text in ["100000000000000000000000000000", "1e29", "1e400", "1e999999999999999999999", &"9".repeat(30)] {
            story.hostile(story.fare(text), BUSINESS, "at most 29 digits before the decimal point");
        }
        for text in ["0", "-0", "0.0", "-0.000000001", "-1", "0e400", "-1e-400"] {
            story.hostile(story.fare(text), BUSINESS, "Invalid fare");
        }
    });
}

#[test]
fn h12_more_than_96_bits_are_an_error_and_never_rounded() {
    let largest = "79228162514264337593543950335";
    assert_eq!(accepted("fare_amount", [Booking::v1("BK-1").with("fare", largest)]), [largest]);
    both(|story| {
        for text in [
            "79228162514264337593543950336",
            "99999999999999999999999999999",
            "79228162514264337593.543950336",
            "12345678901234567890123456789.1",
        ] {
            story.hostile(story.fare(text), BUSINESS, "must fit a 96-bit decimal");
        }
    });
}

/// Spellings of times, with the instant they name.
const TIMES: [(&str, &str); 17] = [
    ("2026-10-07T14:10:00Z", "2026-10-07T14:10:00.000000Z"),
    ("2026-10-07T14:10:00+02:00", "2026-10-07T12:10:00.000000Z"),
    ("2026-10-07T14:10:00+0200", "2026-10-07T12:10:00.000000Z"),
    ("2026-10-07T14:10:00+02", "2026-10-07T12:10:00.000000Z"),
    ("2026-10-07T14:10:00-05:30", "2026-10-07T19:40:00.000000Z"),
    ("2026-10-07T14:10:00-00:00", "2026-10-07T14:10:00.000000Z"),
    ("2026-10-07t14:10:00z", "2026-10-07T14:10:00.000000Z"),
    ("2026-10-07 14:10:00Z", "2026-10-07T14:10:00.000000Z"),
    ("2026-10-07T14:10:00.5Z", "2026-10-07T14:10:00.500000Z"),
    ("2026-10-07T14:10:00.123Z", "2026-10-07T14:10:00.123000Z"),
    ("2026-10-07T14:10:00.123456Z", "2026-10-07T14:10:00.123456Z"),
    ("2026-10-07T14:10:00.1234560Z", "2026-10-07T14:10:00.123456Z"),
    ("2026-10-07T14:10:00.123456000Z", "2026-10-07T14:10:00.123456Z"),
    ("2024-02-29T23:59:59Z", "2024-02-29T23:59:59.000000Z"),
    ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"),
    ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
    ("1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z"),
];

/// Spellings that name no instant exactly.
const NO_TIMES: [&str; 30] = [
    "2026-10-07T14:10:00",
    "2026-10-07",
    "2026-10-07T14:10:00Z07:00",
    "2026-10-07T14:10:00 Z",
    "2026-10-07  14:10:00Z",
    "2026-10-07_14:10:00Z",
    "2026-10-07T14:10Z",
    "2026-10-07T14Z",
    "2026-10-07T14:10:00.Z",
    "2026-10-07T14:10:00,5Z",
    "2026-10-07T14:10:00.1234567Z",
    "2026-10-07T14:10:00.123456789Z",
    "2026-10-07T14:10:00.123456789012Z",
    "2026-10-07T14:10:00.000000000000Z",
    "0000-01-01T00:00:00Z",
    "10000-01-01T00:00:00Z",
    "+2026-10-07T14:10:00Z",
    "9999-12-31T23:59:59-00:01",
    "0001-01-01T00:00:00+00:01",
    "2026-10-07T24:00:00Z",
    "2026-10-07T14:60:00Z",
    "2026-12-31T23:59:60Z",
    "2026-02-29T00:00:00Z",
    "2026-10-07T14:10:00+24:00",
    "2026-10-07T14:10:00+02:60",
    "2026-10-07T14:10:00+2",
    "2026-10-07T14:10:00\u{2212}02:00",
    "20261007T141000Z",
    " 2026-10-07T14:10:00Z",
    "1791382200",
];

#[test]
fn h13_one_grammar_of_times_in_the_rule() {
    let bookings = TIMES.map(|(text, _)| Booking::v1("BK-1").with("event_time", &format!("{text:?}")));
    assert_eq!(accepted("event_timestamp", bookings), TIMES.map(|(_, instant)| instant));
    both(|story| {
        for text in NO_TIMES {
            let json = serde_json::to_string(text).unwrap();
            story.hostile(
                story.booking("BK-1").with("event_time", &json).json(),
                TIME,
                "Invalid event_time: event_time must",
            );
        }
    });
}

#[test]
fn h13_the_same_grammar_of_times_in_the_host() {
    let line = |text: &str| {
        let line = serde_json::json!({ "data": Booking::v1("BK-1").json(), "publish_time": text });
        format!("{line}\n")
    };
    let input: String = TIMES.iter().map(|(text, _)| line(text)).chain(NO_TIMES.map(line)).collect();
    let pipeline = offvia(&input).set("source.file.format=envelope");
    pipeline.run().expect(0);
    let bronze = tables::column(&pipeline.database(), "raw_bookings", "publish_time");
    assert_eq!(bronze[..TIMES.len()], TIMES.map(|(_, instant)| instant));
    let refused = tables::rows(&pipeline.database(), "poisoned_events");
    assert_eq!(refused.len(), NO_TIMES.len());
    for (row, text) in refused.iter().zip(NO_TIMES) {
        assert_eq!(row["error_stage"], "PARSE_ENVELOPE", "{text}");
        assert_eq!(bytes(&row["raw_bytes"]), line(text).trim_end().as_bytes());
    }
}

#[test]
fn h14_a_time_years_away_stops_nobody() {
    let times = ["0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "2999-01-01T00:00:00Z", "9999-12-31T23:59:59Z"];
    let input: String = times
        .iter()
        .flat_map(|time| [Booking::v1("near"), Booking::v1("far").with("event_time", &format!("{time:?}"))])
        .chain([Booking::v1("near")])
        .map(|booking| booking.json() + "\n")
        .collect();
    // A table without partitions takes any time; one with partitions would refuse the whole batch.
    let pipeline = offvia(&input);
    assert_eq!(pipeline.run().expect(0).json()["silver"], 9);
    let pipeline = offvia(&input).set("silver.partition_by=event_timestamp");
    assert_eq!(pipeline.run().expect(0).json()["silver"], 5);
    let refused = tables::rows(&pipeline.database(), "poisoned_events");
    assert!(refused.iter().all(|row| row["error_code"] == "partition_range"));
    assert_eq!(tables::column(&pipeline.database(), "fact_bookings", "booking_id"), ["near"; 5]);
}

#[test]
fn attributes_alone_are_an_event_with_an_empty_payload() {
    let input = "{\"attributes\":{\"only\":\"this\"}}\n".to_owned() + &envelope(Booking::v1("BK-1").json(), &[]);
    let pipeline = offvia(input).set("source.file.format=envelope");
    assert_eq!(pipeline.run().expect(0).json()["silver"], 1);
    let row = &tables::rows(&pipeline.database(), "poisoned_events")[0];
    assert_eq!((&row["error_reason"], &row["attributes"]), (&"payload is empty".into(), &"{\"only\":\"this\"}".into()));
}

#[test]
fn a_line_of_ten_megabytes_is_judged_and_one_byte_more_is_kept_in_part() {
    const LIMIT: usize = 10 << 20;
    let sized = |size: usize| {
        let rest = Booking::v1("large").with("unknown", "\"\"").json().len();
        Booking::v1("large").with("unknown", &format!("\"{}\"", "x".repeat(size - rest))).json()
    };
    let (fits, above) = (sized(LIMIT), sized(LIMIT + 1));
    let bad = fits.replace("749.50", "-49.50");
    let input = [&fits, &above, &bad, &Booking::v1("small").json()].map(|line| line.clone() + "\n").concat();
    let pipeline = offvia(&input);
    pipeline.run().expect(0);
    assert_eq!(tables::column(&pipeline.database(), "fact_bookings", "booking_id"), ["large", "small"]);
    let rows = tables::rows(&pipeline.database(), "poisoned_events");
    assert_eq!((&rows[0]["error_stage"], &rows[1]["error_stage"]), (&"PAYLOAD_TOO_LARGE".into(), &BUSINESS.into()));
    let digest = |payload: &str| preflight::digest::Digest::of(payload.as_bytes()).to_string();
    for (row, payload) in rows.iter().zip([&above, &bad]) {
        let reason = row["error_reason"].as_str().unwrap();
        assert!(reason.contains(&payload.len().to_string()) && reason.contains(&digest(payload)), "{reason}");
        assert_eq!(bytes(&row["raw_bytes"]), payload.as_bytes()[..64 * 1024]);
    }
}

/// A message id, or an event version out of an attribute, of any length came whole into a quarantine row, although
/// its payload was clipped to keep the row within `limits.row`.
#[test]
fn nothing_makes_a_quarantine_row_larger_than_a_table_takes() {
    let long = "v".repeat(2 << 20);
    let input = [
        envelope("{}", &[("event_version", &long)]),
        envelope("{}", &[("note", &long)]),
        format!("{{\"data\":\"{{}}\",\"message_id\":\"{long}\"}}\n"),
        format!("{{\"data\":\"{{}}\",\"ordering_key\":\"{long}\"}}\n"),
        envelope(Booking::v1("x").with("booking_id", &format!("{long:?}")).json(), &[]),
        envelope(format!("{{\"{long}\":1,\"{long}\":2}}"), &[]),
    ];
    let pipeline = offvia(input.concat()).set("source.file.format=envelope").set("limits.row=1 MiB");
    assert_eq!(pipeline.run().expect(0).json()["quarantine"], 6);
    for row in tables::rows(&pipeline.database(), "poisoned_events") {
        let size = Value::Object(row.clone()).to_string().len();
        assert!(size < 1 << 20, "{size} bytes: {}", row["error_reason"]);
    }
}

/// The text view was counted like the original: a rejected payload of half the limit lost its bytes.
#[test]
fn a_quarantine_row_above_the_limit_loses_its_view_before_its_bytes() {
    let payload = format!("{{\"booking_id\": \"{}", "x".repeat(150_000));
    let pipeline = offvia(payload.clone()).set("limits.row=250 kB");
    pipeline.run().expect(0);
    let row = &tables::rows(&pipeline.database(), "poisoned_events")[0];
    assert_eq!(bytes(&row["raw_bytes"]), payload.as_bytes());
    assert_eq!(row["raw_payload"].as_str().unwrap().len(), 64 * 1024);
    assert!(row["error_reason"].as_str().unwrap().contains("raw_payload is cut, raw_bytes is whole"), "{row:?}");
}

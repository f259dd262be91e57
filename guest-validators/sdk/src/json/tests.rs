use std::time::Instant;

use proptest::prelude::*;

use super::{MAX_DEPTH, read};
use crate::prelude::*;

fn rejected(payload: impl AsRef<[u8]>) -> (String, String) {
    match read(payload.as_ref()) {
        Err(NotAccepted::Reject(Rejection { stage, reason })) => (stage.into_owned(), reason),
        other => panic!("not rejected: {other:?}"),
    }
}

fn not_json(payload: impl AsRef<[u8]>) -> String {
    let (stage, reason) = rejected(payload);
    assert_eq!(stage, "PARSE_JSON", "{reason}");
    reason
}

fn nested(open: &str, close: &str, levels: usize) -> String {
    format!(r#"{{"a":{}1{}}}"#, open.repeat(levels), close.repeat(levels))
}

#[test]
fn fields_keep_their_order_and_their_text() {
    let object = read(b" {\"b\": 1.50e0 ,\"a\":[1, 2],\n\"\\u0063\":\"x\\ty\"} \r\n").unwrap();
    let fields: Vec<_> = object.fields().map(|field| (field.name().to_owned(), field.raw().to_owned())).collect();
    let expected = [("b", "1.50e0"), ("a", "[1, 2]"), ("c", r#""x\ty""#)];
    assert_eq!(fields, expected.map(|(name, raw)| (name.to_owned(), raw.to_owned())));
    assert_eq!(object.get("c").unwrap().text().as_deref(), Ok("x\ty"));
}

#[test]
fn what_is_no_object_is_told_apart() {
    assert_eq!(not_json(""), "payload is empty");
    assert_eq!(not_json(" \r\n\t"), "payload is blank");
    for (payload, found) in [
        ("null", "null"),
        ("42", "a number"),
        ("-4e2", "a number"),
        (r#""x""#, "a string"),
        (" [] ", "a list"),
        ("true", "a boolean"),
    ] {
        let reason = format!("payload must be a JSON object, found {found}");
        assert_eq!(rejected(payload), ("SCHEMA_VALIDATION".to_owned(), reason));
    }
}

#[test]
fn a_duplicate_key_is_refused_at_any_depth_and_however_it_is_written() {
    for payload in [
        r#"{"fare":"10","fare":"-10"}"#,
        r#"{"fare":1,"x":2,"\u0066are":1}"#,
        r#"{"x":{"fare":1,"fare":1}}"#,
        r#"{"x":[0,{"y":{"fare":1,"fa\u0072e":2}}]}"#,
        r#"{"x":[{"a":1},{"a":{"fare":1}, "b":{}, "fare":[], "fare":{}}]}"#,
        r#"[{"fare":1,"fare":2}]"#,
    ] {
        assert_eq!(not_json(payload), r#"duplicate key "fare""#, "{payload}");
    }
    assert_eq!(not_json(r#"{"":1,"":1}"#), r#"duplicate key """#);
}

#[test]
fn the_same_key_in_two_objects_is_no_duplicate() {
    for payload in
        [r#"{"a":{"a":{"a":1},"b":{"a":1}},"b":[{"a":1},{"a":"\"a\":1,\"a\""}]}"#, r#"{"a":["a","a",{"b":"a"}],"A":1}"#]
    {
        assert!(read(payload.as_bytes()).is_ok(), "{payload}");
    }
}

#[test]
fn a_duplicate_among_thousands_of_keys_is_found_in_good_time() {
    let started = Instant::now();
    for wrap in [("", ""), (r#"{"nested":"#, "}")] {
        let keys: Vec<_> = (0..200_000).map(|key| format!(r#""k{key}":{key}"#)).collect();
        let unique = format!("{}{{{}}}{}", wrap.0, keys.join(","), wrap.1);
        assert!(read(unique.as_bytes()).is_ok());
        let twice = format!(r#"{}{{{},"k7":0}}{}"#, wrap.0, keys.join(","), wrap.1);
        assert_eq!(not_json(twice), r#"duplicate key "k7""#);
    }
    // Comparing all pairs would take minutes.
    assert!(started.elapsed().as_secs() < 20);
}

#[test]
fn a_byte_order_mark_is_refused() {
    for payload in ["\u{feff}{}", "\u{feff}", " \u{feff}{}"] {
        assert_eq!(not_json(payload), "payload starts with a byte order mark");
    }
    assert_eq!(not_json([0xFF, 0xFE, b'{', 0, b'}', 0]), "payload is not UTF-8: bad byte at offset 0");
}

#[test]
fn bytes_that_are_not_utf8_are_refused_wherever_they_are() {
    for bad in [&b"\xE9"[..], b"\xC0\xAF", b"\xED\xA0\x80", b"\xF5\x80\x80\x80", b"\x80", b"\xE2\x82"] {
        for (before, after) in
            [(r#"{"a":""#, r#""}"#), (r#"{""#, r#"":1}"#), (r#"{"a":[{"b":""#, r#""}]}"#), ("{} ", "")]
        {
            let payload = [before.as_bytes(), bad, after.as_bytes()].concat();
            assert_eq!(not_json(payload), format!("payload is not UTF-8: bad byte at offset {}", before.len()));
        }
    }
}

#[test]
fn half_a_surrogate_pair_is_refused_in_values_and_keys_at_any_depth() {
    for half in [
        r"\ud83d",
        r"\ude00",
        r"\ude00\ud83d",
        r"\ud83d\ud83d",
        r"\ud83dx",
        r"\ud83d\n",
        r"\uD83D\\ude00",
        r"\ud83d\ude00\ud83d",
    ] {
        for (before, after) in [
            ("{\"a\":\"", "\"}"),
            ("{\"a\":[\"", "\"]}"),
            ("{\"a\":{\"b\":\"x", "y\"}}"),
            ("{\"a\":{\"", "\":1}}"),
            ("[\"", "\"]"),
        ] {
            let reason = not_json(format!("{before}{half}{after}"));
            assert!(reason.starts_with("half a surrogate pair in the string "), "{half}: {reason}");
        }
        let reason = not_json(format!("{{\"{half}\":1}}"));
        assert!(reason.contains("hex escape") || reason.contains("surrogate"), "{half}: {reason}");
    }
}

#[test]
fn escapes_that_mean_something_are_kept() {
    for (escaped, text) in [
        (r"\ud83d\ude00", "😀"),
        (r"\\ud83d", r"\ud83d"),
        (r"\\\\ude00", r"\\ude00"),
        (r#"\"\\\/\b\f\n\r\t"#, "\"\\/\u{8}\u{c}\n\r\t"),
        (r"\u00e9\u0000é", "é\0é"),
        (r#"12345678\"12345678"#, "12345678\"12345678"),
    ] {
        let payload = format!(r#"{{"k":[{{"x":"{escaped}","{escaped}":0}}],"a":"{escaped}"}}"#);
        assert_eq!(read(payload.as_bytes()).unwrap().get("a").unwrap().text().as_deref(), Ok(text));
    }
}

#[test]
fn depth_is_bounded_without_recursion() {
    let deepest = MAX_DEPTH - 1;
    for (open, close) in [("[", "]"), (r#"{"b":"#, "}"), (r#"[{"b":"#, "}]")] {
        let levels = deepest / open.matches(['[', '{']).count();
        assert!(read(nested(open, close, levels).as_bytes()).is_ok(), "{open}");
        for more in [levels + 1, 10_000, 100_000] {
            assert_eq!(not_json(nested(open, close, more)), "nested deeper than 64 levels");
        }
    }
    assert!(not_json("[".repeat(100_000)).starts_with("EOF while parsing a list"));
    assert_eq!(not_json("[".repeat(100_000) + &"]".repeat(100_000)), "nested deeper than 64 levels");
}

#[test]
fn nothing_may_follow_the_object() {
    for tail in ["#", "{}", "\0", "x", ",", "}"] {
        assert!(not_json(format!("{{}}{tail}")).starts_with("trailing characters"), "{tail}");
    }
}

#[test]
fn what_json_does_not_have_is_refused() {
    for payload in [
        r#"{"a":NaN}"#,
        r#"{"a":Infinity}"#,
        r#"{"a":-Infinity}"#,
        r#"{"a":01}"#,
        r#"{"a":+1}"#,
        r#"{"a":.5}"#,
        r#"{"a":1.}"#,
        r#"{"a":0x1}"#,
        r"{'a':1}",
        "{a:1}",
        r#"{"a":1,}"#,
        r#"{"a":[1,]}"#,
        "{\"a\":\"\n\"}",
        r#"{"a":"\x41"}"#,
        r#"{"a":"\u12"}"#,
        "{",
        r#"{"a""#,
        r#"{"a":"#,
        r#"{"a":tru}"#,
        r#"{"a":1 /* one */}"#,
        "{\u{a0}}",
        r#"{"booking_id":"BK-90212", "unclosed_json..."#,
    ] {
        not_json(payload);
    }
}

#[test]
fn text_is_a_string_or_the_exact_text_of_a_number() {
    let object =
        read(br#"{"s":"x","n":18446744073709551616,"d":7.50,"t":true,"o":{},"l":[],"e":"","b":" \t","z":null}"#)
            .unwrap();
    let text =
        |name| object.fields().find(|field| field.name() == name).unwrap().text().map_err(|error| error.to_string());
    assert_eq!(text("s").as_deref(), Ok("x"));
    assert_eq!(text("n").as_deref(), Ok("18446744073709551616"));
    assert_eq!(text("d").as_deref(), Ok("7.50"));
    assert_eq!(text("t").unwrap_err(), "t must be text, found a boolean");
    assert_eq!(text("o").unwrap_err(), "o must be text, found an object");
    assert_eq!(text("l").unwrap_err(), "l must be text, found a list");
    assert_eq!(text("z").unwrap_err(), "z must be text, found null");
    assert_eq!(text("e").unwrap_err(), "e must not be blank");
    assert_eq!(text("b").unwrap_err(), "b must not be blank");
    assert_eq!(object.get("e").unwrap().any_text().as_deref(), Ok(""));
}

#[test]
fn a_text_has_a_limit() {
    let payload = |length: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(length));
    let text =
        |length| read(payload(length).as_bytes()).unwrap().get("a").unwrap().text().map_err(|error| error.to_string());
    assert_eq!(text(65_536).unwrap().len(), 65_536);
    assert_eq!(text(65_537).unwrap_err(), "a must have at most 65536 bytes, found 65537");
    let payload = payload(9);
    let object = read(payload.as_bytes()).unwrap();
    assert!(object.get("a").unwrap().text_up_to(9).is_ok());
    assert!(object.get("a").unwrap().text_up_to(8).is_err());
}

#[test]
fn numbers_are_exact_or_refused() {
    let read_number = |value: &str| {
        let payload = format!(r#"{{"n":{value}}}"#);
        let object = read(payload.as_bytes()).unwrap();
        let field = object.get("n").unwrap();
        let text = |error: FieldError| error.to_string();
        (
            field.numeric().map(|value| value.to_string()).map_err(text),
            field.int64().map_err(text),
            field.float64().map_err(text),
        )
    };
    assert_eq!(read_number("2.3").0.as_deref(), Ok("2.3"));
    assert_eq!(read_number(r#""2.3""#).0.as_deref(), Ok("2.3"));
    assert_eq!(read_number(r#""\u0032""#), (Ok("2".to_owned()), Ok(2), Ok(2.0)));
    assert_eq!(read_number("9223372036854775807").1, Ok(i64::MAX));
    assert_eq!(read_number("-9223372036854775808").1, Ok(i64::MIN));
    assert_eq!(read_number("1.0").1, Ok(1));
    assert_eq!(read_number("1e3").1, Ok(1000));
    assert_eq!(read_number("0.1").2, Ok(0.1));
    for past in ["9223372036854775808", "-9223372036854775809", "18446744073709551616", "0.5", r#""1_0""#, "1e400"] {
        let reason = format!(
            "n must be an integer between -9223372036854775808 and 9223372036854775807, found {}",
            crate::error::quote(past.trim_matches('"'))
        );
        assert_eq!(read_number(past).1, Err(reason));
    }
    assert_eq!(read_number("1e400").2.unwrap_err(), r#"n must be within the range of a double, found "1e400""#);
    for wrong in
        [r#""NaN""#, r#""inf""#, r#"" 1""#, r#""1_0""#, r#""0x1""#, r#""+1""#, r#""""#, r#""null""#, r#""\"1\"""#]
    {
        assert!(read_number(wrong).2.unwrap_err().starts_with("n must be a number, found"), "{wrong}");
    }
    assert_eq!(read_number("{}").0.unwrap_err(), "n must be a decimal number, found an object");
    assert_eq!(read_number(r#""Infinity""#).0.unwrap_err(), r#"n must be a finite number, found "Infinity""#);
}

#[test]
fn the_other_types_are_read_strictly() {
    let object = read(
        br#"{"b":false,"t":"2026-10-07T14:10:00","d":"2026-10-07","o":{"x":1,"y":null},"l":[1,"2",null],"s":"true"}"#,
    )
    .unwrap();
    let field = |name| object.get(name).unwrap();
    assert_eq!(field("b").boolean(), Ok(false));
    assert_eq!(field("s").boolean().unwrap_err().to_string(), "s must be true or false, found a string");
    assert_eq!(field("t").timestamp().unwrap_err().to_string(), "t must include an offset or Z");
    assert_eq!(field("d").timestamp().unwrap_err().to_string(), "d must include an offset or Z");
    assert_eq!(field("d").date().unwrap().to_string(), "2026-10-07");
    assert_eq!(
        field("t").date().unwrap_err().to_string(),
        r#"t must be a date such as 2026-10-07, found "2026-10-07T14:10:00""#
    );
    assert_eq!(field("b").timestamp().unwrap_err().to_string(), "b must be a time, found a boolean");
    assert_eq!(field("o").json().unwrap().as_str(), r#"{"x":1,"y":null}"#);
    assert_eq!(field("o").object().unwrap().get("x").unwrap().int64(), Ok(1));
    assert!(field("o").object().unwrap().get("y").is_none());
    assert_eq!(field("s").object().unwrap_err().to_string(), "s must be an object, found a string");
    let list: Vec<_> = field("l").list().unwrap().into_iter().map(|value| value.raw().to_owned()).collect();
    assert_eq!(list, ["1", r#""2""#, "null"]);
    assert_eq!(field("o").list().unwrap_err().to_string(), "o must be a list, found an object");
}

#[test]
fn an_optional_field_that_is_null_is_absent() {
    let object = read(br#"{"a":null,"b":"x","c":[]}"#).unwrap();
    assert_eq!(object.text_or("a", "USD").as_deref(), Ok("USD"));
    assert_eq!(object.text_or("missing", "USD").as_deref(), Ok("USD"));
    assert_eq!(object.text_or("b", "USD").as_deref(), Ok("x"));
    assert_eq!(object.opt_text("a"), Ok(None));
    assert_eq!(object.opt_int64("missing"), Ok(None));
    assert_eq!(object.opt_text("c").unwrap_err().to_string(), "c must be text, found a list");
}

#[test]
fn required_fields_are_all_listed_when_they_are_missing() {
    fn judge(payload: &str) -> Verdict<String> {
        let object = read(payload.as_bytes())?;
        require!(object => zeta, alpha, r#type, "event-time" as time);
        Ok([zeta, alpha, r#type, time].map(|field| field.raw().to_owned()).join(" "))
    }
    let missing = |names: &str| reject("SCHEMA_VALIDATION", format!("Missing required fields: {names}"));
    assert_eq!(judge("{}"), missing("alpha, event-time, type, zeta"));
    assert_eq!(judge(r#"{"type":1,"zeta":null,"Alpha":1}"#), missing("alpha, event-time"));
    let null = "Required fields must not be null: alpha, zeta";
    assert_eq!(judge(r#"{"type":1,"zeta":null,"alpha":null,"event-time":0}"#), reject("SCHEMA_VALIDATION", null));
    for payload in [
        r#"{"zeta":1,"alpha":2,"type":3,"event-time":4}"#,
        r#"{"event-time":4,"x":0,"type":3,"alpha":2,"zeta":1,"y":5}"#,
    ] {
        assert_eq!(judge(payload).as_deref(), Ok("1 2 3 4"));
    }
}

#[test]
fn a_reason_names_the_field_and_quotes_little_of_it() {
    let payload = format!(r#"{{"a":"\u001b[31m{}"}}"#, "é".repeat(1000));
    let object = read(payload.as_bytes()).unwrap();
    let error = object.get("a").unwrap().numeric().unwrap_err();
    let quoted = format!(r"\u{{1b}}[31m{}…", "é".repeat(95));
    assert_eq!(error.to_string(), format!(r#"a must be a decimal number, found "{quoted}""#));
    let verdict: Verdict<Numeric> = object.get("a").unwrap().numeric().or_reject("SOME_STAGE", "Invalid a");
    assert_eq!(verdict, reject("SOME_STAGE", format!("Invalid a: {error}")));
    assert_eq!(
        NotAccepted::from(error.clone()),
        reject::<()>("SCHEMA_VALIDATION", format!("Invalid a: {error}")).unwrap_err()
    );
}

/// JSON of any shape, written with `serde_json`, so that what we read can be compared with it.
fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        ".*".prop_map(Into::into),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Into::into),
            prop::collection::hash_map(".{0,6}", inner, 0..24).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn well_formed_objects_are_read_as_serde_json_reads_them(map in prop::collection::hash_map(".{0,6}", json(), 0..24)) {
        let value: serde_json::Value = map.into_iter().collect();
        let text = serde_json::to_string_pretty(&value).unwrap();
        let object = read(text.as_bytes()).unwrap();
        let theirs = value.as_object().unwrap();
        prop_assert_eq!(object.fields().count(), theirs.len());
        for field in object.fields() {
            let ours: serde_json::Value = serde_json::from_str(field.raw()).unwrap();
            prop_assert_eq!(Some(&ours), theirs.get(field.name()));
        }
    }

    #[test]
    fn any_bytes_are_judged_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), text in "[\\[\\]{}:,\"\\\\u0-9dDeE a-c.-]{0,40}") {
        let _ = read(&bytes);
        let _ = read(text.as_bytes());
        let _ = read(format!("{{\"a\":{text}}}").as_bytes());
        let _ = read(format!("{{\"a\":[\"{text}\"]}}").as_bytes());
    }
}

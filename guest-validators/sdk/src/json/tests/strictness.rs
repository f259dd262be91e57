use std::time::Instant;

use proptest::prelude::*;

use crate::json::{MAX_DEPTH, read};
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

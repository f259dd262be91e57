use crate::json::read;
use crate::prelude::*;

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

use chrono::{DateTime, NaiveDate, Utc};
use proptest::prelude::*;

use super::{
    MAX_DAYS, MAX_MICROS, MIN_DAYS, MIN_MICROS, TimeError, format_date, format_micros, parse_date, parse_rfc3339,
};

fn utc(text: &str) -> Result<String, TimeError> {
    parse_rfc3339(text).map(format_micros)
}

#[test]
fn one_instant_has_one_text() {
    let ten_past = "2026-10-07T14:10:00.000000Z";
    for (text, expected) in [
        ("2026-10-07T14:10:00Z", ten_past),
        ("2026-10-07t14:10:00z", ten_past),
        ("2026-10-07 14:10:00Z", ten_past),
        ("2026-10-07T16:10:00+02:00", ten_past),
        ("2026-10-07T16:10:00+0200", ten_past),
        ("2026-10-07T16:10:00+02", ten_past),
        ("2026-10-07T08:40:00-05:30", ten_past),
        ("2026-10-07T14:10:00-00:00", ten_past),
        ("2026-10-08T14:09:00+23:59", ten_past),
        ("2026-10-07T14:10:00.000000000Z", ten_past),
        ("2026-10-07T14:10:00.5Z", "2026-10-07T14:10:00.500000Z"),
        ("2026-10-07T14:10:00.123Z", "2026-10-07T14:10:00.123000Z"),
        ("2026-10-07T14:10:00.123456Z", "2026-10-07T14:10:00.123456Z"),
        ("2026-10-07T14:10:00.1234560Z", "2026-10-07T14:10:00.123456Z"),
        ("2026-10-07T14:10:00.123456000+00:00", "2026-10-07T14:10:00.123456Z"),
        ("1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z"),
        ("2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000000Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
    ] {
        assert_eq!(utc(text).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn a_time_without_an_offset_is_no_instant() {
    for text in ["2026-10-07T14:10:00", "2026-10-07 14:10:00.5", "2026-10-07"] {
        assert_eq!(parse_rfc3339(text), Err(TimeError::MissingOffset), "{text}");
    }
    assert_eq!(TimeError::MissingOffset.to_string(), "must include an offset or Z");
}

#[test]
fn what_is_not_of_the_grammar_is_refused_with_its_reason() {
    for (text, error) in [
        ("", TimeError::NotATime),
        ("now", TimeError::NotATime),
        ("1759846200", TimeError::NotATime),
        ("2026-10-07T14:10Z", TimeError::NotATime),
        ("20261007T141000Z", TimeError::NotATime),
        ("2026-W41-3T14:10:00Z", TimeError::NotATime),
        ("2026-10-07T14:10:00.Z", TimeError::NotATime),
        ("2026-10-07_14:10:00Z", TimeError::NotATime),
        ("2026-10-07  14:10:00Z", TimeError::NotATime),
        ("10000-01-01T00:00:00Z", TimeError::NotATime),
        ("+2026-10-07T14:10:00Z", TimeError::NotATime),
        ("-001-10-07T14:10:00Z", TimeError::NotATime),
        (" 2026-10-07T14:10:00Z", TimeError::NotATime),
        ("2026-10-0٧T14:10:00Z", TimeError::NotATime),
        ("2026-10-07T14:10:00,5Z", TimeError::BadOffset),
        ("2026-10-07T14:10:00Z07:00", TimeError::BadOffset),
        ("2026-10-07T14:10:00ZZ", TimeError::BadOffset),
        ("2026-10-07T14:10:00Z ", TimeError::BadOffset),
        ("2026-10-07T14:10:00 Z", TimeError::BadOffset),
        ("2026-10-07T14:10:00+2", TimeError::BadOffset),
        ("2026-10-07T14:10:00+24:00", TimeError::BadOffset),
        ("2026-10-07T14:10:00+02:60", TimeError::BadOffset),
        ("2026-10-07T14:10:00+02:00:00", TimeError::BadOffset),
        ("2026-10-07T14:10:00\u{2212}02:00", TimeError::BadOffset),
        ("2026-10-07T14:10:00 02:00", TimeError::BadOffset),
        ("2026-10-07T24:00:00Z", TimeError::NoSuchTime),
        ("2026-10-07T14:60:00Z", TimeError::NoSuchTime),
        ("2016-12-31T23:59:60Z", TimeError::NoSuchTime),
        ("2026-02-29T14:10:00Z", TimeError::NoSuchDay),
        ("2026-13-01T14:10:00Z", TimeError::NoSuchDay),
        ("2026-00-01T14:10:00Z", TimeError::NoSuchDay),
        ("0000-01-01T00:00:00Z", TimeError::NoSuchDay),
        ("2026-10-07T14:10:00.1234567Z", TimeError::BelowMicroseconds),
        ("2026-10-07T14:10:00.123456789Z", TimeError::BelowMicroseconds),
        ("2026-10-07T14:10:00.123456000000Z", TimeError::TooManyDigits),
        ("0001-01-01T00:00:00+00:01", TimeError::OutOfRange),
        ("9999-12-31T23:59:59-00:01", TimeError::OutOfRange),
    ] {
        assert_eq!(parse_rfc3339(text), Err(error), "{text}");
    }
}

#[test]
fn the_limits_are_the_first_and_the_last_microsecond() {
    assert_eq!(parse_rfc3339("0001-01-01T00:00:00Z"), Ok(MIN_MICROS));
    assert_eq!(parse_rfc3339("9999-12-31T23:59:59.999999Z"), Ok(MAX_MICROS));
    assert_eq!(parse_date("0001-01-01"), Ok(MIN_DAYS));
    assert_eq!(parse_date("9999-12-31"), Ok(MAX_DAYS));
    for micros in [i64::MIN, MIN_MICROS - 1, MAX_MICROS + 1, i64::MAX] {
        assert_eq!(format_micros(micros), format!("{micros} µs since 1970, outside years 1 to 9999"));
    }
    for days in [i32::MIN, MIN_DAYS - 1, MAX_DAYS + 1, i32::MAX] {
        assert_eq!(format_date(days), format!("{days} days since 1970, outside years 1 to 9999"));
    }
}

#[test]
fn a_date_is_a_date_and_nothing_else() {
    assert_eq!(parse_date("1970-01-01"), Ok(0));
    assert_eq!(parse_date("2024-02-29").map(format_date).as_deref(), Ok("2024-02-29"));
    for text in ["", "2026-10-7", "2026-10-07T00:00:00Z", "2026/10/07", "20261007", " 2026-10-07", "10000-01-01"] {
        assert_eq!(parse_date(text), Err(TimeError::NotADate), "{text}");
    }
    for text in ["2026-02-29", "0000-01-01", "2026-04-31", "2026-12-00"] {
        assert_eq!(parse_date(text), Err(TimeError::NoSuchDay), "{text}");
    }
}

proptest! {
    #[test]
    fn a_formatted_time_is_read_back(micros in MIN_MICROS..=MAX_MICROS) {
        prop_assert_eq!(parse_rfc3339(&format_micros(micros)), Ok(micros));
    }

    #[test]
    fn jiff_writes_the_same_time(micros in MIN_MICROS..=MAX_MICROS) {
        let time = jiff::Timestamp::from_microsecond(micros).unwrap();
        prop_assert_eq!(format_micros(micros), format!("{time:.6}"));
    }

    #[test]
    fn a_formatted_date_is_read_back(days in MIN_DAYS..=MAX_DAYS) {
        prop_assert_eq!(parse_date(&format_date(days)), Ok(days));
    }

    #[test]
    fn dates_agree_with_jiff(text in "[0-9]{4}-[0-2][0-9]-[0-3][0-9]") {
        let theirs = text.parse::<jiff::civil::Date>().ok().filter(|date| date.year() > 0);
        let epoch = jiff::civil::date(1970, 1, 1);
        let theirs = theirs.map(|date| (date - epoch).get_days());
        prop_assert_eq!(parse_date(&text).ok(), theirs);
    }

    /// Where both grammars reach, chrono's RFC 3339 parser and ours give the same instant; only chrono takes a leap second or rounds.
    #[test]
    fn times_agree_with_chrono(
        text in "[0-9]{4}-[01][0-9]-[0-3][0-9][Tt ][0-2][0-9]:[0-5][0-9]:[0-6][0-9](\\.[0-9]{1,6}(000)?)?(Z|z|[+-][0-2][0-9]:[0-5][0-9])",
    ) {
        let theirs = DateTime::parse_from_rfc3339(&text).ok().map(|time| time.with_timezone(&Utc));
        let theirs = theirs.filter(|_| &text[17..19] != "60").map(|time| time.timestamp_micros());
        let theirs = theirs.filter(|micros| (MIN_MICROS..=MAX_MICROS).contains(micros)).filter(|_| !text.starts_with("0000"));
        prop_assert_eq!(parse_rfc3339(&text).ok(), theirs);
    }

    #[test]
    fn the_short_offsets_mean_the_same_as_the_long_one(micros in -10_000_000_000_000_000i64..10_000_000_000_000_000, hours in 0..24, sign in "[+-]") {
        let local = format_micros(micros);
        let local = local.trim_end_matches('Z');
        let long = parse_rfc3339(&format!("{local}{sign}{hours:02}:00"));
        prop_assert_eq!(parse_rfc3339(&format!("{local}{sign}{hours:02}00")), long);
        prop_assert_eq!(parse_rfc3339(&format!("{local}{sign}{hours:02}")), long);
    }

    #[test]
    fn any_text_is_judged_without_a_panic(text in ".*", tail in ".{0,12}") {
        let _ = parse_rfc3339(&text);
        let _ = parse_rfc3339(&format!("2026-10-07{tail}"));
        let _ = parse_rfc3339(&format!("2026-10-07T14:10:00{tail}"));
        let _ = parse_date(&text);
    }
}

#[test]
fn the_epoch_is_chronos() {
    assert_eq!(NaiveDate::from_ymd_opt(1970, 1, 1).unwrap().to_epoch_days(), 0);
}

use proptest::prelude::*;
use rust_decimal::Decimal;

use super::{DecimalError, is_canonical, parse, to_canonical};

fn canonical(text: &str) -> Result<String, DecimalError> {
    parse(text).and_then(to_canonical)
}

#[test]
fn a_number_keeps_its_exact_value() {
    for (text, expected) in [
        ("0", "0"),
        ("-0", "0"),
        ("-0.000", "0"),
        ("0e999999999999999999999999", "0"),
        ("2.3", "2.3"),
        ("749.50", "749.5"),
        ("-50.00", "-50"),
        ("100", "100"),
        ("1e3", "1000"),
        ("1.5E+1", "15"),
        ("1500e-3", "1.5"),
        ("0.000000001", "0.000000001"),
        ("1e-9", "0.000000001"),
        ("0.001e2", "0.1"),
        ("0.0100e4", "100"),
        ("15.000000000000000000000000000000000000000000", "15"),
        ("12300000000000000000000000000000000e-32", "123"),
        ("18446744073709551615", "18446744073709551615"),
        ("18446744073709551616", "18446744073709551616"),
        ("18446744073709551616.5", "18446744073709551616.5"),
        ("1e28", "10000000000000000000000000000"),
        ("79228162514264337593543950335", "79228162514264337593543950335"),
        ("9999999999999999999.123456789", "9999999999999999999.123456789"),
    ] {
        assert_eq!(canonical(text).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn what_would_have_to_be_rounded_is_refused() {
    for (text, error) in [
        ("0.0000000001", DecimalError::TooManyDecimals),
        ("1.1234567891", DecimalError::TooManyDecimals),
        ("1e-10", DecimalError::TooManyDecimals),
        ("1e-99999999999999999999999999", DecimalError::TooManyDecimals),
        ("100000000000000000000000000000", DecimalError::TooManyIntegerDigits),
        ("1e29", DecimalError::TooManyIntegerDigits),
        ("1e400", DecimalError::TooManyIntegerDigits),
        ("1e9223372036854775807", DecimalError::TooManyIntegerDigits),
        ("99999999999999999999999999999", DecimalError::TooManyDigits),
        ("79228162514264337593543950336", DecimalError::TooManyDigits),
        ("99999999999999999999.123456789", DecimalError::TooManyDigits),
    ] {
        assert_eq!(canonical(text), Err(error), "{text}");
    }
}

#[test]
fn the_grammar_is_that_of_a_json_number() {
    for text in [
        "",
        " ",
        "-",
        "+1",
        "--1",
        "1_000",
        "1,5",
        ".5",
        "5.",
        "1.e5",
        "007",
        "00",
        "-01",
        " 1",
        "1 ",
        "1e",
        "1e+",
        "1e1.5",
        "0x10",
        "1f",
        "١",
        "1.5.5",
        "\u{feff}1",
        "1\0",
        "None",
        "null",
        "infinite",
    ] {
        assert_eq!(parse(text), Err(DecimalError::NotANumber), "{text:?}");
    }
    for text in ["NaN", "nan", "-nan", "sNaN", "Infinity", "-Infinity", "+inf", "INF"] {
        assert_eq!(parse(text), Err(DecimalError::NotFinite), "{text:?}");
    }
}

#[test]
fn canonical_texts_are_told_from_all_others() {
    for text in ["0", "1", "-1", "0.1", "-0.000000001", "99999999999999999999999999999.999999999"] {
        assert!(is_canonical(text), "{text}");
    }
    for text in [
        "",
        "-",
        "-0",
        "+1",
        "00",
        "01",
        "1.",
        ".1",
        "1.0",
        "1.10",
        "0.0000000001",
        "1e3",
        "1 ",
        "NaN",
        "100000000000000000000000000000",
        "--1",
        "1.2.3",
        "-0.0",
        "1٣",
    ] {
        assert!(!is_canonical(text), "{text}");
    }
}

#[test]
fn arithmetic_that_leaves_more_than_nine_decimals_is_not_rounded() {
    let third = Decimal::ONE / Decimal::from(3);
    assert_eq!(to_canonical(third), Err(DecimalError::TooManyDecimals));
    assert_eq!(to_canonical(third.round_dp(9)).as_deref(), Ok("0.333333333"));
}

/// The same judgement by string surgery: move the point, trim zeros, count. It shares no code with the parser.
fn by_hand(text: &str) -> Result<String, DecimalError> {
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (number, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
    let exponent: i32 = exponent.parse().unwrap();
    let (integer, fraction) = number.split_once('.').unwrap_or((number, ""));
    let (mut integer, mut fraction) = (integer.to_owned(), fraction.to_owned());
    for _ in 0..exponent {
        if fraction.is_empty() {
            fraction.push('0');
        }
        integer.push(fraction.remove(0));
    }
    for _ in exponent..0 {
        fraction.insert(0, integer.pop().unwrap_or('0'));
    }
    let integer = integer.trim_start_matches('0');
    let fraction = fraction.trim_end_matches('0');
    if integer.len() > 29 {
        return Err(DecimalError::TooManyIntegerDigits);
    }
    if fraction.len() > 9 {
        return Err(DecimalError::TooManyDecimals);
    }
    let all = format!("{integer}{fraction}");
    let all = all.trim_start_matches('0');
    let limit = "79228162514264337593543950335";
    if all.len() > limit.len() || (all.len() == limit.len() && all > limit) {
        return Err(DecimalError::TooManyDigits);
    }
    if all.is_empty() {
        return Ok("0".to_owned());
    }
    let integer = if integer.is_empty() { "0" } else { integer };
    Ok(if fraction.is_empty() { format!("{sign}{integer}") } else { format!("{sign}{integer}.{fraction}") })
}

proptest! {
    #[test]
    fn any_number_is_judged_as_by_hand(text in "-?(0|[1-9][0-9]{0,31})(\\.[0-9]{1,12})?([eE][+-]?[0-9]{1,2})?") {
        prop_assert_eq!(canonical(&text), by_hand(&text));
    }

    #[test]
    fn numbers_near_the_96_bit_limit_are_judged_as_by_hand(text in "7922816251426433759[0-9]{10}|[1-9][0-9]{18,20}\\.[0-9]{8}[1-9]") {
        prop_assert_eq!(canonical(&text), by_hand(&text));
    }

    #[test]
    fn a_canonical_text_is_its_own_canonical_text(text in "-?(0|[1-9][0-9]{0,18})(\\.[0-9]{0,8}[1-9])?") {
        prop_assume!(text != "-0");
        prop_assert!(is_canonical(&text));
        prop_assert_eq!(canonical(&text), Ok(text));
    }

    #[test]
    fn the_value_is_what_rust_decimal_reads(text in "-?(0|[1-9][0-9]{0,17})(\\.[0-9]{1,9})?") {
        prop_assert_eq!(parse(&text).unwrap(), Decimal::from_str_exact(&text).unwrap());
    }

    #[test]
    fn every_decimal_is_written_canonically(mantissa in -(1i128 << 96) + 1..1i128 << 96, scale in 0u32..=28) {
        let value = Decimal::from_i128_with_scale(mantissa, scale);
        match to_canonical(value) {
            Ok(text) => {
                prop_assert!(is_canonical(&text), "{}", text);
                prop_assert_eq!(text, value.normalize().to_string());
            }
            Err(_) => prop_assert!(value.normalize().scale() > 9),
        }
    }

    #[test]
    fn any_text_is_judged_without_a_panic(text in ".*") {
        if let Ok(value) = parse(&text) {
            prop_assert!(is_canonical(&to_canonical(value).unwrap()));
        }
    }
}

//! Decimals: text in, text out, and never a digit changed on the way.
//!
//! One grammar for JSON numbers and for decimals written as JSON strings, that of a JSON number
//! ([RFC 8259, section 6](https://www.rfc-editor.org/rfc/rfc8259#section-6)):
//!
//! ```text
//! -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?
//! ```
//!
//! So `+1`, `.5`, `5.`, `007`, `1_000`, `1,5`, ` 1`, `NaN` and `Infinity` are refused. An exponent and trailing zeros are fine, because
//! the value decides and not the way it is written: `1.50e1` and `15.000000000000` are both 15, and `-0.0` is 0.
//!
//! The range is that of BigQuery's `NUMERIC`, 29 digits before the point and 9 after it, narrowed by what [`Decimal`] can hold: a 96-bit
//! integer (28 digits always, 29 up to 79228162514264337593543950335) with a scale. A value outside is an error, never a rounded value.

mod number;
#[cfg(test)]
mod tests;

use std::fmt;

use rust_decimal::Decimal;

use number::{Number, len};

/// Digits that `NUMERIC` holds before the decimal point.
pub const MAX_INTEGER_DIGITS: i64 = 29;
/// Digits that `NUMERIC` holds after the decimal point.
pub const MAX_DECIMALS: i64 = 9;

/// Why a text or a value is not a decimal. Its `Display` completes a sentence that starts with a field's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecimalError {
    /// Not of the grammar.
    NotANumber,
    /// A spelling of NaN or of an infinity.
    NotFinite,
    /// More than [`MAX_INTEGER_DIGITS`] before the point.
    TooManyIntegerDigits,
    /// More than [`MAX_DECIMALS`] after the point, trailing zeros aside.
    TooManyDecimals,
    /// Fits `NUMERIC`, but not the 96-bit integer of [`Decimal`].
    TooManyDigits,
}

impl fmt::Display for DecimalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotANumber => "must be a decimal number",
            Self::NotFinite => "must be a finite number",
            Self::TooManyIntegerDigits => "must have at most 29 digits before the decimal point",
            Self::TooManyDecimals => "must have at most 9 digits after the decimal point",
            Self::TooManyDigits => {
                "must fit a 96-bit decimal: its digits, read without the point, must not exceed 79228162514264337593543950335"
            }
        })
    }
}

impl std::error::Error for DecimalError {}

/// The exact value of `text`, which must be of the grammar above.
///
/// ```
/// use preflight_sdk::decimal::{parse, to_canonical};
/// assert_eq!(to_canonical(parse("749.50").unwrap()).unwrap(), "749.5");
/// assert!(parse("1_000").is_err());
/// ```
pub fn parse(text: &str) -> Result<Decimal, DecimalError> {
    parse_short(text.as_bytes()).map_or_else(|| parse_any(text), Ok)
}

/// The value of what nearly every amount is: at most 18 digits, few of them decimals, no exponent. None says nothing about other texts.
fn parse_short(text: &[u8]) -> Option<Decimal> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    if digits.len() > 19 || matches!(digits, [] | [b'0', b'0'..=b'9', ..]) {
        return None;
    }
    let mut mantissa = 0u64;
    let mut point = None;
    for (at, byte) in digits.iter().enumerate() {
        match byte {
            // 18 digits cannot overflow, and a check of 64 bits is dear inside wasm.
            b'0'..=b'9' => {
                mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
            }
            b'.' if point.is_none() && at > 0 => point = Some(at),
            _ => return None,
        }
    }
    let mut decimals = match point {
        None if digits.len() == 19 => return None,
        None => 0,
        Some(at) => match digits.len() - at - 1 {
            decimals @ 1..=9 => u32::try_from(decimals).ok()?,
            _ => return None,
        },
    };
    while decimals > 0 && mantissa.is_multiple_of(10) {
        mantissa /= 10;
        decimals -= 1;
    }
    let (low, middle) = (low_word(mantissa.into()), low_word((mantissa >> 32).into()));
    Some(Decimal::from_parts(low, middle, 0, negative && mantissa != 0, decimals))
}

fn parse_any(text: &str) -> Result<Decimal, DecimalError> {
    let number = Number::scan(text.as_bytes()).ok_or_else(|| not_a_number(text))?;
    let (integer, fraction) = number.significant();
    // Where the point stands, counted from the first significant digit; negative for 0.00123.
    let digits = len(integer) + len(fraction);
    if digits == 0 {
        return Ok(Decimal::ZERO);
    }
    let point = number.point(integer.is_empty(), fraction);
    let decimals = (digits - point).max(0);
    if point > MAX_INTEGER_DIGITS {
        return Err(DecimalError::TooManyIntegerDigits);
    }
    if decimals > MAX_DECIMALS {
        return Err(DecimalError::TooManyDecimals);
    }
    let missing_zeros = (point - digits).max(0);
    // At most 29 + 9 digits, which a u128 holds.
    let mantissa = read_digits(read_digits(0, integer), fraction) * 10u128.pow(small(missing_zeros));
    if mantissa >> 96 != 0 {
        return Err(DecimalError::TooManyDigits);
    }
    Ok(Decimal::from_parts(
        low_word(mantissa),
        low_word(mantissa >> 32),
        low_word(mantissa >> 64),
        number.negative,
        small(decimals),
    ))
}

/// The one text of a value that the contract's `numeric` allows: no exponent, no leading or trailing zeros, no `-0`.
///
/// Fails with [`DecimalError::TooManyDecimals`] when arithmetic has left more than nine decimals: rounding is the rule's decision.
pub fn to_canonical(value: Decimal) -> Result<String, DecimalError> {
    // The digits go to the end of the buffer. 29 of them, a point, a zero before it and a sign fit.
    let mut text = [b'0'; 40];
    let mut start = write_digits(value.mantissa().unsigned_abs(), &mut text);
    let mut point = text.len() - value.scale() as usize;
    start = start.min(point - 1);

    let mut end = text.len();
    while end > point && text[end - 1] == b'0' {
        end -= 1;
    }
    if end - point > 9 {
        return Err(DecimalError::TooManyDecimals);
    }
    if end > point {
        text.copy_within(start..point, start - 1);
        start -= 1;
        point -= 1;
        text[point] = b'.';
    }
    if value.is_sign_negative() && !value.is_zero() {
        start -= 1;
        text[start] = b'-';
    }
    Ok(str::from_utf8(&text[start..end]).expect("digits, a point and a sign").to_owned())
}

/// Writes a number to the end of `text` and gives the position of its first digit.
fn write_digits(mut number: u128, text: &mut [u8]) -> usize {
    let mut start = text.len();
    let mut push = |digit: u64| {
        start -= 1;
        text[start] = b'0' + u8::try_from(digit).expect("a single digit");
    };
    // 64-bit division is several times cheaper inside wasm than 128-bit division.
    let mut rest = loop {
        match u64::try_from(number) {
            Ok(number) => break number,
            Err(_) => push((number % 10) as u64),
        }
        number /= 10;
    };
    while rest > 0 {
        push(rest % 10);
        rest /= 10;
    }
    start
}

/// Whether `text` is exactly `-?(0|[1-9][0-9]{0,28})(\.[0-9]{0,8}[1-9])?` and not `-0`: the contract's `numeric`.
///
/// It covers all of `NUMERIC`, so it also admits texts whose digits [`Decimal`] cannot hold.
pub fn is_canonical(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (integer, fraction) = match unsigned.split_once('.') {
        Some((integer, fraction)) => (integer.as_bytes(), Some(fraction.as_bytes())),
        None => (unsigned.as_bytes(), None),
    };
    let integer_is_canonical = match integer {
        [b'0'] => true,
        [b'1'..=b'9', rest @ ..] => rest.len() <= 28 && rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    let fraction_is_canonical = match fraction {
        None => true,
        Some([rest @ .., b'1'..=b'9']) => rest.len() <= 8 && rest.iter().all(u8::is_ascii_digit),
        Some(_) => false,
    };
    integer_is_canonical && fraction_is_canonical && text != "-0"
}

fn read_digits(start: u128, digits: &[u8]) -> u128 {
    digits.iter().fold(start, |sum, byte| sum * 10 + u128::from(byte - b'0'))
}

/// A number of digits, which is never negative and, where this is called, below 39.
fn small(digits: i64) -> u32 {
    u32::try_from(digits).expect("between 0 and 38")
}

#[expect(clippy::cast_possible_truncation, reason = "the low 32 bits are what is asked for")]
fn low_word(value: u128) -> u32 {
    value as u32
}

fn not_a_number(text: &str) -> DecimalError {
    let name = text.trim_start_matches(['+', '-']);
    let not_finite = ["nan", "snan", "inf", "infinity"].iter().any(|known| name.eq_ignore_ascii_case(known));
    if not_finite { DecimalError::NotFinite } else { DecimalError::NotANumber }
}

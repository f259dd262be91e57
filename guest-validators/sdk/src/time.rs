//! Times and dates: one grammar, for rules and for the host.
//!
//! A time is [RFC 3339](https://www.rfc-editor.org/rfc/rfc3339#section-5.6) with a few spellings more:
//!
//! ```text
//! YYYY-MM-DD (T|t| ) HH:MM:SS [. 1-9 digits] (Z | z | ±HH:MM | ±HHMM | ±HH)
//! ```
//!
//! | written | judged |
//! | --- | --- |
//! | lower-case `t` and `z`, one space for `T` | accepted: RFC 3339 allows them |
//! | `+0200`, `+02` | accepted: ISO 8601 and Python write them, and they can mean one thing only |
//! | `-00:00` | accepted: RFC 3339's "offset unknown", the instant itself is known |
//! | no offset, or a date alone | refused: which instant it is cannot be told |
//! | offset hours above 23, minutes above 59, seconds in an offset, `Z07:00` | refused |
//! | 7 to 9 fraction digits | accepted if the digits after the sixth are zeros, else refused: microseconds are never rounded |
//! | 10 and more fraction digits, a comma for the point | refused |
//! | `24:00:00` | refused: RFC 3339 ends the day at 23:59:59 |
//! | second 60 | refused: a leap second has no place on the microsecond scale |
//! | no seconds, week dates, `20261007T141000Z` | refused |
//!
//! The instant, with the offset applied, is within 0001-01-01T00:00:00Z and 9999-12-31T23:59:59.999999Z: BigQuery's `TIMESTAMP`.
//! The calendar is chrono's; the grammar is here, since chrono's own parser takes more spellings than can be listed.

use std::fmt;

use chrono::{DateTime, Datelike, NaiveDate, Timelike};

#[cfg(test)]
mod tests;

/// 0001-01-01T00:00:00Z, in microseconds since 1970.
pub const MIN_MICROS: i64 = -62_135_596_800_000_000;
/// 9999-12-31T23:59:59.999999Z, in microseconds since 1970.
pub const MAX_MICROS: i64 = 253_402_300_799_999_999;
/// 0001-01-01, in days since 1970.
pub const MIN_DAYS: i32 = -719_162;
/// 9999-12-31, in days since 1970.
pub const MAX_DAYS: i32 = 2_932_896;

/// Why a text is not a time or a date. Its `Display` completes a sentence that starts with a field's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeError {
    /// Not of the grammar of times.
    NotATime,
    /// Not of the grammar of dates.
    NotADate,
    /// A date, or a date and a time of day, without an offset.
    MissingOffset,
    /// Something after the time of day that is not an offset.
    BadOffset,
    /// A day that the calendar does not have, such as 30 February, or year 0000.
    NoSuchDay,
    /// An hour above 23, or a minute or second above 59.
    NoSuchTime,
    /// Digits below a microsecond that are not zeros.
    BelowMicroseconds,
    /// More than nine fraction digits.
    TooManyDigits,
    /// Before year 1 or after year 9999, once the offset is applied.
    OutOfRange,
}

impl fmt::Display for TimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotATime => "must be an RFC 3339 time such as 2026-10-07T14:10:00Z",
            Self::NotADate => "must be a date such as 2026-10-07",
            Self::MissingOffset => "must include an offset or Z",
            Self::BadOffset => "must end with an offset such as +02:00, or Z",
            Self::NoSuchDay => "must be a day of the calendar between years 1 and 9999",
            Self::NoSuchTime => "must be a time of day between 00:00:00 and 23:59:59",
            Self::BelowMicroseconds => "must not be finer than a microsecond",
            Self::TooManyDigits => "must have at most 9 fraction digits",
            Self::OutOfRange => "must be within 0001-01-01T00:00:00Z and 9999-12-31T23:59:59.999999Z",
        })
    }
}

impl std::error::Error for TimeError {}

/// Microseconds since 1970-01-01T00:00:00Z of a time of the grammar above.
///
/// ```
/// use preflight_sdk::time::{TimeError, parse_rfc3339};
/// assert_eq!(parse_rfc3339("1970-01-01T02:00:00.5+02:00"), Ok(500_000));
/// assert_eq!(parse_rfc3339("1970-01-01T02:00:00"), Err(TimeError::MissingOffset));
/// ```
pub fn parse_rfc3339(text: &str) -> Result<i64, TimeError> {
    let text = text.as_bytes();
    let (date, rest) = text.split_at_checked(10).ok_or(TimeError::NotATime)?;
    let (year, month, day) = scan_date(date).ok_or(TimeError::NotATime)?;
    let rest = match rest {
        [] => return days(year, month, day).and(Err(TimeError::MissingOffset)),
        [b'T' | b't' | b' ', rest @ ..] => rest,
        _ => return Err(TimeError::NotATime),
    };
    let (seconds, rest) = scan_time_of_day(rest)?;
    let (fraction, rest) = match rest {
        [b'.', rest @ ..] => scan_fraction(rest)?,
        _ => (0, rest),
    };
    let days = days(year, month, day)?;
    let offset = scan_offset(rest)?;

    // Some millions of days cannot overflow, and a check of 64 bits is dear inside wasm.
    let seconds = i64::from(days).wrapping_mul(86_400) + i64::from(seconds - offset);
    let micros = seconds.wrapping_mul(1_000_000) + i64::from(fraction);
    if (MIN_MICROS..=MAX_MICROS).contains(&micros) { Ok(micros) } else { Err(TimeError::OutOfRange) }
}

/// A time as RFC 3339 text with exactly six fraction digits and `Z`.
///
/// A value outside [`MIN_MICROS`]`..=`[`MAX_MICROS`] has no such text; it gives the number and says so, for a log or a reason.
pub fn format_micros(micros: i64) -> String {
    let in_range = (MIN_MICROS..=MAX_MICROS).contains(&micros);
    let Some(time) = DateTime::from_timestamp_micros(micros).filter(|_| in_range) else {
        return format!("{micros} µs since 1970, outside years 1 to 9999");
    };
    // chrono's own formatting interprets a pattern at each call: a row has several times, and this is ten times faster.
    let mut text = String::with_capacity("YYYY-MM-DDTHH:MM:SS.ffffffZ".len());
    let fields = [
        (time.year().unsigned_abs(), 4, '-'),
        (time.month(), 2, '-'),
        (time.day(), 2, 'T'),
        (time.hour(), 2, ':'),
        (time.minute(), 2, ':'),
        (time.second(), 2, '.'),
        (time.timestamp_subsec_micros(), 6, 'Z'),
    ];
    for (number, width, after) in fields {
        push_digits(&mut text, number, width);
        text.push(after);
    }
    text
}

/// Appends the last `width` digits of a number.
fn push_digits(text: &mut String, number: u32, width: u32) {
    for place in (0..width).rev() {
        let digit = number / 10_u32.pow(place) % 10;
        text.push(char::from_digit(digit, 10).expect("a remainder of ten is a digit"));
    }
}

/// Days since 1970-01-01 of a date written `YYYY-MM-DD`, years 0001 to 9999.
pub fn parse_date(text: &str) -> Result<i32, TimeError> {
    let (year, month, day) = scan_date(text.as_bytes()).ok_or(TimeError::NotADate)?;
    days(year, month, day)
}

/// A date as `YYYY-MM-DD`. A value outside [`MIN_DAYS`]`..=`[`MAX_DAYS`] gives the number and says so.
pub fn format_date(days: i32) -> String {
    let in_range = (MIN_DAYS..=MAX_DAYS).contains(&days);
    let Some(date) = NaiveDate::from_epoch_days(days).filter(|_| in_range) else {
        return format!("{days} days since 1970, outside years 1 to 9999");
    };
    format!("{:04}-{:02}-{:02}", date.year(), date.month(), date.day())
}

fn days(year: i32, month: u8, day: u8) -> Result<i32, TimeError> {
    let date = NaiveDate::from_ymd_opt(year, month.into(), day.into()).filter(|_| year > 0);
    date.map(|date| date.to_epoch_days()).ok_or(TimeError::NoSuchDay)
}

/// Year, month and day of exactly `YYYY-MM-DD`; whether there is such a day is not checked.
fn scan_date(text: &[u8]) -> Option<(i32, u8, u8)> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = *text else {
        return None;
    };
    Some((
        i32::from(two_digits(y1, y2)?) * 100 + i32::from(two_digits(y3, y4)?),
        two_digits(m1, m2)?,
        two_digits(d1, d2)?,
    ))
}

/// Seconds since midnight of `HH:MM:SS`, and what follows.
fn scan_time_of_day(text: &[u8]) -> Result<(i32, &[u8]), TimeError> {
    let [h1, h2, b':', m1, m2, b':', s1, s2, rest @ ..] = text else {
        return Err(TimeError::NotATime);
    };
    let scan = || Some((two_digits(*h1, *h2)?, two_digits(*m1, *m2)?, two_digits(*s1, *s2)?));
    let (hour, minute, second) = scan().ok_or(TimeError::NotATime)?;
    if hour > 23 || minute > 59 || second > 59 {
        return Err(TimeError::NoSuchTime);
    }
    Ok((i32::from(hour) * 3600 + i32::from(minute) * 60 + i32::from(second), rest))
}

/// Microseconds of a fraction of a second, and what follows.
fn scan_fraction(text: &[u8]) -> Result<(i32, &[u8]), TimeError> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match digits {
        0 => return Err(TimeError::NotATime),
        1..=9 => {}
        _ => return Err(TimeError::TooManyDigits),
    }
    let (digits, rest) = text.split_at(digits);
    let micros = (0..6).fold(0, |sum, at| sum * 10 + digits.get(at).map_or(0, |digit| i32::from(digit - b'0')));
    if digits.iter().skip(6).any(|digit| *digit != b'0') {
        return Err(TimeError::BelowMicroseconds);
    }
    Ok((micros, rest))
}

/// Seconds east of UTC.
fn scan_offset(text: &[u8]) -> Result<i32, TimeError> {
    let (sign, hours, minutes) = match *text {
        [] => return Err(TimeError::MissingOffset),
        [b'Z' | b'z'] => return Ok(0),
        [sign, h1, h2] => (sign, two_digits(h1, h2), Some(0)),
        [sign, h1, h2, m1, m2] | [sign, h1, h2, b':', m1, m2] => (sign, two_digits(h1, h2), two_digits(m1, m2)),
        _ => return Err(TimeError::BadOffset),
    };
    let (Some(hours @ 0..=23), Some(minutes @ 0..=59)) = (hours, minutes) else {
        return Err(TimeError::BadOffset);
    };
    let seconds = i32::from(hours) * 3600 + i32::from(minutes) * 60;
    match sign {
        b'+' => Ok(seconds),
        b'-' => Ok(-seconds),
        _ => Err(TimeError::BadOffset),
    }
}

fn two_digits(tens: u8, units: u8) -> Option<u8> {
    let (tens, units) = (tens.wrapping_sub(b'0'), units.wrapping_sub(b'0'));
    (tens <= 9 && units <= 9).then(|| tens * 10 + units)
}

//! Values as a column takes them, and what it refuses.

use super::api::table_field_schema::Type;
use super::decode::Raw;
use super::table::Column;
use base64::Engine as _;
use prost_types::field_descriptor_proto::Type as Wire;
use serde_json::Value;
use std::time::{SystemTime, UNIX_EPOCH};

/// 0001-01-01 to 9999-12-31.
const DAYS: std::ops::RangeInclusive<i64> = -719_162..=2_932_896;
const MICROS_A_DAY: i64 = 86_400_000_000;
/// How far from today a partition may be.
const PARTITIONS: std::ops::RangeInclusive<i64> = -3_650..=366;

/// Reads a value: TIMESTAMP as microseconds, DATE as days, NUMERIC and JSON as text, BYTES as base64.
pub(super) fn read(column: &Column, wire: Wire, raw: Raw<'_>) -> Result<Value, String> {
    match (wire, raw) {
        (Wire::Bool, Raw::Varint(n @ 0..=1)) => Ok((n == 1).into()),
        (Wire::Int64, Raw::Varint(n)) => integer(column, n.cast_signed()),
        (Wire::Int32, Raw::Varint(n)) => {
            let n = i32::try_from(n.cast_signed()).map_err(|_| format!("{n} is no int32"))?;
            integer(column, n.into())
        }
        (Wire::Double, Raw::Fixed64(bits)) => {
            let number = f64::from_bits(bits);
            Ok(serde_json::Number::from_f64(number).map_or_else(|| number.to_string().into(), Value::Number))
        }
        (Wire::Bytes, Raw::Bytes(bytes)) => {
            length(column, bytes.len())?;
            Ok(base64::engine::general_purpose::STANDARD.encode(bytes).into())
        }
        (Wire::String, Raw::Bytes(bytes)) => {
            let text = std::str::from_utf8(bytes).map_err(|_| "is not UTF-8".to_owned())?;
            self::text(column, text)?;
            Ok(text.into())
        }
        (wire, _) => Err(format!("is not sent as a {}", wire.as_str_name())),
    }
}

fn integer(column: &Column, n: i64) -> Result<Value, String> {
    let days = match column.kind {
        Type::Timestamp => Some(n.div_euclid(MICROS_A_DAY)),
        Type::Date => Some(n),
        _ => None,
    };
    match days {
        Some(days) if !DAYS.contains(&days) => Err(format!("{n} is not between the years 1 and 9999")),
        _ => Ok(n.into()),
    }
}

fn text(column: &Column, text: &str) -> Result<(), String> {
    match column.kind {
        Type::String => length(column, text.chars().count()),
        Type::Numeric => numeric(text, column.digits),
        Type::Json => serde_json::from_str::<serde::de::IgnoredAny>(text)
            .map(|_| ())
            .map_err(|error| format!("is not JSON: {error}")),
        _ => Ok(()),
    }
}

fn length(column: &Column, has: usize) -> Result<(), String> {
    let most = usize::try_from(column.max_length).unwrap_or(0);
    if most > 0 && has > most {
        return Err(format!(
            "{}({most}) has maximum length {most} but got a value with length {has}",
            column.kind.as_str_name()
        ));
    }
    Ok(())
}

/// 29 digits before and 9 after the point; the fake refuses what BigQuery would round.
fn numeric(text: &str, digits: (i64, i64)) -> Result<(), String> {
    let invalid = || format!("Invalid NUMERIC value: {text}");
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (before, after) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, scale) = match digits {
        (0, _) => (29, 9),
        (precision, scale) => (precision - scale, scale),
    };
    let fits = |part: &str, most: i64| i64::try_from(part.len()).is_ok_and(|length| length <= most);
    let good = all_digits(before)
        && all_digits(after)
        && fits(before.trim_start_matches('0'), whole)
        && fits(after.trim_end_matches('0'), scale);
    if good { Ok(()) } else { Err(invalid()) }
}

/// Whether a partition may be written to: not further than ten years back, nor a year ahead.
pub(super) fn partition(kind: Type, value: &Value) -> Result<(), String> {
    let number = value.as_i64();
    let day = if kind == Type::Timestamp { number.map(|n| n.div_euclid(MICROS_A_DAY)) } else { number };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_secs() / 86_400);
    let today = i64::try_from(now).unwrap_or(0);
    match day {
        Some(day) if !PARTITIONS.contains(&(day - today)) => Err(
            "is outside the allowed bounds. You can only stream to date range within 3650 days in the past and 366 days in \
             the future relative to the current date"
                .to_owned(),
        ),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_numeric_is_taken_up_to_its_digits() {
        for good in ["0", "-1.50", "00000000000000000000000000000000001", "99999999999999999999999999999.999999999"] {
            assert_eq!(numeric(good, (0, 0)), Ok(()), "{good}");
        }
        for bad in ["", "-", "1.", ".5", "1e5", "NaN", "+1", "1.0000000001", "100000000000000000000000000000"] {
            assert!(numeric(bad, (0, 0)).is_err(), "{bad}");
        }
        assert!(numeric("12345678.90", (10, 2)).is_ok() && numeric("123456789", (10, 2)).is_err());
        assert!(numeric("1.005", (10, 2)).is_err());
    }

    #[test]
    fn partitions_end_ten_years_back_and_a_year_ahead() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() / 86_400;
        let today = i64::try_from(now).unwrap();
        for (days, good) in [(0, true), (-3_649, true), (-3_652, false), (365, true), (368, false)] {
            assert_eq!(partition(Type::Date, &(today + days).into()).is_ok(), good, "{days}");
            assert_eq!(partition(Type::Timestamp, &((today + days) * MICROS_A_DAY).into()).is_ok(), good, "{days}");
        }
    }
}

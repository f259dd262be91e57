//! Text of a CSV field as what it stands for.

use preflight_sdk::prelude::*;
use preflight_sdk::time::{TimeError, parse_rfc3339};

/// The integer that a text is written as, perhaps with blanks around it or a sign before it.
pub(crate) fn integer(field: Field<'_>, text: &str) -> Result<i64, FieldError> {
    const RANGE: &str = "must be an integer between -9223372036854775808 and 9223372036854775807";
    text.trim().parse().map_err(|_| field.found(RANGE, text))
}

/// The instant of `YYYY-MM-DD HH:MM:SS`, UTC, perhaps with blanks around it.
pub(crate) fn utc(field: Field<'_>) -> Result<Timestamp, FieldError> {
    let text = field.any_text()?;
    let micros = utc_micros(text.trim()).map_err(|error| field.found(error, &text))?;
    Ok(Timestamp::from_micros(micros).expect("the grammar ends with the range"))
}

/// Microseconds since 1970, or how the text fails to be a time.
fn utc_micros(text: &str) -> Result<i64, String> {
    const FORM: &str = "must be a time such as 2026-10-07 14:10:00";
    const LENGTH: usize = "YYYY-MM-DD HH:MM:SS".len();
    let bytes = text.as_bytes();
    if bytes.len() != LENGTH || bytes[10] != b' ' {
        return Err(FORM.to_owned());
    }
    // With the offset that the file leaves out it is of the grammar that host and rules share.
    let mut with_offset = [b'Z'; LENGTH + 1];
    with_offset[..LENGTH].copy_from_slice(bytes);
    let with_offset = std::str::from_utf8(&with_offset).expect("one more ASCII character keeps it UTF-8");
    parse_rfc3339(with_offset).map_err(|error| match error {
        TimeError::NoSuchDay | TimeError::NoSuchTime => error.to_string(),
        _ => FORM.to_owned(),
    })
}

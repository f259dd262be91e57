//! A JSON field: its value as one of the types a row can hold.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::object::Object;
use super::{kind, string};
use crate::decimal;
use crate::error::{FieldError, quote};
use crate::time;
use crate::value::{Date, Json, Numeric, Text, Timestamp};

/// Bytes of a text that [`Field::text`] takes at most: far more than any id or name, far less than what would fill a warehouse's row.
pub const MAX_TEXT_BYTES: usize = 64 * 1024;

/// A field of an object: a name and a JSON value in the text in which it was written.
#[derive(Clone, Copy, Debug)]
pub struct Field<'f> {
    name: &'f str,
    raw: &'f str,
}

impl<'f> Field<'f> {
    pub(super) const NULL: Self = Self { name: "", raw: "null" };

    #[inline]
    pub(super) fn new(name: &'f str, raw: &'f str) -> Self {
        Self { name, raw }
    }

    /// The field's name.
    pub fn name(self) -> &'f str {
        self.name
    }

    /// The JSON text of the value, as it was written.
    pub fn raw(self) -> &'f str {
        self.raw
    }

    /// Whether the value is null.
    pub fn is_null(self) -> bool {
        // Of all JSON values only null starts with this letter.
        self.raw.as_bytes().first() == Some(&b'n')
    }

    /// A string's text, or the text of a number exactly as it was written (`7.50` stays `7.50`). No other type has a text.
    ///
    /// It must not be empty or blank, and has at most [`MAX_TEXT_BYTES`]; see [`any_text`](Self::any_text) and
    /// [`text_up_to`](Self::text_up_to).
    pub fn text(self) -> Result<Text, FieldError> {
        self.text_up_to(MAX_TEXT_BYTES)
    }

    /// As [`text`](Self::text), with another limit.
    pub fn text_up_to(self, max_bytes: usize) -> Result<Text, FieldError> {
        let text = self.scalar("text")?;
        if is_blank(&text) {
            return Err(self.error("must not be blank"));
        }
        self.limited(text, max_bytes)
    }

    /// As [`text`](Self::text), and it may be empty or blank.
    pub fn any_text(self) -> Result<Text, FieldError> {
        let text = self.scalar("text")?;
        self.limited(text, MAX_TEXT_BYTES)
    }

    /// The exact decimal of a number, or of a string that is written like one. See [`crate::decimal`] for grammar and range.
    pub fn numeric(self) -> Result<Numeric, FieldError> {
        let text = self.scalar("a decimal number")?;
        decimal::parse(&text).map_err(|error| self.found(error, &text))
    }

    /// The integer of a number, or of a string that is written like one. `1.0` and `1e3` are integers: the value decides.
    pub fn int64(self) -> Result<i64, FieldError> {
        const RANGE: &str = "must be an integer between -9223372036854775808 and 9223372036854775807";
        let text = self.scalar("an integer")?;
        let value = decimal::parse(&text).map_err(|_| self.found(RANGE, &text))?;
        let integer = value.is_integer().then(|| i64::try_from(value).ok()).flatten();
        integer.ok_or_else(|| self.found(RANGE, &text))
    }

    /// The double nearest to a number, or to a string that is written like one. Where each digit counts, declare the column `Numeric`.
    pub fn float64(self) -> Result<f64, FieldError> {
        let text = self.scalar("a number")?;
        let is_number = serde_json::from_str::<&RawValue>(&text)
            .is_ok_and(|value| kind(value.get()) == "a number" && value.get() == text);
        let value = if is_number { text.parse().ok() } else { None };
        match value {
            Some(value) if f64::is_finite(value) => Ok(value),
            Some(_) => Err(self.found("must be within the range of a double", &text)),
            None => Err(self.found("must be a number", &text)),
        }
    }

    /// `true` or `false`; nothing else, no matter how it is spelled.
    pub fn boolean(self) -> Result<bool, FieldError> {
        match self.raw {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(self.wrong_type("true or false")),
        }
    }

    /// The instant that a string names. See [`crate::time`] for the grammar.
    pub fn timestamp(self) -> Result<Timestamp, FieldError> {
        let text = self.string("a time")?;
        match time::parse_rfc3339(&text) {
            Ok(micros) => Ok(Timestamp::from_micros(micros).expect("the grammar ends with the range")),
            // The seed's wording, which says all without the input.
            Err(error @ time::TimeError::MissingOffset) => Err(self.error(error)),
            Err(error) => Err(self.found(error, &text)),
        }
    }

    /// The day that a string `YYYY-MM-DD` names.
    pub fn date(self) -> Result<Date, FieldError> {
        let text = self.string("a date")?;
        let days = time::parse_date(&text).map_err(|error| self.found(error, &text))?;
        Ok(Date::from_days(days).expect("the grammar ends with the range"))
    }

    /// The value itself, of any type, as the text in which it was written.
    pub fn json(self) -> Result<Json, FieldError> {
        Ok(Json(self.raw.to_owned()))
    }

    /// The object that the field holds.
    pub fn object(self) -> Result<Object<'f>, FieldError> {
        if !self.raw.starts_with('{') {
            return Err(self.wrong_type("an object"));
        }
        Object::parse(self.raw).map_err(|error| self.error(format!("must be an object: {error}")))
    }

    /// The values of the list that the field holds; each bears the field's name.
    pub fn list(self) -> Result<Vec<Self>, FieldError> {
        if !self.raw.starts_with('[') {
            return Err(self.wrong_type("a list"));
        }
        let values: Vec<&RawValue> =
            serde_json::from_str(self.raw).map_err(|error| self.error(format!("must be a list: {error}")))?;
        Ok(values.into_iter().map(|value| Self::new(self.name, value.get())).collect())
    }

    /// An error about this field, from a predicate such as `must be an even number`.
    #[cold]
    pub fn error(self, predicate: impl std::fmt::Display) -> FieldError {
        FieldError::new(self.name, predicate)
    }

    /// An error about this field that quotes `text`, clipped, as what was found.
    #[cold]
    pub fn found(self, predicate: impl std::fmt::Display, text: &str) -> FieldError {
        self.error(format!("{predicate}, found {}", quote(text)))
    }

    #[cold]
    fn wrong_type(self, wanted: &str) -> FieldError {
        self.error(format!("must be {wanted}, found {}", kind(self.raw)))
    }

    /// The text of a string or of a number.
    #[inline]
    fn scalar(self, wanted: &str) -> Result<Cow<'f, str>, FieldError> {
        match self.raw.as_bytes().first() {
            Some(b'-' | b'0'..=b'9') => Ok(Cow::Borrowed(self.raw)),
            _ => self.string(wanted),
        }
    }

    #[inline]
    fn string(self, wanted: &str) -> Result<Cow<'f, str>, FieldError> {
        if !self.raw.starts_with('"') {
            return Err(self.wrong_type(wanted));
        }
        let inside = string::unquote(self.raw);
        if string::find_special(inside.as_bytes()) == inside.len() {
            return Ok(Cow::Borrowed(inside));
        }
        let text = serde_json::from_str(self.raw).map_err(|error| self.error(format!("must be {wanted}: {error}")))?;
        Ok(Cow::Owned(text))
    }

    fn limited(self, text: Cow<'_, str>, max_bytes: usize) -> Result<Text, FieldError> {
        if text.len() > max_bytes {
            return Err(self.error(format!("must have at most {max_bytes} bytes, found {}", text.len())));
        }
        Ok(text.into_owned())
    }
}

#[inline]
fn is_blank(text: &str) -> bool {
    // Nearly every text starts with something that shows.
    text.as_bytes().first().is_none_or(|first| first.is_ascii_whitespace() && text.trim_ascii_start().is_empty())
}

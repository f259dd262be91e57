//! A JSON object: its fields by name.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::field::Field;
use super::keys::same;
use super::strict;
use crate::error::FieldError;
use crate::value::{Date, Json, Numeric, Text, Timestamp};
use crate::verdict::{Verdict, reject, stage};

/// A JSON object whose keys are unique. The fields keep the order and the text in which they were written.
#[derive(Clone, Debug)]
pub struct Object<'a> {
    /// Keys are borrowed from the payload unless they are written with escapes.
    fields: Vec<(Cow<'a, str>, &'a str)>,
}

/// The values of the fields that [`require!`](crate::require!) names, in its order.
pub type Fields<'f, const N: usize> = [Field<'f>; N];

impl<'a> Object<'a> {
    /// Reads a whole payload that starts with `{`.
    pub(super) fn read(text: &'a str) -> Result<Self, String> {
        let object = Self::parse(text).map_err(|error| error.to_string())?;
        strict::check_unique(&object.fields, |(key, _)| key)?;
        for (_, value) in &object.fields {
            strict::check(value, 1)?;
        }
        Ok(object)
    }

    /// The object of a text that has been checked as a part of its payload.
    pub(super) fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        let mut json = serde_json::Deserializer::from_str(text);
        let fields = json.deserialize_map(FieldsVisitor)?;
        json.end()?;
        Ok(Self { fields })
    }

    /// The field of that name. A null one is as good as absent.
    pub fn get<'f>(&'f self, name: &'f str) -> Option<Field<'f>> {
        self.find(name).filter(|field| !field.is_null())
    }

    fn find<'f>(&'f self, name: &'f str) -> Option<Field<'f>> {
        let found = self.fields.iter().find(|(key, _)| same(key, name));
        found.map(|(_, value)| Field::new(name, value))
    }

    /// All fields, nulls included, in the order in which they were written.
    pub fn fields(&self) -> impl Iterator<Item = Field<'_>> {
        self.fields.iter().map(|(key, value)| Field::new(key, value))
    }

    /// The fields of those names, or a rejection that lists what is missing or null. [`require!`](crate::require!) is the way to call it:
    /// there names and variables cannot get out of step.
    pub fn required<'f, const N: usize>(&'f self, names: [&'static str; N]) -> Verdict<Fields<'f, N>> {
        let mut required = [Field::NULL; N];
        // Events mostly have their fields in the order in which the rule names them.
        let mut likely = self.fields.iter();
        for (field, name) in required.iter_mut().zip(names) {
            let found = match likely.next() {
                Some((key, value)) if same(key, name) => Some(Field::new(name, value)),
                _ => self.find(name),
            };
            match found {
                Some(found) if !found.is_null() => *field = found,
                _ => return self.incomplete(&names),
            }
        }
        Ok(required)
    }

    #[cold]
    fn incomplete<R>(&self, names: &[&'static str]) -> Verdict<R> {
        let list = |wanted: fn(Option<Field<'_>>) -> bool| {
            let mut names: Vec<_> = names.iter().copied().filter(|name| wanted(self.find(name))).collect();
            names.sort_unstable();
            names.join(", ")
        };
        let missing = list(|field| field.is_none());
        if !missing.is_empty() {
            return reject(stage::SCHEMA_VALIDATION, format!("Missing required fields: {missing}"));
        }
        let null = list(|field| field.is_some_and(Field::is_null));
        reject(stage::SCHEMA_VALIDATION, format!("Required fields must not be null: {null}"))
    }

    /// The text of a field, or `default` if it is absent or null. See [`Field::text`].
    pub fn text_or(&self, name: &str, default: &str) -> Result<Text, FieldError> {
        self.get(name).map_or_else(|| Ok(default.to_owned()), Field::text)
    }
}

macro_rules! optional {
    ($($method:ident: $read:ident -> $type:ty;)+) => {
        impl Object<'_> {
            $(
                #[doc = concat!("[`Field::", stringify!($read), "`] of the field of that name; none if it is absent or null.")]
                pub fn $method(&self, name: &str) -> Result<Option<$type>, FieldError> {
                    self.get(name).map(Field::$read).transpose()
                }
            )+
        }
    };
}

optional! {
    opt_text: text -> Text;
    opt_numeric: numeric -> Numeric;
    opt_int64: int64 -> i64;
    opt_float64: float64 -> f64;
    opt_boolean: boolean -> bool;
    opt_timestamp: timestamp -> Timestamp;
    opt_date: date -> Date;
    opt_json: json -> Json;
}

/// A key, while `serde_json` hands it over.
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(KeyVisitor)
    }
}

struct KeyVisitor;

impl<'de> Visitor<'de> for KeyVisitor {
    type Value = Key<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok(Key(Cow::Borrowed(key)))
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(Key(Cow::Owned(key.to_owned())))
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Vec<(Cow<'de, str>, &'de str)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        // Most events have fewer fields; growing costs more than the room.
        let mut fields = Vec::with_capacity(16);
        while let Some((key, value)) = map.next_entry::<Key<'de>, &'de RawValue>()? {
            fields.push((key.0, value.get()));
        }
        Ok(fields)
    }
}

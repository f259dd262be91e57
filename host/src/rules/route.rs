//! Which event version an event has: from an attribute, or from a field of its JSON payload.

use crate::event::Event;
use crate::verdict::{Rejection, clip, stage};
use serde::Deserialize as _;
use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Where the event version is found, and what it is when it is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routing {
    /// Where to look.
    pub by: By,
    /// The version of an event that does not say.
    pub default: Option<String>,
}

/// Where to look for the event version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum By {
    /// An attribute's value.
    Attribute(String),
    /// A field of the payload, text or integer.
    Field(Pointer),
    /// Nowhere: every event has the default version.
    Default,
}

impl Routing {
    /// The version of an event, or why it cannot be told.
    pub fn version<'a>(&'a self, event: &'a Event) -> Result<Cow<'a, str>, Rejection> {
        let found = match &self.by {
            By::Attribute(name) => event.attribute(name).map(Cow::Borrowed),
            By::Field(pointer) => match event.document() {
                Ok(document) => pointer.find(document)?.map(Cow::Owned),
                Err(_) => None,
            },
            By::Default => None,
        };
        found.or(self.default.as_deref().map(Cow::Borrowed)).ok_or_else(|| {
            Rejection::by_host(stage::ROUTING, "no_version", format!("{} and there is no default", self.by))
        })
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attribute(name) => write!(f, "the event has no attribute `{name}`"),
            Self::Field(pointer) => write!(f, "the payload has no field {}", pointer.text),
            Self::Default => write!(f, "the pipeline does not say where the event version is"),
        }
    }
}

/// A JSON pointer (RFC 6901).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    text: String,
    tokens: Vec<String>,
}

impl Pointer {
    /// Parses `/a/b`; `~1` is a slash and `~0` a tilde.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some(rest) = text.strip_prefix('/') else {
            return Err(format!("{text:?} is not a JSON pointer: it must start with `/`, such as /schema_version"));
        };
        let tokens = rest.split('/').map(|token| token.replace("~1", "/").replace("~0", "~")).collect();
        Ok(Self { text: text.to_owned(), tokens })
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The text or integer at the pointer. None if it is absent or null, or the payload is not JSON: then the rule
    /// that judges the default version says what is wrong with it.
    pub fn find(&self, payload: &[u8]) -> Result<Option<String>, Rejection> {
        let mut deserializer = serde_json::Deserializer::from_slice(payload);
        match Find(&self.tokens).deserialize(&mut deserializer) {
            Ok(Found::Absent) | Err(_) => Ok(None),
            Ok(Found::Version(version)) => Ok(Some(version)),
            Ok(Found::Repeated) => Err(self.unclear("stands twice in the payload")),
            Ok(Found::NotAVersion) => Err(self.unclear("is neither text nor an integer")),
        }
    }

    fn unclear(&self, what: &str) -> Rejection {
        Rejection::by_host(stage::ROUTING, "unclear_version", format!("the field {} {what}", clip(&self.text, 100)))
    }
}

enum Found {
    Absent,
    Version(String),
    Repeated,
    NotAVersion,
}

/// Walks to the pointer without building the document. What is not on the way is skipped without recursion.
struct Find<'a>(&'a [String]);

impl<'de> DeserializeSeed<'de> for Find<'_> {
    type Value = Found;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Found, D::Error> {
        if self.0.is_empty() {
            // The text of the value, not a number made of it: 1e999 is no number that serde_json could make, and would
            // pass for an event without a version.
            return <&RawValue>::deserialize(deserializer).and_then(|value| version(value.get()));
        }
        deserializer.deserialize_any(self)
    }
}

fn version<E: de::Error>(value: &str) -> Result<Found, E> {
    Ok(match value.as_bytes().first() {
        Some(b'"') => Found::Version(serde_json::from_str(value).map_err(E::custom)?),
        Some(b'n') => Found::Absent,
        Some(b'-' | b'0'..=b'9') if !value.contains(['.', 'e', 'E']) => Found::Version(value.to_owned()),
        _ => Found::NotAVersion,
    })
}

impl<'de> Visitor<'de> for Find<'_> {
    type Value = Found;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_str<E>(self, _: &str) -> Result<Found, E> {
        Ok(Found::Absent)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Found, E> {
        Ok(Found::Absent)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Found, E> {
        Ok(Found::Absent)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Found, E> {
        Ok(Found::Absent)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Found, E> {
        Ok(Found::Absent)
    }

    fn visit_unit<E>(self) -> Result<Found, E> {
        Ok(Found::Absent)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Found, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match self.0.split_first() {
                Some((first, rest)) if *key == **first => {
                    let value = map.next_value_seed(Find(rest))?;
                    found = Some(if found.is_some() { Found::Repeated } else { value });
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(found.unwrap_or(Found::Absent))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Found, A::Error> {
        let [first, rest @ ..] = self.0 else { return Ok(Found::NotAVersion) };
        let wanted: Option<usize> = first.parse().ok();
        let mut found = Found::Absent;
        let mut index = 0;
        loop {
            if Some(index) == wanted {
                match seq.next_element_seed(Find(rest))? {
                    Some(value) => found = value,
                    None => return Ok(found),
                }
            } else if seq.next_element::<IgnoredAny>()?.is_none() {
                return Ok(found);
            }
            index += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(pointer: &str, payload: &str) -> Result<Option<String>, String> {
        Pointer::parse(pointer).unwrap().find(payload.as_bytes()).map_err(|r| r.reason)
    }

    #[test]
    fn text_and_integers_are_versions() {
        assert_eq!(find("/v", r#"{"a":[{}],"v":"2"}"#), Ok(Some("2".into())));
        assert_eq!(find("/v", r#"{"v":2,"b":{"v":3}}"#), Ok(Some("2".into())));
        assert_eq!(find("/meta/v", r#"{"v":1,"meta":{"v":-2}}"#), Ok(Some("-2".into())));
        assert_eq!(find("/a/1/v", r#"{"a":[{"v":0},{"v":1}]}"#), Ok(Some("1".into())));
        assert_eq!(find("/v", r#"{"v":18446744073709551616}"#), Ok(Some("18446744073709551616".into())));
        assert_eq!(find("/a~1b~0c", r#"{"a/b~c":"x"}"#), Ok(Some("x".into())));
        assert_eq!(find("/\u{e9}", r#"{"\u00e9":"x"}"#), Ok(Some("x".into())));
    }

    #[test]
    fn what_is_absent_null_or_not_json_is_left_to_the_default() {
        for payload in [r"{}", r#"{"v":null}"#, "", "[]", "42", r#"{"v":"2""#, &"[".repeat(100_000)] {
            assert_eq!(find("/v", payload), Ok(None), "{}", clip(payload, 20));
        }
    }

    #[test]
    fn a_repeated_or_structured_version_is_unclear() {
        assert!(find("/v", r#"{"v":"1","v":"2"}"#).unwrap_err().contains("twice"));
        for value in ["{}", "[1]", "true", "1.5", "1e3", "1e999", "-1.0"] {
            assert!(find("/v", &format!(r#"{{"v":{value}}}"#)).unwrap_err().contains("neither"), "{value}");
        }
    }

    #[test]
    fn a_pointer_starts_with_a_slash() {
        assert!(Pointer::parse("schema_version").unwrap_err().contains("start with `/`"));
    }
}

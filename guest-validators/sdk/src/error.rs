//! What is wrong with one field, before anyone has said at which stage that matters.

use std::fmt::{self, Write};

/// Characters of input that a reason quotes at most.
pub const QUOTE_CHARS: usize = 100;

/// Why a field is not what the rule asked for. Its `Display` is a sentence: `fare must be a decimal number, found "abc"`.
///
/// [`or_reject`](crate::verdict::OrReject::or_reject) makes it a rejection of a stage of your choice; a plain `?` one of stage
/// `SCHEMA_VALIDATION`, `Invalid fare: fare must be …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError(Box<Parts>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Parts {
    name: String,
    predicate: String,
}

impl FieldError {
    /// An error from a field's name and a predicate such as `must be an even number`. The name is clipped: the event may have chosen it.
    pub fn new(name: &str, predicate: impl fmt::Display) -> Self {
        Self(Box::new(Parts { name: clip(name, QUOTE_CHARS), predicate: predicate.to_string() }))
    }

    /// The field's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0.name, self.0.predicate)
    }
}

impl std::error::Error for FieldError {}

/// `text` in quotes, control characters escaped, and clipped to [`QUOTE_CHARS`] characters of it.
///
/// ```
/// assert_eq!(preflight_sdk::error::quote("a\nb"), r#""a\nb""#);
/// ```
pub fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    let mut chars = text.chars();
    for char in chars.by_ref().take(QUOTE_CHARS) {
        if char.is_control() {
            write!(quoted, "{}", char.escape_debug()).expect("a String takes any text");
        } else {
            quoted.push(char);
        }
    }
    quoted.push_str(if chars.next().is_some() { "…\"" } else { "\"" });
    quoted
}

/// The first `chars` characters of `text`, with an ellipsis if there are more.
pub fn clip(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

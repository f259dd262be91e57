//! Verdicts: what a rule says of an event.

use std::borrow::Cow;
use std::fmt;

use crate::error::FieldError;

/// Stages with a meaning of their own. A rule may name others: `[A-Z][A-Z0-9_]*`.
pub mod stage {
    /// The payload is not JSON that has one meaning only.
    pub const PARSE_JSON: &str = "PARSE_JSON";
    /// A field is missing, null or of the wrong type.
    pub const SCHEMA_VALIDATION: &str = "SCHEMA_VALIDATION";
    /// The fields are there, and the business does not allow them.
    pub const BUSINESS_RULE_VALIDATION: &str = "BUSINESS_RULE_VALIDATION";
    /// When the event happened cannot be told.
    pub const EVENT_TIME_VALIDATION: &str = "EVENT_TIME_VALIDATION";
}

/// A row, or why there is none. `?` inside a rule leaves it with a rejection.
pub type Verdict<R> = Result<R, NotAccepted>;

/// Why an event gives no row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAccepted {
    /// To quarantine, with everything needed to judge it again.
    Reject(Rejection),
    /// Not for us: counted, written nowhere. The text says why.
    Ignore(String),
}

/// Where an event failed, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// `[A-Z][A-Z0-9_]*`, such as [`stage::SCHEMA_VALIDATION`].
    pub stage: Cow<'static, str>,
    /// For a person.
    pub reason: String,
}

/// Rejects the event: it goes to quarantine under `stage`.
pub fn reject<R>(stage: impl Into<Cow<'static, str>>, reason: impl Into<String>) -> Verdict<R> {
    Err(NotAccepted::Reject(Rejection { stage: stage.into(), reason: reason.into() }))
}

/// Ignores the event: it is counted and written nowhere.
pub fn ignore<R>(why: impl Into<String>) -> Verdict<R> {
    Err(NotAccepted::Ignore(why.into()))
}

/// Gives an error the stage at which it rejects the event.
pub trait OrReject<T> {
    /// Rejects with `<what>: <error>`, for example `Invalid fare: fare must be a decimal number, found "abc"`.
    fn or_reject(self, stage: impl Into<Cow<'static, str>>, what: impl fmt::Display) -> Verdict<T>;
}

impl<T, E: fmt::Display> OrReject<T> for Result<T, E> {
    #[inline]
    fn or_reject(self, stage: impl Into<Cow<'static, str>>, what: impl fmt::Display) -> Verdict<T> {
        self.or_else(|error| reject(stage, format!("{what}: {error}")))
    }
}

impl From<FieldError> for NotAccepted {
    fn from(error: FieldError) -> Self {
        let reason = format!("Invalid {}: {error}", error.name());
        Self::Reject(Rejection { stage: Cow::Borrowed(stage::SCHEMA_VALIDATION), reason })
    }
}

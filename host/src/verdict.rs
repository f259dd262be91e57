//! What a rule says of an event (verdict), and what the host makes of it (outcome).

use crate::row::Row;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// Stages that belong to the host: a rule that rejects with one of them breaks its contract.
pub mod stage {
    /// No rule serves the event's version, or the version cannot be told.
    pub const ROUTING: &str = "ROUTING";
    /// The rule misbehaved; the code says how.
    pub const RULE_FAULT: &str = "RULE_FAULT";
    /// The table would refuse, or did refuse, the row.
    pub const SINK_REJECTED: &str = "SINK_REJECTED";
    /// The source could not make an event of what it read.
    pub const PARSE_ENVELOPE: &str = "PARSE_ENVELOPE";
    /// What stands in a CSV file is no record with its columns.
    pub const PARSE_CSV: &str = "PARSE_CSV";
    /// The payload is above `limits.payload`.
    pub const PAYLOAD_TOO_LARGE: &str = "PAYLOAD_TOO_LARGE";
    /// The event came after its window had closed.
    pub const LATE_DATA: &str = "LATE_DATA";
    /// The dedup key of an accepted row came again with a different row.
    pub const DUPLICATE_CONFLICT: &str = "DUPLICATE_CONFLICT";

    /// Whether a stage is one of the host's own.
    pub fn is_reserved(stage: &str) -> bool {
        [
            ROUTING,
            RULE_FAULT,
            SINK_REJECTED,
            PARSE_ENVELOPE,
            PARSE_CSV,
            PAYLOAD_TOO_LARGE,
            LATE_DATA,
            DUPLICATE_CONFLICT,
        ]
        .contains(&stage)
    }
}

/// What a rule says of one event, checked against its manifest.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// A row for silver.
    Accept(Row),
    /// Not good: quarantine.
    Reject(Rejection),
    /// Not for us: counted, written nowhere.
    Ignore(String),
}

/// Where an event failed and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejection {
    /// `[A-Z][A-Z0-9_]*`
    pub stage: Cow<'static, str>,
    /// For a program; the host's own stages have one.
    pub code: Option<Cow<'static, str>>,
    /// For a person.
    pub reason: String,
}

impl Rejection {
    /// A rejection by the host.
    pub fn by_host(stage: &'static str, code: &'static str, reason: impl Into<String>) -> Self {
        Self { stage: Cow::Borrowed(stage), code: Some(Cow::Borrowed(code)), reason: reason.into() }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.code {
            Some(code) => write!(f, "{} ({code}): {}", self.stage, self.reason),
            None => write!(f, "{}: {}", self.stage, self.reason),
        }
    }
}

/// What a rule did wrong. It ends the call, never the worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The machine-readable kind.
    pub code: FaultCode,
    /// For a person: the trap's text, the guest's last words, the limit that was hit.
    pub detail: String,
}

impl Fault {
    /// A fault.
    pub fn new(code: FaultCode, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into() }
    }
}

impl From<Fault> for Rejection {
    fn from(fault: Fault) -> Self {
        Self::by_host(stage::RULE_FAULT, fault.code.as_str(), fault.detail)
    }
}

/// The kinds of fault. The text form is what `error_code` holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultCode {
    /// The fuel of the event was used up.
    Fuel,
    /// More memory or table elements than the limit.
    Memory,
    /// The call stack grew past the limit.
    Stack,
    /// The wall clock ran out.
    WallClock,
    /// The guest panicked (`unreachable`), perhaps with last words.
    Panic,
    /// Another trap: a bad memory access, a division by zero and the like.
    Trap,
    /// The guest broke the component ABI: bad pointers, bad UTF-8, more data than the host takes.
    Abi,
    /// The verdict does not fit the manifest.
    Manifest,
    /// The guest called something it may not: a look-up it did not declare, or that is not served.
    Import,
}

impl FaultCode {
    /// The name in `error_code`, metrics and fixtures.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fuel => "fuel",
            Self::Memory => "memory",
            Self::Stack => "stack",
            Self::WallClock => "wall_clock",
            Self::Panic => "panic",
            Self::Trap => "trap",
            Self::Abi => "abi",
            Self::Manifest => "manifest",
            Self::Import => "import",
        }
    }
}

impl fmt::Display for FaultCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// `text`, cut at a character boundary to at most `limit` bytes, with `…` where something was cut.
pub fn clip(text: &str, limit: usize) -> Cow<'_, str> {
    if text.len() <= limit {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(limit.saturating_sub('…'.len_utf8()));
    Cow::Owned(format!("{}…", &text[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clip_cuts_at_a_character_and_stays_within_the_limit() {
        assert_eq!(clip("short", 5), "short");
        assert_eq!(clip("longer", 5), "lo…");
        assert_eq!(clip("éééé", 6), "é…");
        assert!(clip(&"é".repeat(1_000), 100).len() <= 100);
    }

    #[test]
    fn every_host_stage_is_reserved_and_a_rules_own_is_not() {
        assert!(stage::is_reserved(stage::RULE_FAULT));
        assert!(!stage::is_reserved("PARSE_JSON"));
    }
}

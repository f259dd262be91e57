//! Labels: their names, and values in which anything may stand.

use prometheus_client::encoding::{EncodeLabelValue, LabelValueEncoder};
use std::fmt::{self, Write as _};
use std::sync::Arc;

pub(super) const PIPELINE: &str = "pipeline";
pub(super) const OUTCOME: &str = "outcome";
pub(super) const STAGE: &str = "stage";
pub(super) const EVENT_VERSION: &str = "event_version";
pub(super) const CODE: &str = "code";
pub(super) const TIER: &str = "tier";
pub(super) const RESULT: &str = "result";
pub(super) const COMPARISON: &str = "comparison";
pub(super) const KIND: &str = "kind";
pub(super) const AGGREGATE: &str = "aggregate";
pub(super) const TIMING: &str = "timing";
pub(super) const REASON: &str = "reason";
pub(super) const OPERATION: &str = "operation";

/// A label.
pub(super) type Label = (&'static str, Text);

/// A label's value, escaped where it is written: event versions and codes are not this program's words.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Text(Arc<str>);

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl EncodeLabelValue for Text {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '\\' => encoder.write_str("\\\\")?,
                '"' => encoder.write_str("\\\"")?,
                '\n' => encoder.write_str("\\n")?,
                c => encoder.write_char(c)?,
            }
        }
        Ok(())
    }
}

//! What comes out of windows.

use super::span::Span;
use crate::row::Value;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// What a window has to say at one time. Unique by aggregate, epoch, key, window and index.
#[derive(Debug, Clone, PartialEq)]
pub struct Pane {
    /// The values of the columns that events are grouped by, encoded.
    pub key: Arc<[u8]>,
    /// The window.
    pub window: Span,
    /// How many panes of this window came before.
    pub index: u32,
    /// When it fired.
    pub timing: Timing,
    /// How many events it has.
    pub events: u64,
    /// The measures, in their order; null also where a sum is beyond its type. All null where it takes back.
    pub values: Vec<Value>,
    /// Indexes of the measures whose value no column of their type can hold.
    pub overflowed: Vec<usize>,
}

/// When a pane fired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Timing {
    /// Before the watermark passed the end of the window.
    Early,
    /// When it did.
    OnTime,
    /// Behind that.
    Late,
    /// The session was merged into another: all panes of it are void.
    Retracted,
}

impl Timing {
    /// Every timing.
    pub const ALL: [Self; 4] = [Self::Early, Self::OnTime, Self::Late, Self::Retracted];

    /// Its name in tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Early => "EARLY",
            Self::OnTime => "ON_TIME",
            Self::Late => "LATE",
            Self::Retracted => "RETRACTED",
        }
    }
}

impl fmt::Display for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

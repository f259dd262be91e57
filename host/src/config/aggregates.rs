//! What the pipeline file says of event time: the watermark, and values that are measured over windows of it.

use super::{TierConfig, key_path};
use crate::time::Micros;
use crate::window::{Accumulation, Function, Trigger, Windowing};
use std::fmt;
use std::time::Duration;

/// Columns of an aggregate's table that the host fills, beside those that events are grouped by and the measures.
pub const PANE_COLUMNS: [&str; 9] =
    ["window_id", "window_start", "window_end", "timing", "pane_index", "epoch", "fired_at", "watermark", "error"];

/// How the watermark moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatermarkConfig {
    /// What it follows.
    pub follows: Follows,
    /// How far the event time of an event may be behind those published before it: the watermark stays so far behind.
    pub out_of_orderness: Duration,
    /// A message that is older than this when it comes holds the watermark: others as old may not have come yet. Above zero.
    pub backlog: Duration,
    /// Without messages for so long, the watermark follows the clock. Above zero.
    pub idle: Duration,
}

/// What the watermark follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follows {
    /// The publish times of events.
    PublishTime,
    /// The end of the source: nothing is late, and every window closes there.
    EndOfInput,
}

impl fmt::Display for Follows {
    /// As in the pipeline file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::PublishTime => "publish_time",
            Self::EndOfInput => "end_of_input",
        })
    }
}

/// Values that are measured over the accepted rows of a window. Whether the rules have the columns is not known here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AggregateConfig {
    /// Its name: `[a-z0-9][a-z0-9_]*`, at most 100 bytes.
    pub name: String,
    /// The table of its panes.
    pub tier: TierConfig,
    /// The column that says when an event happened; none for the rules' event-time column.
    pub event_time: Option<String>,
    /// Which windows an event is in. No duration in it is above 366 days.
    pub windowing: Windowing,
    /// When panes fire beside the watermark.
    pub trigger: Trigger,
    /// What a pane has that is not the first of its window.
    pub accumulation: Accumulation,
    /// How long behind its end a window still takes events, by the watermark; at most 366 days.
    pub allowed_lateness: Micros,
    /// The columns whose values a window is for; without any, a window is for all events.
    pub group_by: Vec<String>,
    /// What is measured, by name; at least one.
    pub measures: Vec<MeasureConfig>,
    /// What is written of a pane.
    pub write: WriteMode,
}

impl AggregateConfig {
    /// The path of one of its keys.
    pub fn key(&self, name: &str) -> String {
        key_path(&["aggregates", &self.name, name])
    }

    /// The view of the newest state of its windows, if its table has every pane.
    pub fn view(&self) -> Option<String> {
        (self.write == WriteMode::Panes).then(|| format!("{}_latest", self.tier.table))
    }
}

/// A column of an aggregate's table that is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasureConfig {
    /// Its name.
    pub name: String,
    /// How it is measured.
    pub function: Function,
    /// The column of the accepted rows that is measured; none where events are counted, whatever they hold.
    pub column: Option<String>,
}

/// What is written of a pane.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WriteMode {
    /// A row for each.
    #[default]
    Panes,
    /// The one row of its window, in the place of what it was.
    Upsert,
}

impl fmt::Display for WriteMode {
    /// As in the pipeline file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Panes => "panes",
            Self::Upsert => "upsert",
        })
    }
}

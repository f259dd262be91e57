//! What an aggregate is: which windows, when they fire, what is measured.

use crate::row::ColumnType;
use crate::time::Micros;
use serde::{Deserialize, Serialize};
use std::fmt;

/// An aggregate. Words and semantics are those of Apache Beam (beam.apache.org/documentation/programming-guide, 8 and 9).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// Which windows an event is in.
    pub windowing: Windowing,
    /// When panes fire beside the watermark.
    pub trigger: Trigger,
    /// What a pane has that is not the first of its window.
    pub accumulation: Accumulation,
    /// How long behind its end a window still takes events, by the watermark.
    pub allowed_lateness: Micros,
    /// What is measured, in the order of the values of a pane.
    pub measures: Vec<Measure>,
}

/// How event time is cut into windows. Durations are above zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Windowing {
    /// One window behind the other.
    Fixed {
        /// How long a window is.
        size: Micros,
        /// A window begins so long after a multiple of `size`, counted from 1970-01-01T00:00:00Z. Less than `size`.
        offset: Micros,
    },
    /// Windows that overlap, or leave gaps.
    Sliding {
        /// How long a window is.
        size: Micros,
        /// How long after one the next begins.
        every: Micros,
        /// One of them begins so long after 1970-01-01T00:00:00Z. Less than `every`.
        offset: Micros,
    },
    /// Events of a key that are less than `gap` apart are in one window, which ends a gap behind the last of them.
    Session {
        /// The gap.
        gap: Micros,
    },
}

/// When a window fires, beside once when the watermark passes its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Trigger {
    /// Before: so long after the first event since the last pane, in processing time. None for never.
    pub early: Option<Micros>,
    /// Behind.
    pub late: LateTrigger,
}

/// When events that come behind the end of their window fire it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LateTrigger {
    /// At once: in the commit that has them.
    #[default]
    Each,
    /// So long after the first event since the last pane, in processing time.
    Every(Micros),
}

/// What a pane has that is not the first of its window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Accumulation {
    /// All events of the window so far: it supersedes those before.
    #[default]
    Accumulating,
    /// The events since the last pane.
    Discarding,
}

impl fmt::Display for Accumulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Accumulating => "accumulating",
            Self::Discarding => "discarding",
        })
    }
}

/// A value that is measured over the events of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measure {
    /// How.
    pub function: Function,
    /// The type of what is measured; none where events are counted, whatever they hold.
    pub input: Option<ColumnType>,
}

/// How a value is measured. Nulls are left out, as in SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Function {
    /// How many events there are, or how many of them have a value.
    Count,
    /// The sum: exact whatever the order. Null where no event has a value.
    Sum,
    /// The least value.
    Min,
    /// The greatest value.
    Max,
    /// The mean.
    Avg,
    /// About how many values are distinct (HyperLogLog).
    ApproxCountDistinct,
}

impl Function {
    /// Every function.
    pub const ALL: [Self; 6] = [Self::Count, Self::Sum, Self::Min, Self::Max, Self::Avg, Self::ApproxCountDistinct];

    /// Its name in the pipeline file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Sum => "sum",
            Self::Min => "min",
            Self::Max => "max",
            Self::Avg => "avg",
            Self::ApproxCountDistinct => "approx_count_distinct",
        }
    }

    /// Whether values of this type can be measured so. Any can be counted.
    pub const fn takes(self, kind: ColumnType) -> bool {
        match self {
            Self::Count => true,
            Self::Sum | Self::Avg => matches!(kind, ColumnType::Int64 | ColumnType::Float64 | ColumnType::Numeric),
            Self::Min | Self::Max => !matches!(kind, ColumnType::Json),
            Self::ApproxCountDistinct => !matches!(kind, ColumnType::Json | ColumnType::Float64),
        }
    }

    /// Whether the measures of two disjoint sets of events tell that of both: a view over discarding panes can do that.
    pub const fn adds_up(self) -> bool {
        !matches!(self, Self::Avg | Self::ApproxCountDistinct)
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Measure {
    /// The type of the result, as in BigQuery: the mean of integers is a FLOAT64.
    pub fn output(self) -> ColumnType {
        match (self.function, self.input) {
            (Function::Count | Function::ApproxCountDistinct, _) => ColumnType::Int64,
            (Function::Avg, Some(ColumnType::Int64)) => ColumnType::Float64,
            (_, Some(input)) => input,
            (_, None) => unreachable!("only a count has no input"),
        }
    }

    /// Whether the result can be null.
    pub const fn nullable(self) -> bool {
        !matches!(self.function, Function::Count | Function::ApproxCountDistinct)
    }
}

//! All that a rule needs: `use preflight_sdk::prelude::*;`.

pub use crate::error::FieldError;
pub use crate::event::Event;
pub use crate::json::{Field, Object};
pub use crate::lookup::{Lookup, Table};
pub use crate::row::Row;
pub use crate::value::{Bytes, ColumnType, Date, EventTime, Json, Numeric, Text, Timestamp, Value};
pub use crate::verdict::{NotAccepted, OrReject, Rejection, Verdict, ignore, reject, stage};
pub use crate::{enricher, log, require, row, validator};

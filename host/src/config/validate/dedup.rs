//! What makes two events the same, and for how long.

use super::check::Check;
use crate::config::raw::{RawDedup, RawDedupBy};
use crate::config::{DedupBy, DedupConfig, OnConflict};
use crate::rules::set::Pointer;
use std::time::Duration;

impl Check {
    pub(super) fn dedup(&mut self, raw: RawDedup) -> Option<DedupConfig> {
        let horizon = self.duration("dedup.horizon", raw.horizon.as_deref(), Duration::from_hours(1));
        if horizon < Duration::from_secs(1) {
            self.refuse::<()>("dedup.horizon", "must be at least 1 s");
        }
        if raw.expected_rate.is_some_and(|rate| !rate.is_finite() || rate <= 0.0) {
            self.refuse::<()>("dedup.expected_rate", "must be a number of events per second above 0");
        }
        let on_conflict = match raw.on_conflict.as_deref() {
            None | Some("quarantine") => OnConflict::Quarantine,
            Some("drop") => OnConflict::Drop,
            Some(other) => {
                let what = format!("{other:?} is not known: use \"quarantine\" or \"drop\"");
                self.refuse("dedup.on_conflict", what)?
            }
        };
        let by = self.dedup_by(raw.by)?;
        Some(DedupConfig { by, horizon, on_conflict, expected_rate: raw.expected_rate })
    }

    fn dedup_by(&mut self, raw: RawDedupBy) -> Option<DedupBy> {
        let help = "give \"payload\", \"message_id\", or exactly one of attribute, field and columns";
        let key = match raw {
            RawDedupBy::Name(name) => match name.as_str() {
                "payload" => return Some(DedupBy::Payload),
                "message_id" => return Some(DedupBy::MessageId),
                _ => return self.refuse("dedup.by", format!("{name:?} is not known: {help}")),
            },
            RawDedupBy::Key(key) => key,
        };
        match (key.attribute, key.field, key.columns) {
            (Some(attribute), None, None) if !attribute.is_empty() => Some(DedupBy::Attribute(attribute)),
            (None, Some(field), None) => match Pointer::parse(&field) {
                Ok(pointer) => Some(DedupBy::Field(pointer)),
                Err(what) => self.refuse("dedup.by.field", what),
            },
            (None, None, Some(columns)) if !columns.is_empty() => {
                let columns: Option<Vec<String>> =
                    columns.into_iter().map(|column| self.column("dedup.by.columns", column)).collect();
                columns.map(DedupBy::Columns)
            }
            _ => self.refuse("dedup.by", help),
        }
    }
}

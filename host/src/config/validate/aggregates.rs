//! Aggregates: names, columns, measures, and what goes together.

use super::check::Check;
use crate::config::layers::key_path;
use crate::config::problem::nearest;
use crate::config::raw::{RawAggregate, RawMeasure, RawTier};
use crate::config::{AggregateConfig, MeasureConfig, PANE_COLUMNS, WriteMode};
use crate::rules::manifest::is_column_name;
use crate::window::{Accumulation, Function};
use std::collections::BTreeMap;

/// A name is a part of ids and labels.
const MAX_NAME: usize = 100;

impl Check {
    pub(super) fn aggregates(&mut self, raw: BTreeMap<String, RawAggregate>) -> Vec<AggregateConfig> {
        raw.into_iter().filter_map(|(name, raw)| self.aggregate(name, raw)).collect()
    }

    fn aggregate(&mut self, name: String, raw: RawAggregate) -> Option<AggregateConfig> {
        let base = key_path(&["aggregates", &name]);
        let key = |part: &str| format!("{base}.{part}");
        self.aggregate_name(&base, &name);
        let tier = RawTier {
            table: raw.table,
            create: raw.create,
            write: None,
            partition_by: raw.partition_by,
            cluster_by: raw.cluster_by,
            description: raw.description,
        };
        let tier = self.tier(&base, tier);
        let event_time = raw.event_time.map(|column| self.column(&key("event_time"), column));
        let windowing = self.windowing(&key("window"), &raw.window);
        let trigger = self.trigger((&key("early"), raw.early.as_deref()), (&key("late"), raw.late.as_deref()));
        let allowed_lateness = self.lateness(&key("allowed_lateness"), raw.allowed_lateness.as_deref());
        let group_by = self.group_by(&key("group_by"), raw.group_by);
        let measures = self.measures(&key("measures"), raw.measures, &group_by);
        let accumulation = match raw.accumulation.as_deref() {
            None | Some("accumulating") => Some(Accumulation::Accumulating),
            Some("discarding") => Some(Accumulation::Discarding),
            Some(other) => {
                let what = format!("{other:?} is not known: use \"accumulating\" or \"discarding\"");
                self.refuse(&key("accumulation"), what)
            }
        };
        let write = match raw.write.as_deref() {
            None | Some("panes") => Some(WriteMode::Panes),
            Some("upsert") => Some(WriteMode::Upsert),
            Some(other) => self.refuse(&key("write"), format!("{other:?} is not known: use \"panes\" or \"upsert\"")),
        };
        if accumulation == Some(Accumulation::Discarding) {
            self.discarding(&base, &measures, write);
        }
        Some(AggregateConfig {
            name,
            tier: tier?,
            event_time: match event_time {
                Some(column) => Some(column?),
                None => None,
            },
            windowing: windowing?,
            trigger: trigger?,
            accumulation: accumulation?,
            allowed_lateness: allowed_lateness?,
            group_by,
            measures,
            write: write?,
        })
    }

    fn aggregate_name(&mut self, key: &str, name: &str) {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if name.is_empty() || name.len() > MAX_NAME || name.starts_with('_') || !name.chars().all(fits) {
            let what = format!(
                "{name:?} is not an aggregate's name: use a-z, 0-9 and _, not _ at the beginning, at most {MAX_NAME} bytes"
            );
            self.refuse::<()>(key, what);
        }
    }

    fn group_by(&mut self, key: &str, raw: Vec<String>) -> Vec<String> {
        let mut columns: Vec<String> = Vec::new();
        for column in raw {
            if is_among(&columns, &column) {
                self.refuse::<()>(key, format!("{column:?} is named twice"));
            } else if is_among(&PANE_COLUMNS, &column) {
                self.refuse::<()>(key, host_fills(&column));
            } else {
                columns.extend(self.column(key, column));
            }
        }
        columns
    }

    fn measures(&mut self, key: &str, raw: BTreeMap<String, RawMeasure>, group_by: &[String]) -> Vec<MeasureConfig> {
        if raw.is_empty() {
            self.refuse::<()>(key, "measure something, such as events = \"count\"");
        }
        let mut measures: Vec<MeasureConfig> = Vec::new();
        for (name, raw) in raw {
            let key = format!("{key}.{}", key_path(&[&name]));
            if !is_column_name(&name) {
                self.refuse::<()>(&key, format!("{name:?} is not a column name"));
            } else if is_among(&PANE_COLUMNS, &name) {
                self.refuse::<()>(&key, host_fills(&name));
            } else if is_among(group_by, &name) {
                self.refuse::<()>(&key, "events are grouped by a column of this name: give the measure another");
            } else if measures.iter().any(|other| other.name.eq_ignore_ascii_case(&name)) {
                self.refuse::<()>(&key, "another measure has this name, but for its case");
            }
            if let Some((function, column)) = self.measure(&key, raw) {
                measures.push(MeasureConfig { name, function, column });
            }
        }
        measures
    }

    fn measure(&mut self, key: &str, raw: RawMeasure) -> Option<(Function, Option<String>)> {
        let columns = match raw {
            RawMeasure::Name(name) => match self.function(key, &name)? {
                Function::Count => return Some((Function::Count, None)),
                other => return self.refuse(key, format!("{other} is of a column: write {{ {other} = \"…\" }}")),
            },
            RawMeasure::Columns(columns) => columns,
        };
        if columns.len() != 1 {
            return self.refuse(key, "give exactly one function and its column, such as { sum = \"price\" }");
        }
        let (name, column) = columns.into_iter().next()?;
        let key = format!("{key}.{}", key_path(&[&name]));
        let function = self.function(&key, &name);
        let column = self.column(&key, column);
        Some((function?, Some(column?)))
    }

    fn function(&mut self, key: &str, name: &str) -> Option<Function> {
        let known = Function::ALL.map(Function::as_str);
        Function::ALL.into_iter().find(|function| function.as_str() == name).or_else(|| {
            let hint = nearest(name, known.into_iter()).map(|name| format!("; did you mean `{name}`?"));
            let hint = hint.unwrap_or_default();
            self.refuse(key, format!("{name:?} is not a function{hint} (there are {})", known.join(", ")))
        })
    }

    /// A pane that has only what came since the last says nothing of the whole window by itself.
    fn discarding(&mut self, base: &str, measures: &[MeasureConfig], write: Option<WriteMode>) {
        if write == Some(WriteMode::Upsert) {
            let what =
                "an upsert replaces the row by what came since the last pane: use accumulating, or write = \"panes\"";
            self.refuse::<()>(&format!("{base}.accumulation"), what);
        }
        for MeasureConfig { name, function, .. } in measures.iter().filter(|measure| !measure.function.adds_up()) {
            let what = format!(
                "panes that are discarding do not add up to {function}: use accumulation = \"accumulating\", or another function"
            );
            self.refuse::<()>(&format!("{base}.measures.{}", key_path(&[name])), what);
        }
    }
}

/// Columns of a table are the same in any case.
fn is_among(columns: &[impl AsRef<str>], column: &str) -> bool {
    columns.iter().any(|other| other.as_ref().eq_ignore_ascii_case(column))
}

fn host_fills(column: &str) -> String {
    format!("{column:?} is a column that the host fills: {}", PANE_COLUMNS.join(", "))
}

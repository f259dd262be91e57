//! What the aggregates of a pipeline measure of the rows that its rules make. Tables are another matter.

use crate::config::{AggregateConfig, Config, Problem};
use crate::digest::Digest;
use crate::row::{ColumnType, Row, Value};
use crate::rules::{Manifest, Rule, RuleSet, Served};
use crate::time::Micros;
use crate::window::{Function, Measure, Spec, key};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// An aggregate, held against the rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aggregate {
    /// Its name.
    pub name: Arc<str>,
    /// Its windows and measures.
    pub spec: Spec,
    /// Names and types of the columns that events are grouped by.
    pub group: Vec<(String, ColumnType)>,
    /// Names of the measures.
    pub measures: Vec<String>,
    /// The column that each measures; none where events are counted, whatever they hold.
    pub measured: Vec<Option<String>>,
    /// The columns that say when an event happened: rules need not have the same.
    pub event_times: BTreeSet<String>,
    /// Where the rows of a rule have what it needs.
    inputs: BTreeMap<Digest, Inputs>,
}

/// Indexes of columns in the rows of a rule. A column that the rule does not have is null.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Inputs {
    event_time: usize,
    group: Vec<Option<usize>>,
    measures: Vec<Option<usize>>,
}

/// What an accepted event adds to an aggregate.
#[derive(Debug, Clone, PartialEq)]
pub struct Contribution {
    /// Index of the event in its micro-batch.
    pub event: u32,
    /// Index of the aggregate in the plan.
    pub aggregate: usize,
    /// When it happened.
    pub event_time: Micros,
    /// The key of its windows.
    pub key: Vec<u8>,
    /// A value for each measure.
    pub inputs: Vec<Value>,
}

impl Contribution {
    /// How many bytes its key and its values have.
    pub fn size(&self) -> usize {
        let of = |value: &Value| match value {
            Value::Numeric(text) | Value::Text(text) | Value::Json(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            _ => 8,
        };
        self.key.len() + self.inputs.iter().map(of).sum::<usize>()
    }
}

impl Aggregate {
    /// What of it may not change while it has open windows, as text.
    pub fn shape(&self) -> String {
        let Spec { windowing, accumulation, measures, .. } = &self.spec;
        let shape = (windowing, accumulation, measures, &self.measures, &self.group);
        serde_json::to_string(&shape).expect("names and numbers are text")
    }

    /// What the row of an event adds. None if the rule is not one of the plan's.
    pub fn contribution(&self, index: usize, event: u32, rule: &Digest, row: &Row) -> Option<Contribution> {
        let inputs = self.inputs.get(rule)?;
        let value = |index: &Option<usize>| index.map_or(&Value::Null, |index| &row[index]);
        let Value::Timestamp(event_time) = row[inputs.event_time] else {
            unreachable!("a column that is no NOT NULL TIMESTAMP is refused")
        };
        Some(Contribution {
            event,
            aggregate: index,
            event_time,
            key: key::encode(inputs.group.iter().map(value)),
            inputs: inputs.measures.iter().map(|index| value(index).clone()).collect(),
        })
    }
}

/// Holds the aggregates of a pipeline file against its rules.
pub fn aggregates(config: &Config, rules: &RuleSet) -> (Vec<Aggregate>, Vec<Problem>) {
    let mut problems = Vec::new();
    let served: Vec<&Arc<Rule>> = rules.served().map(|(_, Served { rule, .. })| rule).collect();
    let aggregates = config.aggregates.iter().filter_map(|config| {
        if served.is_empty() {
            let what = "no rule says which columns its events have: promote one first";
            problems.push(Problem::new(config.key("table"), what));
            return None;
        }
        aggregate(config, &served, &mut problems)
    });
    (aggregates.collect(), problems)
}

fn aggregate(config: &AggregateConfig, served: &[&Arc<Rule>], problems: &mut Vec<Problem>) -> Option<Aggregate> {
    let before = problems.len();
    let columns = Columns { served };
    let group = config.group_by.iter().filter_map(|name| {
        let kind = columns.kind(name, &config.key("group_by"), problems)?;
        if kind == ColumnType::Json {
            problems
                .push(Problem::new(config.key("group_by"), format!("column `{name}` is JSON, which has no equality")));
        }
        Some((name.clone(), kind))
    });
    let group: Vec<(String, ColumnType)> = group.collect();
    let measures = config.measures.iter().filter_map(|measure| {
        let key = config.key("measures");
        let input = match &measure.column {
            Some(column) => Some(columns.kind(column, &key, problems)?),
            None => None,
        };
        if let Some(kind) = input.filter(|kind| !measure.function.takes(*kind)) {
            let column = measure.column.as_deref().unwrap_or_default();
            let what = format!("`{}`: {} takes no {kind}, which column `{column}` is", measure.name, measure.function);
            problems.push(Problem::new(key, what));
        }
        Some(Measure { function: measure.function, input })
    });
    let measures: Vec<Measure> = measures.collect();
    let (mut inputs, mut event_times) = (BTreeMap::new(), BTreeSet::new());
    for rule in served {
        let index = |name: &String| rule.manifest.column(name);
        if let Some(event_time) = event_time(config, rule, problems) {
            // Tables do not tell upper from lower case.
            event_times.insert(rule.manifest.columns[event_time].name.to_ascii_lowercase());
            let measures = config.measures.iter().map(|measure| measure.column.as_ref().and_then(index)).collect();
            let group = config.group_by.iter().map(index).collect();
            inputs.insert(rule.digest, Inputs { event_time, group, measures });
        }
    }
    if problems.len() > before {
        return None;
    }
    let AggregateConfig { windowing, trigger, accumulation, allowed_lateness, .. } = *config;
    Some(Aggregate {
        name: config.name.as_str().into(),
        spec: Spec { windowing, trigger, accumulation, allowed_lateness, measures },
        group,
        measures: config.measures.iter().map(|measure| measure.name.clone()).collect(),
        measured: config.measures.iter().map(|measure| measure.column.clone()).collect(),
        event_times,
        inputs,
    })
}

/// Where the rows of a rule have the event time: all have one.
fn event_time(config: &AggregateConfig, rule: &Rule, problems: &mut Vec<Problem>) -> Option<usize> {
    let Manifest { columns, event_time, .. } = &rule.manifest;
    let key = config.key("event_time");
    let index = match &config.event_time {
        Some(name) => rule.manifest.column(name),
        None => *event_time,
    };
    match (index, &config.event_time) {
        (Some(index), _) if columns[index].kind != ColumnType::Timestamp || columns[index].nullable => {
            let what = format!(
                "column `{}` of rule {} is no NOT NULL TIMESTAMP: an event without a time is in no window",
                columns[index].name, rule.label
            );
            problems.push(Problem::new(key, what));
            None
        }
        (Some(index), _) => Some(index),
        (None, Some(name)) => {
            let what = format!("rule {} does not produce column `{name}`: every event needs its time", rule.label);
            problems.push(Problem::new(key, what));
            None
        }
        (None, None) => {
            let what = format!("rule {} declares no event-time column: say which column it is", rule.label);
            problems.push(Problem::new(key, what));
            None
        }
    }
}

/// The columns that rules make.
struct Columns<'a> {
    served: &'a [&'a Arc<Rule>],
}

impl Columns<'_> {
    /// The type of a column. At least one rule makes it, and no two disagree.
    fn kind(&self, name: &str, key: &str, problems: &mut Vec<Problem>) -> Option<ColumnType> {
        let found = |rule: &&Arc<Rule>| rule.manifest.column(name).map(|index| rule.manifest.columns[index].kind);
        let mut kinds = self.served.iter().filter_map(found);
        let Some(kind) = kinds.next() else {
            problems.push(Problem::new(key, format!("no rule produces column `{name}`")));
            return None;
        };
        if let Some(other) = kinds.find(|other| *other != kind) {
            problems.push(Problem::new(key, format!("two rules disagree on column `{name}`: {kind} and {other}")));
            return None;
        }
        Some(kind)
    }
}

/// Whether SQLite can put discarding panes of a measure together exactly: it has no sum of NUMERIC.
pub(in crate::pipeline) fn is_exact_in_sqlite(measure: Measure) -> bool {
    measure.input != Some(ColumnType::Numeric) || measure.function != Function::Sum
}

//! The tables of aggregates and of late events.

use super::table::Known;
use super::{Planner, RuleSet, TableColumn};
use crate::config::{AggregateConfig, Config, Create, WarehouseConfig, WriteMode, key_path};
use crate::pipeline::windows::aggregate::{Aggregate, aggregates, is_exact_in_sqlite};
use crate::row::{Column, ColumnType};
use crate::warehouse::{AggregateName, Layout, NewView, Tier, Upsert, create_view_statement};
use crate::window::Accumulation;
use std::sync::Arc;

/// What is measured over windows, and where it goes.
#[derive(Debug, Clone)]
pub struct WindowsPlan {
    /// The aggregates, by name.
    pub aggregates: Vec<AggregatePlan>,
    /// Events that came too late for a window.
    pub late: LatePlan,
    /// Whether one of the tables is partitioned, and so takes no row of a distant time.
    pub partitioned: bool,
}

/// An aggregate and its table.
#[derive(Debug, Clone)]
pub struct AggregatePlan {
    /// What is measured.
    pub aggregate: Aggregate,
    /// The target of its panes.
    pub tier: Tier,
    /// Table and columns.
    pub layout: Arc<Layout>,
    /// What fills each column.
    pub columns: Vec<PaneColumn>,
    /// The view of the newest state of its windows, if it is to be made.
    pub view: Option<NewView>,
}

/// What fills a column of an aggregate's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaneColumn {
    /// What tells aggregate, key and window from all others.
    WindowId,
    /// Its first microsecond.
    WindowStart,
    /// The first behind it.
    WindowEnd,
    /// The value of a column that events are grouped by.
    Group(usize),
    /// The value of a measure.
    Measure(usize),
    /// When the pane fired: before, at or behind the end of the window.
    Timing,
    /// How many panes came before.
    PaneIndex,
    /// Which run over the events it is of: the higher supersedes.
    Epoch,
    /// Processing time when it fired.
    FiredAt,
    /// The watermark when it fired; null before the first and at the end of a bounded source.
    Watermark,
    /// Which measures are beyond their type; null if none is.
    Error,
}

/// The table of late events.
#[derive(Debug, Clone)]
pub struct LatePlan {
    /// Table and columns.
    pub layout: Arc<Layout>,
    /// What fills each column.
    pub columns: Vec<LateColumn>,
}

/// What fills a column of the table of late events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LateColumn {
    /// The aggregate.
    Aggregate,
    /// The event's message.
    MessageId,
    /// When it happened.
    EventTime,
    /// When it was published.
    PublishTime,
    /// When we received it.
    ReceivedTime,
    /// How far the watermark was.
    Watermark,
    /// The key of the window, as a JSON object.
    Key,
    /// The windows it came too late for, as JSON.
    MissedWindows,
    /// How long ago the newest of them was closed, by the watermark.
    LateByMs,
    /// The pipeline.
    Pipeline,
}

impl Planner<'_> {
    /// The tables of the pipeline's aggregates; none if it has none.
    pub(super) fn windows(
        &mut self,
        config: &Config,
        rules: &RuleSet,
        live: &impl Fn(&str) -> Option<Vec<TableColumn>>,
    ) -> Option<WindowsPlan> {
        let late = config.late_data.as_ref().filter(|_| !config.aggregates.is_empty())?;
        let (found, problems) = aggregates(config, rules);
        self.problems.extend(problems);
        let mut planned = Vec::new();
        for aggregate in found {
            let config = config.aggregates.iter().find(|config| config.name == *aggregate.name);
            planned.extend(self.aggregate(config.expect("it was made of it"), aggregate, live));
        }
        let tiers = config.aggregates.iter().map(|aggregate| &aggregate.tier).chain([late]);
        let partitioned = tiers.into_iter().any(|tier| tier.partition_by.is_some());
        let (layout, columns) = self.known_table("late_data", late, &late_columns(), (&[], None), live)?;
        Some(WindowsPlan { aggregates: planned, late: LatePlan { layout: Arc::new(layout), columns }, partitioned })
    }

    fn aggregate(
        &mut self,
        config: &AggregateConfig,
        aggregate: Aggregate,
        live: &impl Fn(&str) -> Option<Vec<TableColumn>>,
    ) -> Option<AggregatePlan> {
        let inexact = aggregate.spec.measures.iter().position(|measure| !is_exact_in_sqlite(*measure));
        if let (WarehouseConfig::Sqlite { .. }, Accumulation::Discarding, Some(inexact)) =
            (self.warehouse, config.accumulation, inexact)
        {
            let what = format!(
                "`{}` is of NUMERIC, which SQLite cannot put together from discarding panes without rounding: use \
                 accumulation = \"accumulating\"",
                aggregate.measures[inexact]
            );
            self.refuse(config.key("measures"), what);
        }
        let key = key_path(&["aggregates", &config.name]);
        let known = pane_columns(&aggregate);
        if let (WarehouseConfig::Sqlite { .. }, None, Some(table)) =
            (self.warehouse, upsert(config), live(&config.tier.table))
            && let Some(column) = table.iter().find(|column| {
                column.is_key && known.iter().any(|ours| ours.column.name.eq_ignore_ascii_case(&column.name))
            })
        {
            let what = format!(
                "column `{}` is its key, and a window has more than one pane: use write = \"upsert\", or another table",
                column.name
            );
            self.refuse(config.key("table"), what);
        }
        let (layout, columns) = self.known_table(&key, &config.tier, &known, (&[], upsert(config)), live)?;
        let view = latest_view(config, &aggregate).filter(|_| config.tier.create == Create::IfNeeded);
        if let Some(Err(what)) = view.as_ref().map(|view| create_view_statement(self.warehouse, view)) {
            self.refuse(config.key("table"), what);
        }
        let tier = Tier::Panes(AggregateName::new(&config.name).expect("the name was checked"));
        Some(AggregatePlan { aggregate, tier, layout: Arc::new(layout), columns, view })
    }
}

/// How rows of an aggregate's table replace others, if they do.
pub fn upsert(config: &AggregateConfig) -> Option<Upsert> {
    let sequence = || vec!["epoch".to_owned(), "pane_index".to_owned()];
    (config.write == WriteMode::Upsert).then(|| Upsert { key: "window_id".to_owned(), sequence: sequence() })
}

/// The view of the newest state of an aggregate's windows, if its table has every pane.
pub fn latest_view(config: &AggregateConfig, aggregate: &Aggregate) -> Option<NewView> {
    config.view().map(|name| NewView {
        name,
        table: config.tier.table.clone(),
        groups: config.group_by.clone(),
        measures: aggregate.measures.iter().cloned().zip(aggregate.spec.measures.iter().copied()).collect(),
        accumulation: config.accumulation,
    })
}

fn known<T>(name: &str, kind: ColumnType, nullable: bool, required: bool, filled_by: T) -> Known<T> {
    Known { column: Column::new(name, kind, nullable), may_be_null: nullable, required, filled_by }
}

/// The columns of an aggregate's table. Measures are null in a pane that takes back.
pub fn pane_columns(aggregate: &Aggregate) -> Vec<Known<PaneColumn>> {
    use ColumnType::{Int64, Text, Timestamp};
    let mut columns = vec![
        known("window_start", Timestamp, false, true, PaneColumn::WindowStart),
        known("window_end", Timestamp, false, true, PaneColumn::WindowEnd),
    ];
    let group = aggregate.group.iter().zip(0..);
    columns.extend(group.map(|((name, kind), index)| known(name, *kind, true, true, PaneColumn::Group(index))));
    let measures = aggregate.measures.iter().zip(&aggregate.spec.measures).zip(0..);
    columns.extend(
        measures.map(|((name, measure), index)| known(name, measure.output(), true, true, PaneColumn::Measure(index))),
    );
    columns.extend([
        known("timing", Text, false, true, PaneColumn::Timing),
        known("pane_index", Int64, false, true, PaneColumn::PaneIndex),
        known("epoch", Int64, false, true, PaneColumn::Epoch),
        known("fired_at", Timestamp, false, false, PaneColumn::FiredAt),
        known("watermark", Timestamp, true, false, PaneColumn::Watermark),
        known("error", Text, true, true, PaneColumn::Error),
        known("window_id", Text, false, true, PaneColumn::WindowId),
    ]);
    columns
}

/// The columns of the table of late events.
pub fn late_columns() -> [Known<LateColumn>; 10] {
    use ColumnType::{Int64, Json, Text, Timestamp};
    [
        known("aggregate", Text, false, true, LateColumn::Aggregate),
        known("message_id", Text, false, true, LateColumn::MessageId),
        known("event_time", Timestamp, false, true, LateColumn::EventTime),
        known("publish_time", Timestamp, false, false, LateColumn::PublishTime),
        known("received_time", Timestamp, false, false, LateColumn::ReceivedTime),
        known("watermark", Timestamp, true, false, LateColumn::Watermark),
        known("key", Json, false, true, LateColumn::Key),
        known("missed_windows", Json, false, true, LateColumn::MissedWindows),
        known("late_by_ms", Int64, false, true, LateColumn::LateByMs),
        known("pipeline", Text, false, false, LateColumn::Pipeline),
    ]
}

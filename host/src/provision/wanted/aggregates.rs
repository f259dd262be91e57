//! What aggregates want: their tables, the views over these, and the table of late events.

use super::Builder;
use crate::config::{AggregateConfig, Create};
use crate::pipeline::windows::aggregate::{Aggregate, aggregates};
use crate::pipeline::{Known, late_columns, latest_view, pane_columns, upsert};
use crate::provision::model::{Standing, TableName, TableRole, View, WantedColumn};
use crate::rules::RuleSet;
use crate::warehouse::NewView;
use crate::warehouse::bigquery::create_view_statement;

impl Builder<'_> {
    /// Refuses shards of a pipeline with aggregates: the panes of a window would come from several workers, each with a part of
    /// its events.
    pub(super) fn one_worker(&mut self) {
        if !self.config.aggregates.is_empty() {
            let what = "there are no shards of a pipeline with [aggregates]: each would have windows of its own over a part of \
                        the events, and their panes would meet in one table. Leave --shards out and give the worker more cores \
                        (`run.threads`), or take [aggregates] out";
            self.refuse("aggregates", what);
        }
    }

    /// Tables and views of all aggregates. Without aggregates nothing is late.
    pub(super) fn aggregates(&mut self, rules: &RuleSet) {
        let config = self.config;
        let Some(late) = config.late_data.as_ref().filter(|_| !config.aggregates.is_empty()) else { return };
        self.table(TableRole::Late, "late_data.table", late, late_columns().map(wanted).into());
        let (found, problems) = aggregates(config, rules);
        self.problems.extend(problems);
        for aggregate in &found {
            let of = config.aggregates.iter().find(|config| config.name == *aggregate.name);
            self.aggregate(of.expect("it was made of it"), aggregate);
        }
    }

    fn aggregate(&mut self, config: &AggregateConfig, aggregate: &Aggregate) {
        let (key, index) = (config.key("table"), self.wanted.tables.len());
        let columns = pane_columns(aggregate).into_iter().map(wanted).collect();
        self.table(TableRole::Aggregate, &key, &config.tier, columns);
        // Where there is no table its name was refused.
        let Some(table) = self.wanted.tables.get_mut(index) else { return };
        table.primary_key = upsert(config).map(|upsert| upsert.key);
        let Some(view) = latest_view(config, aggregate) else { return };
        let (table, location) = (table.name.clone(), table.location.clone());
        let named = TableName::parse(&view.name, &table.project).and_then(|name| {
            let view = NewView { name: name.to_string(), table: table.to_string(), ..view };
            create_view_statement(&view, &name.project).map(|_| (name, view))
        });
        let is_of_run = config.tier.create == Create::IfNeeded;
        match named {
            Ok((name, view)) => self.wanted.views.push(View { name, location, view, is_of_run }),
            Err(error) => self.refuse(&key, error.text),
        }
    }
}

fn wanted<T>(known: Known<T>) -> WantedColumn {
    let Known { column, may_be_null, required, .. } = known;
    WantedColumn { column, standing: if required { Standing::Needed } else { Standing::Wanted }, may_be_null }
}

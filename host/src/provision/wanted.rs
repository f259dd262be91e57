//! What a pipeline wants, from its file and its rules. Pure.

mod aggregates;

use super::model::{Purpose, Standing, Subscription, Table, TableName, TableRole, Topic, Wanted, WantedColumn};
use super::shards;
use crate::config::{
    Config, ConfigError, Problem, PubsubProvision, RulesFrom, SourceConfig, TierConfig, WarehouseConfig,
};
use crate::pipeline::beside::differences;
use crate::pipeline::{rule_digest_column, silver_columns};
use crate::row::{Column, ColumnType};
use crate::rules::{Manifest, RuleSet};
use crate::warehouse::{HostColumn, HostTableColumn, PLAIN, bronze_columns, quarantine_columns, resolution_columns};
use std::num::NonZeroU32;

/// What is asked for beyond the pipeline file.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Also the optional columns, and the table of differences between rules.
    pub extended: bool,
    /// So many workers, each with a filtered subscription, in the place of the one of the pipeline file.
    pub shards: Option<NonZeroU32>,
}

/// What a pipeline wants. Its rules say which columns silver has.
pub fn wanted(config: &Config, rules: &RuleSet, options: Options) -> Result<Wanted, ConfigError> {
    let mut builder = Builder { config, options, wanted: Wanted::default(), problems: Vec::new() };
    builder.tables(rules);
    builder.pubsub();
    if builder.problems.is_empty() { Ok(builder.wanted) } else { Err(ConfigError(builder.problems)) }
}

struct Builder<'a> {
    config: &'a Config,
    options: Options,
    wanted: Wanted,
    problems: Vec<Problem>,
}

impl Builder<'_> {
    fn note(&mut self, note: impl Into<String>) {
        self.wanted.notes.push(note.into());
    }

    fn refuse(&mut self, key: &str, what: impl Into<String>) {
        self.problems.push(Problem::new(key, what));
    }

    fn tables(&mut self, rules: &RuleSet) {
        let config = self.config;
        let WarehouseConfig::Bigquery(bigquery) = &config.warehouse else {
            self.note("the warehouse is SQLite: its tables are made by a run, with create = \"if_needed\"");
            return;
        };
        self.wanted.billed_to = Some(bigquery.project.clone());
        let bronze = config.provision.pubsub.as_ref().and_then(|pubsub| pubsub.bronze.as_ref());
        if let Some(tier) = &config.bronze {
            let columns = self.host_columns(bronze_columns(), &[]);
            self.table(TableRole::Bronze, "bronze.table", tier, columns);
        } else if let Some(bronze) = bronze {
            let columns = bronze_columns()[..PLAIN].iter().map(|column| host_column(column, Standing::Needed));
            let columns = columns.collect();
            self.table(TableRole::BronzeBySubscription, "provision.bronze.table", &bronze.tier, columns);
        }
        let manifests: Vec<&Manifest> = rules.served().map(|(_, served)| &served.rule.manifest).collect();
        let columns = self.silver(&manifests);
        self.table(TableRole::Silver, "silver.table", &config.silver.tier, columns);
        if let Some(tier) = &config.quarantine.table {
            let columns = self.host_columns(quarantine_columns(), resolution_columns());
            self.table(TableRole::Quarantine, "quarantine.table", tier, columns);
        }
        self.differences();
        self.aggregates(rules);
    }

    /// The columns that the rules and the pipeline file fill: a worker needs all of them.
    fn silver(&mut self, manifests: &[&Manifest]) -> Vec<WantedColumn> {
        let host = &self.config.silver.host_columns;
        if manifests.is_empty() {
            self.refuse("silver.table", "no rule says which columns it has: promote one first");
        }
        let (columns, problems) = silver_columns(manifests, host);
        self.problems.extend(problems);
        let digest = rule_digest_column(&columns);
        let mut columns: Vec<WantedColumn> = columns
            .into_iter()
            .map(|column| WantedColumn { may_be_null: column.nullable, standing: Standing::Needed, column })
            .collect();
        // These two depend on the event: a column that is made may be null, one that is there must.
        for column in &mut columns {
            let host = host.iter().find(|(name, _)| name.eq_ignore_ascii_case(&column.column.name));
            if let Some((_, host)) = host {
                column.may_be_null = matches!(host, HostColumn::OrderingKey | HostColumn::DeliveryAttempt);
            }
        }
        columns.extend(digest.map(|column| WantedColumn { column, standing: self.optional(), may_be_null: false }));
        columns
    }

    fn optional(&self) -> Standing {
        if self.options.extended { Standing::Wanted } else { Standing::Known }
    }

    /// The columns of a table that the host fills; the `empty` ones only by a replay.
    fn host_columns(&self, known: &[HostTableColumn], empty: &[(&str, ColumnType)]) -> Vec<WantedColumn> {
        let known = known.iter().enumerate().map(|(index, column)| {
            let standing = match index {
                _ if column.required => Standing::Needed,
                index if index < PLAIN => Standing::Wanted,
                _ => self.optional(),
            };
            host_column(column, standing)
        });
        let empty = empty.iter().map(|(name, kind)| WantedColumn {
            column: Column::new(*name, *kind, true),
            standing: self.optional(),
            may_be_null: true,
        });
        known.chain(empty).collect()
    }

    /// The table of differences: a worker with few permissions cannot make it itself.
    fn differences(&mut self) {
        let config = self.config;
        let shadow = &config.rules.shadow;
        if !self.options.extended || shadow.keep == 0 || !matches!(config.rules.from, RulesFrom::Store(_)) {
            return;
        }
        if TableName::parse(&shadow.table, "p").is_err() {
            let what = "names no dataset, so differences between rules cannot be written";
            return self.note(format!("rules.shadow.table: {:?} {what}", shadow.table));
        }
        let new = differences::table(&shadow.table);
        let tier = TierConfig {
            table: new.name,
            create: crate::config::Create::Never,
            write: crate::config::Write::Append,
            partition_by: None,
            cluster_by: Vec::new(),
            description: Some("Differences between rules that judge the same events".to_owned()),
        };
        let columns = new.columns.into_iter().map(|column| WantedColumn {
            may_be_null: column.nullable,
            standing: Standing::Needed,
            column,
        });
        let columns = columns.collect();
        self.table(TableRole::Differences, "rules.shadow.table", &tier, columns);
    }

    fn table(&mut self, role: TableRole, key: &str, tier: &TierConfig, columns: Vec<WantedColumn>) {
        let home = self.wanted.billed_to.as_deref().unwrap_or_default();
        let name = match TableName::parse(&tier.table, home) {
            Ok(name) => name,
            Err(error) => return self.refuse(key, error.text),
        };
        self.by_its_columns(key, tier, &columns);
        let table = Table {
            role,
            name,
            location: self.config.provision.location.clone(),
            columns,
            partition_by: tier.partition_by.clone(),
            cluster_by: tier.cluster_by.clone(),
            primary_key: None,
            description: tier.description.clone(),
        };
        let dataset = table.dataset();
        if !self.wanted.datasets.contains(&dataset) {
            self.wanted.datasets.push(dataset);
        }
        self.wanted.tables.push(table);
    }

    /// Partitions and order must be by columns that the table is made with.
    fn by_its_columns(&mut self, key: &str, tier: &TierConfig, columns: &[WantedColumn]) {
        let tier_key = key.strip_suffix(".table").unwrap_or(key);
        let made = |name: &str| {
            let found = columns.iter().find(|column| column.column.name.eq_ignore_ascii_case(name));
            found.filter(|column| column.standing != Standing::Known).map(|column| column.column.kind)
        };
        if let Some(name) = &tier.partition_by {
            match made(name) {
                Some(ColumnType::Timestamp | ColumnType::Date) => {}
                Some(kind) => {
                    let what = format!("column `{name}` is {kind}: partitions are days of a TIMESTAMP or a DATE");
                    self.refuse(&format!("{tier_key}.partition_by"), what);
                }
                None => self.refuse(&format!("{tier_key}.partition_by"), format!("the table has no column `{name}`")),
            }
        }
        for name in &tier.cluster_by {
            let what = match made(name) {
                Some(ColumnType::Float64 | ColumnType::Bytes | ColumnType::Json) => {
                    format!("BigQuery does not cluster by the type of column `{name}`")
                }
                Some(_) => continue,
                None => format!("the table has no column `{name}`"),
            };
            self.refuse(&format!("{tier_key}.cluster_by"), what);
        }
    }

    fn pubsub(&mut self) {
        let config = self.config;
        if self.options.shards.is_some() {
            self.one_worker();
        }
        let (SourceConfig::Pubsub(source), Some(provision)) = (&config.source, &config.provision.pubsub) else {
            self.note("the source is no Pub/Sub subscription: no topic and no subscription is made");
            if self.options.shards.is_some() {
                self.refuse("source", "shards are of a Pub/Sub subscription: there is none");
            }
            return;
        };
        self.names_differ(provision, &source.subscription);
        let topics = [provision.topic.clone(), provision.dead_letter.as_ref().map(|dead| dead.topic.clone())];
        self.wanted.topics.extend(topics.into_iter().flatten().map(Topic));
        if let Some(dead) = &provision.dead_letter {
            self.wanted.subscriptions.push(Subscription {
                name: dead.subscription.clone(),
                topic: Some(dead.topic.clone()),
                purpose: Purpose::DeadLetter,
            });
        }
        match self.options.shards {
            None => self.worker(source.subscription.clone(), provision, String::new()),
            Some(count) => match shards::plan(&source.subscription, &config.name, count) {
                Ok(shards) => {
                    for shard in shards {
                        self.worker(shard.subscription, provision, shard.filter);
                    }
                    let note = shards::note(&source.subscription, count);
                    self.note(note);
                }
                Err(what) => self.refuse("name", what),
            },
        }
        self.bronze_subscription(provision);
    }

    /// A topic that is its own dead-letter topic delivers for ever; one subscription cannot be two. A worker may pull the
    /// dead-letter subscription with the same pipeline file: so it is only here that it is refused.
    fn names_differ(&mut self, pubsub: &PubsubProvision, worker: &str) {
        let dead = pubsub.dead_letter.as_ref();
        if dead.is_some_and(|dead| pubsub.topic.as_ref() == Some(&dead.topic)) {
            self.refuse("provision.dead_letter_topic", "it is the topic itself: give another one");
        }
        let mut taken = vec![worker];
        let subscriptions = [
            ("provision.dead_letter_subscription", dead.map(|dead| dead.subscription.as_str())),
            ("provision.bronze.subscription", pubsub.bronze.as_ref().map(|bronze| bronze.subscription.as_str())),
        ];
        for (key, name) in subscriptions {
            let Some(name) = name else { continue };
            if taken.contains(&name) {
                self.refuse(key, format!("{name} is another subscription of this pipeline already"));
            }
            taken.push(name);
        }
    }

    fn worker(&mut self, name: String, provision: &PubsubProvision, filter: String) {
        let purpose = Purpose::Worker {
            settings: provision.settings.clone(),
            dead_letter: provision.dead_letter.as_ref().map(|dead| (dead.topic.clone(), dead.max_delivery_attempts)),
            filter,
        };
        self.wanted.subscriptions.push(Subscription { name, topic: provision.topic.clone(), purpose });
    }

    /// Where the worker writes bronze, a subscription beside it would write each event a second time.
    fn bronze_subscription(&mut self, provision: &PubsubProvision) {
        let Some(bronze) = &provision.bronze else { return };
        if self.config.bronze.is_some() {
            let name = &bronze.subscription;
            return self.note(format!("{name} is left out: with [bronze] the worker itself writes raw events"));
        }
        let table = self.wanted.tables.iter().find(|table| table.role == TableRole::BronzeBySubscription);
        // Without a table there is no BigQuery, which was said, or its name was refused.
        let Some(table) = table.map(|table| table.name.clone()) else { return };
        self.wanted.subscriptions.push(Subscription {
            name: bronze.subscription.clone(),
            topic: provision.topic.clone(),
            purpose: Purpose::Bronze { table },
        });
    }
}

fn host_column(column: &HostTableColumn, standing: Standing) -> WantedColumn {
    WantedColumn { column: column.created(), standing, may_be_null: column.host.nullable() }
}

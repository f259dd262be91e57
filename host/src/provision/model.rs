//! What can be wanted and found on Google Cloud.

use crate::config::SubscriptionSettings;
use crate::row::Column;
pub use crate::warehouse::bigquery::{FoundView, TableName};
use crate::warehouse::{NewTable, NewView, TableColumn};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

/// A dataset.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dataset {
    /// The project.
    pub project: String,
    /// The dataset.
    pub name: String,
    /// Where it is made; BigQuery decides if none is given.
    pub location: Option<String>,
}

impl fmt::Display for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.project, self.name)
    }
}

/// What a table is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableRole {
    /// Raw events, written by the worker.
    Bronze,
    /// Raw events, written by a BigQuery subscription.
    BronzeBySubscription,
    /// Accepted rows.
    Silver,
    /// Rejected events.
    Quarantine,
    /// Differences between rules that judge the same events.
    Differences,
    /// Panes of an aggregate, or one row for each of its windows.
    Aggregate,
    /// Events that came too late for a window.
    Late,
}

/// What becomes of a pipeline whose table lacks a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It does not run.
    Needed,
    /// It runs, and does not write that value.
    Wanted,
    /// The same; the column is not asked for.
    Known,
}

/// A column of a wanted table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedColumn {
    /// The column as a new table has it.
    pub column: Column,
    /// How much it is wanted.
    pub standing: Standing,
    /// Whether what fills it may leave it null.
    pub may_be_null: bool,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// What it is for.
    pub role: TableRole,
    /// Its name.
    pub name: TableName,
    /// Where its dataset is made.
    pub location: Option<String>,
    /// Every column that is filled where the table has it.
    pub columns: Vec<WantedColumn>,
    /// The column whose days are its partitions.
    pub partition_by: Option<String>,
    /// The columns its rows are sorted by.
    pub cluster_by: Vec<String>,
    /// The column by which rows replace others.
    pub primary_key: Option<String>,
    /// What it is, for people.
    pub description: Option<String>,
}

impl Table {
    /// The table as it is made.
    pub fn new_table(&self) -> NewTable {
        let wanted = self.columns.iter().filter(|column| column.standing != Standing::Known);
        NewTable {
            name: self.name.to_string(),
            columns: wanted.map(|column| column.column.clone()).collect(),
            partition_by: self.partition_by.clone(),
            cluster_by: self.cluster_by.clone(),
            primary_key: self.primary_key.clone(),
            description: self.description.clone(),
        }
    }

    /// The dataset it is in.
    pub fn dataset(&self) -> Dataset {
        Dataset { project: self.name.project.clone(), name: self.name.dataset.clone(), location: self.location.clone() }
    }
}

/// A view of the newest panes of an aggregate, in the dataset of its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Its name.
    pub name: TableName,
    /// Where its dataset is made.
    pub location: Option<String>,
    /// How it is made, by full names.
    pub view: NewView,
    /// Whether a run looks for it, too, and makes it.
    pub is_of_run: bool,
}

/// A topic, by its full name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic(pub String);

/// A subscription. None of them expires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// Its full name.
    pub name: String,
    /// The full name of its topic; none if the pipeline file does not say it: then it can only be looked at.
    pub topic: Option<String>,
    /// What it is for.
    pub purpose: Purpose,
}

/// What a subscription is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purpose {
    /// A worker pulls from it.
    Worker {
        /// How it is made.
        settings: SubscriptionSettings,
        /// The full name of the dead-letter topic, and after how many deliveries a message goes there.
        dead_letter: Option<(String, u32)>,
        /// Which messages it gets; all of them if empty.
        filter: String,
    },
    /// Pub/Sub writes its messages to this table, with their metadata.
    Bronze {
        /// The table.
        table: TableName,
    },
    /// It keeps what was forwarded to the dead-letter topic.
    DeadLetter,
}

impl Purpose {
    /// How long messages in a dead-letter subscription are kept: as long as Pub/Sub can.
    pub const DEAD_LETTER_RETENTION: Duration = Duration::from_hours(31 * 24);
}

/// Everything that a pipeline wants, in the order in which it can be made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The project that queries are billed to; none without BigQuery.
    pub billed_to: Option<String>,
    /// Datasets.
    pub datasets: Vec<Dataset>,
    /// Tables.
    pub tables: Vec<Table>,
    /// Views over these.
    pub views: Vec<View>,
    /// Topics.
    pub topics: Vec<Topic>,
    /// Subscriptions.
    pub subscriptions: Vec<Subscription>,
    /// What is left out, and why.
    pub notes: Vec<String>,
}

impl Wanted {
    /// Whether nothing of the pipeline is Google's. Views are of tables.
    pub fn is_empty(&self) -> bool {
        self.datasets.is_empty() && self.tables.is_empty() && self.topics.is_empty() && self.subscriptions.is_empty()
    }

    /// All of it, in the order in which it can be made.
    pub fn resources(&self) -> impl Iterator<Item = Resource> {
        let datasets = self.datasets.iter().cloned().map(Resource::Dataset);
        let tables = self.tables.iter().cloned().map(|table| Resource::Table(Box::new(table)));
        let views = self.views.iter().cloned().map(|view| Resource::View(Box::new(view)));
        let topics = self.topics.iter().cloned().map(Resource::Topic);
        let subscriptions = self.subscriptions.iter().cloned().map(Resource::Subscription);
        datasets.chain(tables).chain(views).chain(topics).chain(subscriptions)
    }
}

/// One thing that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resource {
    /// A dataset.
    Dataset(Dataset),
    /// A table.
    Table(Box<Table>),
    /// A view.
    View(Box<View>),
    /// A topic.
    Topic(Topic),
    /// A subscription.
    Subscription(Subscription),
}

impl Resource {
    /// What it is, in a word.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Dataset(_) => "dataset",
            Self::Table(_) => "table",
            Self::View(_) => "view",
            Self::Topic(_) => "topic",
            Self::Subscription(_) => "subscription",
        }
    }

    /// Its name.
    pub fn name(&self) -> String {
        match self {
            Self::Dataset(dataset) => dataset.to_string(),
            Self::Table(table) => table.name.to_string(),
            Self::View(view) => view.name.to_string(),
            Self::Topic(topic) => topic.0.clone(),
            Self::Subscription(subscription) => subscription.name.clone(),
        }
    }
}

/// What is there of what is wanted.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// Whether BigQuery was asked, and not an emulator, which does not tell all it knows of a table.
    pub bigquery_tells_all: bool,
    /// Whether Pub/Sub was asked, and not an emulator.
    pub pubsub_tells_all: bool,
    /// The location of each dataset, by `project.dataset`.
    pub datasets: BTreeMap<String, Option<String>>,
    /// Tables.
    pub tables: BTreeMap<TableName, FoundTable>,
    /// What has the names of views.
    pub views: BTreeMap<TableName, FoundView>,
    /// The full names of topics.
    pub topics: BTreeSet<String>,
    /// Subscriptions by their full names.
    pub subscriptions: BTreeMap<String, FoundSubscription>,
}

/// A table as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundTable {
    /// What it is if it is no ordinary table: `VIEW`, `EXTERNAL`, ….
    pub other_kind: Option<String>,
    /// Its columns.
    pub columns: Vec<TableColumn>,
    /// Its partitions, as `PARTITION BY` says it.
    pub partition_by: Option<String>,
    /// The columns its rows are sorted by.
    pub cluster_by: Vec<String>,
    /// What it is, for people.
    pub description: Option<String>,
}

/// A subscription as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSubscription {
    /// The full name of its topic.
    pub topic: String,
    /// How it is set.
    pub settings: SubscriptionSettings,
    /// Dead-letter topic and deliveries.
    pub dead_letter: Option<(String, u32)>,
    /// Which messages it gets; all of them if empty.
    pub filter: String,
    /// After how much idleness it is deleted; none if never.
    pub expires: Option<Duration>,
    /// Whether it was detached from its topic.
    pub detached: bool,
    /// Where its messages go.
    pub delivery: Delivery,
}

/// Where the messages of a subscription go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// To whoever pulls.
    Pull,
    /// To a table of BigQuery.
    BigQuery {
        /// `project.dataset.table`
        table: String,
        /// Whether metadata is written, too.
        write_metadata: bool,
        /// Whether the payload is taken apart by a schema.
        by_schema: bool,
        /// Why it does not deliver, if it does not.
        trouble: Option<String>,
    },
    /// To an HTTP endpoint.
    Push,
    /// To Cloud Storage.
    CloudStorage,
    /// To Bigtable.
    Bigtable,
}

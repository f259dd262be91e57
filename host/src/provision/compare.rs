//! What is wanted against what is there. Pure: the answer says what is to be made, and how the rest differs.

mod subscription;
mod table;
mod view;

use super::commands;
use super::model::{Dataset, Found, Resource, Wanted};
use crate::row::Column;

/// One thing that is wanted, and what follows from what is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What is wanted.
    pub resource: Resource,
    /// What is to be done; none if it is there.
    pub change: Option<Change>,
    /// How it differs from what is wanted, and will go on to.
    pub differences: Vec<Difference>,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It is not there: make it.
    Create,
    /// Add these columns.
    AddColumns(Vec<Column>),
}

/// A difference that is left as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What differs, and how.
    pub what: String,
    /// The command by which an operator would change it, if there is one.
    pub remedy: Option<String>,
    /// Whether the pipeline cannot run as long as it is so.
    pub blocks: bool,
}

impl Difference {
    fn harmless(what: impl Into<String>, remedy: Option<String>) -> Self {
        Self { what: what.into(), remedy, blocks: false }
    }

    fn blocking(what: impl Into<String>, remedy: Option<String>) -> Self {
        Self { what: what.into(), remedy, blocks: true }
    }
}

/// Compares all that is wanted, in the order in which it can be made. With `add_columns` what a table lacks is added.
pub fn compare(wanted: &Wanted, found: &Found, add_columns: bool) -> Vec<Step> {
    wanted.resources().map(|resource| step(resource, found, add_columns)).collect()
}

fn step(resource: Resource, found: &Found, add_columns: bool) -> Step {
    let (change, differences) = match &resource {
        Resource::Dataset(dataset) => match found.datasets.get(&dataset.to_string()) {
            None => (Some(Change::Create), Vec::new()),
            Some(location) => (None, dataset_differs(dataset, location.as_deref())),
        },
        Resource::Table(table) => match found.tables.get(&table.name) {
            None => (Some(Change::Create), Vec::new()),
            Some(there) => table::compare(table, there, found.bigquery_tells_all, add_columns),
        },
        Resource::View(view) => match found.views.get(&view.name) {
            None => (Some(Change::Create), Vec::new()),
            Some(there) => (None, view::compare(view, there)),
        },
        Resource::Topic(topic) => ((!found.topics.contains(&topic.0)).then_some(Change::Create), Vec::new()),
        Resource::Subscription(wanted) => match found.subscriptions.get(&wanted.name) {
            None if wanted.topic.is_none() => {
                let what = "it is not there, and provision.topic does not say which topic it would be of";
                (None, vec![Difference::blocking(what, None)])
            }
            None => (Some(Change::Create), Vec::new()),
            Some(there) => (None, subscription::compare(wanted, there, found.pubsub_tells_all)),
        },
    };
    Step { resource, change, differences }
}

fn dataset_differs(dataset: &Dataset, location: Option<&str>) -> Vec<Difference> {
    match (&dataset.location, location) {
        (Some(wanted), Some(there)) if !wanted.eq_ignore_ascii_case(there) => {
            let what = format!("it is in {there}, not in {wanted}: a dataset stays where it was made");
            vec![Difference::harmless(what, Some(commands::copy_dataset(dataset)))]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::Topic;
    use super::*;

    #[test]
    fn what_is_missing_is_made_and_what_is_there_is_kept() {
        let dataset = Dataset { project: "p".into(), name: "d".into(), location: Some("EU".into()) };
        let wanted =
            Wanted { datasets: vec![dataset], topics: vec![Topic("projects/p/topics/t".into())], ..Wanted::default() };
        let steps = compare(&wanted, &Found::default(), false);
        assert!(steps.iter().all(|step| step.change == Some(Change::Create) && step.differences.is_empty()));

        let mut found = Found::default();
        found.datasets.insert("p.d".into(), Some("eu".into()));
        found.topics.insert("projects/p/topics/t".into());
        let steps = compare(&wanted, &found, false);
        assert!(steps.iter().all(|step| step.change.is_none() && step.differences.is_empty()));

        found.datasets.insert("p.d".into(), Some("US".into()));
        let differences = &compare(&wanted, &found, false)[0].differences;
        assert!(differences[0].what.contains("in US, not in EU") && !differences[0].blocks);
    }
}

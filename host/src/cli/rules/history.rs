//! `preflight rules history`.

use super::{StoreArgs, broken};
use crate::cli::{Ended, output};
use crate::releases::Record;
use clap::Args;

#[derive(Debug, Args)]
pub(super) struct HistoryArgs {
    /// Only of this event version
    #[arg(long, value_name = "VERSION")]
    events: Option<String>,
    /// Only the newest
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    #[command(flatten)]
    store: StoreArgs,
}

pub(super) fn history(args: &HistoryArgs) -> Ended {
    let mut records = match args.store.store().history() {
        Ok(records) => records,
        Err(error) => return broken(error),
    };
    if args.events.is_some() {
        records.retain(|record| record.events == args.events);
    }
    if let Some(limit) = args.limit {
        records.drain(..records.len().saturating_sub(limit));
    }
    if args.store.json {
        output::json(&records);
    } else {
        let table = output::table(
            ["revision", "when", "who", "what", "event version", "component", "why"],
            records.into_iter().map(row),
            None,
        );
        output::print(&format!("{table}\n"));
    }
    Ended::Done
}

fn row(record: Record) -> [String; 7] {
    let component = match (&record.digest, &record.rule) {
        (Some(digest), Some(rule)) => format!("{} {rule}", digest.short()),
        (Some(digest), None) => digest.short(),
        (None, _) => String::new(),
    };
    let Record { revision, at, by, action, events, why, .. } = record;
    // What operators and programs have written, each on one line.
    [revision.to_string(), at, by, action, events.unwrap_or_default(), component, why]
        .map(|cell| output::one_line(&cell))
}

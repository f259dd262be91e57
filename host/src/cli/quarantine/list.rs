//! `preflight quarantine list`: groups with their counts, and the newest rows.

use super::{FilterArgs, Whose, ended};
use crate::cli::{Ended, output};
use crate::verdict::clip;
use crate::warehouse::events::{EventsError, Group, Lack, StoredEvent};
use clap::Args;
use serde_json::json;

/// What is shown of a reason in a table, bytes.
const REASON: usize = 100;

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    whose: Whose,
    #[command(flatten)]
    filter: FilterArgs,
    /// Show rows too whose event a replay took out of quarantine
    #[arg(long)]
    resolved: bool,
    /// How many of the newest rows are shown
    #[arg(long, default_value_t = 20)]
    limit: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn list(args: &ListArgs) -> Ended {
    let table = match args.whose.table() {
        Ok(table) => table,
        Err(ended) => return ended,
    };
    let filter = args.filter.filter(args.resolved);
    let read = || -> Result<_, EventsError> { Ok((table.groups(&filter)?, table.newest_rows(&filter, args.limit)?)) };
    match read() {
        Ok((groups, rows)) if args.json => {
            let total: u64 = groups.iter().map(|group| group.rows).sum();
            let rows: Vec<_> = rows.iter().map(as_json).collect();
            output::json(&json!({ "rows": total, "groups": groups, "newest": rows }));
            Ended::Done
        }
        Ok((groups, rows)) => {
            output::print(&as_text(&groups, &rows));
            Ended::Done
        }
        Err(error) => ended(error),
    }
}

/// A row without its payload.
pub(super) fn as_json(row: &StoredEvent) -> serde_json::Value {
    let mut value = serde_json::to_value(&row.meta).expect("what a row says is plain data");
    value["id"] = row.id.into();
    value["message_id"] = row.event.message_id.clone().into();
    value["replayable"] = row.lacks.is_none().into();
    value["lacks"] = row.lacks.map(Lack::as_str).into();
    value
}

fn as_text(groups: &[Group], rows: &[StoredEvent]) -> String {
    if groups.is_empty() {
        return "no rows\n".into();
    }
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let lines =
        groups.iter().map(|group| [text(&group.stage), text(&group.code), text(&group.rule), group.rows.to_string()]);
    let mut shown = format!("{}\n", output::table(["stage", "code", "rule", "rows"], lines, Some(3)));
    if !rows.is_empty() {
        let lines = rows.iter().map(|row| {
            let meta = &row.meta;
            let reason = clip(meta.reason.as_deref().unwrap_or_default(), REASON).into_owned();
            [
                row.id.to_string(),
                text(&meta.received),
                text(&meta.stage),
                text(&meta.code),
                reason,
                row.event.message_id.clone(),
            ]
        });
        let header = ["id", "received", "stage", "code", "reason", "message id"];
        shown.push_str(&format!("the newest:\n{}\n", output::table(header, lines, None)));
    }
    shown
}

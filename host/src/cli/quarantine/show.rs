//! `preflight quarantine show`: one row whole.

use super::list::as_json;
use super::{Whose, ended};
use crate::cli::{Ended, output};
use crate::time::format_micros;
use crate::warehouse::events::{Filter, Lack, RowId, StoredEvent};
use anyhow::anyhow;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    #[command(flatten)]
    whose: Whose,
    /// The row's id, as `quarantine list` shows it
    #[arg(allow_negative_numbers = true)]
    id: RowId,
    /// Write the payload's bytes to standard output, and nothing else
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn show(args: &ShowArgs) -> Ended {
    let table = match args.whose.table() {
        Ok(table) => table,
        Err(ended) => return ended,
    };
    let filter = Filter { ids: vec![args.id], resolved: true, ..Filter::default() };
    match table.newest_rows(&filter, 1).map(|mut rows| rows.pop()) {
        Ok(Some(row)) if args.raw => output::bytes(&row.event.payload),
        Ok(Some(row)) if args.json => output::json(&whole(&row)),
        Ok(Some(row)) => output::print(&as_text(&row)),
        Ok(None) => return Ended::Refused(anyhow!("there is no row {} in quarantine", args.id)),
        Err(error) => return ended(error),
    }
    Ended::Done
}

/// The row with its event.
fn whole(row: &StoredEvent) -> serde_json::Value {
    let event = &row.event;
    let mut value = as_json(row);
    value["attributes"] = event.attributes_json().parse().expect("attributes are written as JSON");
    value["publish_time"] = format_micros(event.publish_time).into();
    value["ordering_key"] = event.ordering_key.clone().into();
    value["delivery_attempt"] = event.delivery_attempt.into();
    value["payload"] = String::from_utf8_lossy(&event.payload).into();
    value["payload_base64"] = STANDARD.encode(&event.payload).into();
    value
}

fn as_text(row: &StoredEvent) -> String {
    let (event, meta) = (&row.event, &row.meta);
    let mut text = String::new();
    let mut line = |name: &str, value: Option<&str>| {
        if let Some(value) = value {
            text.push_str(&format!("{name:<17} {value}\n"));
        }
    };
    line("id", Some(&row.id.to_string()));
    line("pipeline", meta.pipeline.as_deref());
    line("stage", meta.stage.as_deref());
    line("code", meta.code.as_deref());
    line("reason", meta.reason.as_deref());
    line("received", meta.received.as_deref());
    line("event version", meta.event_version.as_deref());
    line("rule", meta.rule.as_deref());
    line("rule digest", meta.rule_digest.as_deref());
    line("message id", Some(&event.message_id));
    line("publish time", Some(&format_micros(event.publish_time)));
    line("ordering key", event.ordering_key.as_deref());
    line("delivery attempt", event.delivery_attempt.map(|attempt| attempt.to_string()).as_deref());
    line("attributes", Some(&event.attributes_json()));
    line("size", meta.raw_size.map(|size| format!("{size} bytes")).as_deref());
    line("not replayable", row.lacks.map(Lack::as_str));
    line("resolved", meta.resolved_at.as_deref());
    line("resolved by", meta.resolved_by.as_deref());
    text.push_str(&format!("\n{}\n", String::from_utf8_lossy(&event.payload)));
    text
}

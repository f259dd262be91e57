//! `preflight rules gc`.

use super::{StoreArgs, broken, now};
use crate::cli::{Ended, output};
use clap::Args;
use serde_json::json;

#[derive(Debug, Args)]
pub(super) struct GcArgs {
    /// Delete what is listed
    #[arg(long)]
    delete: bool,
    /// Keep what the last N revisions need, the present one included
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    keep: u64,
    #[command(flatten)]
    store: StoreArgs,
}

pub(super) fn gc(args: &GcArgs) -> Ended {
    let store = args.store.store();
    let found = if args.delete { store.collect(args.keep, now()) } else { store.garbage(args.keep, now()) };
    let garbage = match found {
        Ok(garbage) => garbage,
        Err(error) => return broken(error),
    };
    let bytes: u64 = garbage.iter().map(|one| one.bytes).sum();
    if args.store.json {
        output::json(&json!({ "deleted": args.delete, "bytes": bytes, "garbage": garbage }));
        return Ended::Done;
    }
    let mut text: String =
        garbage.iter().map(|one| format!("{} ({} bytes)\n", one.path.display(), one.bytes)).collect();
    text.push_str(&match (garbage.len(), args.delete) {
        (0, _) => "nothing that nobody needs\n".to_owned(),
        (count, true) => format!("deleted {count}, {bytes} bytes\n"),
        (count, false) => format!("{count} that nobody needs, {bytes} bytes: --delete removes them\n"),
    });
    output::print(&text);
    Ended::Done
}

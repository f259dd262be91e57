//! `preflight inspect`: what a component says of itself.

use super::{Ended, component, output};
use crate::rules::Rule;
use clap::Args;
use serde_json::json;
use std::fmt::Write;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(super) struct InspectArgs {
    /// The component
    component: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn inspect(args: &InspectArgs) -> Ended {
    let rule = match component::load(&args.component) {
        Ok((_, rule)) => rule,
        Err(error) => return Ended::Refused(error),
    };
    if args.json {
        output::json(&as_json(&rule));
    } else {
        output::print(&as_text(&rule));
    }
    Ended::Done
}

fn as_json(rule: &Rule) -> serde_json::Value {
    let manifest = &rule.manifest;
    json!({
        "name": manifest.name,
        "version": manifest.version,
        "event_versions": manifest.event_versions,
        "attributes": manifest.attributes,
        "columns": manifest.columns,
        "event_time": manifest.event_time.map(|index| &manifest.columns[index].name),
        "imports": [],
        "contract": rule.imports,
        "size": rule.size,
        "digest": rule.digest,
    })
}

fn as_text(rule: &Rule) -> String {
    let manifest = &rule.manifest;
    let list = |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        writeln!(text, "{name:<15} {value}").expect("writing to a string cannot fail");
    };
    line("name", &manifest.name);
    line("version", &manifest.version);
    line("event versions", &list(&manifest.event_versions));
    line("attributes", &list(&manifest.attributes));
    // A component with any other import is refused, so this is what the sandbox guarantees, not what was looked up.
    line("imports", "none (no WASI, clock, random, files or network)");
    line("of the contract", &list(&rule.imports));
    line("size", &format!("{} bytes", rule.size));
    line("sha256", &rule.digest.hex());
    for (index, column) in manifest.columns.iter().enumerate() {
        let event_time = if manifest.event_time == Some(index) { " (event time)" } else { "" };
        line(if index == 0 { "columns" } else { "" }, &format!("{column}{event_time}"));
    }
    text
}

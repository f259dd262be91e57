//! What `preflight provision` says: of what was made, of what differs, of what is left out.

use super::Written;
use crate::config::Config;
use crate::provision::apply::Done;
use crate::provision::commands;
use crate::provision::roles::{self, Grant};
use crate::provision::shards::Overlay;
use crate::provision::{Change, Wanted};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// What became of a step, in a word.
fn word(done: &Done) -> &'static str {
    match (&done.result, &done.step.change) {
        (Err(_), _) => "failed",
        (Ok(()), Some(Change::Create)) => "made",
        (Ok(()), Some(Change::AddColumns(_))) => "widened",
        (Ok(()), None) if done.step.differences.is_empty() => "kept",
        (Ok(()), None) => "differs",
    }
}

/// The same of an overlay.
const fn overlay_word(written: &Written) -> &'static str {
    match written {
        Written::Made => "made",
        Written::Kept => "kept",
        Written::Differs => "differs",
        Written::Failed(_) => "failed",
    }
}

/// For people.
pub(super) fn text(config: &Config, done: &[Done], notes: &[String], overlays: &[(Overlay, Written)]) -> String {
    let mut text = String::new();
    let mut line = |line: &str| {
        text.push_str(line);
        text.push('\n');
    };
    for done in done {
        let step = &done.step;
        line(&format!("{:<8} {:<13} {}", word(done), step.resource.kind(), step.resource.name()));
        if let (Some(Change::AddColumns(columns)), Ok(())) = (&step.change, &done.result) {
            let names: Vec<String> = columns.iter().map(ToString::to_string).collect();
            line(&format!("           added: {}", names.join(", ")));
        }
        for difference in &step.differences {
            let blocks = if difference.blocks { " (the pipeline cannot run with that)" } else { "" };
            line(&format!("           {}{blocks}", difference.what));
            command(&mut line, difference.remedy.as_deref());
        }
        if let Err(failure) = &done.result {
            line(&format!("           {}", failure.why));
            if !failure.hints.is_empty() {
                line("           if Pub/Sub may not write to that table yet, let it, and call this again:");
            }
            failure.hints.iter().for_each(|hint| command(&mut line, Some(hint)));
        }
    }
    for (overlay, written) in overlays {
        line(&format!("{:<8} {:<13} {}", overlay_word(written), "overlay", overlay.path.display()));
        match written {
            Written::Differs => line("           it says something else than a new one would, and stays as it is"),
            Written::Failed(why) => line(&format!("           {why}")),
            Written::Made | Written::Kept => {}
        }
    }
    for note in notes {
        line(&format!("note: {note}"));
    }
    let mut counts = String::new();
    for counted in ["made", "widened", "kept", "differs", "failed"] {
        let some = done.iter().map(word).chain(overlays.iter().map(|(_, written)| overlay_word(written)));
        let count = some.filter(|word| *word == counted).count();
        if count > 0 {
            write!(counts, "{}{count} {counted}", if counts.is_empty() { "" } else { ", " })
                .expect("a string takes any text");
        }
    }
    if counts.is_empty() {
        counts.push_str("nothing of it is on Google Cloud");
    }
    line(&format!("{}: {counts}", config.name));
    text
}

/// A command, indented; one of several lines can still be pasted.
fn command(line: &mut impl FnMut(&str), command: Option<&str>) {
    for text in command.into_iter().flat_map(str::lines) {
        line(&format!("             {text}"));
    }
}

/// For programs, of a dry run.
pub(super) fn planned(config: &Config, wanted: &Wanted, overlays: &[Overlay]) -> Value {
    let resources: Vec<Value> = wanted
        .resources()
        .map(|resource| {
            let statement = commands::create(&resource);
            json!({
                "kind": resource.kind(),
                "name": resource.name(),
                "sql": statement.sql,
                "command": statement.command,
            })
        })
        .collect();
    let roles: Vec<Value> = roles::roles(wanted).iter().map(grant).collect();
    let overlays: Vec<Value> =
        overlays.iter().map(|overlay| json!({ "path": overlay.path, "text": overlay.text })).collect();
    json!({
        "pipeline": config.name,
        "dry_run": true,
        "resources": resources,
        "identities": roles::identities(wanted, config.provision.worker.as_deref()),
        "roles": roles,
        "overlays": overlays,
        "notes": wanted.notes,
    })
}

fn grant(grant: &Grant) -> Value {
    json!({
        "who": grant.who.as_str(),
        "role": grant.role,
        "on": grant.on,
        "why": grant.why,
        "command": grant.command,
    })
}

/// For programs, of what was made.
pub(super) fn made(config: &Config, done: &[Done], notes: &[String], overlays: &[(Overlay, Written)]) -> Value {
    let resources: Vec<Value> = done
        .iter()
        .map(|one| {
            let step = &one.step;
            let added = match &step.change {
                Some(Change::AddColumns(columns)) => columns.iter().map(ToString::to_string).collect(),
                _ => Vec::new(),
            };
            let differences: Vec<Value> = step
                .differences
                .iter()
                .map(|differs| json!({ "what": differs.what, "command": differs.remedy, "blocks": differs.blocks }))
                .collect();
            json!({
                "kind": step.resource.kind(),
                "name": step.resource.name(),
                "state": word(one),
                "added_columns": added,
                "differences": differences,
                "error": one.result.as_ref().err().map(|failure| &failure.why),
            })
        })
        .collect();
    let overlays: Vec<Value> = overlays
        .iter()
        .map(|(overlay, written)| json!({ "path": overlay.path, "state": overlay_word(written) }))
        .collect();
    json!({
        "pipeline": config.name,
        "dry_run": false,
        "resources": resources,
        "overlays": overlays,
        "notes": notes,
    })
}

/// Overlays as commands of a dry run's script.
pub(super) fn overlays_to_come(overlays: &[Overlay]) -> String {
    let mut text = String::new();
    for (index, overlay) in overlays.iter().enumerate() {
        if index == 0 {
            text.push_str("\n# Overlays of the pipeline file, one for each worker\n");
        }
        let path = commands::quoted(&overlay.path.to_string_lossy());
        write!(text, "cat > {path} <<'TOML'\n{}TOML\n", overlay.text).expect("a string takes any text");
    }
    text
}

//! The report for a person.

use crate::cli::output;
use crate::diff::report::Skipped;
use crate::diff::{ColumnChange, Pair, Report, Sample};
use crate::rules::compare::Difference;
use crate::verdict::clip;
use serde_json::Value;

/// Bytes of a side of a sample in a terminal; `--json` has more.
const SIDE: usize = 400;

pub(super) fn as_text(pair: &Pair, columns: &[ColumnChange], report: &Report) -> String {
    let mut text = String::new();
    for (side, rule) in [("old", &pair.old), ("new", &pair.new)] {
        text.push_str(&format!("{side}  {} ({})\n", rule.label, rule.digest));
    }
    if pair.old.digest == pair.new.digest {
        text.push_str("note: old and new are the same component\n");
    }
    if !columns.is_empty() {
        let columns: Vec<String> = columns.iter().map(ToString::to_string).collect();
        text.push_str(&format!("warning: the columns differ: {}\n", columns.join(", ")));
    }
    let Report { judged, same, different, skipped, .. } = report;
    text.push_str(&format!("{judged} events judged by both: {same} the same, {different} different\n"));
    for (count, why) in reasons(skipped) {
        text.push_str(&format!("{count} events skipped: {why}\n"));
    }
    for kind in &report.differences {
        text.push_str(&format!("\n{:>9}  {}\n", kind.events, kind.kind));
        text.extend(kind.samples.iter().map(|one| sample(&kind.kind, one)));
    }
    if report.further > 0 {
        text.push_str(&format!("\n{:>9}  of further kinds\n", report.further));
    }
    text
}

/// Why no event was judged, of a report in which none was.
pub(super) fn nothing_judged(skipped: &Skipped) -> String {
    let reasons: Vec<String> = reasons(skipped).into_iter().map(|(count, why)| format!("{count} {why}")).collect();
    if reasons.is_empty() {
        return "no event was judged: the input holds none".to_owned();
    }
    format!("no event was judged: {}", reasons.join("; "))
}

/// How many events were skipped, by reason.
fn reasons(skipped: &Skipped) -> Vec<(u64, String)> {
    let Skipped { not_whole, other_version, no_version } = skipped;
    let mut reasons: Vec<_> = not_whole.iter().map(|(why, count)| (*count, format!("not whole, {why}"))).collect();
    reasons.push((*other_version, "of another event version".to_owned()));
    reasons.push((*no_version, "of an event version that cannot be told".to_owned()));
    reasons.retain(|(count, _)| *count > 0);
    reasons
}

/// An event and what each rule says of it.
fn sample(kind: &Difference, sample: &Sample) -> String {
    let side = |side: &Value| match (kind, side) {
        // Of a column null and "null" are not the same.
        (Difference::Column(_), value) => shown(&value.to_string()),
        (_, Value::String(verdict)) => shown(verdict),
        (_, other) => shown(&other.to_string()),
    };
    let (id, old, new) = (shown(&sample.message_id), side(&sample.old), side(&sample.new));
    format!("           {id}\n             old  {old}\n             new  {new}\n")
}

/// A text on one line.
fn shown(text: &str) -> String {
    clip(&output::one_line(text), SIDE).into_owned()
}

//! The status for a person. Workers' files, the history and the samples of events are anybody's text: each is on one line.

use super::{Component, InService, Known, Status};
use crate::cli::output::{self, one_line};
use crate::releases::worker::{Comparison, Life};

/// Lines, each of which is one.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn add(&mut self, line: &str) {
        self.0.push_str(&one_line(line));
        self.0.push('\n');
    }
}

impl Status {
    pub(super) fn text(&self) -> String {
        let mut lines = Lines::default();
        let mut first = format!("{}: revision {}", self.store.display(), self.revision);
        if let Some(change) = &self.change {
            let (action, events, by, at) = (&change.action, &change.events, &change.by, &change.at);
            first.push_str(&format!(", {action} for event version {events} by {by} at {at}"));
            if !change.why.is_empty() {
                first.push_str(&format!(": {}", change.why));
            }
        }
        lines.add(&first);
        for problem in &self.problems {
            lines.add(&format!("problem: {problem}"));
        }
        if self.event_versions.is_empty() {
            lines.add("no event version is served");
        } else {
            let rows = self.event_versions.iter().flat_map(|(version, roles)| rows(version, roles));
            let rows = rows.map(|row| row.map(|cell| one_line(&cell)));
            let table = output::table(["event version", "role", "rule", "component", ""], rows, None);
            lines.0.push_str(&format!("{table}\n"));
        }
        for on_hold in &self.held {
            let (held, component) = (&on_hold.held, &on_hold.component);
            lines.add(&format!(
                "held: {} {} since {}, for event version {}: {}",
                component.digest.short(),
                named(component),
                held.since,
                held.events,
                held.why
            ));
        }
        for component in &self.staged {
            lines.add(&format!("staged, in no role: {} {}", component.digest.short(), named(component)));
        }
        self.workers.iter().for_each(|known| worker(&mut lines, known));
        lines.0
    }
}

fn named(component: &Component) -> &str {
    component.rule.as_deref().unwrap_or("?")
}

fn rows(version: &str, roles: &InService) -> Vec<[String; 5]> {
    let row = |role: &str, component: &Component, remark: String| {
        let version = if role == "active" { version.to_owned() } else { String::new() };
        [version, role.to_owned(), named(component).to_owned(), component.digest.short(), remark]
    };
    let expected = |expect_rejects: bool| if expect_rejects { ", more rejections expected" } else { "" };
    let guard = roles.guard.as_ref().map_or_else(String::new, |guard| {
        format!("promoted at {}{}", guard.promoted_at, expected(guard.expect_rejects))
    });
    let mut rows = vec![row("active", &roles.active, guard)];
    rows.extend(roles.previous.iter().map(|previous| row("previous", previous, String::new())));
    let shadow = roles.shadow.iter();
    rows.extend(shadow.map(|shadow| row("shadow", &shadow.component, format!("sees {} %", shadow.sample))));
    rows.extend(roles.canary.iter().map(|canary| {
        row("canary", &canary.component, format!("judges {} %{}", canary.percent, expected(canary.expect_rejects)))
    }));
    rows
}

fn worker(lines: &mut Lines, known: &Known) {
    let Known { id, life, worker } = known;
    let says = match life {
        Life::Running => String::new(),
        Life::Ended => format!("ended at {}; it last served ", worker.at),
        Life::Silent => format!("silent since {}, so it does not run; it last served ", worker.at),
    };
    let serves = match (worker.revision, life) {
        (Some(revision), Life::Running) => format!("serves revision {revision}"),
        (Some(revision), _) => format!("revision {revision}"),
        (None, Life::Running) => "serves no revision of a store".to_owned(),
        (None, _) => "no revision of a store".to_owned(),
    };
    lines.add(&format!("worker {id} (pipeline {}, process {}): {says}{serves}", worker.pipeline, worker.pid));
    if let Some(refused) = &worker.refused {
        lines.add(&format!("  refuses revision {} since {}: {}", refused.revision, refused.since, refused.why));
    }
    if let Some(problem) = &worker.store_problem {
        lines.add(&format!("  cannot read the store: {problem}"));
    }
    for pin in &worker.pins {
        let (held, events) = (pin.held.short(), &pin.events);
        lines.add(&format!("  has itself taken {held} out of service for event version {events}: {}", pin.why));
    }
    worker.comparisons.iter().for_each(|comparison| compared(lines, comparison));
}

fn compared(lines: &mut Lines, comparison: &Comparison) {
    let Comparison { events, kind, old, new, pairs, skipped, differences, samples, guard } = comparison;
    let (old, new) = (old.short(), new.short());
    let mut line = format!("  event version {events}, {kind}: {new} beside {old}: {pairs} events judged by both");
    if *skipped > 0 {
        line.push_str(&format!(", {skipped} skipped under load"));
    }
    if let Some(guard) = guard {
        line.push_str(&format!("; guard: {guard}"));
    }
    lines.add(&line);
    for (kind, count) in differences {
        lines.add(&format!("    {kind}: {count}"));
    }
    for sample in samples {
        lines.add(&format!("    {} ({}): {} | {}", sample.message_id, sample.kind, sample.old, sample.new));
    }
}

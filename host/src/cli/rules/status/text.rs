//! The status for a person.

use super::{Component, InService, Known, Status};
use crate::cli::output;
use crate::releases::worker::{Comparison, Life};
use std::fmt::{self, Write};

impl Status {
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text).expect("writing to a string cannot fail");
        text
    }

    fn write(&self, text: &mut String) -> fmt::Result {
        write!(text, "{}: revision {}", self.store.display(), self.revision)?;
        if let Some(change) = &self.change {
            write!(text, ", {} for event version {} by {} at {}", change.action, change.events, change.by, change.at)?;
            if !change.why.is_empty() {
                write!(text, ": {}", change.why)?;
            }
        }
        writeln!(text)?;
        for problem in &self.problems {
            writeln!(text, "problem: {problem}")?;
        }
        if self.event_versions.is_empty() {
            writeln!(text, "no event version is served")?;
        } else {
            let rows = self.event_versions.iter().flat_map(|(version, roles)| rows(version, roles));
            let table = output::table(["event version", "role", "rule", "component", ""], rows, None);
            writeln!(text, "{table}")?;
        }
        for on_hold in &self.held {
            let (held, component) = (&on_hold.held, &on_hold.component);
            writeln!(
                text,
                "held: {} {} since {}, for event version {}: {}",
                component.digest.short(),
                named(component),
                held.since,
                held.events,
                held.why
            )?;
        }
        for component in &self.staged {
            writeln!(text, "staged, in no role: {} {}", component.digest.short(), named(component))?;
        }
        self.workers.iter().try_for_each(|known| worker(text, known))
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

fn worker(text: &mut String, known: &Known) -> fmt::Result {
    let Known { id, life, worker } = known;
    write!(text, "worker {id} (pipeline {}, process {}): ", worker.pipeline, worker.pid)?;
    match life {
        Life::Running => {}
        Life::Ended => write!(text, "ended at {}; it last served ", worker.at)?,
        Life::Silent => write!(text, "silent since {}, so it does not run; it last served ", worker.at)?,
    }
    match (worker.revision, life) {
        (Some(revision), Life::Running) => writeln!(text, "serves revision {revision}")?,
        (Some(revision), _) => writeln!(text, "revision {revision}")?,
        (None, Life::Running) => writeln!(text, "serves no revision of a store")?,
        (None, _) => writeln!(text, "no revision of a store")?,
    }
    if let Some(refused) = &worker.refused {
        writeln!(text, "  refuses revision {} since {}: {}", refused.revision, refused.since, refused.why)?;
    }
    if let Some(problem) = &worker.store_problem {
        writeln!(text, "  cannot read the store: {problem}")?;
    }
    for pin in &worker.pins {
        let (held, events) = (pin.held.short(), &pin.events);
        writeln!(text, "  has itself taken {held} out of service for event version {events}: {}", pin.why)?;
    }
    worker.comparisons.iter().try_for_each(|comparison| compared(text, comparison))
}

fn compared(text: &mut String, comparison: &Comparison) -> fmt::Result {
    let Comparison { events, kind, old, new, pairs, skipped, differences, samples, guard } = comparison;
    write!(
        text,
        "  event version {events}, {kind}: {} beside {}: {pairs} events judged by both",
        new.short(),
        old.short()
    )?;
    if *skipped > 0 {
        write!(text, ", {skipped} skipped under load")?;
    }
    if let Some(guard) = guard {
        write!(text, "; guard: {guard}")?;
    }
    writeln!(text)?;
    for (kind, count) in differences {
        writeln!(text, "    {kind}: {count}")?;
    }
    for sample in samples {
        writeln!(text, "    {} ({}): {} | {}", sample.message_id, sample.kind, sample.old, sample.new)?;
    }
    Ok(())
}

//! The commands that change the releases.

use super::wait;
use super::{StoreArgs, not_changed, now};
use crate::cli::operator::operator;
use crate::cli::{Ended, component, output};
use crate::config::units;
use crate::digest::Digest;
use crate::releases::model::Roles;
use crate::releases::{Change, FindError, Releases, RuleStore};
use crate::rules::Limits;
use anyhow::{anyhow, bail};
use clap::Args;
use serde_json::json;
use std::time::Duration;

/// What every change has.
#[derive(Debug, Args)]
struct ChangeArgs {
    /// The event version
    #[arg(long, value_name = "VERSION")]
    events: String,
    /// Why, for the history
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    why: String,
    /// Change nothing unless the store is at this revision
    #[arg(long, value_name = "N")]
    revision: Option<u64>,
    /// How long to wait for the workers to say what they make of it
    #[arg(long, value_name = "DURATION", default_value = "5 s", value_parser = units::duration)]
    wait: Duration,
    #[command(flatten)]
    store: StoreArgs,
}

/// A change that names no component.
#[derive(Debug, Args)]
pub(super) struct EventsArgs {
    #[command(flatten)]
    change: ChangeArgs,
}

/// How a guard looks at a component that begins to judge.
#[derive(Debug, Args)]
struct GuardArgs {
    /// It is meant to reject more: only faults send it back
    #[arg(long)]
    expect_rejects: bool,
    /// Although a guard has taken it out of service
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
pub(super) struct PromoteArgs {
    /// The component's digest, or the beginning of it
    digest: String,
    #[command(flatten)]
    guard: GuardArgs,
    #[command(flatten)]
    change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(super) struct ShadowArgs {
    /// The component's digest, or the beginning of it
    #[arg(required_unless_present = "off")]
    digest: Option<String>,
    /// Share of the events it sees, percent
    #[arg(long, value_name = "PERCENT", default_value_t = 100.0)]
    sample: f64,
    /// Run none any more
    #[arg(long, conflicts_with_all = ["digest", "sample"])]
    off: bool,
    #[command(flatten)]
    change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(super) struct CanaryArgs {
    /// The component's digest, or the beginning of it
    #[arg(required_unless_present = "off", requires = "percent")]
    digest: Option<String>,
    /// Share of the events it judges, above 0 and below 100
    #[arg(long)]
    percent: Option<f64>,
    /// Let the active component judge all events again
    #[arg(long, conflicts_with_all = ["digest", "percent", "expect_rejects", "force"])]
    off: bool,
    #[command(flatten)]
    guard: GuardArgs,
    #[command(flatten)]
    change: ChangeArgs,
}

pub(super) fn promote(args: &PromoteArgs) -> Ended {
    let GuardArgs { expect_rejects, force } = args.guard;
    args.change.with(&args.digest, |digest, events| Change::Promote { digest, events, expect_rejects, force })
}

pub(super) fn rollback(args: &EventsArgs) -> Ended {
    args.change.make(|events| Change::Rollback { events })
}

pub(super) fn shadow(args: &ShadowArgs) -> Ended {
    match &args.digest {
        Some(digest) => {
            args.change.with(digest, |digest, events| Change::Shadow { digest, events, sample: args.sample })
        }
        None => args.change.make(|events| Change::ShadowOff { events }),
    }
}

pub(super) fn canary(args: &CanaryArgs) -> Ended {
    let GuardArgs { expect_rejects, force } = args.guard;
    match (&args.digest, args.percent) {
        (Some(digest), Some(percent)) => {
            args.change.with(digest, |digest, events| Change::Canary { digest, events, percent, expect_rejects, force })
        }
        _ => args.change.make(|events| Change::CanaryOff { events }),
    }
}

pub(super) fn retire(args: &EventsArgs) -> Ended {
    args.change.make(|events| Change::Retire { events })
}

impl ChangeArgs {
    /// Makes a change that puts a component into service.
    fn with(&self, digest: &str, change: impl FnOnce(Digest, String) -> Change) -> Ended {
        let store = self.store.store();
        let digest = match store.find(digest) {
            Ok(digest) => digest,
            Err(FindError::Store(error)) => return super::broken(error),
            Err(error) => return Ended::Refused(error.into()),
        };
        match fits(&store, &digest, &self.events) {
            Ok(()) => self.commit(&store, &change(digest, self.events.clone())),
            Err(error) => Ended::Refused(error),
        }
    }

    fn make(&self, change: impl FnOnce(String) -> Change) -> Ended {
        self.commit(&self.store.store(), &change(self.events.clone()))
    }

    fn commit(&self, store: &RuleStore, change: &Change) -> Ended {
        let releases = match store.change(change, self.revision, &operator(), &self.why, now()) {
            Ok(releases) => releases,
            Err(error) => return not_changed(error),
        };
        let roles = releases.release.get(&self.events).map(|release| &release.validator);
        // What is made is said before anything is waited for.
        if !self.store.json {
            output::print(&said(&self.events, &releases, roles));
        }
        let answers = wait::answers(store, releases.revision, self.wait);
        if self.store.json {
            output::json(&json!({
                "revision": releases.revision, "change": releases.change, "roles": roles, "workers": answers
            }));
        } else {
            output::print(&answers.iter().map(|answer| format!("{answer}\n")).collect::<String>());
        }
        if let Some(taken_back) = taken_back(store, change, releases.revision) {
            return Ended::Broken(taken_back);
        }
        match answers.iter().filter(|answer| answer.refuses()).count() {
            0 => Ended::Done,
            refusing => Ended::Broken(anyhow!(
                "revision {} is made, but {refusing} of {} workers refuse it: {}",
                releases.revision,
                answers.len(),
                way_back(change)
            )),
        }
    }
}

/// What to say if a guard has undone a change while its answers were waited for.
fn taken_back(store: &RuleStore, change: &Change, revision: u64) -> Option<anyhow::Error> {
    let now = store.releases().ok().filter(|now| now.revision > revision)?;
    let last = now.change.filter(|last| last.action == "guard-rollback" && last.digest == change.digest())?;
    Some(anyhow!(
        "revision {revision} was made, and {} took it back in revision {}: {}",
        last.by,
        now.revision,
        last.why
    ))
}

/// Loads a component as a worker would, and looks whether it judges an event version.
fn fits(store: &RuleStore, digest: &Digest, events: &str) -> anyhow::Result<()> {
    let bytes = store.component(digest, Limits::default().component)?;
    let (_, rule) = component::load_bytes(&bytes, digest)?;
    let versions = &rule.manifest.event_versions;
    if !versions.iter().any(|version| version == events) {
        bail!("{} ({digest}) judges event versions {}, not {events:?}", rule.label, versions.join(", "));
    }
    Ok(())
}

/// What takes a change back.
fn way_back(change: &Change) -> String {
    let events = change.events();
    match change {
        Change::Promote { .. } => format!("`preflight rules rollback --events {events}` goes back"),
        Change::Shadow { .. } => format!("`preflight rules shadow --off --events {events}` takes it back"),
        Change::Canary { .. } => format!("`preflight rules canary --off --events {events}` takes it back"),
        _ => "promote a component that they take".to_owned(),
    }
}

/// The change in words.
fn said(events: &str, releases: &Releases, roles: Option<&Roles>) -> String {
    let mut text = format!("revision {}\n", releases.revision);
    let Some(roles) = roles else {
        return text + &format!("event version {events}: nobody serves it\n");
    };
    text.push_str(&format!("event version {events}: {} is active\n", roles.active));
    if let Some(previous) = roles.previous {
        text.push_str(&format!("  a rollback goes to {previous}\n"));
    }
    if let Some(shadow) = &roles.shadow {
        text.push_str(&format!("  {} is the shadow of {} % of the events\n", shadow.digest, shadow.sample));
    }
    if let Some(canary) = &roles.canary {
        text.push_str(&format!("  {} is the canary and judges {} % of the events\n", canary.digest, canary.percent));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It was told as a success: the worker served a later revision, in which the guard had taken the component out.
    #[test]
    fn a_change_that_a_guard_has_undone_is_no_success() {
        let directory = tempfile::tempdir().unwrap();
        let store = RuleStore::at(directory.path());
        let [good, bad] = ["good", "bad"].map(|text| store.stage(text.as_bytes(), "", "r@1.0.0", "", "", 0).unwrap());
        let promote = |digest| Change::Promote { digest, events: "1".into(), expect_rejects: false, force: false };
        let change = |change: &Change| store.change(change, None, "worker w", "3 faults", 0).unwrap();
        change(&promote(good));
        let promoted = change(&promote(bad));
        assert!(taken_back(&store, &promote(bad), promoted.revision).is_none());
        let since = promoted.release["1"].validator.guard.as_ref().unwrap().promoted_at.clone();
        change(&Change::Trip { digest: bad, events: "1".into(), since });
        let text = taken_back(&store, &promote(bad), promoted.revision).unwrap().to_string();
        assert_eq!(text, "revision 2 was made, and worker w took it back in revision 3: 3 faults");
        assert!(taken_back(&store, &promote(good), promoted.revision).is_none());
    }
}

//! `preflight rules status`: the releases, and what every worker says of itself, as one value.

mod text;

use super::{StoreArgs, broken, now};
use crate::cli::{Ended, output};
use crate::digest::Digest;
use crate::releases::model::{Changed, Guarded, Held};
use crate::releases::worker::{Life, Worker};
use crate::releases::workers::Workers;
use crate::releases::{Record, Roles, RuleStore, StoreError};
use crate::time::Micros;
use clap::Args;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(super) struct StatusArgs {
    /// Also show the worker of this ledger, which cannot write to the store; can be given several times
    #[arg(long = "ledger", value_name = "DIRECTORY")]
    ledgers: Vec<PathBuf>,
    #[command(flatten)]
    store: StoreArgs,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Status {
    /// The store's directory.
    store: PathBuf,
    /// Its revision.
    revision: u64,
    /// The change that made it.
    change: Option<Changed>,
    /// What serves each event version.
    event_versions: BTreeMap<String, InService>,
    /// Components that a guard took out of service.
    held: Vec<OnHold>,
    /// Components in no role.
    staged: Vec<Component>,
    /// Every worker.
    workers: Vec<Known>,
    /// What is wrong with the store.
    problems: Vec<String>,
}

/// A component, and the rule that it was when it was staged.
#[derive(Debug, Clone, Serialize)]
struct Component {
    digest: Digest,
    rule: Option<String>,
}

/// The components of an event version by role.
#[derive(Debug, Serialize)]
struct InService {
    active: Component,
    previous: Option<Component>,
    guard: Option<Guarded>,
    shadow: Option<Sampled>,
    canary: Option<Share>,
}

#[derive(Debug, Serialize)]
struct Sampled {
    #[serde(flatten)]
    component: Component,
    sample: f64,
}

#[derive(Debug, Serialize)]
struct Share {
    #[serde(flatten)]
    component: Component,
    percent: f64,
    expect_rejects: bool,
}

#[derive(Debug, Serialize)]
struct OnHold {
    #[serde(flatten)]
    component: Component,
    #[serde(flatten)]
    held: Held,
}

#[derive(Debug, Serialize)]
struct Known {
    /// The name of its file, or its ledger.
    id: String,
    life: Life,
    #[serde(flatten)]
    worker: Worker,
}

pub(super) fn status(args: &StatusArgs) -> Ended {
    let store = args.store.store();
    let status = match look(&store, &args.ledgers, now()) {
        Ok(status) => status,
        Err(error) => return broken(error),
    };
    if args.store.json {
        output::json(&status);
    } else {
        output::print(&status.text());
    }
    Ended::Done
}

fn look(store: &RuleStore, ledgers: &[PathBuf], now: Micros) -> Result<Status, StoreError> {
    let releases = store.releases()?;
    let mut problems = Vec::new();
    // The history only gives names here: without it the releases are still shown.
    let history = store.history().unwrap_or_else(|error| {
        problems.push(error.to_string());
        Vec::new()
    });
    let names = Names::of(history);
    let mut staged = store.staged()?;
    let Workers { known: mut workers, unreadable } = store.workers()?;
    problems.extend(unreadable.iter().map(|(_, error)| error.to_string()));
    for ledger in ledgers {
        workers.push((ledger.display().to_string(), Worker::read(&ledger.join("worker.json"))?));
    }
    let in_role: BTreeSet<Digest> = releases.release.values().flat_map(|release| release.validator.digests()).collect();
    for digest in in_role.iter().filter(|digest| staged.binary_search(digest).is_err()) {
        problems.push(format!("{digest} is in the releases and not in the store: stage it again"));
    }
    staged.retain(|digest| !in_role.contains(digest));
    let event_versions = releases.release.into_iter();
    Ok(Status {
        store: store.directory().to_owned(),
        revision: releases.revision,
        change: releases.change,
        event_versions: event_versions.map(|(version, release)| (version, names.roles(release.validator))).collect(),
        held: releases
            .held
            .into_iter()
            .map(|(digest, held)| OnHold { component: names.component(digest), held })
            .collect(),
        staged: staged.into_iter().map(|digest| names.component(digest)).collect(),
        workers: workers.into_iter().map(|(id, worker)| Known { id, life: worker.life(now), worker }).collect(),
        problems,
    })
}

/// The rule of each component, from when it was staged.
struct Names(BTreeMap<Digest, String>);

impl Names {
    fn of(history: Vec<Record>) -> Self {
        Self(history.into_iter().filter_map(|record| record.digest.zip(record.rule)).collect())
    }

    fn component(&self, digest: Digest) -> Component {
        Component { digest, rule: self.0.get(&digest).cloned() }
    }

    fn roles(&self, roles: Roles) -> InService {
        InService {
            active: self.component(roles.active),
            previous: roles.previous.map(|digest| self.component(digest)),
            guard: roles.guard,
            shadow: roles
                .shadow
                .map(|shadow| Sampled { component: self.component(shadow.digest), sample: shadow.sample }),
            canary: roles.canary.map(|canary| Share {
                component: self.component(canary.digest),
                percent: canary.percent,
                expect_rejects: canary.expect_rejects,
            }),
        }
    }
}

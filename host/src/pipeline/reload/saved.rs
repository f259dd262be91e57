//! What a worker keeps of its rules beside its ledger: the releases it served last, so that it can start although the
//! store's newest revision is bad, and the components it took out of service by itself.

use super::super::beside::PairKey;
use crate::files::Prepared;
use crate::releases::worker::Pin;
use crate::releases::{Change, Releases};
use crate::rules::set::BesideKind;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

const FILE: &str = "rules.json";

/// The file's content.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Saved {
    /// The releases of the store that were served last, without pins.
    pub releases: Option<Releases>,
    /// Components held by this worker alone.
    #[serde(default)]
    pub pins: Vec<Pin>,
    /// Guards that have passed: they do not begin anew with the next start.
    #[serde(default)]
    pub passed: Vec<Passed>,
}

/// A guard that has passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Passed {
    /// The event version.
    pub events: String,
    /// When its component was promoted.
    pub promoted_at: String,
}

impl Passed {
    /// The guard of a pair, if it is one of a promotion.
    pub(super) fn of(pair: &PairKey) -> Option<Self> {
        let BesideKind::Guard { promoted_at, .. } = &pair.kind else { return None };
        Some(Self { events: pair.events.clone(), promoted_at: promoted_at.clone() })
    }
}

impl Saved {
    /// Whether a guard has passed in an earlier run.
    pub(super) fn has_passed(&self, pair: &PairKey) -> bool {
        Passed::of(pair).is_some_and(|guard| self.passed.contains(&guard))
    }

    /// Notes guards that have passed. True if that changed what is noted. Those of promotions that are no longer there are
    /// forgotten.
    pub(super) fn note_passed(&mut self, passed: Vec<Passed>, releases: &Releases) -> bool {
        let before = self.passed.clone();
        for guard in passed {
            if !self.passed.contains(&guard) {
                self.passed.push(guard);
            }
        }
        self.passed.retain(|guard| {
            let roles = releases.release.get(&guard.events).map(|release| &release.validator);
            roles.and_then(|roles| roles.guard.as_ref()).is_some_and(|now| now.promoted_at == guard.promoted_at)
        });
        self.passed != before
    }

    /// Reads the file of a ledger. One that is missing or cannot be read holds nothing.
    pub(super) fn load(ledger: &Path) -> Self {
        let path = ledger.join(FILE);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Self::default(),
            Err(error) => {
                tracing::warn!(path = %path.display(), "what was served last cannot be read: {error}");
                return Self::default();
            }
        };
        serde_json::from_str(&text).unwrap_or_else(|error| {
            tracing::warn!(path = %path.display(), "what was served last cannot be read: {error}");
            Self::default()
        })
    }

    /// Writes the file: it is old or new, never half. Only pins are worth the wait for the disk: what was served last
    /// matters at a start whose revision is bad as well.
    pub(super) fn write(&self, ledger: &Path) -> io::Result<()> {
        let file = Prepared::new(&ledger.join(FILE), &serde_json::to_vec(self)?)?;
        if !self.pins.is_empty() {
            file.sync()?;
        }
        file.put()
    }

    /// Releases with the pins laid over them. A pin whose component is no longer in service there is over, and dropped.
    pub(super) fn pinned(&mut self, releases: &Releases) -> Releases {
        let mut effective = releases.clone();
        self.pins.retain(|pin| {
            let trip = Change::Trip { digest: pin.held, events: pin.events.clone(), since: pin.since.clone() };
            let Some(after) = effective.pinned(&trip, &pin.why) else { return false };
            effective = after;
            true
        });
        effective
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;

    fn promoted() -> (Releases, Digest, Digest) {
        let (old, new) = (Digest::of(b"old"), Digest::of(b"new"));
        let promote = |digest| Change::Promote { digest, events: "1".into(), expect_rejects: false, force: false };
        let releases = Releases::default().after(&promote(old), "", "", "").unwrap();
        (releases.after(&promote(new), "later", "", "").unwrap(), old, new)
    }

    #[test]
    fn it_reads_back_what_it_wrote_and_takes_damage_for_nothing() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(Saved::load(directory.path()), Saved::default());
        let (releases, _, new) = promoted();
        let pin = Pin { events: "1".into(), held: new, since: "later".into(), why: "w".into() };
        let passed = vec![Passed { events: "1".into(), promoted_at: "later".into() }];
        let saved = Saved { releases: Some(releases), pins: vec![pin], passed };
        saved.write(directory.path()).unwrap();
        assert_eq!(Saved::load(directory.path()), saved);
        std::fs::write(directory.path().join(FILE), "{").unwrap();
        assert_eq!(Saved::load(directory.path()), Saved::default());
    }

    #[test]
    fn a_pin_rolls_back_for_this_worker_until_the_store_does() {
        let (releases, old, new) = promoted();
        let pin = Pin { events: "1".into(), held: new, since: "later".into(), why: "w".into() };
        let mut saved = Saved { pins: vec![pin], ..Saved::default() };
        let effective = saved.pinned(&releases);
        assert_eq!((effective.release["1"].validator.active, effective.revision), (old, releases.revision));
        assert_eq!(saved.pins.len(), 1);
        let rolled_back = releases.after(&Change::Rollback { events: "1".into() }, "", "", "").unwrap();
        assert_eq!(saved.pinned(&rolled_back), rolled_back);
        assert!(saved.pins.is_empty());
    }

    #[test]
    fn a_passed_guard_is_remembered_as_long_as_its_promotion() {
        let (releases, ..) = promoted();
        let passed = |promoted_at: &str| Passed { events: "1".into(), promoted_at: promoted_at.into() };
        let mut saved = Saved::default();
        assert!(saved.note_passed(vec![passed("later")], &releases));
        assert!(!saved.note_passed(vec![passed("later")], &releases));
        let rolled_back = releases.after(&Change::Rollback { events: "1".into() }, "", "", "").unwrap();
        assert!(saved.note_passed(Vec::new(), &rolled_back));
        assert!(saved.passed.is_empty());
    }
}

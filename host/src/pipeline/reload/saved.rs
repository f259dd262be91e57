//! What a worker keeps of its rules beside its ledger: the releases it served last, so that it can start although the
//! store's newest revision is bad, and the components it took out of service by itself.

use crate::releases::worker::Pin;
use crate::releases::{Change, Releases};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
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
}

impl Saved {
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
        let mut file = tempfile::NamedTempFile::new_in(ledger)?;
        serde_json::to_writer(&mut file, self)?;
        file.flush()?;
        if !self.pins.is_empty() {
            file.as_file().sync_all()?;
        }
        file.persist(ledger.join(FILE))?;
        Ok(())
    }

    /// Releases with the pins laid over them. A pin whose component is no longer in service there is over, and dropped.
    pub(super) fn pinned(&mut self, releases: &Releases) -> Releases {
        let mut effective = releases.clone();
        self.pins.retain(|pin| {
            let trip = Change::Trip { digest: pin.held, events: pin.events.clone() };
            match effective.after(&trip, "", "", &pin.why) {
                Ok(after) => {
                    effective = Releases { revision: releases.revision, change: releases.change.clone(), ..after };
                    true
                }
                Err(_) => false,
            }
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
        (releases.after(&promote(new), "", "", "").unwrap(), old, new)
    }

    #[test]
    fn it_reads_back_what_it_wrote_and_takes_damage_for_nothing() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(Saved::load(directory.path()), Saved::default());
        let (releases, _, new) = promoted();
        let pin = Pin { events: "1".into(), held: new, why: "w".into() };
        let saved = Saved { releases: Some(releases), pins: vec![pin] };
        saved.write(directory.path()).unwrap();
        assert_eq!(Saved::load(directory.path()), saved);
        std::fs::write(directory.path().join(FILE), "{").unwrap();
        assert_eq!(Saved::load(directory.path()), Saved::default());
    }

    #[test]
    fn a_pin_rolls_back_for_this_worker_until_the_store_does() {
        let (releases, old, new) = promoted();
        let pin = Pin { events: "1".into(), held: new, why: "w".into() };
        let mut saved = Saved { releases: None, pins: vec![pin] };
        let effective = saved.pinned(&releases);
        assert_eq!((effective.release["1"].validator.active, effective.revision), (old, releases.revision));
        assert_eq!(saved.pins.len(), 1);
        let rolled_back = releases.after(&Change::Rollback { events: "1".into() }, "", "", "").unwrap();
        assert_eq!(saved.pinned(&rolled_back), rolled_back);
        assert!(saved.pins.is_empty());
    }
}

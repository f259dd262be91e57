//! Changing the releases: a compare-and-swap on the revision, under the store's lock.
//!
//! The rename of `releases.toml` is the commit point. What comes after it is the history, which the next writer
//! completes if this one does not get to it.

use super::change::{Change, Refusal};
use super::lock::Lock;
use super::model::{Changed, Releases};
use super::store::{RuleStore, StoreError, end_mark};
use crate::digest::Digest;
use crate::failpoint;
use crate::files::{self, Prepared};
use crate::time::{Micros, format_micros};

const HEADER: &str = "# Written by `preflight rules`. A change by hand is neither checked nor in the history.\n";

/// Why a change was not made. The store is as it was.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The releases do not allow it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Somebody else was faster.
    #[error("the store is at revision {found}, not {expected}{}: look at it again with `preflight rules status`", said(.last.as_deref()))]
    Moved {
        /// The revision that the change was meant for.
        expected: u64,
        /// The revision of now.
        found: u64,
        /// The change that made it.
        last: Option<Box<Changed>>,
    },
    /// The component is not in the store, or not whole.
    #[error("{digest} is not staged ({problem}): stage it first, with `preflight rules stage`")]
    NotStaged {
        /// The component.
        digest: Digest,
        /// What was found.
        problem: StoreError,
    },
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn said(change: Option<&Changed>) -> String {
    change.map_or_else(String::new, |Changed { at, by, action, events, .. }| {
        format!(" ({by} did {action} for event version {events} at {at})")
    })
}

impl ChangeError {
    /// Whether we may read the store and not write it.
    pub fn is_read_only(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_read_only())
    }
}

impl RuleStore {
    /// Makes a change, if the store is still at the `expected` revision where one is given. `by` is who, `at` when.
    ///
    /// Once the new releases are in place the change is made, and the answer is those: what then goes wrong with the
    /// history is logged, and put right by the next change.
    pub fn change(
        &self,
        change: &Change,
        expected: Option<u64>,
        by: &str,
        why: &str,
        at: Micros,
    ) -> Result<Releases, ChangeError> {
        let lock = Lock::take(self)?;
        let now = self.releases()?;
        self.complete_history(&lock, &now)?;
        if let Some(expected) = expected
            && expected != now.revision
        {
            return Err(ChangeError::Moved { expected, found: now.revision, last: now.change.map(Box::new) });
        }
        let next = now.after(change, &format_micros(at), by, why)?;
        if let Some(digest) = change.goes_into_service() {
            // Under the lock, so that no `gc` takes it away in between.
            self.verify(&digest).map_err(|problem| ChangeError::NotStaged { digest, problem })?;
        }
        self.replace_releases(&next)?;
        failpoint::pass(failpoint::RELEASES_REPLACED);
        let recorded = files::sync_directory(self.directory())
            .map_err(StoreError::io(self.directory()))
            .and_then(|()| self.record_change(&lock, &next));
        if let Err(error) = recorded {
            tracing::warn!(revision = next.revision, "the change is made, but not in the history yet: {error}");
        }
        failpoint::pass(failpoint::CHANGE_RECORDED);
        Ok(next)
    }

    fn replace_releases(&self, next: &Releases) -> Result<(), StoreError> {
        let text = toml::to_string(next).expect("releases are plain data");
        let text = format!("{HEADER}{text}\n{}\n", end_mark(next.revision));
        let path = self.releases_path();
        let replace = || {
            let prepared = Prepared::new(&path, text.as_bytes())?;
            prepared.sync()?;
            failpoint::pass(failpoint::RELEASES_WRITTEN);
            prepared.put()
        };
        replace().map_err(StoreError::io(&path))
    }
}

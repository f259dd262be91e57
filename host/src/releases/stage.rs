//! Putting a component and its fixtures into the store.

use super::history::Record;
use super::lock::Lock;
use super::store::{RuleStore, StoreError};
use crate::digest::Digest;
use crate::failpoint;
use crate::files;
use crate::time::{Micros, format_micros};

/// The file of fixtures that staging writes. One, so that other fixtures take their place in one step.
const FIXTURES: &str = "fixtures.ndjson";

impl RuleStore {
    /// Puts a component into the store with the fixtures that it holds to, and makes the store if there is none.
    /// `rule` is its `name@version`. Whether it is a rule, and holds to them, is for the caller to have found out.
    ///
    /// A component that is there is left as it is; its fixtures are replaced. The component comes last: one that is
    /// staged has fixtures.
    pub fn stage(
        &self,
        component: &[u8],
        fixtures: &str,
        rule: &str,
        by: &str,
        why: &str,
        at: Micros,
    ) -> Result<Digest, StoreError> {
        let digest = Digest::of(component);
        let (path, beside) = (self.component_path(&digest), self.fixtures_path(&digest));
        std::fs::create_dir_all(self.directory()).map_err(StoreError::io(self.directory()))?;
        let lock = Lock::take(self)?;
        let now = self.releases()?;
        self.complete_history(&lock, &now)?;
        for directory in [&self.directory().join("components"), &self.directory().join("fixtures"), &beside] {
            files::ensure_directory(directory).map_err(StoreError::io(directory))?;
        }
        let file = beside.join(FIXTURES);
        files::replace(&file, fixtures.as_bytes()).map_err(StoreError::io(&file))?;
        failpoint::pass(failpoint::FIXTURES_STAGED);
        if self.verify(&digest).is_err() {
            files::replace(&path, component).map_err(StoreError::io(&path))?;
        }
        failpoint::pass(failpoint::COMPONENT_STAGED);
        let record = Record {
            revision: now.revision,
            at: format_micros(at),
            by: by.to_owned(),
            action: "stage".to_owned(),
            events: None,
            digest: Some(digest),
            rule: Some(rule.to_owned()),
            why: why.to_owned(),
            roles: None,
        };
        self.record(&lock, &record)?;
        failpoint::pass(failpoint::STAGE_RECORDED);
        Ok(digest)
    }
}

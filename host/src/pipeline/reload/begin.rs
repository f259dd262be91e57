//! The first rule set of a run.

use super::super::beside::PairKey;
use super::super::prepare::{Live, Prepared, current_releases, prepare_for};
use super::saved::Saved;
use crate::config::{Config, ConfigError, RulesFrom};
use crate::releases::{Releases, RuleStore};

/// How a run that follows a store begins.
pub struct Begun {
    /// The store.
    pub store: RuleStore,
    /// The releases that are served, this worker's pins applied.
    pub(super) served: Releases,
    /// The same as the store has them.
    pub(super) found: Option<Releases>,
    /// What was kept beside the ledger.
    pub(super) saved: Saved,
    /// The newest revision and why it is not served.
    pub(super) refused: Option<(Releases, String)>,
}

impl Begun {
    /// Whether a guard has passed in an earlier run.
    pub(in crate::pipeline) fn has_passed(&self, pair: &PairKey) -> bool {
        self.saved.has_passed(pair)
    }
}

/// Prepares a run. If the newest revision of the store is bad, what this worker served last serves on.
pub(in crate::pipeline) fn begin(config: &Config, live: &Live) -> Result<(Prepared, Option<Begun>), ConfigError> {
    let RulesFrom::Store(path) = &config.rules.from else {
        return Ok((prepare_for(config, live, None)?, None));
    };
    let store = RuleStore::at(path).for_worker();
    let mut saved = Saved::load(&config.ledger);
    let current = current_releases(config)?.unwrap_or_default();
    let mut pins = saved.clone();
    let wanted = pins.pinned(&current);
    let error = match prepare_for(config, live, Some(&wanted)) {
        Ok(prepared) => {
            let begun = Begun { store, served: wanted, found: Some(current), saved: pins, refused: None };
            return Ok((prepared, Some(begun)));
        }
        Err(error) => error,
    };
    let Some(last) = saved.releases.clone().filter(|last| *last != current) else { return Err(error) };
    let served = saved.pinned(&last);
    // If that fails too, the newest revision is what there is to repair.
    let Ok(prepared) = prepare_for(config, live, Some(&served)) else { return Err(error) };
    tracing::error!(
        revision = current.revision,
        served = served.revision,
        "the newest revision of the rule store is refused, what was served last serves on: {error}"
    );
    let refused = Some((wanted, error.to_string()));
    Ok((prepared, Some(Begun { store, served, found: None, saved, refused })))
}

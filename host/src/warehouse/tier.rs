//! The targets of a pipeline.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

/// A target of a pipeline: a table, and what is written to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// Raw events.
    Bronze,
    /// Accepted rows.
    Silver,
    /// Rejected events.
    Quarantine,
    /// Rejected events as they came, in files.
    Rejects,
    /// Events that came too late for windows.
    Late,
    /// Panes of an aggregate.
    Panes(AggregateName),
}

impl Tier {
    /// Those that a judged micro-batch has rows for, in the order they are written and shown.
    pub const JUDGED: [Self; 4] = [Self::Bronze, Self::Silver, Self::Quarantine, Self::Rejects];

    /// Where it stands in [`JUDGED`](Self::JUDGED).
    ///
    /// # Panics
    ///
    /// Where it does not.
    pub const fn judged(self) -> usize {
        match self {
            Self::Bronze => 0,
            Self::Silver => 1,
            Self::Quarantine => 2,
            Self::Rejects => 3,
            Self::Late | Self::Panes(_) => panic!("rows of this target are not made by judging"),
        }
    }

    /// Its name in the ledger, in streams' names, in reports and as a label: `panes:` and the aggregate's name for panes. It has
    /// no hyphen.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bronze => "bronze",
            Self::Silver => "silver",
            Self::Quarantine => "quarantine",
            Self::Rejects => "rejects",
            Self::Late => "late",
            Self::Panes(name) => name.0,
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Text that names no target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no target is called {0:?}")]
pub struct NoTier(String);

impl FromStr for Tier {
    type Err = NoTier;

    fn from_str(text: &str) -> Result<Self, NoTier> {
        let no_tier = || NoTier(text.to_owned());
        match text.strip_prefix(PANES) {
            Some(name) => AggregateName::new(name).map(Self::Panes).ok_or_else(no_tier),
            None => Self::JUDGED.into_iter().chain([Self::Late]).find(|tier| tier.as_str() == text).ok_or_else(no_tier),
        }
    }
}

/// What the names of targets for panes begin with.
const PANES: &str = "panes:";

static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// The name of an aggregate: lowercase letters, digits and underscores, not beginning with an underscore. It is kept for the
/// life of the process, as text of the target that its panes go to: only names from pipeline files and ledgers are made.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AggregateName(&'static str);

impl AggregateName {
    /// The name, if it is one.
    pub fn new(name: &str) -> Option<Self> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        if !name.starts_with(plain) || !name.chars().all(|c| plain(c) || c == '_') {
            return None;
        }
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        let text = format!("{PANES}{name}");
        let kept = names.get(text.as_str()).copied().unwrap_or_else(|| {
            let kept: &'static str = text.leak();
            names.insert(kept);
            kept
        });
        Some(Self(kept))
    }

    /// As text.
    pub fn as_str(self) -> &'static str {
        &self.0[PANES.len()..]
    }
}

impl fmt::Debug for AggregateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for AggregateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_found_again_by_its_name() {
        let name = AggregateName::new("per_minute").unwrap();
        let tiers = [Tier::Late, Tier::Panes(name), Tier::Panes(AggregateName::new("0").unwrap())];
        for tier in Tier::JUDGED.into_iter().chain(tiers) {
            assert_eq!(tier.to_string().parse(), Ok(tier));
            assert!(!tier.as_str().contains('-'), "the parts of a stream's name are told apart by hyphens");
        }
        assert_eq!((Tier::Panes(name).as_str(), name.as_str()), ("panes:per_minute", "per_minute"));
        assert_eq!(format!("{name} {name:?}"), "per_minute \"per_minute\"");
        for (place, tier) in Tier::JUDGED.into_iter().enumerate() {
            assert_eq!(tier.judged(), place);
        }
    }

    #[test]
    fn what_is_no_name_names_no_target() {
        for name in ["", "_a", "a-b", "A", "a.b", "é", "a "] {
            assert_eq!(AggregateName::new(name), None, "{name:?}");
            assert!(format!("panes:{name}").parse::<Tier>().is_err(), "{name:?}");
        }
        assert_eq!("gold".parse::<Tier>().unwrap_err().to_string(), "no target is called \"gold\"");
    }

    #[test]
    fn the_same_name_is_kept_once() {
        let names = [AggregateName::new("kept_once").unwrap(), AggregateName::new("kept_once").unwrap()];
        assert!(std::ptr::eq(names[0].as_str(), names[1].as_str()));
    }
}

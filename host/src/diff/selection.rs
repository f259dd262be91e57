//! Which events are judged: those of some event versions.

use crate::event::Event;
use crate::rules::Manifest;
use crate::rules::set::Routing;

/// Event versions, and how an event's version is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    routing: Routing,
    versions: Vec<String>,
}

/// Why an event is not judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skip {
    /// It has another event version.
    OtherVersion,
    /// Its event version cannot be told.
    NoVersion,
}

impl Selection {
    /// The events of one version, whatever the rules say that they serve.
    pub fn of(version: impl Into<String>, routing: Routing) -> Self {
        Self { routing, versions: vec![version.into()] }
    }

    /// The events of every version that both rules serve; none if there is no such version.
    pub fn served_by_both(old: &Manifest, new: &Manifest, routing: Routing) -> Option<Self> {
        let both = |version: &&String| new.event_versions.contains(version);
        let versions: Vec<String> = old.event_versions.iter().filter(both).cloned().collect();
        (!versions.is_empty()).then_some(Self { routing, versions })
    }

    /// Why an event is not judged, if it is not.
    pub fn skips(&self, event: &Event) -> Option<Skip> {
        match self.routing.version(event) {
            Ok(version) if self.versions.iter().any(|known| *known == version) => None,
            Ok(_) => Some(Skip::OtherVersion),
            Err(_) => Some(Skip::NoVersion),
        }
    }
}

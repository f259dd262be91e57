//! Which events are judged: all that are whole, or those of some event versions.

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
    /// It is not whole: a broken envelope, a payload above the limit.
    Refused,
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
}

/// Whether an event is judged. Without a selection every event is that is whole.
pub(super) fn judged(event: &Event, selection: Option<&Selection>) -> Result<(), Skip> {
    if event.refused.is_some() {
        return Err(Skip::Refused);
    }
    let Some(Selection { routing, versions }) = selection else { return Ok(()) };
    match routing.version(event) {
        Ok(version) if versions.iter().any(|known| *known == version) => Ok(()),
        Ok(_) => Err(Skip::OtherVersion),
        Err(_) => Err(Skip::NoVersion),
    }
}

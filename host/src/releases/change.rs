//! What may be done to releases: decided here, carried out by the store.

use super::model::{Canary, Changed, Guarded, Held, Release, Releases, Roles, Shadow};
use crate::digest::Digest;

/// A change.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// The component judges from now on; what was active becomes `previous`.
    Promote {
        /// The component.
        digest: Digest,
        /// The event version.
        events: String,
        /// More rejections are wanted: the guard looks at faults only.
        expect_rejects: bool,
        /// Although it is held.
        force: bool,
    },
    /// `previous` judges again.
    Rollback {
        /// The event version.
        events: String,
    },
    /// The component runs beside `active`.
    Shadow {
        /// The component.
        digest: Digest,
        /// The event version.
        events: String,
        /// Share of the events, percent.
        sample: f64,
    },
    /// No component runs beside `active` any more.
    ShadowOff {
        /// The event version.
        events: String,
    },
    /// The component judges a share of the events.
    Canary {
        /// The component.
        digest: Digest,
        /// The event version.
        events: String,
        /// Share of the events, percent.
        percent: f64,
        /// More rejections are wanted.
        expect_rejects: bool,
        /// Although it is held.
        force: bool,
    },
    /// `active` judges all events again.
    CanaryOff {
        /// The event version.
        events: String,
    },
    /// Nobody serves the event version any more.
    Retire {
        /// The event version.
        events: String,
    },
    /// A guard has tripped: the component goes out of service and is held, if it still is in it by the promotion or the
    /// canary that was guarded.
    Trip {
        /// The component.
        digest: Digest,
        /// The event version.
        events: String,
        /// When it was promoted, or set as a canary: another time is another guard's matter.
        since: String,
    },
}

/// Why a change is not made. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

impl Change {
    /// The name in the history.
    pub fn action(&self) -> &'static str {
        match self {
            Self::Promote { .. } => "promote",
            Self::Rollback { .. } => "rollback",
            Self::Shadow { .. } => "shadow",
            Self::ShadowOff { .. } => "shadow-off",
            Self::Canary { .. } => "canary",
            Self::CanaryOff { .. } => "canary-off",
            Self::Retire { .. } => "retire",
            Self::Trip { .. } => "guard-rollback",
        }
    }

    /// The event version it is about.
    pub fn events(&self) -> &str {
        match self {
            Self::Promote { events, .. }
            | Self::Rollback { events }
            | Self::Shadow { events, .. }
            | Self::ShadowOff { events }
            | Self::Canary { events, .. }
            | Self::CanaryOff { events }
            | Self::Retire { events }
            | Self::Trip { events, .. } => events,
        }
    }

    /// The component that it puts into a role, and that must therefore be in the store.
    pub fn goes_into_service(&self) -> Option<Digest> {
        match self {
            Self::Trip { .. } => None,
            _ => self.digest(),
        }
    }

    /// The component it names.
    pub fn digest(&self) -> Option<Digest> {
        match self {
            Self::Promote { digest, .. }
            | Self::Shadow { digest, .. }
            | Self::Canary { digest, .. }
            | Self::Trip { digest, .. } => Some(*digest),
            _ => None,
        }
    }
}

impl Releases {
    /// The releases after a change, one revision on.
    pub fn after(&self, change: &Change, at: &str, by: &str, why: &str) -> Result<Self, Refusal> {
        let mut next = self.clone();
        next.apply(change, at, why)?;
        next.revision =
            self.revision.checked_add(1).ok_or_else(|| Refusal("the revision cannot count any further".to_owned()))?;
        next.change = Some(Changed {
            at: at.to_owned(),
            by: by.to_owned(),
            action: change.action().to_owned(),
            events: change.events().to_owned(),
            digest: change.digest(),
            why: why.to_owned(),
        });
        Ok(next)
    }

    /// The same revision as one worker alone sees it, for which a change is made that the store does not have. None if it
    /// does not apply.
    pub fn pinned(&self, change: &Change, why: &str) -> Option<Self> {
        let mut pinned = self.clone();
        pinned.apply(change, "", why).ok()?;
        Some(pinned)
    }

    fn apply(&mut self, change: &Change, at: &str, why: &str) -> Result<(), Refusal> {
        match change {
            Change::Promote { digest, events, expect_rejects, force } => {
                self.not_held(digest, *force)?;
                self.promote(*digest, events, Guarded { promoted_at: at.to_owned(), expect_rejects: *expect_rejects })
            }
            Change::Rollback { events } => {
                self.previous_is_good(events)?;
                self.roles(events)?.roll_back(events)
            }
            Change::Shadow { digest, events, sample } => {
                share("sample", *sample, *sample <= 100.0, "at most 100")?;
                let roles = self.roles(events)?;
                roles.is_not_active(digest, events)?;
                roles.shadow = Some(Shadow { digest: *digest, sample: *sample });
                Ok(())
            }
            Change::ShadowOff { events } => match self.roles(events)?.shadow.take() {
                Some(_) => Ok(()),
                None => refuse(format!("event version {events} has no shadow")),
            },
            Change::Canary { digest, events, percent, expect_rejects, force } => {
                share("percent", *percent, *percent < 100.0, "below 100")?;
                self.not_held(digest, *force)?;
                let roles = self.roles(events)?;
                roles.is_not_active(digest, events)?;
                let (digest, percent, expect_rejects) = (*digest, *percent, *expect_rejects);
                roles.canary = Some(Canary { digest, percent, since: at.to_owned(), expect_rejects });
                Ok(())
            }
            Change::CanaryOff { events } => match self.roles(events)?.canary.take() {
                Some(_) => Ok(()),
                None => refuse(format!("event version {events} has no canary")),
            },
            Change::Retire { events } => match self.release.remove(events) {
                Some(_) => Ok(()),
                None => refuse(format!("event version {events} has no release")),
            },
            Change::Trip { digest, events, since } => {
                let is_canary = self.roles(events)?.canary.as_ref().is_some_and(|canary| canary.digest == *digest);
                if !is_canary {
                    self.previous_is_good(events)?;
                }
                let roles = self.roles(events)?;
                if roles.canary.as_ref().is_some_and(|canary| canary.digest == *digest && canary.since == *since) {
                    roles.canary = None;
                } else if roles.active == *digest
                    && roles.guard.as_ref().is_some_and(|guard| guard.promoted_at == *since)
                {
                    roles.roll_back(events)?;
                } else {
                    return refuse(format!("{digest} is no longer in service for event version {events}"));
                }
                let held = Held { since: at.to_owned(), events: events.clone(), why: why.to_owned() };
                self.held.insert(*digest, held);
                Ok(())
            }
        }
    }

    fn promote(&mut self, digest: Digest, events: &str, guard: Guarded) -> Result<(), Refusal> {
        let Some(release) = self.release.get_mut(events) else {
            if events.is_empty() {
                return refuse("an event version is not empty");
            }
            let validator = Roles { active: digest, previous: None, guard: None, shadow: None, canary: None };
            self.release.insert(events.to_owned(), Release { validator });
            return Ok(());
        };
        let roles = &mut release.validator;
        if roles.active == digest {
            return refuse(format!("{digest} is active for event version {events} already"));
        }
        roles.previous = Some(std::mem::replace(&mut roles.active, digest));
        roles.guard = Some(guard);
        roles.shadow.take_if(|shadow| shadow.digest == digest);
        // The canary was compared with what is now `previous`.
        roles.canary = None;
        Ok(())
    }

    fn roles(&mut self, events: &str) -> Result<&mut Roles, Refusal> {
        match self.release.get_mut(events) {
            Some(release) => Ok(&mut release.validator),
            None => refuse(format!("event version {events} has no release: promote a component for it first")),
        }
    }

    /// A component that a guard took out of service does not come back unguarded.
    fn previous_is_good(&mut self, events: &str) -> Result<(), Refusal> {
        let previous = self.roles(events)?.previous;
        match previous.and_then(|previous| Some((previous, self.held.get(&previous)?))) {
            None => Ok(()),
            Some((previous, held)) => refuse(format!(
                "{previous}, where event version {events} would go back to, is held since {}: {}. Promote another component",
                held.since, held.why
            )),
        }
    }

    /// A forced component is held no longer.
    fn not_held(&mut self, digest: &Digest, force: bool) -> Result<(), Refusal> {
        match self.held.get(digest) {
            Some(held) if !force => refuse(format!(
                "{digest} is held since {}: {}. Stage a repaired build, or say --force",
                held.since, held.why
            )),
            _ => {
                self.held.remove(digest);
                Ok(())
            }
        }
    }
}

impl Roles {
    fn roll_back(&mut self, events: &str) -> Result<(), Refusal> {
        let Some(previous) = self.previous.take() else {
            return refuse(format!("event version {events} has no previous component to go back to"));
        };
        self.active = previous;
        // A rollback is not guarded, so nothing flaps.
        self.guard = None;
        self.shadow.take_if(|shadow| shadow.digest == previous);
        self.canary = None;
        Ok(())
    }

    fn is_not_active(&self, digest: &Digest, events: &str) -> Result<(), Refusal> {
        if self.active == *digest {
            return refuse(format!("{digest} is active for event version {events} already"));
        }
        Ok(())
    }
}

fn refuse<T>(what: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal(what.into()))
}

fn share(name: &str, percent: f64, is_below: bool, most: &str) -> Result<(), Refusal> {
    if percent > 0.0 && is_below {
        return Ok(());
    }
    refuse(format!("--{name} must be above 0 and {most} (percent), not {percent}"))
}

#[cfg(test)]
mod tests;

//! What to do about the releases that a store holds now: a function of what is served, what was refused, and the time.

use crate::releases::Releases;
use crate::time::Micros;

/// How long a refused revision rests before it is tried again: 1 s, doubled each time.
const FIRST_REST: Micros = 1_000_000;
const LONGEST_REST: Micros = 60_000_000;
/// Builds at the same time. A build cannot be broken off, so that a rollback need not wait for a component that takes long
/// to compile.
const BUILDS: usize = 4;

/// What is served, what is being built, and what was refused.
#[derive(Debug)]
pub(super) struct State {
    /// The releases that are served.
    pub served: Releases,
    /// Those of the store when it was last read.
    pub wanted: Releases,
    /// Those that were tried and refused.
    pub refused: Option<Refused>,
    building: Vec<Releases>,
}

/// Releases that were refused.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Refused {
    /// Which.
    pub releases: Releases,
    /// Why.
    pub why: String,
    /// When they were first tried.
    pub since: Micros,
    /// How often they were tried.
    pub tries: u32,
    /// Not before this time again: what was half copied is whole by then.
    pub again: Micros,
}

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing.
    Rest,
    /// Build a rule set of the wanted releases.
    Build,
}

/// What to do with releases that were built.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// Serve them.
    Serve,
    /// Others are wanted by now.
    Drop,
}

impl State {
    /// Serving these releases.
    pub(super) fn new(served: Releases) -> Self {
        Self { wanted: served.clone(), served, refused: None, building: Vec::new() }
    }

    /// What to do, now that the store holds these releases.
    pub(super) fn step(&mut self, found: Releases, now: Micros) -> Step {
        self.wanted = found;
        if self.wanted == self.served {
            // Whoever made the refused revision has taken it back.
            self.refused = None;
            return Step::Rest;
        }
        let rests = self.refused.as_ref().is_some_and(|r| r.releases == self.wanted && now < r.again);
        if rests || self.building.contains(&self.wanted) || self.building.len() >= BUILDS {
            return Step::Rest;
        }
        self.building.push(self.wanted.clone());
        Step::Build
    }

    /// What to do with a rule set of these releases.
    pub(super) fn built(&mut self, releases: Releases) -> Use {
        self.building.retain(|building| *building != releases);
        if releases != self.wanted {
            return Use::Drop;
        }
        self.served = releases;
        self.refused = None;
        Use::Serve
    }

    /// Notes that no rule set could be built of these releases. True if that is new.
    pub(super) fn failed(&mut self, releases: Releases, why: String, now: Micros) -> bool {
        self.building.retain(|building| *building != releases);
        if releases != self.wanted {
            return false;
        }
        let known = self.refused.take().filter(|refused| refused.releases == releases);
        let is_new = known.as_ref().is_none_or(|refused| refused.why != why);
        let tries = known.as_ref().map_or(1, |refused| refused.tries.saturating_add(1));
        let rest = FIRST_REST.saturating_mul(1 << (tries - 1).min(10)).min(LONGEST_REST);
        let since = known.map_or(now, |refused| refused.since);
        self.refused = Some(Refused { releases, why, since, tries, again: now.saturating_add(rest) });
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Micros = 1_000_000;

    fn revision(revision: u64) -> Releases {
        Releases { revision, ..Releases::default() }
    }

    #[test]
    fn a_new_revision_is_built_once_and_then_served() {
        let mut state = State::new(revision(1));
        assert_eq!(state.step(revision(1), 0), Step::Rest);
        assert_eq!(state.step(revision(2), 0), Step::Build);
        assert_eq!(state.step(revision(2), 0), Step::Rest, "it is being built");
        assert_eq!(state.built(revision(2)), Use::Serve);
        assert_eq!(state.step(revision(2), 0), Step::Rest);
    }

    #[test]
    fn a_rollback_overtakes_what_takes_long_to_build() {
        let mut state = State::new(revision(1));
        assert_eq!(state.step(revision(2), 0), Step::Build);
        assert_eq!(state.step(revision(3), 0), Step::Build);
        assert_eq!(state.built(revision(3)), Use::Serve);
        assert_eq!(state.built(revision(2)), Use::Drop);
        assert_eq!(state.served, revision(3));
    }

    #[test]
    fn builds_are_bounded() {
        let mut state = State::new(revision(0));
        let steps: Vec<Step> = (1..=5).map(|n| state.step(revision(n), 0)).collect();
        assert_eq!(steps, [Step::Build, Step::Build, Step::Build, Step::Build, Step::Rest]);
        assert_eq!(state.built(revision(1)), Use::Drop);
        assert_eq!(state.step(revision(5), 0), Step::Build);
    }

    #[test]
    fn a_refused_revision_is_tried_again_with_growing_rests_and_said_once() {
        let mut state = State::new(revision(1));
        let mut now = 0;
        let mut rests = Vec::new();
        for _ in 0..8 {
            assert_eq!(state.step(revision(2), now), Step::Build);
            let is_new = state.failed(revision(2), "half a file".into(), now);
            assert_eq!(is_new, rests.is_empty());
            let again = state.refused.as_ref().unwrap().again;
            assert_eq!(state.step(revision(2), again - 1), Step::Rest);
            rests.push((again - now) / SECOND);
            now = again;
        }
        assert_eq!(rests, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(state.refused.as_ref().map(|refused| (refused.since, refused.tries)), Some((0, 8)));
        assert_eq!(state.step(revision(3), now - 1), Step::Build, "another revision need not wait");
    }

    #[test]
    fn a_revision_that_is_taken_back_is_no_longer_refused() {
        let mut state = State::new(revision(1));
        state.step(revision(2), 0);
        state.failed(revision(2), "bad".into(), 0);
        assert_eq!(state.step(revision(1), 1), Step::Rest);
        assert_eq!(state.refused, None);
        assert!(!state.failed(revision(2), "late".into(), 2), "nobody wants it any more");
        assert_eq!(state.refused, None);
    }
}

//! What became of the events, by event version and stage: counted once, shown at the end, in the metrics and at the
//! admin endpoint.

use super::value_counts::ValueCounts;
use super::window_counts::WindowCounts;
use crate::time::Micros;
use crate::verdict::Rejection;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Stages, each with its code, that are counted one by one; further ones are counted together.
const STAGES: usize = 200;
const OTHER_STAGES: &str = "(other stages)";
/// What events are counted under whose version no rule serves, and those whose version cannot be told.
const OTHER_VERSIONS: &str = "other";
pub(super) const NO_VERSION: &str = "none";

/// Outcomes of a number of events. Every event is in exactly one of accepted, ignored, rejected, duplicates, redelivered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Events read.
    pub read: u64,
    /// Events whose first fault did not stand: judged again alone, they had none.
    pub recovered: u64,
    /// Events whose message was committed before: they are written nowhere.
    pub redelivered: u64,
    /// Rows for bronze.
    pub bronze: u64,
    /// The latest publish time of the events.
    pub newest: Option<Micros>,
    /// What windows said.
    #[serde(skip)]
    pub windows: WindowCounts,
    /// Rows for silver by the value of a column, where one is counted by.
    pub silver_by: ValueCounts,
    versions: BTreeMap<Box<str>, Outcomes>,
}

/// Outcomes of the events of one version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcomes {
    /// Rows for silver.
    pub accepted: u64,
    /// Ignored by their rule.
    pub ignored: u64,
    /// Sent twice by their producer: of such an event only the first counts.
    pub duplicates: u64,
    /// Events for quarantine.
    pub rejected: Stages,
}

/// Rejected events by stage and code, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stages(Vec<Stage>);

/// Rejected events of one stage and code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// The stage.
    pub stage: Cow<'static, str>,
    /// The code, for the host's stages.
    pub code: Option<Cow<'static, str>>,
    /// Events.
    pub events: u64,
}

/// The event version that an event is counted under. Only versions that a rule serves have a count of their own: they
/// are few, while what events say may be anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedVersion<'a>(&'a str);

impl<'a> CountedVersion<'a> {
    /// The version of an event, if it could be told, and whether a rule serves it.
    pub fn new(version: Option<&'a str>, served: bool) -> Self {
        match version {
            Some(version) if served => Self(version),
            Some(_) => Self(OTHER_VERSIONS),
            None => Self(NO_VERSION),
        }
    }

    /// Its name.
    pub fn as_str(&self) -> &'a str {
        self.0
    }
}

impl Tally {
    /// Counts an event that was read.
    pub fn read(&mut self, publish_time: Micros) {
        self.read += 1;
        self.newest = self.newest.max(Some(publish_time));
    }

    /// The outcomes of a version, to be counted up.
    pub fn of(&mut self, version: CountedVersion<'_>) -> &mut Outcomes {
        self.named(version.0)
    }

    /// The outcomes of a version by the name it is counted under.
    pub fn named(&mut self, version: &str) -> &mut Outcomes {
        // Looked up twice, so that the usual case does not allocate.
        if !self.versions.contains_key(version) {
            self.versions.insert(version.into(), Outcomes::default());
        }
        self.versions.get_mut(version).expect("it was inserted where it was missing")
    }

    /// Adds the counts of another part of a micro-batch.
    pub fn add(&mut self, later: &Self) {
        self.silver_by.add(&later.silver_by);
        self.add_numbers(later);
    }

    /// Adds the counts of a micro-batch to those of a run: memory is bounded, however many there are.
    pub fn add_batch(&mut self, batch: &Self) {
        self.silver_by.add_bounded(&batch.silver_by);
        self.add_numbers(batch);
    }

    fn add_numbers(&mut self, later: &Self) {
        self.read += later.read;
        self.recovered += later.recovered;
        self.redelivered += later.redelivered;
        self.bronze += later.bronze;
        self.newest = self.newest.max(later.newest);
        self.windows.add(&later.windows);
        for (version, outcomes) in &later.versions {
            let own = self.named(version);
            own.accepted += outcomes.accepted;
            own.ignored += outcomes.ignored;
            own.duplicates += outcomes.duplicates;
            own.rejected.add(&outcomes.rejected);
        }
    }

    /// Moves events from accepted to rejected: the table refused their rows after all.
    pub fn refuse(&mut self, refused: &Self) {
        for (version, outcomes) in &refused.versions {
            let own = self.named(version);
            own.accepted -= outcomes.rejected.events();
            own.rejected.add(&outcomes.rejected);
        }
    }

    /// Rows for silver.
    pub fn accepted(&self) -> u64 {
        self.versions.values().map(|outcomes| outcomes.accepted).sum()
    }

    /// Ignored by their rule.
    pub fn ignored(&self) -> u64 {
        self.versions.values().map(|outcomes| outcomes.ignored).sum()
    }

    /// Sent twice by their producer.
    pub fn duplicates(&self) -> u64 {
        self.versions.values().map(|outcomes| outcomes.duplicates).sum()
    }

    /// All rejections.
    pub fn quarantined(&self) -> u64 {
        self.versions.values().map(|outcomes| outcomes.rejected.events()).sum()
    }

    /// Rejections of all versions by stage and code.
    pub fn rejected(&self) -> Stages {
        let mut all = Stages::default();
        self.versions.values().for_each(|outcomes| all.add(&outcomes.rejected));
        all
    }

    /// Outcomes by event version; `other` are versions that no rule serves, `none` is no version.
    pub fn versions(&self) -> &BTreeMap<Box<str>, Outcomes> {
        &self.versions
    }
}

impl Outcomes {
    /// Counts a rejection.
    pub fn reject(&mut self, rejection: &Rejection) {
        self.rejected.count((&rejection.stage, rejection.code.as_ref()), 1);
    }
}

impl Stages {
    /// Stages are a rule's own words: one that puts an id into them would otherwise grow the tally with the input.
    fn count(&mut self, (stage, code): (&Cow<'static, str>, Option<&Cow<'static, str>>), events: u64) {
        let wanted = (stage.as_ref(), code.map(Cow::as_ref));
        match self.0.binary_search_by(|known| (known.stage.as_ref(), known.code.as_deref()).cmp(&wanted)) {
            Ok(index) => self.0[index].events += events,
            Err(index) if self.has_room() => {
                self.0.insert(index, Stage { stage: stage.clone(), code: code.cloned(), events });
            }
            Err(_) => match self.0.binary_search_by(|known| known.stage.as_ref().cmp(OTHER_STAGES)) {
                Ok(index) => self.0[index].events += events,
                Err(index) => self.0.insert(index, Stage { stage: OTHER_STAGES.into(), code: None, events }),
            },
        }
    }

    /// Takes one event out that was counted.
    pub fn take_one(&mut self, stage: &str, code: Option<&str>) {
        let find = |stages: &Self, stage: &str, code: Option<&str>| {
            stages.0.binary_search_by(|known| (known.stage.as_ref(), known.code.as_deref()).cmp(&(stage, code)))
        };
        // What has no count of its own was counted with others.
        if let Ok(index) = find(self, stage, code).or_else(|_| find(self, OTHER_STAGES, None)) {
            self.0[index].events -= 1;
            if self.0[index].events == 0 {
                self.0.remove(index);
            }
        }
    }

    fn has_room(&self) -> bool {
        self.0.iter().filter(|known| known.stage != OTHER_STAGES).count() < STAGES
    }

    /// Adds the counts of others.
    pub fn add(&mut self, later: &Self) {
        for Stage { stage, code, events } in &later.0 {
            self.count((stage, code.as_ref()), *events);
        }
    }

    /// Events of all stages.
    pub fn events(&self) -> u64 {
        self.0.iter().map(|stage| stage.events).sum()
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = &Stage> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: CountedVersion<'_> = CountedVersion("1");

    fn rejection(stage: impl Into<Cow<'static, str>>) -> Rejection {
        Rejection { stage: stage.into(), code: None, reason: String::new() }
    }

    #[test]
    fn a_rule_that_puts_ids_into_stages_does_not_grow_the_tally() {
        let mut tally = Tally::default();
        for number in 0..STAGES + 50 {
            tally.of(ONE).reject(&rejection(format!("ORDER_{number:04}")));
        }
        let others = |tally: &Tally| {
            let rejected = tally.rejected();
            let others = rejected.iter().find(|stage| stage.stage == OTHER_STAGES).map(|stage| stage.events);
            (rejected.iter().count(), others)
        };
        assert_eq!(others(&tally), (STAGES + 1, Some(50)));
        let mut all = tally.clone();
        all.add(&tally);
        assert_eq!((all.quarantined(), others(&all)), (2 * (STAGES as u64 + 50), (STAGES + 1, Some(100))));
    }

    #[test]
    fn versions_that_no_rule_serves_are_counted_together() {
        let mut tally = Tally::default();
        for version in ["7", "8", "9"] {
            tally.of(CountedVersion::new(Some(version), false)).reject(&rejection("ROUTING"));
        }
        tally.of(CountedVersion::new(None, false)).reject(&rejection("PARSE_ENVELOPE"));
        tally.of(CountedVersion::new(Some("2"), true)).accepted += 1;
        let versions: Vec<&str> = tally.versions().keys().map(AsRef::as_ref).collect();
        assert_eq!(versions, ["2", "none", "other"]);
        assert_eq!(tally.versions()["other"].rejected.events(), 3);
    }

    #[test]
    fn what_a_table_refuses_after_all_is_no_longer_accepted() {
        let mut tally = Tally::default();
        tally.of(ONE).accepted = 5;
        let mut refused = Tally::default();
        refused.of(ONE).reject(&rejection("SINK_REJECTED"));
        tally.refuse(&refused);
        assert_eq!((tally.accepted(), tally.quarantined()), (4, 1));
    }

    #[test]
    fn the_newest_publish_time_is_kept_whatever_the_order() {
        let mut tally = Tally::default();
        for time in [3, 9, 5] {
            tally.read(time);
        }
        let mut all = Tally::default();
        all.add(&tally);
        all.add(&Tally::default());
        assert_eq!((all.read, all.newest), (3, Some(9)));
    }
}

//! What comparing showed: counts by kind of difference, with a few samples of each.

use super::selection::Skip;
use crate::event::Event;
use crate::row::Value;
use crate::rules::Manifest;
use crate::rules::compare::{Difference, Opinion, shown};
use crate::verdict::{Verdict, clip};
use serde::{Serialize, Serializer};
use serde_json::Value as Json;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Kinds that are told apart. A stage is the rule's own word, so a rule that puts anything of the event into it has as
/// many kinds as there are events.
const KINDS: usize = 1_000;
/// Bytes of a verdict or a value in a sample.
const SHOWN: usize = 1_000;

/// What comparing two rules on many events showed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Events that both rules judged: `same` and `different` together.
    pub judged: u64,
    /// Events of which both say the same.
    pub same: u64,
    /// Events of which they do not. Its row may differ in several columns, so the counts by kind may come to more.
    pub different: u64,
    /// Events that were not judged.
    pub skipped: Skipped,
    /// The kinds of difference, the most frequent first.
    pub differences: Vec<Kind>,
    /// Differences of further kinds, which are not told apart.
    pub further: u64,
}

/// Events that were not judged, by reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// There is not the whole event, by why: the host's stage that a pipeline would quarantine it at, or what a row lacks.
    pub not_whole: BTreeMap<Cow<'static, str>, u64>,
    /// Of another event version.
    pub other_version: u64,
    /// Of an event version that cannot be told.
    pub no_version: u64,
}

/// A kind of difference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Kind {
    /// Which; in JSON as it shows itself.
    #[serde(serialize_with = "text")]
    pub kind: Difference,
    /// Events that differ so.
    pub events: u64,
    /// The first of them.
    pub samples: Vec<Sample>,
}

/// An event of which the rules do not say the same.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sample {
    /// Its message id.
    pub message_id: String,
    /// The old rule's verdict as text; for a column its value, as fixtures have it.
    pub old: Json,
    /// The same of the new rule.
    pub new: Json,
}

/// Counts while events are judged.
pub(super) struct Tally {
    samples: usize,
    judged: u64,
    different: u64,
    skipped: Skipped,
    kinds: BTreeMap<Difference, (u64, Vec<Sample>)>,
    further: u64,
}

type Judged<'a> = (&'a Manifest, &'a Opinion);

impl Tally {
    /// An empty one, with room for so many samples of each kind.
    pub(super) fn new(samples: usize) -> Self {
        Self { samples, judged: 0, different: 0, skipped: Skipped::default(), kinds: BTreeMap::new(), further: 0 }
    }

    /// Counts events that are not whole.
    pub(super) fn skip_not_whole(&mut self, why: Vec<Cow<'static, str>>) {
        for why in why {
            *self.skipped.not_whole.entry(why).or_default() += 1;
        }
    }

    /// Counts an event that is not judged.
    pub(super) fn skip(&mut self, why: Skip) {
        let count = match why {
            Skip::OtherVersion => &mut self.skipped.other_version,
            Skip::NoVersion => &mut self.skipped.no_version,
        };
        *count += 1;
    }

    /// Counts an event that was judged.
    pub(super) fn judged(&mut self, event: &Event, old: Judged<'_>, new: Judged<'_>, differences: Vec<Difference>) {
        self.judged += 1;
        self.different += u64::from(!differences.is_empty());
        for difference in differences {
            let entry = self.kinds.entry(difference);
            let kept = match &entry {
                Entry::Occupied(known) => known.get().1.len(),
                Entry::Vacant(_) => 0,
            };
            let sample = (kept < self.samples).then(|| Sample {
                message_id: event.message_id.clone(),
                old: side(entry.key(), old),
                new: side(entry.key(), new),
            });
            let (events, samples) = entry.or_default();
            *events += 1;
            samples.extend(sample);
        }
    }

    /// Adds the counts of the events behind these.
    pub(super) fn merge(&mut self, other: Self) {
        self.judged += other.judged;
        self.different += other.different;
        for (why, events) in other.skipped.not_whole {
            *self.skipped.not_whole.entry(why).or_default() += events;
        }
        self.skipped.other_version += other.skipped.other_version;
        self.skipped.no_version += other.skipped.no_version;
        self.further += other.further;
        for (difference, (events, samples)) in other.kinds {
            if self.kinds.len() == KINDS && !self.kinds.contains_key(&difference) {
                self.further += events;
                continue;
            }
            let (total, kept) = self.kinds.entry(difference).or_default();
            *total += events;
            kept.extend(samples);
            kept.truncate(self.samples);
        }
    }

    /// The counts, for good.
    pub(super) fn report(self) -> Report {
        let mut kinds: Vec<_> = self.kinds.into_iter().collect();
        // The order of the kinds themselves stays where counts are equal.
        kinds.sort_by_key(|(_, (events, _))| Reverse(*events));
        let kind = |(kind, (events, samples))| Kind { kind, events, samples };
        Report {
            judged: self.judged,
            same: self.judged - self.different,
            different: self.different,
            skipped: self.skipped,
            differences: kinds.into_iter().map(kind).collect(),
            further: self.further,
        }
    }
}

fn text<S: Serializer>(kind: &Difference, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(kind)
}

/// One side of a sample: of a column that differs its value, else the verdict.
fn side(difference: &Difference, (manifest, opinion): Judged<'_>) -> Json {
    match (difference, opinion) {
        (Difference::Column(name), Ok(Verdict::Accept(row))) => {
            let value = manifest.column(name).map_or(Value::Null, |index| row[index].clone()).to_json();
            let text = value.to_string();
            if text.len() <= SHOWN { value } else { clip(&text, SHOWN).into() }
        }
        _ => clip(&shown(manifest, opinion), SHOWN).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{Column, ColumnType};
    use crate::rules::compare::compare;
    use crate::verdict::Rejection;

    fn manifest() -> Manifest {
        Manifest {
            name: "r".into(),
            version: "1.0.0".into(),
            event_versions: vec!["1".into()],
            attributes: vec![],
            columns: vec![Column::new("a", ColumnType::Int64, true), Column::new("t", ColumnType::Text, true)],
            event_time: None,
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "an opinion is what the tests compare")]
    fn accept(a: i64, t: &str) -> Opinion {
        Ok(Verdict::Accept(vec![Value::Int64(a), Value::Text(t.into())]))
    }

    #[expect(clippy::unnecessary_wraps, reason = "an opinion is what the tests compare")]
    fn reject(stage: String) -> Opinion {
        Ok(Verdict::Reject(Rejection { stage: stage.into(), code: None, reason: "why".into() }))
    }

    fn tally(samples: usize, pairs: &[(Opinion, Opinion)]) -> Tally {
        let m = manifest();
        let mut tally = Tally::new(samples);
        for (index, (old, new)) in pairs.iter().enumerate() {
            let event = Event {
                payload: bytes::Bytes::new(),
                attributes: vec![],
                message_id: index.to_string(),
                publish_time: 0,
                received_time: 0,
                ordering_key: None,
                delivery_attempt: None,
                form: crate::event::Form::Whole,
            };
            tally.judged(&event, (&m, old), (&m, new), compare((&m, old), (&m, new)));
        }
        tally
    }

    fn kinds(report: &Report) -> Vec<(String, u64)> {
        report.differences.iter().map(|kind| (kind.kind.to_string(), kind.events)).collect()
    }

    #[test]
    fn an_event_counts_once_however_many_columns_differ() {
        let report = tally(2, &[(accept(1, "x"), accept(2, "y")), (accept(1, "x"), accept(1, "x"))]).report();
        assert_eq!((report.judged, report.same, report.different), (2, 1, 1));
        assert_eq!(kinds(&report), [("column a".into(), 1), ("column t".into(), 1)]);
        assert_eq!(
            (&report.differences[0].samples[0].old, &report.differences[0].samples[0].new),
            (&1.into(), &2.into())
        );
    }

    #[test]
    fn the_most_frequent_kind_comes_first_with_the_first_samples_also_across_parts() {
        let pairs = [
            (accept(1, "x"), accept(2, "x")),
            (accept(1, "x"), reject("S".into())),
            (accept(1, "x"), reject("S".into())),
        ];
        let mut all = tally(3, &pairs);
        all.merge(tally(3, &pairs));
        let report = all.report();
        assert_eq!(kinds(&report), [("accept→reject S".into(), 4), ("column a".into(), 2)]);
        let ids: Vec<_> = report.differences[0].samples.iter().map(|sample| sample.message_id.as_str()).collect();
        assert_eq!(ids, ["1", "2", "1"]);
        assert_eq!(report.differences[0].samples[0].old, r#"accept {"a":1,"t":"x"}"#);
        assert_eq!(report.differences[0].samples[0].new, "reject S: why");
    }

    #[test]
    fn samples_are_capped_and_none_may_be_kept() {
        let pairs: Vec<_> = (0..9).map(|_| (accept(1, "x"), accept(2, "x"))).collect();
        assert_eq!(tally(4, &pairs).report().differences[0].samples.len(), 4);
        let mut none = tally(0, &pairs);
        none.merge(tally(0, &pairs));
        let none = none.report();
        assert_eq!((none.differences[0].events, none.differences[0].samples.len()), (18, 0));
    }

    #[test]
    fn a_long_row_or_value_is_clipped_in_samples() {
        let long = "é".repeat(5_000);
        let report = tally(1, &[(accept(1, "x"), accept(1, &long)), (accept(1, &long), reject("S".into()))]).report();
        for kind in report.differences {
            let Sample { old, new, .. } = &kind.samples[0];
            let texts = [old, new].map(|side| side.as_str().unwrap());
            assert!(texts.iter().all(|text| text.len() <= SHOWN), "{kind:?}");
            assert!(texts.iter().any(|text| text.ends_with('…')), "{kind:?}");
        }
    }

    #[test]
    fn kinds_without_end_are_counted_together() {
        let part = |from: usize| {
            let pairs: Vec<_> = (from..from + KINDS).map(|n| (accept(1, "x"), reject(format!("S{n}")))).collect();
            tally(1, &pairs)
        };
        let mut all = part(0);
        all.merge(part(1));
        let report = all.report();
        assert_eq!((report.differences.len(), report.further, report.different), (KINDS, 1, 2 * KINDS as u64));
    }
}

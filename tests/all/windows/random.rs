//! Long scripts at random: the engine says what the model says; and, whatever the model says, no event is lost or counted twice.

use super::model;
use super::play::{Outcome, Restart, Way, play, story};
use super::script::{Commit, Event, Script, spec};
use preflight::row::Value;
use preflight::time::Micros;
use preflight::window::{Accumulation, Pane, Span, Spec, Timing};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::BTreeMap;
use std::ops::Range;

/// Aggregates, as text.
fn aggregates() -> impl Strategy<Value = String> {
    let windowing = prop_oneof![
        (1..15, 0..15).prop_map(|(size, offset)| format!("fixed {size} from {}", offset % size)),
        (1..25, 1..15, 0..15)
            .prop_map(|(size, every, offset)| format!("sliding {size} every {every} from {}", offset % every)),
        (1..12).prop_map(|gap| format!("session {gap}")),
        (1..12).prop_map(|gap| format!("session {gap}")),
    ];
    let or_none = |name: &'static str, values: Range<i32>| {
        prop_oneof![Just(String::new()), values.prop_map(move |value| format!(", {name} {value}"))]
    };
    let accumulation = prop_oneof![Just(""), Just(", discarding")];
    (windowing, or_none("early", 1..9), or_none("late", 1..9), accumulation, or_none("lateness", 0..20)).prop_map(
        |(windowing, early, late, accumulation, lateness)| windowing + &early + &late + accumulation + &lateness,
    )
}

/// Commits with events around a watermark that mostly goes on. Processing time goes so far at most, and back if it may.
fn scripts(ticks: Range<Micros>) -> impl Strategy<Value = Script> {
    let event = (0..3_u8, -25..15_i64, prop::option::weighted(0.9, Just(())));
    let commit = (
        prop::option::weighted(0.5, ticks),
        prop::collection::vec(event, 0..4),
        prop::option::weighted(0.5, -2..9_i64),
    );
    (prop::collection::vec(commit, 1..24), -30..30_i64, any::<bool>()).prop_map(|(commits, from, ends)| {
        let (mut clock, mut watermark, mut number) = (0, from, 0);
        let commits = commits.into_iter().map(|(tick, events, progress)| {
            clock += tick.unwrap_or(0);
            let events = events.into_iter().map(|(key, time, value)| {
                // Powers of two, others for each, so that a sum says of which events it is.
                number += 1;
                let value = value.map(|()| 1 << (number % 50));
                Event { key: char::from(b'a' + key), happened: watermark + time, value }
            });
            let events = events.collect();
            watermark += progress.unwrap_or(0);
            Commit { processing_time: tick.map(|_| clock), events, watermark: progress.map(|_| watermark) }
        });
        let end = ends.then(|| Commit { watermark: Some(Micros::MAX), ..Commit::default() });
        Script(commits.chain(end).collect())
    })
}

fn ways() -> impl Strategy<Value = Way> {
    let restart = prop_oneof![Just(Restart::Never), Just(Restart::Always), (0..20_usize).prop_map(Restart::After)];
    let limit = prop_oneof![Just(usize::MAX), 1..4_usize];
    (restart, limit).prop_map(|(restart, limit)| Way { restart, limit, hurries: false })
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(6), ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(1_500))]

    /// Two aggregates at once, which know nothing of each other.
    #[test]
    fn the_engine_says_what_the_model_says(a in aggregates(), b in aggregates(), script in scripts(0..6), way in ways()) {
        let found = play(&[&a, &b].map(|text| spec(text)), &script, way);
        for (text, found) in [a, b].iter().zip(found) {
            let expected = model::outcomes(&spec(text), &script);
            if found != expected {
                let (expected, found) = (story(&script, &expected), story(&script, &found));
                prop_assert!(false, "{text}\nmodel:\n{expected}engine:\n{found}");
            }
        }
    }
}

proptest! {
    #![proptest_config(config(2_500))]

    /// Also by a clock that is set back, and then restarts make no difference either.
    #[test]
    fn every_event_is_counted_once_in_each_window_it_is_not_late_for(
        text in aggregates(),
        mut script in scripts(-2..6),
        way in ways(),
    ) {
        if script.watermark(script.0.len() - 1) < Micros::MAX {
            script.0.push(Commit { watermark: Some(Micros::MAX), ..Commit::default() });
        }
        let spec = spec(&text);
        let outcomes = play(std::slice::from_ref(&spec), &script, way).remove(0);
        if let Err(what) = invariants(&spec, &script, &outcomes, way) {
            prop_assert!(false, "{text}: {what}\n{}", story(&script, &outcomes));
        }
        // What is in which pane is another question where events come before all panes have fired. None is lost even so.
        let hurried = Way { hurries: true, limit: 1, ..way };
        let outcomes_in_a_hurry = play(std::slice::from_ref(&spec), &script, hurried).remove(0);
        if let Err(what) = invariants(&spec, &script, &outcomes_in_a_hurry, hurried) {
            prop_assert!(false, "{text}, {hurried:?}: {what}\n{}", story(&script, &outcomes_in_a_hurry));
        }
        let straight = play(&[spec], &script, Way::STRAIGHT).remove(0);
        prop_assert!(straight == outcomes, "{text}\n{}{way:?}\n{}", story(&script, &straight), story(&script, &outcomes));
    }
}

/// What holds of every window, whatever fires when. An error says what does not.
fn invariants(spec: &Spec, script: &Script, outcomes: &[Outcome], way: Way) -> Result<(), String> {
    let mut windows: BTreeMap<(char, Span), Vec<&Pane>> = BTreeMap::new();
    for (commit, outcome) in outcomes.iter().enumerate() {
        let (before, watermark) = (script.watermark_before(commit), script.watermark(commit));
        for pane in &outcome.panes {
            let Span { end, .. } = pane.window;
            let expiry = end.saturating_add(spec.allowed_lateness);
            let in_time = match pane.timing {
                Timing::Early => watermark < end,
                Timing::OnTime => before < end && end <= watermark,
                Timing::Late => end <= before && before < expiry,
                Timing::Retracted => spec.windowing.merges(),
            };
            ensure(in_time || way.hurries, || format!("{:?} {} does not fire at that time", pane.window, pane.timing))?;
            windows.entry((char::from(pane.key[0]), pane.window)).or_default().push(pane);
        }
    }
    ensure(outcomes.last().is_none_or(|last| last.open == 0), || "windows are open at the end".into())?;

    let mut counted: BTreeMap<char, (u64, i64)> = BTreeMap::new();
    for ((key, span), panes) in &windows {
        let what = || format!("{key} {span:?}");
        let in_row = panes.iter().zip(0..).all(|(pane, index)| pane.index == index);
        ensure(in_row, || format!("{}: indexes have gaps", what()))?;
        let timings: Vec<Timing> = panes.iter().map(|pane| pane.timing).collect();
        let on_time = timings.iter().filter(|timing| **timing == Timing::OnTime).count();
        let rises = timings.is_sorted_by_key(|timing| *timing as u8) && on_time < 2;
        ensure(rises, || format!("{}: {timings:?}", what()))?;
        if timings.last() == Some(&Timing::Retracted) {
            ensure(timings.iter().filter(|timing| **timing == Timing::Retracted).count() == 1, what)?;
            continue;
        }
        let newest = match spec.accumulation {
            Accumulation::Accumulating => &panes[panes.len() - 1..],
            Accumulation::Discarding => panes,
        };
        let (count, sum) = counted.entry(*key).or_default();
        for pane in newest {
            *count += pane.events;
            *sum += if let Value::Int64(sum) = pane.values[2] { sum } else { 0 };
        }
    }

    // The same from the events.
    let mut expected: BTreeMap<char, (u64, i64)> = BTreeMap::new();
    for (commit, outcome) in script.0.iter().zip(outcomes) {
        let mut missed = outcome.missed.iter().peekable();
        for event in &commit.events {
            let all = spec.windowing.windows(event.happened);
            for _ in all.filter(|span| missed.next_if(|missed| **missed == (event.key, *span)).is_none()) {
                let (count, sum) = expected.entry(event.key).or_default();
                *count += 1;
                *sum += event.value.unwrap_or(0);
            }
        }
        ensure(missed.next().is_none(), || "a window was missed that no event is in".into())?;
    }
    ensure(counted == expected, || format!("counted {counted:?}, came {expected:?}"))
}

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

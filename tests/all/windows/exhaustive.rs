//! Every order of a few events and of moves of the clocks, for every kind of aggregate: the engine says what the model says, pane for pane,
//! whether panes fire at once or one by one, and wherever a process ends and another goes on.

use super::model;
use super::play::{Way, play, story};
use super::script::{Commit, Script, spec};
use preflight::window::Spec;

/// All ways to put two lists into one: the moves keep their order, the events come in any.
fn interleaved(events: &[&str], moves: &[&str]) -> Vec<Vec<String>> {
    if events.is_empty() && moves.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    let mut begin = |first: &str, rest: Vec<Vec<String>>| {
        all.extend(rest.into_iter().map(|rest| std::iter::once(first.to_owned()).chain(rest).collect()));
    };
    for (index, event) in events.iter().enumerate() {
        let rest = [&events[..index], &events[index + 1..]].concat();
        begin(event, interleaved(&rest, moves));
    }
    if let Some((first, rest)) = moves.split_first() {
        begin(first, interleaved(events, rest));
    }
    all
}

/// A commit for each.
fn apart(words: &[String]) -> Script {
    Script(words.iter().map(|word| Commit::parse(word)).collect())
}

/// Commits end where a clock moves.
fn together(words: &[String]) -> Script {
    let mut script = Script(vec![Commit::default()]);
    for word in words {
        let Commit { processing_time, events, watermark } = Commit::parse(word);
        if processing_time.is_some() {
            script.0.push(Commit::default());
        }
        let commit = script.0.last_mut().expect("there is one");
        commit.processing_time = processing_time.or(commit.processing_time);
        commit.events.extend(events);
        if watermark.is_some() {
            commit.watermark = watermark;
            script.0.push(Commit::default());
        }
    }
    script
}

/// Compares, and returns how many scripts there were.
fn compare(text: &str, spec: &Spec, events: &[&str], moves: &[&str]) -> usize {
    let orders = interleaved(events, moves);
    for order in &orders {
        expect(text, spec, &apart(order), [Way::PIECEMEAL].into_iter());
        let script = together(order);
        expect(text, spec, &script, Way::all(script.0.len()));
    }
    2 * orders.len()
}

/// Compares what is played straight, and in these ways.
fn expect(text: &str, spec: &Spec, script: &Script, ways: impl Iterator<Item = Way>) {
    let expected = model::outcomes(spec, script);
    for way in std::iter::once(Way::STRAIGHT).chain(ways) {
        let found = play(std::slice::from_ref(spec), script, way).remove(0);
        if found != expected {
            let (expected, found) = (story(script, &expected), story(script, &found));
            panic!("{text}, {way:?}\nmodel:\n{expected}engine:\n{found}");
        }
    }
}

/// Of all accumulations and of these triggers and latenesses.
fn compare_all(windowings: &[&str], triggers: &[&str], lateness: &[&str], events: &[&str], moves: &[&str]) -> usize {
    let mut scripts = 0;
    for windowing in windowings {
        for trigger in triggers {
            for accumulation in ["", ", discarding"] {
                for lateness in lateness {
                    let text = format!("{windowing}{trigger}{accumulation}{lateness}");
                    scripts += compare(&text, &spec(&text), events, moves);
                }
            }
        }
    }
    scripts
}

const WINDOWINGS: [&str; 5] =
    ["fixed 10", "sliding 20 every 10", "sliding 5 every 10 from 9", "sliding 15 every 10", "session 10"];
const LATENESS: [&str; 3] = ["", ", lateness 5", ", lateness 12"];

#[test]
fn around_the_end_of_windows() {
    let moves = ["W9", "W10", "W15", "W22"];
    let scripts = compare_all(&WINDOWINGS, &[""], &LATENESS, &["a0=1", "a9=2", "a10=4"], &moves);
    assert_eq!(scripts, 12_600);
}

#[test]
fn while_panes_wait_for_processing_time() {
    let triggers = [", early 5", ", late 7", ", early 5, late 7"];
    let moves = ["P3", "W10", "P8", "W15", "P20"];
    let scripts = compare_all(&WINDOWINGS, &triggers, &LATENESS[2..], &["a0=1", "a9=2", "a10=4"], &moves);
    assert_eq!(scripts, 20_160);
}

#[test]
fn sessions_that_merge() {
    let triggers = ["", ", early 5", ", late 7", ", early 5, late 7"];
    let moves = ["W11", "P3", "P8", "W25"];
    let scripts = compare_all(&["session 10"], &triggers, &LATENESS[2..], &["a0=1", "a0=2", "a9=4", "a16=8"], &moves);
    assert_eq!(scripts, 26_880);
}

#[test]
fn keys_beside_each_other() {
    let scripts = compare_all(
        &["fixed 10", "session 10"],
        &["", ", early 5, late 7"],
        &LATENESS[2..],
        &["a0=1", "b1=2", "a9=4", "b8=8"],
        &["W10", "P8", "W20"],
    );
    assert_eq!(scripts, 13_440);
}

#[test]
fn sessions_of_many_events() {
    let scripts = compare_all(
        &["session 10"],
        &[", early 5, late 7"],
        &LATENESS[2..],
        &["a0=1", "a5=2", "a12=4", "a20=8", "a21=16"],
        &["W15", "P8"],
    );
    assert_eq!(scripts, 10_080);
}

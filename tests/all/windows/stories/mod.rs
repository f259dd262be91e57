//! Stories of windows, to be read: what happens on the left, one commit a line, what comes of it on the right. [`super::script`] says how to
//! read the left side. On the right are panes: key, window, index, timing, how many events, and the sum of their values. Lines with
//! nothing on the left go on with what the line above leads to; `open 2` says how many windows are open then.
//!
//! What is told is what model and engine both do, the engine also restarted anywhere and with panes fired one by one.

mod bounds;
mod fixed;
mod sessions;
mod sliding;

use super::model;
use super::play::{Outcome, Way, play, story, words};
use super::script::{Commit, Script, spec};

/// A story of an aggregate.
fn tell(aggregate: &str, told: &str) {
    let mut script = Script::default();
    let mut expected: Vec<Vec<String>> = Vec::new();
    for line in told.lines().filter(|line| !line.trim().is_empty()) {
        let (commit, what) = line.split_once('|').expect("a line has what happens, a bar and what comes of it");
        if !commit.trim().is_empty() || expected.is_empty() || what.trim().is_empty() {
            script.0.push(Commit::parse(commit));
            expected.push(Vec::new());
        }
        expected
            .last_mut()
            .expect("there is one")
            .extend(Some(what.trim()).filter(|what| !what.is_empty()).map(Into::into));
    }
    let spec = spec(aggregate);
    let of_model = model::outcomes(&spec, &script);
    let told_as = |outcomes: &[Outcome]| {
        let both = outcomes.iter().zip(&expected);
        let lines = both.map(|(outcome, expected)| {
            let mut words = words(outcome);
            if expected.iter().any(|word| word.starts_with("open ")) {
                words.push(format!("open {}", outcome.open));
            }
            words
        });
        lines.collect::<Vec<_>>()
    };
    assert!(told_as(&of_model) == expected, "{aggregate}, the model:\n{}", story(&script, &of_model));
    for way in [Way::STRAIGHT, Way::PIECEMEAL].into_iter().chain(Way::all(script.0.len())) {
        let found = play(std::slice::from_ref(&spec), &script, way).remove(0);
        assert!(told_as(&found) == expected, "{aggregate}, the engine, {way:?}:\n{}", story(&script, &found));
        assert_eq!(found, of_model, "{aggregate}, {way:?}");
    }
}

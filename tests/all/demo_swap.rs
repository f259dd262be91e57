//! The scenes of `cargo xtask demo swap`, each by itself: fewer events, the same commands, and the same checks at the end.

use preflight_tests::scenes::{self, Settings, Stage};

/// Plays the first scene, others, and the end, where every event must be there once.
fn play(guard_time: &'static str, scenes: &[fn(&mut Stage) -> anyhow::Result<()>]) {
    let directory = tempfile::tempdir().unwrap();
    let settings =
        Settings { directory: directory.path().to_owned(), rate: 5_000, pairs: 1_000, guard_time, tell: |_| {} };
    let mut stage = Stage::begin(settings).unwrap();
    scenes.iter().try_for_each(|scene| scene(&mut stage)).unwrap();
    scenes::end(stage).unwrap();
}

#[test]
fn a_good_version_is_compared_then_promoted_and_its_guard_passes() {
    play("1 s", &[scenes::next_version]);
}

#[test]
fn a_build_that_breaks_its_fixtures_is_neither_staged_nor_served() {
    play("1 m", &[scenes::refused_by_fixtures]);
}

#[test]
fn a_rule_that_rejects_too_much_is_rolled_back_and_what_it_rejected_is_replayed() {
    play("1 m", &[scenes::rejects_too_much, scenes::repair]);
}

#[test]
fn a_rule_that_panics_is_rolled_back_and_what_it_broke_is_replayed() {
    play("1 m", &[scenes::faults, scenes::repair]);
}

#[test]
fn an_event_version_nobody_serves_waits_in_quarantine_for_its_rule() {
    play("1 m", &[scenes::unknown_version, scenes::repair]);
}

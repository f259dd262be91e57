use super::*;

fn digest(name: &str) -> Digest {
    Digest::of(name.as_bytes())
}

fn promote(name: &str) -> Change {
    Change::Promote { digest: digest(name), events: "1".into(), expect_rejects: false, force: false }
}

fn force(name: &str) -> Change {
    Change::Promote { digest: digest(name), events: "1".into(), expect_rejects: false, force: true }
}

fn shadow(name: &str, sample: f64) -> Change {
    Change::Shadow { digest: digest(name), events: "1".into(), sample }
}

fn canary(name: &str, percent: f64) -> Change {
    Change::Canary { digest: digest(name), events: "1".into(), percent, expect_rejects: true, force: false }
}

/// Of what went into service at the second of its place.
fn trip(name: &str, since: u32) -> Change {
    Change::Trip { digest: digest(name), events: "1".into(), since: since.to_string() }
}

fn rollback() -> Change {
    Change::Rollback { events: "1".into() }
}

/// The releases after these changes, each at the second of its place.
fn after<const N: usize>(changes: &[Change; N]) -> Releases {
    changes.iter().enumerate().fold(Releases::default(), |releases, (second, change)| {
        releases.after(change, &format!("{second}"), "ana@host", "why").unwrap_or_else(|error| panic!("{error}"))
    })
}

fn roles(releases: &Releases) -> &Roles {
    &releases.release["1"].validator
}

/// Asserts that a change is refused, with these words.
#[track_caller]
fn refused(releases: &Releases, change: &Change, words: &str) {
    let refusal = releases.after(change, "", "", "").expect_err("it is refused");
    assert!(refusal.0.contains(words), "{refusal}");
}

#[test]
fn a_change_counts_the_revision_up_and_says_what_it_was() {
    let releases = after(&[promote("a"), promote("b")]);
    assert_eq!(releases.revision, 2);
    let change = releases.change.unwrap();
    assert_eq!((change.at.as_str(), change.by.as_str(), change.why.as_str()), ("1", "ana@host", "why"));
    assert_eq!((change.action.as_str(), change.events.as_str(), change.digest), ("promote", "1", Some(digest("b"))));
}

#[test]
fn the_first_promotion_of_an_event_version_has_nothing_to_be_compared_with() {
    let releases = after(&[promote("a")]);
    let expected = Roles { active: digest("a"), previous: None, guard: None, shadow: None, canary: None };
    assert_eq!(roles(&releases), &expected);
    refused(
        &Releases::default(),
        &Change::Promote { digest: digest("a"), events: String::new(), expect_rejects: false, force: false },
        "not empty",
    );
}

#[test]
fn a_promotion_is_guarded_against_what_was_active() {
    let releases = after(&[promote("a"), promote("b")]);
    let guard = Some(Guarded { promoted_at: "1".into(), expect_rejects: false });
    assert_eq!((roles(&releases).active, roles(&releases).previous), (digest("b"), Some(digest("a"))));
    assert_eq!(roles(&releases).guard, guard);
    refused(&releases, &promote("b"), "active for event version 1 already");
}

#[test]
fn a_promotion_ends_its_own_shadow_and_every_canary() {
    let ended = after(&[promote("a"), shadow("b", 1.0), canary("c", 1.0), promote("b")]);
    assert_eq!((&roles(&ended).shadow, &roles(&ended).canary), (&None, &None));
    let goes_on = after(&[promote("a"), shadow("c", 1.0), promote("b")]);
    assert_eq!(roles(&goes_on).shadow.as_ref().unwrap().digest, digest("c"));
}

#[test]
fn a_rollback_goes_to_previous_once_and_is_not_guarded() {
    let releases = after(&[promote("a"), promote("b"), canary("c", 1.0), rollback()]);
    let expected = Roles { active: digest("a"), previous: None, guard: None, shadow: None, canary: None };
    assert_eq!(roles(&releases), &expected);
    refused(&releases, &rollback(), "no previous component");
    refused(&after(&[promote("a")]), &rollback(), "no previous component");
}

#[test]
fn a_rollback_does_not_leave_the_active_component_beside_itself() {
    let releases = after(&[promote("a"), promote("b"), shadow("a", 5.0), rollback()]);
    assert_eq!(roles(&releases).shadow, None);
}

#[test]
fn a_shadow_and_a_canary_stand_beside_another_component_until_they_are_taken_away() {
    let base = after(&[promote("a")]);
    for change in [shadow("a", 1.0), canary("a", 1.0)] {
        refused(&base, &change, "active for event version 1 already");
    }
    let (shadow_off, canary_off) = (Change::ShadowOff { events: "1".into() }, Change::CanaryOff { events: "1".into() });
    refused(&base, &shadow_off, "has no shadow");
    refused(&base, &canary_off, "has no canary");
    let both = after(&[promote("a"), shadow("b", 100.0), canary("c", 5.0), canary("c", 20.0)]);
    assert_eq!(roles(&both).shadow, Some(Shadow { digest: digest("b"), sample: 100.0 }));
    assert_eq!(
        roles(&both).canary,
        Some(Canary { digest: digest("c"), percent: 20.0, since: "3".into(), expect_rejects: true })
    );
    let neither = after(&[promote("a"), shadow("b", 100.0), canary("c", 5.0), shadow_off, canary_off]);
    assert_eq!(neither.release, base.release);
}

#[test]
fn shares_are_percentages() {
    let base = after(&[promote("a")]);
    for wrong in [0.0, -1.0, 100.1, f64::NAN, f64::INFINITY] {
        refused(&base, &shadow("b", wrong), "--sample must be above 0");
        refused(&base, &canary("b", wrong), "--percent must be above 0");
    }
    refused(&base, &canary("b", 100.0), "below 100");
    for right in [0.01, 99.99] {
        base.after(&canary("b", right), "", "", "").unwrap();
    }
}

#[test]
fn only_a_promotion_begins_an_event_version() {
    let empty = Releases::default();
    for change in
        [rollback(), shadow("a", 1.0), canary("a", 1.0), trip("a", 0), Change::ShadowOff { events: "1".into() }]
    {
        refused(&empty, &change, "event version 1 has no release");
    }
    refused(&empty, &Change::Retire { events: "1".into() }, "event version 1 has no release");
}

#[test]
fn a_retired_event_version_is_served_by_nobody_and_can_begin_anew() {
    let releases = after(&[promote("a"), promote("b"), Change::Retire { events: "1".into() }]);
    assert!(releases.release.is_empty());
    assert_eq!(releases.revision, 3);
    let again = releases.after(&promote("a"), "", "", "").unwrap();
    assert_eq!(roles(&again).guard, None);
}

#[test]
fn a_guard_that_trips_rolls_back_and_holds_the_component() {
    let releases = after(&[promote("a"), promote("b"), trip("b", 1)]);
    let expected = Roles { active: digest("a"), previous: None, guard: None, shadow: None, canary: None };
    assert_eq!(roles(&releases), &expected);
    let held = Held { since: "2".into(), events: "1".into(), why: "why".into() };
    assert_eq!(releases.held, [(digest("b"), held)].into());
    refused(&releases, &trip("b", 1), "no longer in service");
    refused(&releases, &promote("b"), "held since 2: why");
    refused(&releases, &canary("b", 1.0), "held since 2: why");
    // A shadow writes nothing: it is how a held component is looked at.
    releases.after(&shadow("b", 1.0), "", "", "").unwrap();
    let forced = releases.after(&force("b"), "", "", "").unwrap();
    assert!(forced.held.is_empty());
    assert_eq!(roles(&forced).active, digest("b"));
}

#[test]
fn a_guard_that_trips_on_a_canary_leaves_what_is_active() {
    let releases = after(&[promote("a"), promote("b"), canary("c", 1.0), trip("c", 2)]);
    assert_eq!((roles(&releases).active, roles(&releases).previous), (digest("b"), Some(digest("a"))));
    assert_eq!(roles(&releases).canary, None);
    assert!(roles(&releases).guard.is_some(), "the promotion is guarded still");
    assert!(releases.held.contains_key(&digest("c")));
}

#[test]
fn a_guard_does_not_touch_what_it_does_not_watch() {
    // Active without a promotion that is guarded: the first one, or the target of a rollback.
    refused(&after(&[promote("a")]), &trip("a", 0), "no longer in service");
    let back = after(&[promote("a"), promote("b"), rollback()]);
    refused(&back, &trip("a", 0), "no longer in service");
    refused(&back, &trip("b", 1), "no longer in service");
}

/// A trip that took its time rolled back another promotion of the same component, which nobody had compared yet.
#[test]
fn a_trip_is_about_one_promotion_and_no_other() {
    let again = after(&[promote("a"), promote("b"), rollback(), promote("b")]);
    refused(&again, &trip("b", 1), "no longer in service");
    assert_eq!(roles(&again.after(&trip("b", 3), "", "", "").unwrap()).active, digest("a"));
    let promoted = after(&[promote("a"), canary("b", 1.0), promote("b")]);
    refused(&promoted, &trip("b", 1), "no longer in service");
}

#[test]
fn shares_that_no_change_would_take_are_found() {
    let mut releases = after(&[promote("a"), shadow("b", 1.0), canary("c", 1.0)]);
    assert_eq!(releases.problem(), None);
    let roles = &mut releases.release.get_mut("1").unwrap().validator;
    roles.shadow.as_mut().unwrap().sample = f64::NAN;
    assert!(releases.problem().unwrap().contains("event version 1"));
}

/// A canary was held, and a rollback brought it back unguarded, since it was what had been active before.
#[test]
fn nothing_goes_back_to_a_component_that_is_held() {
    let held =
        after(&[promote("bad"), promote("good"), canary("bad", 1.0), trip("bad", 2), force("c"), promote("good")]);
    assert_eq!(roles(&held).previous, Some(digest("c")));
    let held = after(&[promote("bad"), promote("good"), canary("bad", 1.0), trip("bad", 2)]);
    refused(&held, &rollback(), "is held since 3");
    refused(&held, &trip("good", 1), "is held since 3");
    assert_eq!(roles(&held).active, digest("good"));
}

#[test]
fn the_last_revision_there_can_be_takes_no_change() {
    let releases = Releases { revision: u64::MAX, ..Releases::default() };
    refused(&releases, &promote("a"), "cannot count any further");
}

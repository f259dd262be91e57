//! Stories of one aggregate: what fires when. Times are small numbers, windows are 10 long unless a test says otherwise.

use super::*;
use crate::row::{ColumnType, Value};
use crate::time::Micros;

/// An aggregate with its clocks, and what it said so far.
struct Story {
    aggregator: Aggregator,
    now: Now,
}

fn spec(windowing: Windowing) -> Spec {
    let sum = Measure { function: Function::Sum, input: Some(ColumnType::Int64) };
    let measures = vec![Measure { function: Function::Count, input: None }, sum];
    Spec {
        windowing,
        trigger: Trigger::default(),
        accumulation: Accumulation::Accumulating,
        allowed_lateness: 20,
        measures,
    }
}

fn fixed() -> Spec {
    spec(Windowing::Fixed { size: 10, offset: 0 })
}

fn session() -> Spec {
    spec(Windowing::Session { gap: 10 })
}

impl Story {
    fn of(spec: Spec) -> Self {
        Self { aggregator: Aggregator::new(spec), now: Now { watermark: Micros::MIN, processing_time: 0 } }
    }

    /// Events with these times and values, in one commit. What fires.
    fn events(&mut self, events: &[(Micros, i64)]) -> Vec<String> {
        let mut said = Vec::new();
        for (event_time, value) in events {
            let inputs = [Value::Null, Value::Int64(*value)];
            let element = Element { key: b"k", event_time: *event_time, inputs: &inputs };
            let missed = self.aggregator.add(element, self.now);
            said.extend(missed.iter().map(|window| format!("late for [{}, {})", window.start, window.end)));
        }
        said.extend(self.fire());
        said
    }

    fn watermark(&mut self, watermark: Micros) -> Vec<String> {
        self.now.watermark = watermark;
        self.fire()
    }

    fn processing_time(&mut self, processing_time: Micros) -> Vec<String> {
        self.now.processing_time = processing_time;
        self.fire()
    }

    fn fire(&mut self) -> Vec<String> {
        let mut panes = Vec::new();
        // One at a time, as if each were a commit of its own.
        while self.aggregator.fire(self.now, panes.len() + 1, &mut panes) {}
        assert!(!self.aggregator.is_due(self.now));
        let say = |pane: &Pane| {
            let (Span { start, end }, index, timing) = (pane.window, pane.index, pane.timing);
            let values: Vec<String> = pane.values.iter().map(|value| value.to_json().to_string()).collect();
            format!("[{start}, {end}) {index} {timing} {}", values.join(" "))
        };
        panes.iter().map(say).collect()
    }
}

#[test]
fn a_window_fires_when_the_watermark_comes_to_its_end() {
    let mut story = Story::of(fixed());
    assert!(story.events(&[(3, 1), (9, 2), (10, 4)]).is_empty());
    assert!(story.watermark(9).is_empty());
    assert_eq!(story.watermark(10), ["[0, 10) 0 ON_TIME 2 3"]);
    assert_eq!(story.watermark(25), ["[10, 20) 0 ON_TIME 1 4"]);
    assert_eq!(story.aggregator.open(), 2);
    assert!(story.watermark(30).is_empty());
    assert_eq!(story.aggregator.open(), 1, "what is expired is dropped at once");
    assert!(story.watermark(Micros::MAX).is_empty());
    assert_eq!(story.aggregator.open(), 0);
}

#[test]
fn an_event_within_the_allowed_lateness_fires_again_and_a_later_one_is_late() {
    let mut story = Story::of(fixed());
    story.events(&[(3, 1)]);
    assert_eq!(story.watermark(10), ["[0, 10) 0 ON_TIME 1 1"]);
    // Once for all that one commit has.
    assert_eq!(story.events(&[(4, 2), (5, 3)]), ["[0, 10) 1 LATE 3 6"]);
    story.watermark(29);
    assert_eq!(story.events(&[(0, 4)]), ["[0, 10) 2 LATE 4 10"]);
    story.watermark(30);
    assert_eq!(story.events(&[(9, 5)]), ["late for [0, 10)"]);
}

#[test]
fn the_first_event_of_a_window_may_come_behind_its_end() {
    let mut story = Story::of(fixed());
    story.watermark(15);
    assert_eq!(story.events(&[(5, 7)]), ["[0, 10) 0 LATE 1 7"]);
    assert!(story.watermark(40).is_empty());
}

#[test]
fn discarding_panes_have_what_is_new() {
    let mut story = Story::of(Spec { accumulation: Accumulation::Discarding, ..fixed() });
    story.events(&[(3, 1)]);
    assert_eq!(story.watermark(10), ["[0, 10) 0 ON_TIME 1 1"]);
    assert_eq!(story.events(&[(4, 2)]), ["[0, 10) 1 LATE 1 2"]);
}

#[test]
fn early_panes_come_so_long_after_the_first_event_since_the_last() {
    let mut story = Story::of(Spec { trigger: Trigger { early: Some(5), late: LateTrigger::Each }, ..fixed() });
    story.processing_time(100);
    story.events(&[(3, 1)]);
    story.processing_time(104);
    assert!(story.events(&[(4, 2)]).is_empty());
    assert_eq!(story.processing_time(105), ["[0, 10) 0 EARLY 2 3"]);
    assert!(story.processing_time(200).is_empty(), "nothing new");
    story.events(&[(5, 3)]);
    assert_eq!(story.processing_time(205), ["[0, 10) 1 EARLY 3 6"]);
    assert_eq!(story.watermark(10), ["[0, 10) 2 ON_TIME 3 6"], "also if nothing is new: now it is complete");
}

#[test]
fn the_first_pane_of_a_window_does_not_wait_for_more_late_events() {
    let mut story = Story::of(Spec { trigger: Trigger { early: None, late: LateTrigger::Every(50) }, ..fixed() });
    story.watermark(15);
    assert_eq!(story.events(&[(5, 7)]), ["[0, 10) 0 LATE 1 7"]);
    assert!(story.events(&[(5, 1)]).is_empty());
    assert_eq!(story.processing_time(50), ["[0, 10) 1 LATE 2 8"]);
}

#[test]
fn what_waits_when_a_window_expires_is_said_before_it_is_dropped() {
    let mut story = Story::of(Spec { trigger: Trigger { early: None, late: LateTrigger::Every(50) }, ..fixed() });
    story.events(&[(3, 1)]);
    story.watermark(10);
    assert!(story.events(&[(4, 2)]).is_empty());
    assert_eq!(story.processing_time(50), ["[0, 10) 1 LATE 2 3"]);
    assert!(story.events(&[(5, 3)]).is_empty());
    assert_eq!(story.watermark(30), ["[0, 10) 2 LATE 3 6"]);
    assert!(story.processing_time(1_000).is_empty());
}

#[test]
fn the_end_of_a_bounded_source_fires_everything_once() {
    let mut story = Story::of(spec(Windowing::Sliding { size: 20, every: 10, offset: 0 }));
    story.events(&[(5, 1), (15, 2)]);
    let said = story.watermark(Micros::MAX);
    assert_eq!(said, ["[-10, 10) 0 ON_TIME 1 1", "[0, 20) 0 ON_TIME 2 3", "[10, 30) 0 ON_TIME 1 2"]);
    assert_eq!(story.aggregator.open(), 0);
}

#[test]
fn an_event_may_be_late_for_some_of_its_windows() {
    let mut story =
        Story::of(Spec { allowed_lateness: 0, ..spec(Windowing::Sliding { size: 20, every: 10, offset: 0 }) });
    story.watermark(10);
    assert_eq!(story.events(&[(5, 1)]), ["late for [-10, 10)"]);
    assert_eq!(story.watermark(20), ["[0, 20) 0 ON_TIME 1 1"]);
}

#[test]
fn sessions_merge_and_take_back_what_was_said_of_them() {
    let mut story = Story::of(session());
    story.events(&[(0, 1), (5, 2), (30, 4)]);
    assert_eq!(story.watermark(16), ["[0, 15) 0 ON_TIME 2 3"]);
    assert!(story.events(&[(14, 8)]).is_empty(), "the session is longer now, and not over");
    assert_eq!(story.watermark(24), ["[0, 15) 1 RETRACTED null null", "[0, 24) 0 ON_TIME 3 11"]);
    assert_eq!(story.watermark(40), ["[30, 40) 0 ON_TIME 1 4"]);
    assert_eq!(
        story.events(&[(23, 16)]),
        ["[0, 24) 1 RETRACTED null null", "[30, 40) 1 RETRACTED null null", "[0, 40) 0 LATE 5 31"]
    );
    assert_eq!(story.aggregator.open(), 1);
}

#[test]
fn a_session_that_does_not_grow_stays_the_same_window() {
    let mut story = Story::of(session());
    story.events(&[(0, 1), (10, 2), (5, 0)]);
    assert_eq!(story.watermark(20), ["[0, 20) 0 ON_TIME 3 3"]);
    assert_eq!(story.events(&[(7, 4)]), ["[0, 20) 1 LATE 4 7"]);
}

#[test]
fn a_merged_session_of_discarding_panes_says_all_again() {
    let mut story = Story::of(Spec { accumulation: Accumulation::Discarding, ..session() });
    story.events(&[(0, 1)]);
    assert_eq!(story.watermark(10), ["[0, 10) 0 ON_TIME 1 1"]);
    assert_eq!(story.events(&[(0, 2)]), ["[0, 10) 1 LATE 1 2"]);
    assert!(story.events(&[(9, 4)]).is_empty());
    assert_eq!(story.watermark(19), ["[0, 10) 2 RETRACTED null null", "[0, 19) 0 ON_TIME 3 7"]);
    assert_eq!(story.events(&[(9, 8)]), ["[0, 19) 1 LATE 1 8"]);
}

/// The timer of the late pane became one of an early pane, which nobody had asked for.
#[test]
fn what_waited_to_be_told_late_is_not_told_early_when_its_session_goes_on() {
    let late = Trigger { early: None, late: LateTrigger::Every(5) };
    let mut story = Story::of(Spec { trigger: late, ..session() });
    story.events(&[(0, 1)]);
    assert_eq!(story.watermark(10), ["[0, 10) 0 ON_TIME 1 1"]);
    assert!(story.events(&[(0, 2)]).is_empty());
    assert!(story.events(&[(9, 4)]).is_empty(), "the session is longer now, and not over");
    assert!(story.processing_time(5).is_empty());
    assert_eq!(story.watermark(19), ["[0, 10) 1 RETRACTED null null", "[0, 19) 0 ON_TIME 3 7"]);
}

/// By itself it would be, and the session that it belongs to is still open.
#[test]
fn an_event_is_not_late_for_a_session_that_still_takes_events() {
    let mut story = Story::of(session());
    story.events(&[(100, 1), (109, 1)]);
    story.watermark(138);
    assert_eq!(story.events(&[(95, 1)]), ["[100, 119) 1 RETRACTED null null", "[95, 119) 0 LATE 3 3"]);
    assert_eq!(story.events(&[(80, 1)]), ["late for [80, 90)"]);
    story.watermark(139);
    assert_eq!(story.events(&[(96, 1)]), ["late for [96, 106)"]);
}

#[test]
fn keys_have_windows_of_their_own() {
    let mut aggregator = Aggregator::new(fixed());
    let now = Now { watermark: 0, processing_time: 0 };
    for key in [b"b", b"a", b"b"] {
        aggregator.add(Element { key, event_time: 1, inputs: &[Value::Null, Value::Int64(1)] }, now);
    }
    let mut panes = Vec::new();
    assert!(!aggregator.fire(Now { watermark: 10, ..now }, usize::MAX, &mut panes));
    let keys: Vec<(&[u8], u64)> = panes.iter().map(|pane| (pane.key.as_ref(), pane.events)).collect();
    assert_eq!(keys, [(b"a".as_slice(), 1), (b"b", 2)]);
}

/// Records in their order give the state back, and those of which nothing stands are not needed for it.
#[test]
fn what_is_recorded_comes_back_and_old_records_are_not_needed() {
    let name: std::sync::Arc<str> = "a".into();
    let windows = || Windows::new([(std::sync::Arc::clone(&name), fixed())]);
    let (mut kept, mut log, mut said) = (windows(), Vec::new(), Vec::new());
    for step in 0..200_i64 {
        for key in 0..7_u8 {
            let inputs = [Value::Null, Value::Int64(step)];
            kept.add("a", Element { key: &[key, 0], event_time: step + i64::from(key) * 5, inputs: &inputs }, step);
        }
        kept.fire(step - 3, step, usize::MAX, &mut said);
        let record = kept.record();
        log.push((record.number, record.bytes));
        log.retain(|(number, _)| *number >= record.first_needed);
        let mut restored = windows();
        for (number, bytes) in &log {
            restored.restore(*number, bytes).unwrap();
        }
        restored.restore_watermark(record.watermark);
        assert_eq!((restored.open(), restored.watermark()), (kept.open(), kept.watermark()));
        if step % 20 == 0 {
            kept = restored;
        }
    }
    // Seven windows in a record, and no more in all than three times those that are open and some.
    assert!(log.len() < 20, "{} records for {} windows", log.len(), kept.open());
    kept.fire(Micros::MAX, 200, usize::MAX, &mut said);
    let counted: u64 = said.iter().filter(|(_, pane)| pane.timing == Timing::OnTime).map(|(_, pane)| pane.events).sum();
    assert_eq!((counted, kept.open()), (1_400, 0));
}

/// Where each process knew only what it had said itself, and ended soon, no record was ever deleted.
#[test]
fn what_earlier_processes_have_said_is_said_again_and_deleted() {
    let windows = || Windows::new([("a".into(), fixed())]);
    let (mut kept, mut log) = (windows(), Vec::new());
    for step in 0..2_000_u64 {
        let inputs = [Value::Null, Value::Int64(1)];
        for key in if step == 0 { 0..200 } else { 0..1_u8 } {
            kept.add("a", Element { key: &[key, 0], event_time: 5, inputs: &inputs }, 0);
        }
        let record = kept.record();
        log.push((record.number, record.bytes));
        log.retain(|(number, _)| *number >= record.first_needed);
        if step % 3 == 0 {
            kept = windows();
            for (number, bytes) in &log {
                kept.restore(*number, bytes).unwrap();
            }
        }
        assert_eq!(kept.open(), 200);
    }
    // One window in a record, until there are three times those that are open and some.
    assert!(log.len() <= 640, "{} records", log.len());
}

/// The next run over more of it goes on with what is not over, and does not count into what is closed.
#[test]
fn at_the_end_of_a_source_windows_that_are_not_over_fire_and_stay_open() {
    let windows = || Windows::new([("a".into(), fixed())]);
    let event = |windows: &mut Windows, event_time| {
        windows.add("a", Element { key: b"", event_time, inputs: &[Value::Null, Value::Int64(1)] }, 500)
    };
    let mut first = windows();
    for event_time in [3, 35, 1_000_000] {
        assert!(event(&mut first, event_time).is_empty());
    }
    let (mut said, mut log) = (Vec::new(), Vec::new());
    first.keep_from(500);
    while first.fire(Micros::MAX, 500, said.len() + 1, &mut said) {}
    assert_eq!((said.len(), first.open()), (3, 1));
    let record = first.record();
    assert_eq!(record.watermark, Micros::MIN);
    assert_eq!(record.closed, [("a".into(), 40)]);
    log.push((record.number, record.bytes));
    let mut second = windows();
    for (number, bytes) in &log {
        second.restore(*number, bytes).unwrap();
    }
    second.restore_closed("a", 40);
    second.restore_watermark(record.watermark);
    assert_eq!(event(&mut second, 39).len(), 1, "closed, and nobody knows any more what was in it");
    assert!(event(&mut second, 40).is_empty() && event(&mut second, 1_000_001).is_empty());
    said.clear();
    assert!(!second.fire(Micros::MIN, 600, usize::MAX, &mut said) && said.is_empty());
    second.keep_from(600);
    second.fire(Micros::MAX, 600, usize::MAX, &mut said);
    let panes: Vec<_> = said.iter().map(|(_, pane)| (pane.timing, pane.index, pane.events)).collect();
    assert_eq!(panes, [(Timing::OnTime, 0, 1), (Timing::OnTime, 1, 2)]);
}

#[test]
fn what_records_leave_open_is_known_without_the_aggregates() {
    let mut windows = Windows::new([("a".into(), fixed())]);
    let mut left = windows::LeftOpen::default();
    for event_time in [1, 2, 11] {
        windows.add("a", Element { key: b"", event_time, inputs: &[Value::Null, Value::Null] }, 0);
    }
    let mut other = Windows::new([("b".into(), fixed())]);
    for (watermark, open) in [(0, 2), (30, 1), (40, 0)] {
        windows.fire(watermark, 0, usize::MAX, &mut Vec::new());
        let record = windows.record();
        left.read(&record.bytes).unwrap();
        assert_eq!((left.of("a"), left.of("b")), (open, 0));
        other.restore(record.number, &record.bytes).unwrap();
        assert_eq!(other.open(), 0);
    }
    assert!(left.read(&[1, 2, 3]).is_err());
}

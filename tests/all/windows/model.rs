//! What an aggregate has to say, slowly and from the definitions: nothing is kept but what has happened so far, namely which events came in
//! which commit, how time went, and what was said. From that everything is found anew for each commit. There are no timers.

use super::play::Outcome;
use super::script::{Commit, Event, Script};
use preflight::row::Value;
use preflight::time::{MAX_MICROS, MIN_MICROS, Micros};
use preflight::window::{Accumulation, LateTrigger, Pane, Span, Spec, Timing, Windowing};
use std::cmp::Reverse;

/// An event that a window has taken.
#[derive(Clone, Copy)]
struct Taken {
    event: Event,
    /// The window that it has by itself.
    own: Span,
    /// The commit that it came with.
    commit: usize,
    /// Its place there.
    number: usize,
}

/// A window with its events, in the order of coming.
#[derive(Clone)]
struct Open {
    key: char,
    span: Span,
    events: Vec<Taken>,
}

/// A pane that was said.
struct Said {
    commit: usize,
    window: Open,
    pane: Pane,
}

/// What a script leads to.
pub fn outcomes(spec: &Spec, script: &Script) -> Vec<Outcome> {
    let mut said = Vec::new();
    let commits = 0..script.0.len();
    commits.map(|commit| Model { spec, script }.outcome(commit, &mut said)).collect()
}

struct Model<'a> {
    spec: &'a Spec,
    script: &'a Script,
}

impl Model<'_> {
    fn outcome(&self, commit: usize, said: &mut Vec<Said>) -> Outcome {
        let (windows, missed) = self.windows(commit);
        let open = windows.iter().filter(|window| self.script.watermark(commit) < self.expiry(window.span)).count();
        let mut firing: Vec<_> = windows
            .into_iter()
            .filter_map(|window| self.fires(&window, commit, said).map(|(order, timing)| (order, window, timing)))
            .collect();
        firing.sort_by_key(|(order, window, _)| (*order, window.key, window.span));
        let mut panes = Vec::new();
        for (_, window, timing) in firing {
            for pane in self.panes(&window, timing, said) {
                panes.push(pane.clone());
                said.push(Said { commit, window: window.clone(), pane });
            }
        }
        Outcome { missed, panes, open: open as u64 }
    }

    fn expiry(&self, span: Span) -> Micros {
        span.end.saturating_add(self.spec.allowed_lateness)
    }

    /// The windows that are open when the events of a commit are in them, and those that some of these came too late for.
    fn windows(&self, commit: usize) -> (Vec<Open>, Vec<(char, Span)>) {
        let (mut taken, mut missed): (Vec<Taken>, Vec<_>) = (Vec::new(), Vec::new());
        for (commit, Commit { events, .. }) in self.script.0[..=commit].iter().enumerate() {
            let watermark = self.script.watermark_before(commit);
            missed.clear();
            let all = taken.clone();
            taken.retain(|one| watermark < self.expiry(self.window(*one, &all)));
            for (number, event) in events.iter().enumerate() {
                for own in spans(self.spec.windowing, event.happened) {
                    let one = Taken { event: *event, own, commit, number };
                    if watermark < self.expiry(self.window(one, &taken)) {
                        taken.push(one);
                    } else {
                        missed.push((event.key, own));
                    }
                }
            }
        }
        let mut windows: Vec<Open> = Vec::new();
        for one in &taken {
            let (key, span) = (one.event.key, self.window(*one, &taken));
            match windows.iter_mut().find(|window| (window.key, window.span) == (key, span)) {
                Some(window) => window.events.push(*one),
                None => windows.push(Open { key, span, events: vec![*one] }),
            }
        }
        (windows, missed)
    }

    /// The window that an event is in, beside these.
    fn window(&self, one: Taken, others: &[Taken]) -> Span {
        let Windowing::Session { gap } = self.spec.windowing else { return one.own };
        let (mut first, mut last) = (one.own.start, one.own.start);
        // Whatever is less than a gap from it, or from what is.
        loop {
            let of_key = others.iter().filter(|other| other.event.key == one.event.key).map(|other| other.own.start);
            let near: Vec<Micros> = of_key.filter(|time| *time > first - gap && *time < last + gap).collect();
            let (earlier, later) = (near.iter().copied().min(), near.iter().copied().max());
            let grown = (first.min(earlier.unwrap_or(first)), last.max(later.unwrap_or(last)));
            if grown == (first, last) {
                return Span { start: first, end: last.saturating_add(gap).min(MAX_MICROS) };
            }
            (first, last) = grown;
        }
    }

    /// Whether and how a window fires in a commit, and where among others: what is late goes first, then what is due by the watermark, in the
    /// order of its time, then what is due by processing time.
    fn fires(&self, window: &Open, commit: usize, said: &[Said]) -> Option<((u8, Micros), Timing)> {
        let (script, late) = (self.script, self.spec.trigger.late);
        let (before, watermark) = (script.watermark_before(commit), script.watermark(commit));
        let (end, expiry) = (window.span.end, self.expiry(window.span));
        let new: Vec<Taken> = window.events.iter().filter(|one| !is_said(one, said)).copied().collect();
        // Processing time so long after the first of these, if that is past.
        let waited = |events: &mut dyn Iterator<Item = &Taken>, wait: Micros| {
            let first = events.map(|one| one.commit).min()?;
            let due = script.processing_time(first).saturating_add(wait);
            (due <= script.processing_time(commit)).then_some(due)
        };
        if before < end && end <= watermark {
            return Some(((1, end), Timing::OnTime));
        }
        if watermark < end {
            // Those that came late for a session that is part of this one wait for no early pane.
            let due = waited(&mut new.iter().filter(|one| self.was_early(one)), self.spec.trigger.early?);
            return Some(((2, due?), Timing::Early));
        }
        if new.is_empty() {
            return None;
        }
        let heard_of = window.events.iter().any(|one| is_said(one, said));
        match late {
            LateTrigger::Every(wait) if heard_of => {
                let at_expiry = (expiry <= watermark).then_some((1, expiry));
                let order = at_expiry.or_else(|| Some((2, waited(&mut new.iter(), wait)?)));
                Some((order?, Timing::Late))
            }
            LateTrigger::Each | LateTrigger::Every(_) => Some(((0, 0), Timing::Late)),
        }
    }

    /// Whether the window of an event was ahead of the watermark when it came.
    fn was_early(&self, one: &Taken) -> bool {
        let (windows, _) = self.windows(one.commit);
        let mut windows = windows.iter().filter(|window| window.events.iter().any(|other| other.is(one)));
        windows.any(|window| self.script.watermark_before(one.commit) < window.span.end)
    }

    /// The pane of a window, behind those that take back what was said of sessions that are part of it now.
    fn panes(&self, window: &Open, timing: Timing, said: &[Said]) -> Vec<Pane> {
        let of = |span: Span| said.iter().filter(move |said| said.window.key == window.key && said.pane.window == span);
        let next = |span: Span| u32::try_from(of(span).count()).expect("they are few");
        let last = of(window.span).map(|said| said.commit).max();
        let mut panes = Vec::new();
        if last.is_none() {
            let has = |one: &Taken| window.events.iter().any(|other| other.is(one));
            let parts = said.iter().filter(|said| said.window.events.iter().any(has)).map(|said| said.pane.window);
            let mut parts: Vec<Span> = parts.collect();
            parts.sort_unstable();
            parts.dedup();
            parts.retain(|part| of(*part).all(|said| said.pane.timing != Timing::Retracted));
            panes
                .extend(parts.into_iter().map(|part| self.pane(window.key, part, next(part), Timing::Retracted, None)));
        }
        let since = |one: &&Taken| match (self.spec.accumulation, last) {
            (Accumulation::Accumulating, _) | (_, None) => true,
            (Accumulation::Discarding, Some(last)) => one.commit > last,
        };
        let events: Vec<Event> = window.events.iter().filter(since).map(|one| one.event).collect();
        panes.push(self.pane(window.key, window.span, next(window.span), timing, Some(&events)));
        panes
    }

    fn pane(&self, key: char, window: Span, index: u32, timing: Timing, events: Option<&[Event]>) -> Pane {
        let (count, values) = events.map_or_else(
            || (0, vec![Value::Null; self.spec.measures.len()]),
            |events| (events.len() as u64, measured(events)),
        );
        let key = key.to_string().as_bytes().into();
        Pane { key, window, index, timing, events: count, values, overflowed: Vec::new() }
    }
}

impl Taken {
    fn is(&self, other: &Self) -> bool {
        (self.commit, self.number, self.own) == (other.commit, other.number, other.own)
    }
}

/// Whether a pane has had an event.
fn is_said(one: &Taken, said: &[Said]) -> bool {
    said.iter().any(|said| said.window.events.iter().any(|other| other.is(one)))
}

/// The windows that an event time is in, each by itself, in order. The last microsecond of all is taken as the one before: a window has
/// its end not in it.
fn spans(windowing: Windowing, event_time: Micros) -> Vec<Span> {
    let time = event_time.min(MAX_MICROS - 1);
    let cut = |start: Micros, size: Micros| Span { start: start.max(MIN_MICROS), end: (start + size).min(MAX_MICROS) };
    let (size, every, offset) = match windowing {
        Windowing::Session { gap } => return vec![cut(time, gap)],
        Windowing::Fixed { size, offset } => (size, size, offset),
        Windowing::Sliding { size, every, offset } => (size, every, offset),
    };
    // Every window begins a multiple of `every` behind the offset. Some more than can have the time, then those that do.
    let multiples = (time - size - offset) / every - 2..=(time - offset) / every + 2;
    let starts = multiples.map(|multiple| offset + multiple * every);
    starts.filter(|start| *start <= time && time < start + size).map(|start| cut(start, size)).collect()
}

/// What these events measure, in the order of [`super::script::measures`].
fn measured(events: &[Event]) -> Vec<Value> {
    let mut values: Vec<i64> = events.iter().filter_map(|event| event.value).collect();
    values.sort_unstable_by_key(|value| Reverse(*value));
    let (count, sum): (_, i64) = (values.len(), values.iter().sum());
    let or_null = |value: Option<&i64>| value.map_or(Value::Null, |value| Value::Int64(*value));
    let whole = |count: usize| Value::Int64(i64::try_from(count).expect("they are few"));
    let (sum, mean) = if count == 0 {
        (Value::Null, Value::Null)
    } else {
        (Value::Int64(sum), Value::Float64(sum as f64 / count as f64))
    };
    vec![whole(events.len()), whole(count), sum, or_null(values.last()), or_null(values.first()), mean]
}

//! Windows and triggers of aggregates: exactly one kind of window, and durations that can be meant.

use super::check::Check;
use crate::config::raw::RawWindow;
use crate::config::units::{self, shown};
use crate::time::Micros;
use crate::window::{LateTrigger, Trigger, Windowing};
use std::time::Duration;

/// More than a year of state is a mistake in the pipeline file.
pub(super) const MAX_SPAN: Duration = Duration::from_hours(366 * 24);
/// An event is counted in each of its windows.
const MAX_WINDOWS: Micros = 1_000;

impl Check {
    /// Which windows an event is in. The key is that of the whole.
    pub(super) fn windowing(&mut self, key: &str, raw: &RawWindow) -> Option<Windowing> {
        let of = |name: &str| format!("{key}.{name}");
        let mut only = |name: &str, given: bool, windows: &str| {
            if given {
                self.refuse::<()>(&of(name), format!("only {windows} have it"));
            }
        };
        match (&raw.fixed, &raw.sliding, &raw.session) {
            (Some(size), None, None) => {
                only("every", raw.every.is_some(), "sliding windows");
                let size = self.span(&of("fixed"), size);
                let offset = self.offset(&of("offset"), raw.offset.as_deref(), size, "the window");
                Some(Windowing::Fixed { size: size?, offset: offset? })
            }
            (None, Some(size), None) => {
                let size = self.span(&of("sliding"), size);
                let Some(every) = &raw.every else {
                    return self.refuse(key, "say how long after one window the next begins: every = \"…\"");
                };
                let every = self.span(&of("every"), every);
                let offset = self.offset(&of("offset"), raw.offset.as_deref(), every, "`every`");
                let (size, every) = (size?, every?);
                let windows = (size + every - 1) / every;
                if windows > MAX_WINDOWS {
                    let what = format!("an event would be in {windows} windows: at most {MAX_WINDOWS} are taken");
                    return self.refuse(&of("every"), what);
                }
                Some(Windowing::Sliding { size, every, offset: offset? })
            }
            (None, None, Some(gap)) => {
                only("every", raw.every.is_some(), "sliding windows");
                only("offset", raw.offset.is_some(), "fixed and sliding windows");
                Some(Windowing::Session { gap: self.span(&of("session"), gap)? })
            }
            _ => self.refuse(key, "give exactly one of fixed, sliding and session"),
        }
    }

    /// When panes fire. The names are keys.
    pub(super) fn trigger(
        &mut self,
        (early_key, early): (&str, Option<&str>),
        (late_key, late): (&str, Option<&str>),
    ) -> Option<Trigger> {
        let early = early.map(|text| self.span(early_key, text));
        let late = match late {
            None | Some("each") => Some(LateTrigger::Each),
            Some(text) if text.starts_with(|c: char| c.is_ascii_digit()) => {
                self.span(late_key, text).map(LateTrigger::Every)
            }
            Some(other) => self.refuse(late_key, format!("{other:?} is not known: use \"each\" or a duration")),
        };
        let early = match early {
            Some(early) => Some(early?),
            None => None,
        };
        Some(Trigger { early, late: late? })
    }

    /// How long behind its end a window takes events.
    pub(super) fn lateness(&mut self, key: &str, text: Option<&str>) -> Option<Micros> {
        match text {
            None => Some(0),
            Some(text) => self.micros(key, text, Duration::ZERO),
        }
    }

    /// Less than what it shifts: of two offsets that are the same but for whole windows one is enough.
    fn offset(&mut self, key: &str, text: Option<&str>, within: Option<Micros>, what: &str) -> Option<Micros> {
        let Some(text) = text else { return Some(0) };
        let offset = self.micros(key, text, Duration::ZERO)?;
        match within {
            Some(within) if offset >= within => self.refuse(key, format!("must be less than {what}")),
            _ => Some(offset),
        }
    }

    /// A duration above zero.
    fn span(&mut self, key: &str, text: &str) -> Option<Micros> {
        self.micros(key, text, Duration::from_millis(1))
    }

    fn micros(&mut self, key: &str, text: &str, min: Duration) -> Option<Micros> {
        match units::duration(text) {
            Err(what) => self.refuse(key, what),
            Ok(duration) if duration < min => self.refuse(key, format!("must be at least {}", shown(min))),
            Ok(duration) if duration > MAX_SPAN => self.refuse(key, format!("must be at most {}", shown(MAX_SPAN))),
            Ok(duration) => Some(Micros::try_from(duration.as_micros()).expect("a year of microseconds fits")),
        }
    }
}

//! What is written of windows that were measured anew, and of those that the table shows. Pure.
//!
//! Of a range only windows are certain that lie wholly in it. Sessions are certain as well only if no event outside of the range can
//! belong to them: those that begin within a gap of its beginning may be the end of a longer one. What is uncertain is left as it
//! is, and with it each session of its key that it overlaps: to write one of them and leave the other would count events twice.

use super::read::Places;
use crate::row::Value;
use crate::time::Micros;
use crate::window::open::Place;
use crate::window::{Pane, Span, Spec, Timing, Windowing};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a rebuild writes.
#[derive(Debug, Default)]
pub struct Decided {
    /// The panes, in the order of keys and windows.
    pub panes: Vec<Pane>,
    /// How many of them have a window's measures.
    pub written: u64,
    /// How many of them take a window back.
    pub retracted: u64,
    /// Windows that were left as they are.
    pub left_alone: u64,
}

/// What is known of a window.
#[derive(Debug, Default)]
struct Known {
    /// Its pane, measured anew.
    pane: Option<Pane>,
    /// Whether the table shows it.
    shown: bool,
}

/// Decides. `made` are the windows of the rows in the range, `shown` those of the table that overlap it.
pub fn decide(spec: &Spec, range: Span, made: Vec<Pane>, shown: Places) -> Decided {
    let mut all: BTreeMap<Place, Known> = BTreeMap::new();
    for pane in made {
        let place = (Arc::clone(&pane.key), pane.window);
        all.entry(place).or_default().pane = Some(pane);
    }
    for place in shown {
        all.entry(place).or_default().shown = true;
    }
    let mut decided = Decided::default();
    match spec.windowing {
        Windowing::Session { gap } => {
            for session in groups(all) {
                let certain = session.iter().all(|((_, span), known)| {
                    range.contains(*span) && (known.pane.is_none() || span.start >= range.start.saturating_add(gap))
                });
                for (place, known) in session {
                    decided.add(place, known, certain, spec, range);
                }
            }
        }
        Windowing::Fixed { .. } | Windowing::Sliding { .. } => {
            for (place, known) in all {
                let certain = range.contains(place.1);
                decided.add(place, known, certain, spec, range);
            }
        }
    }
    decided
}

/// Windows in groups of those that overlap, of one key each.
fn groups(all: BTreeMap<Place, Known>) -> Vec<Vec<(Place, Known)>> {
    let mut groups: Vec<Vec<(Place, Known)>> = Vec::new();
    let mut end = Micros::MIN;
    for (place, known) in all {
        match groups.last_mut() {
            Some(group) if group[0].0.0 == place.0 && place.1.start < end => {
                end = end.max(place.1.end);
                group.push((place, known));
            }
            _ => {
                end = place.1.end;
                groups.push(vec![(place, known)]);
            }
        }
    }
    groups
}

impl Decided {
    fn add(&mut self, (key, window): Place, known: Known, certain: bool, spec: &Spec, range: Span) {
        match known.pane {
            Some(pane) if certain => {
                self.panes.push(pane);
                self.written += 1;
            }
            None if certain => {
                let values = vec![Value::Null; spec.measures.len()];
                let (timing, overflowed) = (Timing::Retracted, Vec::new());
                self.panes.push(Pane { key, window, index: 0, timing, events: 0, values, overflowed });
                self.retracted += 1;
            }
            // What the table has beside the range is nobody's business.
            Some(_) => self.left_alone += 1,
            None => self.left_alone += u64::from(known.shown && range.contains(window)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::{Accumulation, Trigger};

    const FIXED: Windowing = Windowing::Fixed { size: 10, offset: 0 };
    const SESSION: Windowing = Windowing::Session { gap: 10 };

    fn span((start, end): (i64, i64)) -> Span {
        Span { start, end }
    }

    fn pane(window: (i64, i64)) -> Pane {
        Pane {
            key: Arc::from(*b"k"),
            window: span(window),
            index: 0,
            timing: Timing::OnTime,
            events: 1,
            values: vec![],
            overflowed: vec![],
        }
    }

    /// Decides for the range from 100 to 200. Returns what is written and what is taken back, and how many are left alone.
    fn decided(windowing: Windowing, made: &[(i64, i64)], shown: &[(i64, i64)]) -> (Vec<String>, u64) {
        let spec = Spec {
            windowing,
            trigger: Trigger::default(),
            accumulation: Accumulation::Accumulating,
            allowed_lateness: 0,
            measures: vec![],
        };
        let made = made.iter().map(|window| pane(*window)).collect();
        let shown = shown.iter().map(|window| (Arc::from(*b"k"), span(*window))).collect();
        let decided = decide(&spec, span((100, 200)), made, shown);
        let said: Vec<String> = decided
            .panes
            .iter()
            .map(|pane| format!("{}-{} {}", pane.window.start, pane.window.end, pane.timing))
            .collect();
        assert_eq!(decided.written + decided.retracted, said.len() as u64);
        (said, decided.left_alone)
    }

    #[test]
    fn windows_wholly_in_the_range_are_written_and_those_that_silver_lacks_are_taken_back() {
        let (said, left_alone) = decided(FIXED, &[(100, 110), (120, 130)], &[(110, 120), (120, 130), (190, 200)]);
        assert_eq!(said, ["100-110 ON_TIME", "110-120 RETRACTED", "120-130 ON_TIME", "190-200 RETRACTED"]);
        assert_eq!(left_alone, 0);
    }

    #[test]
    fn windows_that_stick_out_of_the_range_are_left_alone() {
        let sliding = Windowing::Sliding { size: 10, every: 5, offset: 0 };
        let made = [(95, 105), (100, 110), (195, 205)];
        let (said, left_alone) = decided(sliding, &made, &[(90, 101), (198, 208)]);
        assert_eq!((said, left_alone), (vec!["100-110 ON_TIME".to_owned()], 2));
    }

    #[test]
    fn sessions_within_a_gap_of_the_edges_are_left_alone() {
        let (said, left_alone) = decided(SESSION, &[(109, 119), (120, 130), (180, 200), (201, 211)], &[]);
        assert_eq!((said, left_alone), (vec!["120-130 ON_TIME".to_owned(), "180-200 ON_TIME".to_owned()], 2));
        assert_eq!(decided(SESSION, &[(110, 120)], &[]), (vec!["110-120 ON_TIME".to_owned()], 0));
    }

    #[test]
    fn sessions_that_are_one_now_take_the_place_of_their_parts() {
        let (said, left_alone) = decided(SESSION, &[(120, 150)], &[(120, 130), (140, 150)]);
        assert_eq!(said, ["120-130 RETRACTED", "120-150 ON_TIME", "140-150 RETRACTED"]);
        assert_eq!(left_alone, 0);
        let (said, _) = decided(SESSION, &[(120, 130), (140, 150)], &[(120, 150)]);
        assert_eq!(said, ["120-130 ON_TIME", "120-150 RETRACTED", "140-150 ON_TIME"]);
    }

    /// Else its events would be counted in the old one and in the new one, or in neither.
    #[test]
    fn what_overlaps_a_session_that_is_left_alone_is_left_alone_too() {
        // The new session goes on behind the range: the old one stays until a wider range is rebuilt.
        assert_eq!(decided(SESSION, &[(150, 210)], &[(150, 170), (180, 190)]), (vec![], 3));
        // An old one reaches into the range.
        assert_eq!(decided(SESSION, &[(115, 125), (130, 140)], &[(80, 120)]), (vec!["130-140 ON_TIME".to_owned()], 1));
        // One that is left alone holds the next by what the table shows.
        assert_eq!(decided(SESSION, &[(105, 125), (140, 150)], &[(120, 145)]), (vec![], 3));
    }

    #[test]
    fn a_session_without_rows_is_taken_back_also_at_the_beginning_of_the_range() {
        assert_eq!(decided(SESSION, &[], &[(100, 110)]), (vec!["100-110 RETRACTED".to_owned()], 0));
        assert_eq!(decided(SESSION, &[], &[(95, 105), (195, 205)]), (vec![], 0));
    }
}

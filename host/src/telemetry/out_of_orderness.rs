//! How far event time is behind publish time, measured: what the declared out-of-orderness is to be held against.

use crate::time::Micros;
use hdrhistogram::Histogram;

/// How long a histogram is filled.
const SPAN: Micros = 10 * 60 * 1_000_000;
/// What is further behind counts as this, ten years: it is beyond every bound all the same.
const MOST: u64 = 315_360_000_000_000;
/// Significant digits: a figure is right to one per cent.
const DIGITS: u8 = 2;

/// Publish time − event time of the events of the last ten to twenty minutes, in two histograms of which the older is dropped.
#[derive(Debug)]
pub struct OutOfOrderness {
    began: Micros,
    filling: Histogram<u64>,
    before: Histogram<u64>,
}

impl OutOfOrderness {
    /// Nothing was measured yet.
    pub fn new(processing_time: Micros) -> Self {
        let empty = || Histogram::new_with_bounds(1, MOST, DIGITS).expect("the bounds are good");
        Self { began: processing_time, filling: empty(), before: empty() }
    }

    /// Adds events. An event that happened behind its publish time, by its producer's clock, is in order.
    pub fn record(&mut self, publish_minus_event: impl IntoIterator<Item = Micros>, processing_time: Micros) {
        self.turn(processing_time);
        for behind in publish_minus_event {
            self.filling.saturating_record(u64::try_from(behind).unwrap_or(0));
        }
    }

    /// Of a thousand events 999 were no further behind than this, to one per cent. None if there were no events.
    pub fn p999(&mut self, processing_time: Micros) -> Option<Micros> {
        self.turn(processing_time);
        let mut all = self.before.clone();
        all.add(&self.filling).expect("both have the same bounds");
        (!all.is_empty()).then(|| Micros::try_from(all.value_at_quantile(0.999)).unwrap_or(Micros::MAX))
    }

    fn turn(&mut self, processing_time: Micros) {
        let passed = processing_time.saturating_sub(self.began);
        // The clock may have been set back.
        if !(0..SPAN).contains(&passed) {
            std::mem::swap(&mut self.filling, &mut self.before);
            self.filling.reset();
            if passed >= 2 * SPAN {
                self.before.reset();
            }
            self.began = processing_time;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Micros = 1_000_000;
    const MINUTE: Micros = 60 * SECOND;

    fn is_about(measured: Option<Micros>, expected: Micros) {
        let measured = measured.expect("something was measured");
        assert!((measured - expected).abs() <= expected / 100, "{measured} is not about {expected}");
    }

    #[test]
    fn it_is_what_all_events_but_one_in_a_thousand_are_within() {
        let mut measured = OutOfOrderness::new(0);
        assert_eq!(measured.p999(0), None);
        measured.record((0..998).map(|_| SECOND), 0);
        measured.record([20 * SECOND, 3_600 * SECOND], 0);
        is_about(measured.p999(0), 20 * SECOND);
        measured.record([3_600 * SECOND], 0);
        is_about(measured.p999(0), 3_600 * SECOND);
    }

    #[test]
    fn an_event_of_the_future_is_in_order_and_one_of_the_distant_past_as_far_behind_as_can_be() {
        let mut measured = OutOfOrderness::new(0);
        measured.record([-5 * SECOND, Micros::MIN], 0);
        assert_eq!(measured.p999(0), Some(0));
        measured.record([Micros::MAX], 0);
        is_about(measured.p999(0), 3_650 * 86_400 * SECOND);
    }

    #[test]
    fn what_is_older_than_twenty_minutes_is_forgotten() {
        let mut measured = OutOfOrderness::new(0);
        measured.record([30 * SECOND], 0);
        measured.record([SECOND], 11 * MINUTE);
        is_about(measured.p999(20 * MINUTE), 30 * SECOND);
        is_about(measured.p999(21 * MINUTE), SECOND);
        assert_eq!(measured.p999(31 * MINUTE), None);
        measured.record([SECOND], 32 * MINUTE);
        assert_eq!(measured.p999(70 * MINUTE), None, "at once, where nobody asked meanwhile");
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_keep_figures_for_ever() {
        let mut measured = OutOfOrderness::new(100 * MINUTE);
        measured.record([30 * SECOND], 100 * MINUTE);
        is_about(measured.p999(0), 30 * SECOND);
        assert_eq!(measured.p999(10 * MINUTE), None);
    }
}

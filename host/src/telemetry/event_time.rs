//! What a pipeline that measures over windows shows of event time.

use super::out_of_orderness::OutOfOrderness;
use crate::config::Config;
use crate::time::Micros;
use crate::window::watermark::Estimate;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Event time of a pipeline, as it is told.
#[derive(Debug)]
pub(super) struct EventTime {
    declared: Micros,
    limit: u64,
    told: Mutex<Told>,
}

#[derive(Debug)]
struct Told {
    estimate: Option<Estimate>,
    open: BTreeMap<Arc<str>, u64>,
    measured: OutOfOrderness,
}

/// Event time of a pipeline at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventTimeNow {
    /// The watermark and what it comes from; none before it was estimated for the first time.
    pub estimate: Option<Estimate>,
    /// Declared out-of-orderness.
    pub declared: Micros,
    /// Measured out-of-orderness: of a thousand events of the last ten to twenty minutes 999 were within it. None if there were
    /// no events.
    pub measured_p999: Option<Micros>,
    /// Open windows by aggregate.
    pub open: BTreeMap<Arc<str>, u64>,
    /// How many windows may be open, of all aggregates together.
    pub limit: u64,
}

impl EventTime {
    /// Of a pipeline; none if it measures nothing over windows.
    pub(super) fn of(config: &Config, processing_time: Micros) -> Option<Self> {
        let names = config.aggregates.iter().map(|aggregate| aggregate.name.as_str());
        let declared = Micros::try_from(config.watermark.out_of_orderness.as_micros()).unwrap_or(Micros::MAX);
        Self::new(names, declared, config.max_open_windows, processing_time)
    }

    pub(super) fn new<'a>(
        aggregates: impl IntoIterator<Item = &'a str>,
        declared: Micros,
        limit: u64,
        processing_time: Micros,
    ) -> Option<Self> {
        let open: BTreeMap<Arc<str>, u64> = aggregates.into_iter().map(|name| (name.into(), 0)).collect();
        let told = Told { estimate: None, open, measured: OutOfOrderness::new(processing_time) };
        (!told.open.is_empty()).then(|| Self { declared, limit, told: Mutex::new(told) })
    }

    pub(super) fn estimate(&self, estimate: Estimate) {
        self.told(|told| told.estimate = Some(estimate));
    }

    pub(super) fn open(&self, aggregate: &Arc<str>, windows: u64) {
        self.told(|told| {
            told.open.insert(Arc::clone(aggregate), windows);
        });
    }

    pub(super) fn measured(&self, publish_minus_event: impl IntoIterator<Item = Micros>, processing_time: Micros) {
        self.told(|told| told.measured.record(publish_minus_event, processing_time));
    }

    pub(super) fn now(&self, processing_time: Micros) -> EventTimeNow {
        self.told(|told| EventTimeNow {
            estimate: told.estimate,
            declared: self.declared,
            measured_p999: told.measured.p999(processing_time),
            open: told.open.clone(),
            limit: self.limit,
        })
    }

    fn told<T>(&self, look: impl FnOnce(&mut Told) -> T) -> T {
        look(&mut self.told.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl EventTimeNow {
    /// The watermark; none where there is none yet, and where the source has ended and all windows are closed.
    pub fn watermark(&self) -> Option<Micros> {
        let watermark = self.estimate?.watermark;
        (Micros::MIN < watermark && watermark < Micros::MAX).then_some(watermark)
    }
}

//! Metrics in the text format of `OpenMetrics`. A process has one [`Exposition`]; each of its pipelines counts and measures
//! through its own [`Metrics`], and every family has the label `pipeline`.
//!
//! Labels are bounded, whatever events and rules say: stages as [`Tally`](super::tally::Tally) bounds them, event
//! versions to those that a rule serves, everything else to the words of this program.
//!
//! `names` says what there is; `families` holds what is counted as it happens; `scrape` adds what is looked up when it
//! is asked for, `event_time` that of pipelines that measure over windows.

mod event_time;
mod families;
mod handle;
mod label;
mod names;
mod scrape;
#[cfg(test)]
mod tests;

pub use handle::{BatchTimer, EventTimer, Metrics, Retry};

use crate::time::Clock;
use families::Families;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use scrape::Scrape;
use std::sync::Arc;

/// The type of the text, as HTTP says it.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The metrics of a process.
#[derive(Debug)]
pub struct Exposition {
    registry: Registry,
    families: Families,
    scrape: Scrape,
}

impl Default for Exposition {
    /// Metrics of no pipeline yet.
    fn default() -> Self {
        let mut registry = Registry::default();
        let families = Families::register(&mut registry);
        let scrape = Scrape::default();
        registry.register_collector(Box::new(scrape.clone()));
        Self { registry, families, scrape }
    }
}

impl Exposition {
    /// The metrics of one more pipeline. Names are unique: they are the label that tells pipelines apart.
    pub fn pipeline(&self, name: &str, clock: Arc<dyn Clock>) -> Metrics {
        let metrics = Metrics::new(name, clock, &self.families);
        self.scrape.add(metrics.clone());
        metrics
    }

    /// Everything, in the text format of `OpenMetrics`.
    pub fn text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("a String takes all text");
        text
    }
}

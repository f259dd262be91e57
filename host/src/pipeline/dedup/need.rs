//! What recognising events takes, said before a pipeline runs.

use super::{Dedup, REDELIVERY_HORIZON};
use crate::config::{Config, ConfigError, Problem, SourceConfig};
use crate::ledger::KeyNeed;

/// Events a second where the pipeline file does not say how many to expect.
pub const ASSUMED_RATE: f64 = 1_000.0;
/// More memory than this for dedup keys is a mistake in the pipeline file.
const ABSURD: u64 = 8 << 30;

/// What a pipeline's keys take.
#[derive(Debug, Clone, PartialEq)]
pub struct Needs {
    /// Events a second.
    pub rate: f64,
    /// Whether that is only assumed.
    pub is_assumed: bool,
    /// Of message ids, where a message may be delivered again.
    pub redelivery: Option<KeyNeed>,
    /// Of dedup keys.
    pub dedup: Option<DedupNeed>,
}

/// What dedup keys take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DedupNeed {
    /// Within a horizon: so much at most.
    Horizon(KeyNeed),
    /// All keys of a run: so many bytes of disk and of memory for each.
    Run(usize, usize),
}

/// What the keys of a pipeline take.
pub fn needs(config: &Config) -> Needs {
    let given = config.dedup.as_ref().and_then(|dedup| dedup.expected_rate);
    let rate = given.unwrap_or(ASSUMED_RATE);
    let subscription = matches!(config.source, SourceConfig::Pubsub(_));
    let dedup = config.dedup.as_ref().map(|dedup| {
        if subscription {
            DedupNeed::Horizon(KeyNeed::of_claims(rate, dedup.horizon))
        } else {
            let (disk, memory) = KeyNeed::of_a_claim();
            DedupNeed::Run(disk, memory)
        }
    });
    let redelivery = subscription.then(|| KeyNeed::of_ids(rate, REDELIVERY_HORIZON));
    Needs { rate, is_assumed: given.is_none(), redelivery, dedup }
}

impl Dedup {
    /// Refuses what no machine could hold, by the rate that the pipeline file gives itself.
    pub fn refuse_absurd(config: &Config) -> Result<(), ConfigError> {
        match needs(config) {
            Needs { rate, is_assumed: false, dedup: Some(DedupNeed::Horizon(need)), .. } if need.memory > ABSURD => {
                let what = format!(
                    "at {rate} events/s (dedup.expected_rate) {} keys would be kept, in {} GiB of memory: at most {} GiB \
                     are taken. Shorten it, or split the events over several subscriptions with a worker each",
                    need.keys,
                    need.memory >> 30,
                    ABSURD >> 30,
                );
                Err(Problem::new("dedup.horizon", what).into())
            }
            _ => Ok(()),
        }
    }
}

//! What a soak did, and what came of it.

use std::fmt;
use std::time::Duration;

/// The figures of a soak in which every event ended in exactly one place exactly once.
#[derive(Debug, Default, Clone)]
pub struct Report {
    /// Different events.
    pub events: usize,
    /// Messages published: some events were published more than once.
    pub messages: usize,
    /// Rows of silver.
    pub silver: usize,
    /// Rows of quarantine.
    pub quarantine: usize,
    /// Of those, rows that the silver table had refused.
    pub refused: usize,
    /// Workers that were started.
    pub workers: u64,
    /// Workers that were killed.
    pub kills: u64,
    /// Workers that were asked to stop and did.
    pub stops: u64,
    /// Workers that ended by themselves, since their stream was gone.
    pub ended: u64,
    /// Calls that failed at random.
    pub faults: u64,
    /// Times in which a table took nothing.
    pub outages: u64,
    /// Times that all streams were forgotten.
    pub forgotten_streams: u64,
    /// Times that the streams of a table were closed by another.
    pub closed_streams: u64,
    /// Requests to append that were sent.
    pub appends: usize,
    /// Of those, requests whose rows were there already.
    pub repeats: usize,
    /// How long it took.
    pub took: Duration,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} events in {} messages, in {:.0} s", self.events, self.messages, self.took.as_secs_f64())?;
        writeln!(
            f,
            "{} in silver, {} in quarantine ({} of them refused by the table): each once, and nowhere else",
            self.silver, self.quarantine, self.refused
        )?;
        writeln!(
            f,
            "{} workers: {} killed, {} asked to stop, {} ended by themselves",
            self.workers, self.kills, self.stops, self.ended
        )?;
        writeln!(
            f,
            "{} calls failed at random, {} outages, streams forgotten {} times and closed by another {} times",
            self.faults, self.outages, self.forgotten_streams, self.closed_streams
        )?;
        write!(f, "{} appends, of which {} were there already", self.appends, self.repeats)
    }
}

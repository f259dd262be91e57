//! Requests to the worker that holds a ledger, through its inbox: what can be asked for, and what is answered.
//!
//! [`serve`] is the worker's side, [`ask`](mod@ask) that of a command. Where no worker holds the ledger the command does it itself.

pub mod ask;
pub mod serve;

use super::rebuild;
use super::rebuild::report::RebuildReport;
use super::replay;
use super::replay::report::ReplayReport;
use serde::{Deserialize, Serialize};

/// What a worker can be asked for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
pub enum Request {
    /// To replay quarantine.
    Replay(replay::Wanted),
    /// To rebuild windows of an aggregate.
    Rebuild(rebuild::Wanted),
}

impl Request {
    /// What is said where the worker has ended in the middle of it.
    const fn cut(&self) -> &'static str {
        match self {
            Self::Replay(_) => "the worker ended while it replayed: what it had done is not in these counts",
            Self::Rebuild(_) => "the worker ended while it rebuilt: it is done again from its beginning",
        }
    }
}

/// What it answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The replay is done.
    Done(ReplayReport),
    /// The worker ends: this much of the replay is done.
    Begun(replay::Progress),
    /// The rebuild is done.
    Rebuilt(RebuildReport),
    /// The rebuild is refused: what was asked for is at fault.
    Refused(String),
    /// It was not done, or not to its end.
    Failed(String),
}

//! The path of one event from source to warehouse, and the commit protocol that makes it exactly once.
//!
//! [`mod@prepare`] makes every check that can be made before the first event; [`plan`] says which value goes into which
//! column; [`evaluate`] judges on all cores, keeping the order; [`assemble`] turns outcomes into rows, which `takes` holds against what tables take; [`dedup`] recognises what
//! comes again; [`mod@run`] drives micro-batches through the ledger; [`deliver`] sends what the ledger promised until it is confirmed; [`replay`] judges again
//! what is in quarantine.
//!
//! With a rule store [`reload`] follows it and swaps the rules, and [`beside`] judges the same events with other rules, for
//! shadows, canaries and guards; `serving` holds all that judges a run, and `tables` follows tables that somebody changes.
//! [`mod@watermark`] says how far event time is.
//!
//! [`windows`] puts accepted events into windows by their event time and makes rows of what those say; [`rebuild`] makes them anew
//! from silver. Commands ask a running worker by [`requests`].
//!
//! Nothing is acknowledged before all its rows are durable in the warehouse, quarantine included.

pub mod assemble;
pub mod beside;
mod bound;
mod commit;
pub mod dedup;
pub mod deliver;
pub mod error;
pub mod evaluate;
pub mod facts;
pub mod keys;
mod loading;
pub mod options;
pub mod plan;
pub mod prepare;
pub mod rebuild;
pub mod reload;
mod replace;
pub mod replay;
pub mod report;
pub mod requests;
pub mod retry;
pub mod run;
mod serving;
mod start;
mod tables;
mod takes;
mod threads;
pub mod watermark;
pub mod windows;

pub use crate::stop::Stop;
pub use error::RunError;
pub use options::Options;
pub use plan::{Known, late_columns, latest_view, pane_columns, rule_digest_column, silver_columns, upsert};
pub use prepare::{Prepared, SourceFound, prepare, refusals, rules};
pub use report::{Course, Report, SilverBy};
pub use run::run;

//! Following a rule store: a new revision is built aside, verified and then swapped in as one value.
//!
//! [`begin`] gives a run its first rule set; [`follow`] is the thread that looks at the store, has sets built by
//! `build`, and publishes them; `state` decides what to do, `trips` rolls back, `saved` is what a worker remembers
//! beside its ledger, `report` what it says of itself.
//!
//! Invariants: what serves is always a set that passed every check. A revision that fails changes nothing but what is
//! said of it. A micro-batch keeps the set it started with.

pub mod begin;
mod build;
pub mod follow;
pub mod report;
mod saved;
mod state;
mod trips;

pub use begin::Begun;
pub(super) use begin::begin;
pub use follow::{Follower, Message};

//! Following a rule store: a new revision is built aside, verified and then swapped in as one value.
//!
//! [`begin`] gives a run its first rule set; [`follow`] is the thread that looks at the store, builds, and publishes;
//! `state` decides what to do, `saved` is what a worker remembers beside its ledger.
//!
//! Invariants: what serves is always a set that passed every check. A revision that fails changes nothing but what is
//! said of it. A micro-batch keeps the set it started with.

pub mod begin;
pub mod follow;
pub mod report;
mod saved;
mod state;
mod trips;

pub use begin::Begun;
pub(super) use begin::begin;
pub use follow::{Follower, Message};

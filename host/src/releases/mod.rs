//! Releases: which component serves which event version, in which role, and the rule store that holds them.
//!
//! A rule store is a directory:
//!
//! ```text
//! components/<sha256>.wasm     content-addressed, never changed
//! fixtures/<sha256>/*.ndjson   what each component must hold to
//! releases.toml                the releases of now, with a revision that counts up
//! history.ndjson               every change: when, who, what, why
//! workers/*.json               what each worker that reads the store says of itself
//! lock                         held while something is changed
//! ```
//!
//! [`model`] is `releases.toml` as a value and [`change`] what may be done to it, both pure; [`store`] is the directory,
//! read; [`mod@stage`], [`commit`] and [`gc`] change it, each under the lock; [`history`] records that; [`worker`] is
//! what a worker says of itself.
//!
//! Invariants: every file is replaced whole; `releases.toml` is the commit point, and the history is completed from it;
//! a component that a release names is in the store, and has fixtures.

pub mod change;
pub mod commit;
pub mod find;
pub mod gc;
pub mod history;
mod lock;
pub mod model;
pub mod stage;
pub mod store;
pub mod worker;
pub mod workers;

pub use change::{Change, Refusal};
pub use commit::ChangeError;
pub use find::FindError;
pub use history::Record;
pub use model::{Release, Releases, Roles};
pub use store::{RuleStore, StoreError};

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
//! ```
//!
//! [`model`] is `releases.toml` as a value and [`change`] what may be done to it, both pure; [`store`] is the directory;
//! [`worker`] is what a worker says of itself.

pub mod change;
pub mod model;
pub mod store;
pub mod worker;

pub use change::{Change, Refusal};
pub use model::{Release, Releases, Roles};
pub use store::{RuleStore, StoreError};

//! Preflight: rules as sandboxed WebAssembly components over streams and files.
//!
//! The path of one event, and the modules along it:
//!
//! ```text
//! source ─► rules ─► pipeline ─► ledger ─► warehouse
//! events    verdicts  rows        durable   append at an offset
//! ```
//!
//! Dependence goes one way: [`event`], [`row`], [`verdict`], [`time`], [`running_time`] ← [`window`], [`rules`], [`source`], [`ledger`],
//! [`warehouse`] ← [`releases`] ← [`telemetry`] ← [`pipeline`], [`diff`], [`simulate`], [`admin`] ← [`provision`] ← [`cli`]. Only
//! [`rules`] names wasmtime; only [`google`], [`source::pubsub`], [`warehouse::bigquery`] and [`provision`] name crates of
//! Google's services.

pub mod admin;
pub mod cli;
pub mod config;
pub mod diff;
pub mod digest;
pub mod event;
pub mod failpoint;
pub mod files;
pub mod fixtures;
pub mod google;
pub mod ledger;
pub mod pace;
pub mod pipeline;
pub mod provision;
pub mod record;
pub mod reject_files;
pub mod releases;
pub mod row;
pub mod rules;
pub mod running_time;
pub mod simulate;
pub mod source;
pub mod stop;
pub mod telemetry;
pub mod time;
pub mod verdict;
pub mod warehouse;
pub mod window;

/// The version and the commit it was built from.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("PREFLIGHT_COMMIT"), ")");
